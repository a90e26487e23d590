"""Runs nanoGPT's train.py, whose seed is fixed, under a seed of ours, and writes the best validation loss of its run.

Words: the seed, the folder of checkpoints, the file for the result, and those of train.py.
"""

import json
import os
import runpy
import sys

import torch

seed, folder, result, *words = sys.argv[1:]
original = torch.manual_seed
torch.manual_seed = lambda number: original(number + int(seed))
sys.argv = ["train.py", *words, f"--out_dir={folder}"]
runpy.run_path("train.py", run_name="__main__")
kept = torch.load(os.path.join(folder, "ckpt.pt"), map_location="cpu", weights_only=False)
with open(result, "w") as file:
    json.dump({"scores": {"val_loss": float(kept["best_val_loss"])}}, file)
