"""The dashboard of a study in W&B: a workspace to look around in, and a W&B Report with its verdicts."""
