"""Training: loss, schedules, the training loop, validation, checkpoints and multiple processes."""
