"""Which layers a trained model can do without: strategies, surgery, and the curves of quality against depth."""
