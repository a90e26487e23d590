"""Pruning of layers from a trained model: strategies, search, surgery, and curves of quality against depth."""
