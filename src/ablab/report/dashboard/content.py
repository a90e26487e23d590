"""What a study's dashboard shows, as data: its runs in W&B, its arms, its depth-quality curves and its report."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ablab.config.options import Logger
from ablab.errors import UserError, reason
from ablab.files import read_json
from ablab.judge.document import Document
from ablab.judge.selection_of_study import of_study
from ablab.report.names import named
from ablab.study.study import Cell, Study
from ablab.text import program
from ablab.tracking.card import id_of, key_of
from ablab.tracking.events import EVENTS, FOLDER, STUDIES, events_of
from ablab.tracking.open import tracker_of
from ablab.tracking.sender import is_sent


@dataclass(frozen=True)
class Depth:
    """A depth-quality curve: its key in W&B, and that of its axis, the layers or heads that remain."""

    key: str
    axis: str

    @property
    def title(self) -> str:
        """Return `decoder, every_other`, or `importance` for heads."""
        return ", ".join(self.key.removeprefix("pruning/").split("/")[:-1])


@dataclass(frozen=True)
class Content:
    """A study as its dashboard shows it. `entity`: None for the user's own; `runs`: ids in W&B.

    `arm`: the key in W&B's config that holds the arm of a run in this study. `primary`: title of the score by which
    arms are compared. `tested`, `validated`: keys of final scores, and of curves of validation. `is_ours`: its runs
    tell of their training as ablab's own trainer does, of loss, rates and speed.
    """

    study: str
    project: str
    entity: str | None
    arm: str
    runs: tuple[str, ...]
    primary: str
    tested: tuple[str, ...]
    validated: tuple[str, ...]
    depths: tuple[Depth, ...]
    document: Document
    is_ours: bool


def content_of(study: Study, document: Document) -> Content:
    """Return what the dashboard of a study and its report shows. A run that W&B does not know draws the store's id."""
    about, task = _logger(study).about(), study.task
    scores = [task.scores[name] for name in dict.fromkeys((task.primary, *task.beside))]
    folders = {cell.planned.folder.path: cell.planned.run_id for cell in study.cells}
    depths = [depth for cell in _one_an_arm(study) for depth in _depths(cell.planned.folder.path, task.primary)]
    return Content(
        study=document.name,
        project=about["project"],
        entity=about["entity"],
        arm=f"{STUDIES}.{key_of(study.name)}",
        runs=tuple(id_of(folder, run_id) for folder, run_id in folders.items()),
        primary=task.scores[task.primary].title,
        tested=tuple(f"test/{score.key}" for score in scores if score.place == "test")
        or tuple(f"selected/{score.key}" for score in scores if score.place == "validation"),
        validated=tuple(f"valid/{key}" for key in task.curves or task.validated),
        depths=tuple(dict.fromkeys(depths)),
        document=document,
        is_ours=bool(task.curves),
    )


def without_wandb(study: Study) -> list[Cell]:
    """Return the finished runs that left no events, so that W&B never has them."""
    return [
        cell
        for cell in study.runs.values()
        if (cell.planned.folder.path / "record.json").exists()
        and not (cell.planned.folder.path / FOLDER / EVENTS).exists()
    ]


def unsent(study: Study) -> list[Path]:
    """Return the folders of runs with events that W&B is not known to have."""
    folders = [cell.planned.folder.path for cell in study.runs.values()]
    return [folder for folder in folders if is_sent(folder) is False]


def _one_an_arm(study: Study) -> list[Cell]:
    """Return a run of each arm that has events; the seeds of an arm have equal curves."""
    found: dict[str, Cell] = {}
    for cell in study.cells:
        if (cell.planned.folder.path / FOLDER / EVENTS).exists():
            found.setdefault(cell.arm, cell)
    return list(found.values())


def _depths(folder: Path, primary: str) -> Iterator[Depth]:
    for event in events_of(folder):
        if event["event"] == "row" and event["axis"].startswith("axis/"):
            yield from (Depth(key, event["axis"]) for key in event["values"] if key.endswith(f"/{primary}"))


def last_report(study: Study) -> Document:
    """Return the report of these words, whose verdicts the dashboard repeats: of fewer seeds, that of those seeds.

    UserError without one, or if W&B is not logged to.
    """
    _logger(study)
    path = of_study(study).folder / "report.json"
    line = f"{program('report')} {shlex.join(study.typed)}"
    if not path.exists():
        raise UserError(f"{path}: there is no report whose verdicts a dashboard could show; type first: {line}")
    try:
        return named(Document.model_validate(read_json(path)))
    except ValidationError as error:
        raise UserError(f"{path}: cannot be read as a report ({reason(error)}); type first: {line}") from None


def _logger(study: Study) -> Logger:
    logger = study.cells[0].planned.config.logger
    if not tracker_of(logger).has_dashboards:
        raise UserError(f"logger={logger.kind}: a dashboard is in W&B; allowed: logger=wandb")
    return logger
