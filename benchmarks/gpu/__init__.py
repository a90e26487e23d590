"""What holds on a GPU, and how fast it is there."""
