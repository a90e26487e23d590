"""Where the time of a whole run goes, from the line to the table, beside another checkout; and how precise speeds are.

    python -m benchmarks.speed.run [rounds=3] [before=FOLDER] [WORDS of the line ...]

Checkouts take turns, each run in a store of its own. `overhead`: seconds of the whole line over those of training,
which are its steps and validations. Seconds of processors change less than those of the clock where others work on the
machine; both are told. Then the models of the last curve are timed in turns as in a run, again and again, and compared
with all of these timings together: at most 3 % off is the goal, and 1.2 of the overhead.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablab.store.run_folder import RunFolder
from ablab.store.spent import PARTS, read_spent
from ablab.text import aligned
from benchmarks.speed.machine import conditions
from benchmarks.speed.task import ROOT

RESULTS = Path(__file__).parents[1] / "results" / "run.json"
OPTIONS = {"rounds": "3", "before": "", "timings": "12"}


def main() -> None:
    """Rounds of both checkouts, and the precision of this one."""
    own = dict(word.split("=", 1) for word in sys.argv[1:] if word.partition("=")[0] in OPTIONS)
    options, words = OPTIONS | own, [word for word in sys.argv[1:] if word.partition("=")[0] not in OPTIONS]
    checkouts = {"now": ROOT, **({"before": Path(options["before"])} if options["before"] else {})}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory(prefix="ablab-run-") as top:
        for number in range(int(options["rounds"])):
            for name, checkout in checkouts.items():
                outputs = Path(top) / f"{name}{number}"
                found[name].append(_timed(checkout, words, outputs))
                print(f"round {number + 1}  {name}: {json.dumps(found[name][-1])}", flush=True)
        precision = _precision(Path(top) / f"now{int(options['rounds']) - 1}", int(options["timings"]))
    _tell(found, precision, words)


def _timed(checkout: Path, words: list[str], outputs: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])}
    line = [sys.executable, "train.py", f"outputs={outputs}", "logger=none", "trainer.progress=false", *words]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(line, check=True, cwd=checkout, env=environment, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    run = _run(outputs)
    record = run.record()
    assert record is not None
    return {
        "wall": wall,
        "processors": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "training": record.cost.seconds,
        "steps": record.cost.train_seconds,
        "overhead": wall / record.cost.seconds,
        **(read_spent(run.spent) or {}),
        "timing": [curve.timing for curve in run.curves()],
    }


def _run(outputs: Path) -> RunFolder:
    (path,) = (path for path in (outputs / "runs").iterdir() if path.is_dir())
    return RunFolder(path)


def _precision(outputs: Path, timings: int) -> dict[str, Any]:
    """Time the models of a run's curve `timings` times as its own curve did, and compare each with all together."""
    from ablab.store.finished import FinishedRun
    from ablab.tasks.plan import reopened
    from ablab.transformer.decoding.speed import SHARE
    from ablab.transformer.pruning.surgery import kept_at, prune
    from ablab.transformer.training.callbacks import Callback
    from ablab.transformer.translation.prune_curve import TranslationBench

    run = _run(outputs)
    record, curves = run.record(), run.curves()
    if record is None or not curves:
        return {}
    bench = TranslationBench(reopened(FinishedRun(run, record), ["logger=none"]), record, Callback())
    distinct = list(dict.fromkeys(kept_at(point) for point in curves[-1].points))
    models = [prune(bench.model, kept) for kept in distinct]
    every, began = [], time.perf_counter()
    for _ in range(timings):
        found = bench.timing(models, SHARE * record.cost.train_seconds)
        every.append(([found.seconds[0] / seconds for seconds in found.seconds], found.error))
    spent = (time.perf_counter() - began) / timings
    middle = [statistics.median(column) for column in zip(*(ratios for ratios, _ in every), strict=True)]
    off = [max(abs(one / all_ - 1) for one, all_ in zip(ratios, middle, strict=True)) for ratios, _ in every]
    return {
        "ratios": middle,
        "off": sorted(off),
        "errors": [error for _, error in every],
        "seconds": spent,
        "share": spent / record.cost.train_seconds,
    }


def _tell(found: Mapping[str, list[dict[str, Any]]], precision: Mapping[str, Any], words: list[str]) -> None:
    figures = ("wall", "processors", "training", "overhead", *PARTS)
    rows = [["", *figures]]
    for name, rounds in found.items():
        known = {key: [each[key] for each in rounds if key in each] for key in figures}
        rows.append([name, *(f"{statistics.median(several):.2f}" if several else "" for several in known.values())])
    for line in aligned(rows, left=1):
        print(line.rstrip())
    if precision:
        off = ", ".join(f"{100 * each:.1f}" for each in precision["off"])
        print(
            f"speeds of a curve: off by at most {off} %, in {100 * precision['share']:.1f} % of the time of the steps"
        )
    content = {**conditions(os.cpu_count() or 1), "words": words, "rounds": found, "precision": precision}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
