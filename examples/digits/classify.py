"""Trains a random forest on handwritten digits, and writes whether it is right, for each digit that it has not seen."""

import argparse
import json

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

options = argparse.ArgumentParser()
options.add_argument("--features", choices=["sqrt", "all"], required=True)
options.add_argument("--trees", type=int, required=True)
options.add_argument("--seed", type=int, required=True)
options.add_argument("--out", required=True)
asked = options.parse_args()

digits = load_digits()
split = train_test_split(digits.data, digits.target, test_size=0.5, random_state=0, stratify=digits.target)
seen, held_out, labels, expected = split
features = None if asked.features == "all" else asked.features
forest = RandomForestClassifier(asked.trees, max_features=features, random_state=asked.seed)
right = (forest.fit(seen, labels).predict(held_out) == expected).astype(int).tolist()
with open(asked.out, "w") as file:
    json.dump({"scores": {"accuracy": sum(right) / len(right)}, "items": {"accuracy": right}}, file)
