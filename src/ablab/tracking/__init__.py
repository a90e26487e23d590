"""What shows a run while it goes on: the console, and experiment trackers such as Weights & Biases."""
