"""The training loop: loss, schedules, validation, checkpoints, several processes."""
