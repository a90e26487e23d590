"""The plan of a run: its configuration, ids and folder, determined before training and without torch."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from ablab.config import Composed, Config
from ablab.config.compose import reopen
from ablab.config.groups import default_choices
from ablab.errors import UserError
from ablab.store.finished import FinishedRun
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from ablab.tasks import identity
from ablab.tasks.registry import task_of_option
from ablab.tasks.task import Task

C = TypeVar("C", bound=Config, covariant=True)


@dataclass(frozen=True)
class PlannedRun(Generic[C]):
    """A planned run: its configuration, name, folder and identity. `origin`: what training starts from, if anything.

    `C`: the schema of its task's settings.
    """

    composed: Composed
    name: str
    folder: RunFolder
    recipe: dict[str, Any]
    evaluation: dict[str, Any]
    curve: dict[str, Any]
    origin: Any

    @property
    def config(self) -> C:
        return cast(C, self.composed.config)

    @property
    def task(self) -> Task:
        """What the run is."""
        return task_of_option(self.config.task)

    @property
    def run_id(self) -> str:
        """The id derived from the recipe."""
        return self.folder.run_id

    @cached_property
    def evaluation_id(self) -> str:
        """The id derived from the evaluation's settings."""
        return identity.evaluation_id(self.evaluation)

    @cached_property
    def curve_id(self) -> str:
        """The id derived from the settings of pruning."""
        return identity.curve_id(self.curve)

    def reseeded(self, seed: int) -> "PlannedRun[C]":
        """Return the plan of the same run under another seed, which decides nothing but the recipe's seed and the name.

        For settings that do not refer to the seed; `plan` would return the same, and takes longer.
        """
        composed, recipe = self.composed.reseeded(seed), {**self.recipe, "seed": seed}
        name = f"{self.name.removesuffix(identity.of_seed(self.config.seed))}{identity.of_seed(seed)}"
        folder = RunFolder(self.outputs / "runs" / identity.run_id(recipe))
        found = replace(self, composed=composed, name=name, folder=folder, recipe=recipe)
        vars(found).update(evaluation_id=self.evaluation_id, curve_id=self.curve_id)  # cached: they have no seed
        return found

    def lacks_evaluation(self, record: Record) -> bool:
        """Return whether the selected weights have not been evaluated on this test set with this search."""
        return record.selected is not None and not self.folder.has_evaluation(self.evaluation_id)

    def lacks_curve(self, record: Record) -> bool:
        """Return whether the run should have a further curve with these settings and has none."""
        return record.selected is not None and self.task.lacks_curve(self)

    @property
    def outputs(self) -> Path:
        return Path(self.config.outputs)


Planned = PlannedRun[Config]
"""The plan of a run of any task."""


def plan(composed: Composed) -> Planned:
    """Check everything that can be checked before the corpus is prepared, and derive the run's ids."""
    config, task = composed.config, task_of_option(composed.config.task)
    task.check(config)
    origin = task.origin(config)
    recipe = identity.recipe(config, origin=None if origin is None else origin.digest())
    task.check_asked(composed)
    return Planned(
        composed,
        identity.display_name(composed, default_choices()),
        RunFolder(Path(config.outputs) / "runs" / identity.run_id(recipe)),
        recipe,
        identity.evaluation(config),
        identity.curve(config),
        origin,
    )


def reopened(run: FinishedRun, words: Sequence[str]) -> Planned:
    """Plan a finished run for other evaluations, wherever its folder lies now; `words` as `reopen` takes them.

    Raises UserError where the text is not the one that the run was trained on: its tokenizers would not fit.
    """
    folder, record = run.folder, run.record
    config = reopen({**record.settings, "outputs": str(folder.outputs)}, words)
    task_of_option(config.task).check_reopened(config, folder, record)
    check_writable(folder.outputs)
    return Planned(
        Composed(config, record.choices, {}),
        record.name,
        folder,
        folder.recipe(),
        identity.evaluation(config),
        identity.curve(config),
        None,
    )


def check_writable(outputs: Path) -> None:
    """Raise UserError unless this store can be written in: studies of one that cannot are still shown and verified."""
    existing = next(path for path in (outputs, *outputs.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"outputs={outputs}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"outputs={outputs}: no permission to write in {existing}")
