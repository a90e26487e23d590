"""What stands between a command and its first step, and what a sweep of short runs takes, beside others.

    python -m benchmarks.speed.sweeps data.path=../multi30k [rounds=3] [runs=4] [steps=5] [systems=ablab,torch]

Medians, everybody in turns. Who has no sweep of their own is started again for each run, as a shell script would. The
corpus has been encoded before, where a system can keep that.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ablab.store.run_folder import RunFolder
from ablab.store.spent import read_spent
from ablab.text import aligned
from benchmarks.speed.field import Field, python_of
from benchmarks.speed.machine import name_of_machine

RESULTS = Path(__file__).parents[1] / "results" / "sweeps.json"


class Swept(NamedTuple):
    """`seconds`: of all runs; `first`, `later`: to a run's first step, from when it could begin, of those that begin
    together at first, and of the others.
    """

    seconds: float
    first: list[float]
    later: list[float]


Race = Callable[[], Swept]


def main() -> None:
    """Rounds of everybody."""
    options, field = Field.typed(rounds="3", runs="4", steps="5", systems="ablab,torch,transformers,joeynmt")
    racers = _racers(field, int(options["runs"]), int(options["steps"]), options["systems"].split(","))
    found: dict[str, list[Swept]] = {name: [] for name in racers}
    for number in range(1, int(options["rounds"]) + 1):
        for name, race in racers.items():
            found[name].append(race())
            print(f"round {number}  {name}: {found[name][-1].seconds:.1f} s", flush=True)
    _tell(found, field.threads, int(options["runs"]), int(options["steps"]))


def _racers(field: Field, runs: int, steps: int, systems: list[str]) -> dict[str, Race]:
    prepared, many = str(field.prepared()), str(steps)
    fresh = count(1)

    def peer(module: str, *arguments: str, python: Path | str = sys.executable) -> Swept:
        began = [time.time()]
        to_first_step = []
        for _ in range(runs):
            first = field.said(["-m", f"benchmarks.speed.peers.{module}", *arguments], python)["first_step"]
            to_first_step.append(first - began[-1])
            began.append(time.time())
        return Swept(began[-1] - began[0], to_first_step[:1], to_first_step[1:])

    def seeds() -> list[int]:
        return [next(fresh) for _ in range(runs)]

    every: dict[str, dict[str, Race]] = {
        "ablab": {
            f"ablab, one sweep, {field.threads} at a time": lambda: _swept(field, steps, seeds(), field.threads),
            "ablab, one sweep, one at a time": lambda: _swept(field, steps, seeds(), 1),
            "ablab, a command per run": lambda: _one_by_one(field, steps, seeds()),
        },
        "torch": {"torch.nn": partial(peer, "torch_nn", prepared, many, "fp32", "sublayers")},
        "transformers": {
            "Hugging Face Marian": lambda: peer("marian", prepared, many, "fp32", python=python_of("transformers"))
        },
        "joeynmt": {"JoeyNMT": lambda: peer("joeynmt", "train", str(field.work), many, python=python_of("joeynmt"))},
    }
    return {name: race for system in systems for name, race in every[system].items()}


def _swept(field: Field, steps: int, seeds: list[int], jobs: int) -> Swept:
    with _store(field) as folder:
        words = [word for word in _words(field, folder, steps) if not word.startswith("trainer.")]
        own = [
            f"seed={','.join(map(str, seeds))}",
            f"hydra.launcher.jobs={jobs}",
            f"hydra.launcher.threads={field.threads // jobs}",
        ]
        began = time.time()
        field.run(["train.py", "-m", *words, *own])
        seconds = time.time() - began
        runs = sorted(folder.glob("runs/r*"), key=_begun)
        # The first of those at once wait for the server to start; a later run, for one of them to end.
        free = sorted([began] * jobs + [(run / "log.txt").stat().st_mtime for run in runs])
        to_first_step = [_begun(run) - at for run, at in zip(runs, free, strict=False)]
        return Swept(seconds, to_first_step[:jobs], to_first_step[jobs:])


def _one_by_one(field: Field, steps: int, seeds: list[int]) -> Swept:
    with _store(field) as folder:
        began = [time.time()]
        for seed in seeds:
            field.run(["train.py", *_words(field, folder, steps), f"seed={seed}"])
            began.append(time.time())
        runs = sorted(folder.glob("runs/r*"), key=_begun)
        to_first_step = [_begun(run) - at for run, at in zip(runs, began, strict=False)]
        return Swept(began[-1] - began[0], to_first_step[:1], to_first_step[1:])


@contextmanager
def _store(field: Field) -> Iterator[Path]:
    """A new one, with the encoded corpus of the others."""
    with tempfile.TemporaryDirectory(dir=field.work) as folder:
        (Path(folder) / "corpora").symlink_to(field.outputs / "corpora")
        yield Path(folder)


def _words(field: Field, folder: Path, steps: int) -> list[str]:
    """ablab's line; translating is no part of the race, so there is next to nothing to translate."""
    return [
        *(word for word in field.line if not word.startswith("outputs=")),
        *("data.valid_pairs=4", "data.test_pairs=4", f"training.max_steps={steps}", f"training.valid_every={steps}"),
        f"outputs={folder}",
    ]


def _begun(run: Path) -> float:
    """When training began, by the clock: the account of the run's time was last written so many seconds later."""
    folder = RunFolder(run)
    spent = read_spent(folder.spent)
    assert spent is not None
    return folder.spent.stat().st_mtime - sum(seconds for part, seconds in spent.items() if part != "prepare")


def _median(seconds: Iterator[float]) -> str:
    """None of later runs, where all of a sweep begin together."""
    known = list(seconds)
    return f"{statistics.median(known):.2f}" if known else "none"


def _tell(found: dict[str, list[Swept]], threads: int, runs: int, steps: int) -> None:
    columns = [
        "s to the first step",
        "of a later run",
        f"s for {runs} runs of {steps} steps",
        "lowest",
        "highest",
        "ratio",
    ]
    rows = [["system", *columns]]
    medians = {name: statistics.median(swept.seconds for swept in rounds) for name, rounds in found.items()}
    for name, rounds in found.items():
        seconds = [swept.seconds for swept in rounds]
        ratio = medians[name] / min(medians.values())
        rows.append(
            [
                name,
                _median(s for swept in rounds for s in swept.first),
                _median(s for swept in rounds for s in swept.later),
                f"{medians[name]:.1f}",
                f"{min(seconds):.1f}",
                f"{max(seconds):.1f}",
                f"{ratio:.2f}",
            ]
        )
    for line in aligned(rows, left=1):
        print(line.rstrip())
    content = {
        "machine": name_of_machine(),
        "threads": threads,
        "runs": runs,
        "steps": steps,
        "rounds": {name: [swept._asdict() for swept in rounds] for name, rounds in found.items()},
        "medians": medians,
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
