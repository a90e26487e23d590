"""Scripts, words and results of commands that their tests share."""

from pathlib import Path

from ablab.api import open as open_store

TRAIN = """
import argparse, json, random, sys
words = argparse.ArgumentParser()
for name in ("schedule", "seed", "out"):
    words.add_argument(f"--{name}")
asked = words.parse_args()
noise = random.Random(f"{asked.seed} {asked.schedule}").gauss(0, 0.02)
loss = 2.0 - 0.3 * (asked.schedule == "cosine") + noise
print("trains with", asked.schedule)
json.dump({"scores": {"val_loss": loss}}, open(asked.out, "w"))
"""
STUDY = """
question: Does cosine decay beat linear decay?
command: [python, train.py, --schedule, "{schedule}", --seed, "{seed}", --out, "{result}"]
inputs: [train.py]
scores: {val_loss: {better: lower, unit: nats}}
factors: {schedule: [linear, cosine]}
seeds: [1, 2, 3]
claims: [{arm: schedule=cosine, expect: less, margin: 0.01}]
"""


def words_of(script, *more):
    """Return the words of one run of a script."""
    Path("one.py").write_text(f"import json, os, signal, sys, time\nout, seed = sys.argv[1:3]\n{script}\n")
    command = "task.command=[python,one.py,'{result}','{seed}']"
    scores = "task.scores={loss: {better: lower}}"
    return ["task=command", command, scores, "task.inputs=[one.py]", "logger=none", *more]


def result(content):
    """Return the statement that writes a result."""
    return f"open(out, 'w').write({content!r})"


DONE = result('{"scores": {"loss": 1}}')


def only_run():
    (run,) = open_store("outputs").runs()
    return run
