"""One fault in a copy of the sources, and the tests that concern it."""

import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mutants.fault import Fault

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "conf", "benchmarks", "pyproject.toml")
LONGEST = 900.0
"""Seconds after which tests that still run are given up."""

PRELOADED = (
    "numpy",
    "omegaconf",
    "pydantic",
    "pytest",
    "pytorch_lightning",
    "safetensors.torch",
    "scipy.stats",
    "torch",
)
"""Most of what a test waits for. Each process of tests is a fork of one that has these, and nothing of ours."""

FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)
SOME_FAILED = 1  # pytest's exit code; any other but 0 is no judgement

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(list(PRELOADED))


class NoJudgementError(Exception):
    """The tests said neither that they pass nor which of them fails; the message says what happened."""


class Workshop:
    """A copy of the sources and the tests that may be spoilt. One thing happens in it at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)

    def try_out(self, fault: Fault) -> str | None:
        """The first test that fails under this fault; None if it lives. The sources are whole again afterwards."""
        path = self.folder / fault.path
        whole = path.read_text(encoding="utf-8")
        path.write_text(fault.applied(whole), encoding="utf-8")
        try:
            return self.first_failure(fault.test_paths)
        finally:
            path.write_text(whole, encoding="utf-8")

    def first_failure(self, tests: Sequence[str]) -> str | None:
        """The first of these tests that fails, if one does."""
        said = self.folder / "said.txt"
        process = _processes.Process(target=_run_tests, args=(self.folder, said, list(tests)))
        process.start()
        process.join(LONGEST)
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            raise NoJudgementError(f"no answer in {LONGEST:g} s")
        text = said.read_text(encoding="utf-8")
        failed = FIRST_FAILURE.search(text)
        if process.exitcode == SOME_FAILED and failed:
            return failed[1]
        if process.exitcode == 0:
            return None
        raise NoJudgementError(f"pytest ended with {process.exitcode}: {''.join(text.strip().splitlines()[-1:])}")


def _run_tests(folder: Path, said: Path, tests: list[str]) -> None:
    """In a process of its own, whose exit code is pytest's: the copy's tests on the copy's sources."""
    import pytest

    os.setsid()
    with said.open("w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    sys.path[:0] = [str(folder / "src"), str(folder)]
    # No bytecode: that of a faulty source, of the same second and size as the right one, would outlive it.
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "400"}
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-m", "not slow and not faults"]  # those that take most of the time, as some that concern a fault do
    # What is preloaded may bring a plugin of pytest's, such as anyio, which then cannot be rewritten.
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(int(pytest.main([*options, *tests])))
