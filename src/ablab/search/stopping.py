"""Early stopping of trials: a run reports each validation to the search's storage and asks whether to continue."""

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import read_json
from ablab.files.disk import publish
from ablab.search.storage import masked, open_storage
from ablab.store.pack import STORAGE
from ablab.tasks.task import ScoredValidation

STOPPED = "stopped"
"""Attribute of a trial that has to end: [step, planned steps]. Once written it is never removed."""


@dataclass(frozen=True)
class TrialHandle:
    """The facts that a run needs to report its validations.

    `score`: the key of the objective in validations; None where they do not report it.
    They are stored in the study's folder in a file that only its owner can read, because of `storage`. `first_step`,
    `last_step`: None where only the run knows them.
    """

    study: str
    storage: str | None
    stopping: str
    objective: str
    first_step: int | None
    last_step: int | None
    score: str | None = None

    def write(self, folder: Path) -> None:
        """Write the file for the runs of a search."""
        # Private from the start: the URL of a database may hold a password.
        handle, made = tempfile.mkstemp(dir=folder, prefix=f".{STORAGE}.")
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
        publish(Path(made), folder / STORAGE)

    @classmethod
    def read(cls, folder: Path) -> "TrialHandle":
        """Read the file last written."""
        return cls(**read_json(folder / STORAGE))


class Stopping:
    """Reports the validations of one trial and decides when it ends. `ends`: it has decided so."""

    def __init__(self, trial: str, say: Callable[[str], None] = lambda _: None) -> None:
        from optuna import load_study

        folder, number = _parts(trial)
        try:
            self._handle = handle = TrialHandle.read(folder)
            self._storage = open_storage(handle.storage, folder)
            self._study: Any = load_study(study_name=handle.study, storage=self._storage)
            study_id = self._storage.get_study_id_from_name(handle.study)
            self._trial = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"search_trial={trial}: no such trial ({' '.join(str(error).split())})") from None
        self._by = handle.score
        self._several = len(self._study.directions) > 1
        self._say = say
        self.ends = False

    def __call__(self, validations: Sequence[ScoredValidation], total_steps: int | None) -> str | None:
        """Report new validations; return the reason if the run must end now. Errors of the storage end no training."""
        try:
            reason = self._asked(validations, total_steps)
        except Exception as error:
            self._say(f"The search cannot be asked, and the run goes on: {masked(' '.join(str(error).split()))[:300]}")
            return None
        self.ends = reason is not None
        return reason

    def _asked(self, validations: Sequence[ScoredValidation], total_steps: int | None) -> str | None:
        from ablab.search.sampling import stopping_rule

        handle = self._handle
        trial = self._storage.get_trial(self._trial)
        if trial.state.is_finished() or self._by is None or self._several:
            return None
        for validation in validations:
            value = validation.scores.get(self._by, math.nan)
            if validation.step not in trial.intermediate_values and math.isfinite(value):
                self._storage.set_trial_intermediate_value(self._trial, validation.step, value)
        if STOPPED not in trial.user_attrs:
            trial = self._storage.get_trial(self._trial)
            if total_steps is not None and validations[-1].step >= total_steps:
                return None  # it has ended; a kill before its evaluation must not make a stopped trial of it
            # A space may vary how long a trial trains.
            is_its_own = handle.last_step is None or total_steps not in (None, handle.last_step)
            first = min(trial.intermediate_values, default=None) if is_its_own else handle.first_step
            last = handle.last_step if total_steps is None else total_steps
            if last is None:  # only the program knows; those that have finished tell
                last = max(
                    (step for step in map(_last_step, self._study.get_trials(deepcopy=False)) if step), default=None
                )
                if last is not None and validations[-1].step >= last:
                    return None
            rule = self._study.pruner = stopping_rule(handle.stopping, first_step=first, last_step=last)
            if not rule.prune(self._study, trial):
                return None
            self._storage.set_trial_user_attr(self._trial, STOPPED, [validations[-1].step, total_steps])
        return f"stopped by the search ({handle.stopping}) at step {validations[-1].step:,}"

    @property
    def has_stopped(self) -> bool:
        """True if the run was stopped."""
        return STOPPED in self._storage.get_trial(self._trial).user_attrs


def _last_step(trial: Any) -> int | None:
    """Return the last step that a trial told before it came to its end by itself."""
    return max(trial.intermediate_values, default=None) if trial.state.name == "COMPLETE" else None


def _parts(trial: str) -> tuple[Path, int]:
    folder, _, number = trial.rpartition(":")
    if not folder or not number.isdigit():
        raise UserError(f"search_trial={trial}: allowed: null, or <folder of the study>:<number of the trial>")
    return Path(folder), int(number)
