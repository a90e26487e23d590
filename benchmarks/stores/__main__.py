"""Seconds that commands take in stores of many runs, and how these grow with their number.

    python -m benchmarks.stores [runs=1000,3000,10000] [rounds=3] [sentences=1000] [report=true] [folder=...]

The runs are made up (`made`): 100 arms with equally many seeds each. Each command is a
process of its own; medians of its seconds on the clock and of processor time. `first list` is the one that finds no
index. `plan` is of a study of so many arms with one seed each, none of which has begun.
"""

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ablab.store.index import INDEX
from ablab.text import aligned
from benchmarks.speed.machine import name_of_machine
from benchmarks.stores.made import experiment, fill

RESULTS = Path(__file__).parents[1] / "results" / "stores.json"
ARMS = (20, 5)


class Taken(NamedTuple):
    """Seconds on the clock, and of all processors."""

    wall: float
    processor: float


def main() -> None:
    """Make the stores, time every command in turns, print a table and write it."""
    options = {"runs": "1000,3000,10000", "rounds": "3", "sentences": "1000", "report": "true", "folder": ""}
    options |= dict(word.split("=", 1) for word in sys.argv[1:])
    sizes, rounds = [int(size) for size in options["runs"].split(",")], int(options["rounds"])
    top = Path(options["folder"] or tempfile.mkdtemp(prefix="stores."))
    found: dict[str, dict[int, Taken]] = {}
    for size in sizes:
        lines = _lines(top / str(size), size, int(options["sentences"]), report=options["report"] == "true")
        taken: dict[str, list[Taken]] = {name: [] for name in lines}
        for _ in range(rounds):
            for name, line in lines.items():
                if name == "first list":
                    (top / str(size) / "outputs" / INDEX).unlink(missing_ok=True)
                taken[name].append(_timed(line))
                print(f"{size:,} runs  {name}: {taken[name][-1].wall:.1f} s", flush=True)
        for name, several in taken.items():
            medians = Taken(*(statistics.median(column) for column in zip(*several, strict=True)))
            found.setdefault(name, {})[size] = medians
    _tell(found, sizes, options)


def _lines(top: Path, runs: int, sentences: int, *, report: bool) -> Mapping[str, list[str]]:
    """Make a store, unless it is there, and return the words of each command."""
    top.mkdir(parents=True, exist_ok=True)
    store = f"outputs={top / 'outputs'}"
    path = experiment(top, ARMS, runs // math.prod(ARMS))
    if not (top / "outputs").exists():
        began = time.perf_counter()
        run_id = fill((f"experiment={path}", store), sentences).cells[0].planned.run_id
        _timed(["train", "-m", f"experiment={path}", store])  # the first one draws its pictures
        print(f"{runs:,} runs made in {time.perf_counter() - began:.0f} s", flush=True)
    run_id = sorted(path.name for path in (top / "outputs" / "runs").glob("r*"))[0]
    many = experiment(top, (100, max(runs // 100, 2)), 1)
    lines = {
        "first list": ["ls", store],
        "list": ["ls", store],
        "list with conditions": ["ls", "where=layerdrop<0.01", "sort=-test_bleu", "format=json", store],
        "study": ["study", f"experiment={path}", store],
        "finished study typed again": ["train", "-m", f"experiment={path}", store],
        "run by its prefix": ["show", f"run={run_id[:8]}", store],
        "plan": ["study", f"experiment={many}", f"outputs={top / 'empty'}"],
    }
    return {**lines, "report": ["report", f"experiment={path}", store]} if report else lines


def _timed(words: list[str]) -> Taken:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "ablab", *words], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _growth(taken: Mapping[int, Taken]) -> float | None:
    """Return the exponent of processor time in the number of runs, by least squares; None for one size."""
    if len(taken) < 2:
        return None
    sizes = [math.log(size) for size in taken]
    return statistics.linear_regression(sizes, [math.log(each.processor) for each in taken.values()]).slope


def _tell(found: Mapping[str, Mapping[int, Taken]], sizes: list[int], options: Mapping[str, str]) -> None:
    rows = [["", *(f"{size:,} runs" for size in sizes), "growth"]]
    for name, taken in found.items():
        growth = _growth(taken)
        cells = [f"{each.wall:.1f} s ({each.processor:.1f} s)" for each in taken.values()]
        rows.append([name, *cells, "" if growth is None else f"{growth:.2f}"])
    for line in aligned(rows, left=1):
        print(line)
    content = {
        "machine": name_of_machine(),
        "rounds": int(options["rounds"]),
        "sentences": int(options["sentences"]),
        "seconds": {
            name: {"growth": _growth(taken), **{str(size): each._asdict() for size, each in taken.items()}}
            for name, taken in found.items()
        },
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
