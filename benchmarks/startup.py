"""What stands between a run and its first step: a cold `python train.py`, against the local launcher of a sweep.

    python benchmarks/startup.py [repetitions]

And what two runs at a time gain over one: seconds of equal sweeps. Medians, the two kinds in turns.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from ablab.metrics import read_metrics

ROOT = Path(__file__).parents[1]
TINY = (
    *(
        "model.d_model=32",
        "model.d_ff=64",
        "model.num_heads=2",
        "logger=none",
        "pruning=none",
        "trainer.progress=false",
    ),
    *("data.train_size=500", "data.valid_size=10", "data.test_size=10", "data.vocab_size=300", "trainer.threads=1"),
)
SHORT = ("training.max_steps=10", "training.valid_every=10")
LONG = ("training.max_steps=300", "training.valid_every=300")


def typed(words: tuple[str, ...], outputs: Path) -> float:
    """Seconds of the whole command."""
    began = time.time()
    subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *words, f"outputs={outputs}"], check=True, capture_output=True
    )
    return time.time() - began


def begun(run: Path) -> float:
    """By the clock: the record's end less what training took would hide evaluation, so the checkpoint's time it is."""
    return (run / "checkpoints" / "last.pt").stat().st_mtime - read_metrics(run / "metrics.csv")[0]["seconds"]


def cold(outputs: Path, seed: int) -> float:
    """From the command to the beginning of training, a new seed each time."""
    before = set((outputs / "runs").glob("r*"))
    began = time.time()
    typed((*TINY, *SHORT, f"seed={seed}"), outputs)
    (run,) = set((outputs / "runs").glob("r*")) - before
    return begun(run) - began


def warm(outputs: Path, seeds: range) -> list[float]:
    """From the hand-over to the beginning of training; the first run of a sweep, which starts the server, left out."""
    before = set((outputs / "runs").glob("r*"))
    words = (*(word for word in TINY if "trainer." not in word), "hydra.launcher.threads=1")
    typed(("-m", *words, *SHORT, f"seed={','.join(map(str, seeds))}"), outputs)
    runs = sorted(set((outputs / "runs").glob("r*")) - before, key=begun)
    # A run is handed over when the one before it has ended: its log is the last thing that is written.
    return [begun(run) - (earlier / "log.txt").stat().st_mtime for earlier, run in pairwise(runs)]


def main() -> None:
    """Both tables."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    outputs = Path(tempfile.mkdtemp(prefix="startup."))
    typed((*TINY, *SHORT, "seed=1"), outputs)  # the corpus is made once
    colds, warms = [], []
    for turn in range(repetitions):
        colds.append(cold(outputs, 100 + turn))
        warms += warm(outputs, range(1000 + 10 * turn, 1004 + 10 * turn))
    one, two = statistics.median(colds), statistics.median(warms)
    print(f"to the first step: cold {one:.2f} s (n={len(colds)}), local {two:.2f} s (n={len(warms)}), {one / two:.1f}x")
    words = (*(word for word in TINY if "trainer." not in word), *LONG, "hydra.launcher.threads=1")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(repetitions):
        for jobs in (1, 2):
            start = 10000 + 100 * turn + 10 * jobs
            seeds = ",".join(str(seed) for seed in range(start, start + 6))
            seconds[jobs].append(typed(("-m", *words, f"seed={seeds}", f"hydra.launcher.jobs={jobs}"), outputs))
    one, two = (statistics.median(seconds[jobs]) for jobs in (1, 2))
    print(f"6 runs of 300 steps: jobs=1 {one:.1f} s, jobs=2 {two:.1f} s, {one / two:.2f}x")


if __name__ == "__main__":
    main()
