"""Weights & Biases, or whatever else shows a run while it goes on."""
