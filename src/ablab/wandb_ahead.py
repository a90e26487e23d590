"""What an offline run imports of wandb, when it begins and again when it ends its start: for whoever forks many runs.

It takes seconds, of which most go to `wandb.init` importing what only Launch jobs need.
"""

import os

# As in mirror.py, and before wandb is imported.
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")

import wandb.sdk.launch.inputs.internal  # noqa: F401
