"""Quality against depth of a trained model: every point measured, stored, drawn."""
