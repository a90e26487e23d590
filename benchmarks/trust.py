"""What the checks of a run cost, and whether a run trains as fast beside W&B as without it.

    python -m benchmarks.trust [rounds=5] [steps=400] [checks=false]

The first is the time that one default run spends in digests, the register, owner tokens, guards and heartbeats. For the
second, the same line is typed without a tracker, with W&B offline, and online with a local server that answers or is
slow, by turns; compared is the time of training on record.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from tests.tracking.server import Server

LINE = ("pruning=none", "trainer.progress=false")

CHECKED = "--checked"
"""Word by which this file runs one line with its checks timed, in a process of its own."""


def main() -> None:
    """Print both."""
    options = dict(word.split("=", 1) for word in sys.argv[1:])
    rounds, steps = int(options.get("rounds", 5)), int(options.get("steps", 400))
    with tempfile.TemporaryDirectory() as folder:
        if options.get("checks") != "false":
            _print_checks(Path(folder))
        _print_trackers(Path(folder), rounds, steps)


def _print_checks(folder: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.trust", CHECKED, *LINE, f"outputs={folder}/checked", "logger=none"]
    last = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    found = json.loads(last)
    whole = found.pop("all of the command")
    for name, (calls, seconds) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"{name:<24} {calls:>6,} calls {1000 * seconds:>8.1f} ms")
    spent = sum(seconds for _, seconds in found.values())
    print(f"checks {spent:.3f} s of {whole:.1f} s: {100 * spent / whole:.2f} %", flush=True)


def _checked(words: list[str]) -> None:
    """Run one line with a clock around each check. The wrappers are there before anything imports what they wrap."""
    from ablab import files
    from ablab.commands.cli import main as ablab
    from ablab.store import heartbeat, locks, register

    spent: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    inside: list[str] = []

    def clocked(owner: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)
        key = f"{owner.__name__.rpartition('.')[2]}.{name}"

        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            begun, outermost = time.perf_counter(), not inside
            inside.append(name)
            try:
                return function(*arguments, **named)
            finally:
                inside.pop()
                if outermost:  # a digest inside the register is the register's time
                    calls, seconds = spent[key]
                    spent[key] = calls + 1, seconds + time.perf_counter() - begun

        setattr(owner, name, timed)

    clocked(files, "sha256")
    clocked(files, "check_guards")
    clocked(register.Register, "write")
    clocked(register.Register, "append")
    clocked(locks.Owner, "check")
    clocked(heartbeat.Heartbeat, "beat")
    begun = time.perf_counter()
    ablab(["train", *words])
    print(json.dumps({**spent, "all of the command": time.perf_counter() - begun}))


def _print_trackers(folder: Path, rounds: int, steps: int) -> None:
    servers = {"answers": Server("accepts"), "is slow": Server("slow")}
    ways: dict[str, tuple[list[str], Mapping[str, str]]] = {
        "no tracker": (["logger=none"], {}),
        "W&B offline": (["logger=wandb", "logger.mode=offline"], {}),
    }
    for name, server in servers.items():
        ways[f"W&B {name}"] = (["logger=wandb", "logger.mode=online"], server.environment)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for place, (name, (words, variables)) in enumerate(ways.items()):
            store = folder / f"{number}-{place}"
            line = [*LINE, f"training.max_steps={steps}", *words, f"outputs={store}"]
            command = [sys.executable, "train.py", *line]
            subprocess.run(command, check=True, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
            (path,) = store.glob("runs/*/record.json")
            seconds[name].append(json.loads(path.read_text())["cost"]["train_seconds"])
    usual = seconds["no tracker"]
    for name, found in seconds.items():
        ratios = [one / other for one, other in zip(found, usual, strict=True)]
        print(f"{name:<12} {statistics.median(found):6.2f} s of training", end="")
        print(f"   {statistics.median(ratios):.3f} of no tracker ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    for server in servers.values():
        server.close()


if __name__ == "__main__":
    if CHECKED in sys.argv:
        from ablab import files  # noqa: F401  # before all that imports it

        _checked([word for word in sys.argv[1:] if word != CHECKED])
    else:
        main()
