"""Power is lost at any moment: what was said to be finished is whole, and the same line goes on to the same result."""

import os
import re
from pathlib import Path

import pytest

from tests.faults.conftest import LINE, result_of
from tests.faults.disturber import Disturber
from tests.faults.power import HASTY, LAZY, Cut, Journal
from tests.faults.test_sweep import SWEEP

pytestmark = pytest.mark.faults

SHARES, APART = 8, 12
"""Tests that share the moments, and every how many-th moment of a sweep is tried; `ABLAB_FAULTS=all` tries each."""

TRAINED = re.compile(r"^(step +[\d,]+ +validation|\[\d+/\d+\] )", re.MULTILINE)
"""What a run says of a validation, and a sweep of a run that has ended."""

LINES = {"run": ((*LINE, "logger=none"), "Results: "), "sweep": (SWEEP, "2 runs: 2 finished")}
"""With what the command says once all is finished."""


class Recorded:
    """What an undisturbed command leaves, and its journal, from which the folder is left as at any moment."""

    def __init__(self, disturber: Disturber, name: str, outputs: Path, journal: Path) -> None:
        line, self.finished = LINES[name]
        self.disturber, self.line = disturber, (*line, f"outputs={outputs}")
        ended = disturber.run(*self.line, below=outputs, journal=journal)
        assert ended.code == 0, ended.said
        self.journal, self.expected = Journal(journal, outputs), result_of(outputs)
        self.cuts = self.journal.cuts()

    def goes_on_after(self, cut: Cut) -> None:
        self.journal.restore(cut)
        told, outputs = self.journal.told(cut), self.journal.folder
        again = self.disturber.run(*self.line, below=outputs)
        assert again.code == 0, f"{told}:\n{again.said}"
        assert result_of(outputs) == self.expected, told
        if self.finished in cut.said:
            assert not TRAINED.search(again.said), f"{told}: trained again"


@pytest.fixture(scope="session")
def recorded(disturber: Disturber, tmp_path_factory) -> dict[str, Recorded]:
    def record(name: str) -> Recorded:
        outputs, journal = (tmp_path_factory.mktemp(f"{what}_of_{name}") for what in ("outputs", "journal"))
        return Recorded(disturber, name, outputs, journal)

    return {name: record(name) for name in LINES}


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("name", LINES)
def test_the_same_line_goes_on_wherever_power_was_lost(name, share, recorded):
    found = recorded[name]
    apart = APART if name == "sweep" and os.environ.get("ABLAB_FAULTS") != "all" else 1
    cuts = found.cuts[share :: SHARES * apart]
    assert cuts
    for cut in cuts:
        found.goes_on_after(cut)


@pytest.mark.parametrize("name", LINES)
def test_what_was_said_to_be_finished_is_there(name, recorded):
    found = recorded[name]
    last = [cut for cut in found.cuts if found.finished in cut.said]
    assert {cut.disk for cut in last} == {LAZY, HASTY}
    for cut in last:
        found.goes_on_after(cut)
