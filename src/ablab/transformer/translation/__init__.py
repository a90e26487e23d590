"""The task that ablab was built for: what the platform knows of a run in translation."""
