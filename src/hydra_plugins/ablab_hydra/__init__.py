"""Hydra plugins: the launchers and sweepers with which ablab executes `-m`."""
