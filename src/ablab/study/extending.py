"""Seeds that were added to a study, arm by arm, as its claims stayed open."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel

from ablab.errors import UserError
from ablab.files import read_json, writing_in
from ablab.statistics.looks import Looks
from ablab.store.chain import complete
from ablab.store.records import now
from ablab.store.register import Register
from ablab.study.claims import Settled
from ablab.study.experiment import ErrorEstimate
from ablab.study.study import Cell, Study, names_of

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
    path = folder / FILE
    if not path.exists():
        return []
    try:
        return [Extension.model_validate(entry) for entry in read_json(path)]
    except (ValueError, TypeError):
        raise UserError(f"{path}: cannot be read as extensions of the study") from None


def added_so_far(study: Study, looks: Looks) -> list[Cell]:
    """Return the cells of the seeds that each arm began with, and of those that were added. `study`: with all seeds."""
    known = {name: n for one in extensions(study.folder)[-1:] for arm, n in one.seeds.items() for name in names_of(arm)}
    # An arm may have been united with another since, or parted from it.
    seeds = {arm.name: max(looks.first, *(known.get(name, 0) for name in names_of(arm.name))) for arm in study.arms}
    return [cell for cell in study.cells if cell.seed <= seeds[cell.arm]]


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
    with writing_in(study.folder), FileLock(study.folder / ".extended.lock"):
        complete(study.outputs, path)
        if extensions(study.folder) != list(known):
            return False
        content = [*known, Extension(at=now(), seeds=dict(seeds), ended=ended)]
        Register(study.outputs).write(path, [one.model_dump() for one in content], "extended", study=study.folder.name)
    return True
