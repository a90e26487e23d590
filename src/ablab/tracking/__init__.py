"""Experiment trackers, such as Weights & Biases, that show a run while it goes on."""
