"""Preload of the wandb modules that offline runs import, for a process that then forks many runs.

The import takes seconds. Most of them go to what W&B Launch needs, which `wandb.init` imports for every run.
"""

import os

# As in tracker.py; it must precede the import of wandb.
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")

import wandb.sdk.launch.inputs.internal  # noqa: F401
