"""A trainer of a line, by gradient descent on noisy data: its loss depends on rate, momentum and size of batches."""

import argparse
import json
import random

parser = argparse.ArgumentParser()
for name in ("rate", "momentum", "batch", "decay", "colour", "order", "seed", "on", "out"):
    parser.add_argument(f"--{name}")
asked = parser.parse_args()

rate, momentum, batch = float(asked.rate), float(asked.momentum), int(asked.batch)
# Colour and order change nothing but the draws: changes of them are true ones of the recipe, without effect.
rng = random.Random(f"{asked.seed} {asked.colour} {asked.order} {asked.rate} {asked.momentum} {asked.batch}")
weight, speed = 0.0, 0.0
for _ in range(60):
    slope = sum(weight - 1 + rng.gauss(0, 1) for _ in range(batch)) / batch + float(asked.decay) * weight
    speed = momentum * speed - rate * slope
    weight += speed
items = 400 if asked.on == "test" else 200
loss = (weight - 1) ** 2 + sum(rng.gauss(0, 0.2) for _ in range(items)) / items
with open(asked.out, "w") as file:
    json.dump({"scores": {"val_loss": loss}}, file)
