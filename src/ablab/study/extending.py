"""What is recorded of a study after its launch: seeds that are added, and missing runs that are given up."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from ablab.errors import UserError
from ablab.files import read_json
from ablab.files.disk import lock_at, writing_in
from ablab.statistics.looks import Looks
from ablab.store.chain import complete
from ablab.store.records import now
from ablab.store.register import Register
from ablab.study.claims import Settled
from ablab.study.experiment import ErrorEstimate
from ablab.study.ledger import RESULTS, State, ledger
from ablab.study.study import Cell, Study, names_of
from ablab.text import how_many

Recorded = TypeVar("Recorded", bound=BaseModel)

FILE = "extended.json"

MOST_CLAIMS = 50
"""Claims that can share 5 %: the table of boundaries ends at 0.05 % on each side."""


class Extension(BaseModel):
    """Numbers of seeds of the arms after a look. `ended`: why no seed will be added any more; None while some may."""

    at: str
    seeds: dict[str, int]
    ended: str | None = None


def extensions(folder: Path) -> list[Extension]:
    """Return the extensions of the study in this folder, oldest first. Raises UserError where they cannot be read."""
    return recorded(Extension, folder / FILE, "extensions of the study")


def added_so_far(study: Study, looks: Looks) -> list[Cell]:
    """Return the cells of the seeds that each arm began with, and of those that were added. `study`: with all seeds."""
    known = {name: n for one in extensions(study.folder)[-1:] for arm, n in one.seeds.items() for name in names_of(arm)}
    # An arm may have been united with another since, or parted from it.
    seeds = {arm.name: max(looks.first, *(known.get(name, 0) for name in names_of(arm.name))) for arm in study.arms}
    return [cell for cell in study.cells if cell.seed in study.seeds[: seeds[cell.arm]]]


def check_followed(claims: Sequence[Settled], error: ErrorEstimate | None) -> None:
    """Raise UserError unless the claims can be followed from look to look."""
    adds = "seeds.from: seeds are added until all claims are settled"
    if not claims:
        raise UserError(f"{adds}, and there are none; allowed: claims, or a list of seeds")
    if len(claims) > MOST_CLAIMS:
        raise UserError(f"{adds}, and there are {len(claims)}; allowed: up to {MOST_CLAIMS}, or a list of seeds")
    for claim in claims:
        if claim.metric == "failures":
            raise UserError(f"{adds}, and shares of failures are judged once; allowed: a score, or a list of seeds")
    if error == "moderated":
        raise UserError(
            "error=moderated: seeds are added, and the noise of other arms is not borrowed for looks after each seed; "
            "allowed: paired, or a list of seeds"
        )


def extend(study: Study, seeds: Mapping[str, int], known: Sequence[Extension], ended: str | None = None) -> bool:
    """Record how many seeds each arm is to have, or why the study ends with those it has; return whether it counts.

    known: the extensions that this follows. If there are others by now, another sweep has looked, and its look counts.
    """
    path = study.folder / FILE
    with writing_in(study.folder), lock_at(study.folder / ".extended.lock"):
        complete(study.outputs, path)
        if extensions(study.folder) != list(known):
            return False
        content = [*known, Extension(at=now(), seeds=dict(seeds), ended=ended)]
        Register(study.outputs).write(path, [one.model_dump() for one in content], "extended", study=study.folder.name)
    return True


class Closing(BaseModel):
    """Runs that were given up together. `runs`: their states then, by run id; of a run that is there, by task."""

    reason: str
    closed: str
    runs: dict[str, str]

    @property
    def said(self) -> str:
        """What a report says of it."""
        were = "was" if len(self.runs) == 1 else "were"
        return f"{how_many(len(self.runs), 'run')} {were} given up on {self.closed[:10]}: {self.reason}"

    def state_of(self, cell: Cell) -> str | None:
        """Return the state in which it gave up the run of this cell, or its evaluation or curve; None: it did not."""
        return self.runs.get(task(cell), self.runs.get(cell.planned.run_id))


def task(cell: Cell) -> str:
    """Return the id of what a run is asked for: arms that differ by pruning alone share their runs."""
    planned = cell.planned
    return " ".join(part for part in (planned.run_id, planned.evaluation_id, planned.curve_id) if part)


def closings(folder: Path) -> list[Closing]:
    """Return the closings of the study in this folder, oldest first. Raises UserError where they cannot be read."""
    return recorded(Closing, folder / "closed.json", "closings of the study")


def recorded(kind: type[Recorded], path: Path, what: str) -> list[Recorded]:
    """Return the entries of a file, none where it is not there. UserError where they cannot be read as `what` it is."""
    if not path.exists():
        return []
    try:
        if not isinstance(found := read_json(path), list):
            raise ValueError("no list")
        return [kind.model_validate(entry) for entry in found]
    except (ValueError, TypeError):
        raise UserError(f"{path}: cannot be read as {what}") from None


def close(study: Study, reason: str) -> Closing:
    """Record that the study's missing runs are given up. Raises UserError where nothing is missing, or runs go on."""
    if not reason.strip():
        raise UserError("close=: says nothing; allowed: the reason, such as close='the machine is gone'")
    if study.is_tuning:
        raise UserError(
            f"close={reason}: {study.name} needs all of its runs; allowed: other values in tune, or a study without it"
        )
    if not (study.folder / "registered.json").exists():
        raise UserError(f"close={reason}: {study.name} was never launched; only a launched study can be closed")
    # Two at once would each read the closings without the other's.
    with writing_in(study.folder), lock_at(study.folder / ".closed.lock"):
        return _close(study, reason)


def _close(study: Study, reason: str) -> Closing:
    path = study.folder / "closed.json"
    complete(study.outputs, path)
    before = closings(study.folder)
    missing = {
        entry.cell.planned.run_id if entry.record is None else task(entry.cell): entry.state
        for entry in ledger(study).values()
        if entry.state not in RESULTS and not any(closing.state_of(entry.cell) for closing in before)
    }
    running = [run for run, state in missing.items() if state is State.RUNNING]
    typed = f"close={reason}"
    if running:
        at_work = f"{how_many(len(running), 'run')} still at work, such as {running[0].split()[0]}"
        raise UserError(f"{typed}: {at_work}; wait until none is, or stop them")
    if missing:
        closing = Closing(
            reason=" ".join(reason.split()), closed=now(), runs={run: state.value for run, state in missing.items()}
        )
        content = [entry.model_dump() for entry in (*before, closing)]
        Register(study.outputs).write(path, content, "closed", study=study.folder.name)
        _end_looks(study, closing)
        return closing
    if before and study.looks is not None and not any(one.ended for one in extensions(study.folder)[-1:]):
        _end_looks(study, before[-1])  # a kill came between the closing and this
        return before[-1]
    raise UserError(f"{typed}: each of the {len(study.runs)} runs of {study.name} has ended or was given up")


def _end_looks(study: Study, closing: Closing) -> None:
    """Record that no look comes after a seed that is missing."""
    if study.looks is not None:
        seeds = {arm.name: len(study.cells_of(arm.name)) for arm in study.arms}
        extend(study, seeds, extensions(study.folder), ended=f"runs were given up: {closing.reason}")
