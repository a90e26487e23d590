"""What is told of one run: what it is, what it has, and how it was trained."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from ablab.api.run import Run
from ablab.errors import UserError
from ablab.store.chain import Chain
from ablab.store.custody import links
from ablab.store.failures import Failure
from ablab.store.records import Stretch, Strict
from ablab.tasks.identity import parts_of
from ablab.tracking.events import EVENTS, FOLDER
from ablab.tracking.sender import sent


class Judged(Strict):
    """An evaluation of the whole model."""

    id: str
    test_set: str
    sentences: int
    scores: dict[str, float]
    decoding: dict[str, Any]
    ended: str


class Measured(Strict):
    """A pruning curve: its strategy, and the number of its models."""

    id: str
    label: str
    test_set: str
    models: int
    ended: str


class ShownRun(Strict):
    """A run. `differs`: groups and fields that are not the defaults. `selected_steps`: of the selected weights.
    `ceiling`: the validation score that a perfect model could reach with the run's tokenizer; older runs have none.

    `origin`: digest of the weights that training began from. `artefacts`, `pruned`, `exports`: names. `wandb`: whether
    its events are all sent; None where nothing was logged. `bytes`: on disk. `seconds`: of training. `mixed`: what
    changed between stretches. `custody`: the first broken link from the register to the bytes; None if all hold.
    """

    id: str
    name: str
    task: str
    state: str
    folder: str
    study: str | None
    arm: str | None
    damage: str | None = None
    failure: Failure | None = None
    seed: int | None = None
    condition: str | None = None
    differs: dict[str, str] = Field(default_factory=dict)
    origin: str | None = None
    reason: str | None = None
    ended: str | None = None
    seconds: float | None = None
    parameters: int | None = None
    selected_steps: list[int] = Field(default_factory=list)
    ceiling: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    evaluations: list[Judged] = Field(default_factory=list)
    curves: list[Measured] = Field(default_factory=list)
    artefacts: list[str] = Field(default_factory=list)
    pruned: list[str] = Field(default_factory=list)
    exports: list[str] = Field(default_factory=list)
    wandb: bool | None = None
    bytes: int = 0
    stretches: list[Stretch] = Field(default_factory=list)
    mixed: str | None = None
    commit: str | None = None
    custody: str | None = None


def card(run: Run) -> ShownRun:
    """Describe a run, damaged or not."""
    study, arm = run.arm or (None, None)
    what: dict[str, Any] = {
        "id": run.id,
        "name": run.name,
        "task": run.task,
        "state": run.state,
        "folder": str(run.path),
        "study": study,
        "arm": arm,
        "damage": run.damage,
        "failure": run.failure,
        "bytes": size(run.path),
        "artefacts": sorted(path.stem for path in run.folder.artefacts.glob("*.json")),
        "pruned": _folders(run.folder.pruned),
        "exports": _folders(run.path / "exports"),
        "wandb": _is_sent(run.path),
    }
    if run.damage is None:
        what |= {"seed": run.seed, "differs": differs(run)}
        try:
            what["origin"] = run.recipe.get("init_from")
            what |= _trained(run) if run.record is not None else {}
        except UserError as error:
            what["damage"] = str(error)
    return ShownRun(**what)


def differs(run: Run) -> dict[str, str]:
    """Return the words by which a run that has ended differs from the defaults, the seed apart."""
    if run.record is None:
        return {}
    words = parts_of(run.record.name)[:-1]  # the seed is last
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _trained(run: Run) -> dict[str, Any]:
    record = run.record
    assert record is not None
    whole = [one for one in run.evaluations if "kept" not in one.settings]
    return {
        "condition": record.condition_id,
        "reason": record.reason,
        "ended": record.ended,
        "seconds": record.cost.seconds,
        "parameters": record.cost.parameters,
        "selected_steps": [] if record.selected is None else record.selected.steps,
        "ceiling": record.data.get("ceiling", {}).get("through"),
        "scores": run.scores,
        "evaluations": [
            Judged(
                id=one.evaluation_id,
                test_set=one.test_name,
                sentences=one.sentences,
                scores=one.scores,
                decoding=one.settings.get("decoding", {}),
                ended=one.ended,
            )
            for one in whole
        ],
        "curves": [
            Measured(id=one.curve_id, label=one.label, test_set=one.test_name, models=len(one.points), ended=one.ended)
            for one in run.curves
        ],
        "stretches": record.stretches,
        "mixed": record.mixed,
        "commit": record.provenance.get("commit"),
        "custody": _custody(run),
    }


def _custody(run: Run) -> str | None:
    """Return the first broken link; scores are not computed again."""
    found = (f"{link.file} {link.fault}" for link in links(run.folder, Chain.of(run.folder.outputs)) if link.fault)
    return next(found, None)


def _is_sent(folder: Path) -> bool | None:
    events = folder / FOLDER / EVENTS
    return events.stat().st_size <= sent(folder) if events.exists() else None


def _folders(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir()) if path.is_dir() else []


def size(path: Path) -> int:
    """Return the bytes of all files below a folder; links count for themselves."""
    return sum(each.lstat().st_size for each in _files(path))


def _files(path: Path) -> Iterator[Path]:
    for each in path.rglob("*"):
        if each.is_symlink() or each.is_file():
            yield each
