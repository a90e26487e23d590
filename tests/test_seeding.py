"""Every draw has its own stream: a function of the seed and of the names, and of nothing else."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import ablab
from ablab.seeding import derive

names = st.lists(st.one_of(st.sampled_from(["order", "init", "layerdrop"]), st.integers(0, 99)), max_size=3)


@given(st.integers(0, 2**63 - 1), names)
def test_equal_names_give_equal_seeds_that_every_generator_takes(seed, path):
    value = derive(seed, *path)
    assert value == derive(seed, *path)
    assert 0 <= value < 2**63


def test_other_names_and_other_seeds_give_other_streams():
    streams = [(seed, name, step) for seed in range(5) for name in ("order", "init", "drophead") for step in range(40)]
    assert len({derive(*stream) for stream in streams}) == len(streams)


def test_names_are_not_run_together():
    paths = [("a", "b"), ("ab",), ("a", "", "b"), ("b", "a"), ("a",), ()]
    assert len({derive(1, *path) for path in paths}) == len(paths)
    assert derive(1, 23) != derive(12, 3)


def test_neighbouring_streams_are_independent():
    """Streams of consecutive steps show no correlation beyond chance."""
    draws = np.array([np.random.default_rng(derive(1, "x", step)).random(200) for step in range(20)])
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in itertools.combinations(draws, 2)]
    assert abs(np.mean(correlations)) < 3 / np.sqrt(200 * len(correlations))


def test_the_same_on_every_machine_and_in_every_process():
    program = "from ablab.seeding import derive; print(derive(7, 'order', 3))"
    environment = {**os.environ, "PYTHONPATH": str(Path(ablab.__file__).parents[1]), "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout) == derive(7, "order", 3)
