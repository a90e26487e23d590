"""Ends of a study that a person chose after looking: runs that were given up once there was something to see.

The order is that of the register's lines, not of clocks.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ablab.store.chain import RECORD, Chain
from ablab.study.extending import Closing
from ablab.study.ledger import State
from ablab.study.study import Study
from ablab.text import how_many


class GivenUp(NamedTuple):
    """A run that was given up after looking was possible. `after`: how many runs of its study had ended by then."""

    arm: str
    seed: int
    after: int


def given_up(study: Study, closings: Sequence[Closing]) -> list[GivenUp]:
    """Return the runs that were given up after another run of the study had ended, or after they had begun.

    One that was given up before that was chosen by no result. Where seeds are added there is none: boundaries hold the
    error at any stop. What was closed before the register began counts as closed last.
    """
    if study.looks is not None or not closings:
        return []
    before = _ended_before(study, len(closings))
    found: dict[tuple[str, int], GivenUp] = {}
    for closing, (ended, begun) in zip(closings, before, strict=True):
        for cell in study.cells:
            state = closing.state_of(cell)
            if state is not None and (ended or state != State.PLANNED or cell.planned.run_id in begun):
                found.setdefault((cell.arm, cell.seed), GivenUp(cell.arm, cell.seed, len(ended)))
    return list(found.values())


def given_up_words(runs: Iterable[GivenUp]) -> str | None:
    """Return how the runs of a claim's arms were given up, in words; None where none were."""
    each = list(runs)
    if not each:
        return None
    were = "was" if len(each) == 1 else "were"
    after = max(run.after for run in each)
    when = f"{how_many(after, 'run')} of the study had ended" if after else "having begun"
    return f"{how_many(len(each), 'run')} of its arms {were} given up after {when}"


def _ended_before(study: Study, count: int) -> list[tuple[set[str], set[str]]]:
    """Return, for each of so many closings, the runs of the study that had ended before it, and those set aside."""
    runs = {cell.planned.run_id for cell in study.cells}
    ended: set[str] = set()
    aside: set[str] = set()
    found = []
    for entry in Chain.of(study.outputs).entries:
        ended |= runs.intersection(entry.runs)
        if entry.what == "written" and entry.file == RECORD and entry.run in runs:
            ended.add(entry.run)
        elif entry.what == "set aside" and entry.run in runs:
            aside.add(entry.run)
        elif entry.what == "closed" and entry.study == study.folder.name:
            found.append((set(ended), set(aside)))
    return [*[(ended, aside)] * (count - len(found)), *found][-count:]
