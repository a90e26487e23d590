"""A loop of a small program, and what its tests ask of it."""

from pathlib import Path

from ablab.commands.cli import main
from ablab.study.loop import Ledger

TRAIN = """
import json, random, sys, time
lr, width, seed, out, seen = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
open("started.txt", "a").write(seed + "\\n")
time.sleep(float(open("pause.txt").read()))
if width > 99:
    sys.exit("no memory for it")
loss = 1 - 0.5 * (lr > 0.1) - 0.3 * (width > 8) + 0.3 * (width < 8) + random.Random(seed).gauss(0, 0.01)
json.dump({"scores": {"val_loss": float("nan") if lr > 9 else loss + 5 * (seen == "test")}}, open(out, "w"))
"""


LOOP = """
question: What makes the trainer better?
command: [python, train.py, "{lr}", "{width}", "{seed}", "{result}", "{seen}"]
inputs: [train.py]
scores: {val_loss: {better: lower, digits: 3}}
common: [lr=0.1, width=8, seen=dev, logger=none]
metric: val_loss
margin: 0.05
floor: 3
looks: [1, 2]
stop: [0.3]
budget: {proposals: 4, runs: 40}
confirmation: {seeds: 2, sealed: [seen=test]}
"""


def propose(*words, because="it should help"):
    return main(["try", *words, f"because={because}", "hydra.launcher.jobs=4"])


def book():
    found = Ledger(Path("outputs"), "loop").read()
    assert found is not None
    return found


def started():
    return Path("started.txt").read_text().split()
