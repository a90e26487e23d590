"""What is known of each fault so far, on disk; it holds as long as the sources and the tests concerned are the same."""

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.fault import Fault
from benchmarks.mutants.trial import ROOT

LIVED = "LIVED"
UNJUDGED = "not judged"


class Last(NamedTuple):
    """What was found when a fault was last tried, and at which commit."""

    by: str
    commit: str


@cache
def _common() -> bytes:
    """Digest of the product and of what tests share."""
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "conf").rglob("*.yaml")]
    paths += (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    return _digest(paths)


def _digest(paths: Iterable[Path]) -> bytes:
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.digest()


@cache
def digest(fault: Fault) -> str:
    """Of all that decides whether this fault is noticed, as it was when first asked for: before sources are copied."""
    tests = "".join(digest_of_test(test) for test in fault.test_paths)
    return hashlib.sha256((tests + repr(astuple(fault))).encode()).hexdigest()[:16]


@cache
def digest_of_test(test: str) -> str:
    """The same for whether a test passes while nothing is wrong."""
    return hashlib.sha256(_common() + _digest([ROOT / test.partition("::")[0]])).hexdigest()[:16]


def edit_of(fault: Fault) -> str:
    """Digest of the edit alone: under the same name, another is another fault."""
    return hashlib.sha256(repr((fault.right, fault.wrong)).encode()).hexdigest()[:8]


@cache
def _commit() -> str:
    """Return the commit of the sources, as it was when first asked for."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", "src", "tests", "conf") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


class Judged:
    """The first test that noticed each fault, or `LIVED`, in a file that is written after each of them.

    And which tests pass while nothing is wrong, without which nothing that they say of a fault means anything.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.Lock()
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self._faults: dict[str, dict[str, str]] = known.get("faults", {})
        self._pass: dict[str, str] = known.get("pass", {})

    def of(self, fault: Fault) -> str | None:
        """What is known, if it still holds."""
        known = self._faults.get(fault.name, {})
        return known["by"] if known.get("digest") == digest(fault) else None

    def last(self, fault: Fault) -> Last | None:
        """What was found when this edit was last tried, whatever the other sources were then."""
        known = self._faults.get(fault.name, {})
        return Last(known["by"], known["commit"]) if known.get("edit") == edit_of(fault) else None

    def passes(self, test: str) -> bool:
        """Whether this test is known to pass as it is."""
        return self._pass.get(test) == digest_of_test(test)

    def add(self, fault: Fault, by: str) -> None:
        """Noticed by this test, or `LIVED`."""
        with self._writing:
            self._faults[fault.name] = {
                "digest": digest(fault),
                "by": by,
                "edit": edit_of(fault),
                "commit": _commit(),
            }
            self._write()

    def add_pass(self, test: str) -> None:
        """It passes as it is."""
        with self._writing:
            self._pass[test] = digest_of_test(test)
            self._write()

    def _write(self) -> None:
        temporary = self.path.with_suffix(".new")
        content = {"faults": self._faults, "pass": self._pass}
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.replace(self.path)
