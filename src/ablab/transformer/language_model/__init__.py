"""The task of language models: what the platform knows of a run that learns to continue text."""
