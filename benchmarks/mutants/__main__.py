"""Do the tests notice deliberate faults? Each is made in a copy of the sources, and the tests concerned are run.

    python -m benchmarks.mutants [--only WORD] [--jobs N] [--again]

Writes docs/mutants.md, and remembers each answer in benchmarks/results/mutants.json: an interrupted run goes on where
it was. Ends with 1 when a fault lives, does not apply, or gets no judgement.
"""

import argparse
import os
import queue
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from rich.progress import Progress

from benchmarks.mutants.fault import Fault
from benchmarks.mutants.faults import FAULTS
from benchmarks.mutants.judged import LIVED, Judged
from benchmarks.mutants.page import page
from benchmarks.mutants.trial import ROOT, NoJudgementError, Workshop


class Bench:
    """Workshops for so many jobs at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.jobs = jobs
        self._free: queue.Queue[Workshop] = queue.Queue()
        for number in range(jobs):
            self._free.put(Workshop(folder / str(number)))

    def lend(self, work: Callable[[Workshop], str | None]) -> str | None:
        """Work in one that is free."""
        workshop = self._free.get()
        try:
            return work(workshop)
        finally:
            self._free.put(workshop)

    def each(self, title: str, tasks: Mapping[str, Callable[[], str]]) -> None:
        """Do all of these, and print a line for each."""
        with Progress() as progress, ThreadPoolExecutor(self.jobs) as pool:
            bar = progress.add_task(title, total=len(tasks))
            waiting = {pool.submit(task): name for name, task in tasks.items()}
            try:
                for future in as_completed(waiting):
                    said = _said(future)
                    progress.console.print(f"{waiting[future]}: {said}", markup=False, highlight=False, soft_wrap=True)
                    progress.advance(bar)
            finally:
                pool.shutdown(cancel_futures=True)  # whoever interrupts does not wait for those that have not begun


def _said(future: Future[str]) -> str:
    try:
        return future.result()
    except NoJudgementError as error:
        return f"no judgement: {error}"


def try_all(faults: Sequence[Fault], judged: Judged, bench: Bench) -> None:
    """Judge these faults."""

    def judge(fault: Fault) -> str:
        by = bench.lend(lambda workshop: workshop.try_out(fault)) or LIVED
        judged.add(fault, by)
        return by

    bench.each("faults", {fault.name: partial(judge, fault) for fault in faults})


def prove(tests: Sequence[str], judged: Judged, bench: Bench) -> None:
    """Find out which of these tests pass while nothing is wrong."""

    def run(test: str) -> str:
        failed = bench.lend(lambda workshop: workshop.first_failure([test]))
        if failed is None:
            judged.add_pass(test)
        return f"fails as it is: {failed}" if failed else "passes as it is"

    bench.each("tests as they are", {test: partial(run, test) for test in tests})


def main() -> None:
    """Judge what is not judged yet, write the page, and say how it went."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description="Do the tests notice faults?")
    words.add_argument("--only", metavar="WORD", default="", help="those whose name has this word")
    words.add_argument("--jobs", metavar="N", type=int, default=1, help="so many at a time")
    words.add_argument("--again", action="store_true", help="also those that are judged already")
    said = words.parse_args()
    chosen = [fault for fault in FAULTS if said.only in fault.name]
    if not chosen:
        sys.exit(f"--only {said.only}: no fault has this in its name")
    misfits = [f"{fault.name}: {why}" for fault in chosen if (why := fault.misfit(ROOT))]
    if misfits:
        sys.exit("\n".join(misfits))
    os.environ["OMP_NUM_THREADS"] = "1"  # tests take one thread, and what is forked must have no other
    judged = Judged(ROOT / "benchmarks/results/mutants.json")
    known = {fault: judged.of(fault) for fault in chosen}
    left = [fault for fault in chosen if said.again or known[fault] is None]
    tests = sorted({test for fault in left for test in fault.test_paths})
    with tempfile.TemporaryDirectory(prefix="mutants.") as folder:
        bench = Bench(Path(folder), max(1, said.jobs))
        prove([test for test in tests if not judged.passes(test)], judged, bench)
        # A test that fails as it is says nothing of a fault.
        ready = [fault for fault in left if all(judged.passes(test) for test in fault.test_paths)]
        try:
            try_all(ready, judged, bench)
        finally:
            (ROOT / "docs/mutants.md").write_text(page(judged), encoding="utf-8")
    alive = [fault.name for fault in chosen if judged.of(fault) in (None, LIVED)]
    print(f"{len(ready)} of {len(chosen)} tried now, {len(alive)} not noticed; docs/mutants.md has them all")
    if alive:
        sys.exit("\n".join(alive))


if __name__ == "__main__":
    main()
