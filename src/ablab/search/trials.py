"""The trials of a search: created, completed and read, each number once, even after kills."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ablab.search.settings import direction_of, front
from ablab.search.space import Space
from ablab.search.stopping import STOPPED
from ablab.tasks.score import Score, Scores
from ablab.text import how_many

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage

Outcome = Literal["finished", "stopped", "diverged", "failed"]


@dataclass(frozen=True)
class Trial:
    """One trial of a search.

    `words`: its settings as `key=value`. `values`: of the objectives if it finished; for a stopped trial, the last
    score. `steps`: trained, of `total_steps` planned. `reason`: why it failed or diverged. `loss`: the validation loss
    of the selected weights; None if it did not finish, or if an older version told it.
    """

    number: int
    words: tuple[str, ...]
    outcome: Outcome | None
    values: tuple[float, ...] | None
    steps: int | None
    total_steps: int | None
    run_id: str | None
    reason: str | None
    to_stop: tuple[int, int | None] | None
    scores: Mapping[int, float]
    loss: float | None = None

    @property
    def finished(self) -> bool:
        """True if the trial counts for the choice of the best."""
        return self.outcome == "finished"


class Trials:
    """The trials in an Optuna study. A missing study is created; with `make=False` it is a KeyError."""

    def __init__(
        self,
        name: str,
        space: Space,
        objectives: Scores,
        storage: "BaseStorage",
        sampler: "BaseSampler | None" = None,
        rule: "BasePruner | None" = None,
        *,
        make: bool = True,
    ) -> None:
        from optuna import create_study, load_study

        self.space, self.names = space, list(objectives)
        self.objectives = list(objectives.values())
        if make:
            directions = [direction_of(objective) for objective in self.objectives]
            create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
        self._study: Any = load_study(study_name=name, storage=storage, sampler=sampler, pruner=rule)
        self._storage = storage

    def all(self) -> list[Trial]:
        """Return all trials in the order of their numbers."""
        return [self._read(trial) for trial in self._study.get_trials(deepcopy=False)]

    def running(self) -> list[Trial]:
        """Return unfinished trials, whether they still run or were left by a kill. Each has all its values."""
        for frozen in self._study.get_trials(deepcopy=False):
            if not frozen.state.is_finished() and len(frozen.params) < len(self.space.dimensions):
                self._complete(frozen.number)
        return [trial for trial in self.all() if trial.outcome is None]

    def ask(self) -> Trial:
        """Create the next trial."""
        self._study.ask(self.space.distributions())
        return self.all()[-1]

    def _complete(self, number: int) -> None:
        """Fill in values for keys that have none yet, equal to those that `ask` would have given."""
        from optuna import Trial as Suggesting
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        trial = Suggesting(self._study, self._id_of(number))
        for key, distribution in self.space.distributions().items():
            if isinstance(distribution, CategoricalDistribution):
                trial.suggest_categorical(key, distribution.choices)
                continue
            assert isinstance(distribution, IntDistribution | FloatDistribution)
            suggest: Any = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
            suggest(key, distribution.low, distribution.high, step=distribution.step, log=distribution.log)

    def _id_of(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)

    def note(self, trial: Trial, scores: Mapping[int, float]) -> None:
        """Record the scores of validations, by their steps, that the process of the trial's run has not told."""
        for step, value in scores.items():
            if step not in trial.scores and math.isfinite(value):
                self._storage.set_trial_intermediate_value(self._id_of(trial.number), step, value)

    def tell(
        self,
        number: int,
        outcome: Outcome,
        values: Sequence[float] | None = None,
        **about: int | float | str | None,
    ) -> Trial:
        """Record the outcome, and what is known `about` it: fields of Trial that are not None.

        A diverged trial counts as poor for the sampler, or as failed with several objectives."""
        from optuna.trial import TrialState

        trial_id = self._id_of(number)
        for key, value in {"outcome": outcome, **about}.items():
            if value is not None:
                self._storage.set_trial_user_attr(trial_id, key, value)
        if outcome == "finished":
            assert values is not None
            self._study.tell(number, list(values))
        elif outcome == "failed" or (outcome == "diverged" and len(self.names) > 1):
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, state=TrialState.PRUNED)
        return self._read(self._storage.get_trial(trial_id))

    def _read(self, frozen: Any) -> Trial:
        about = frozen.user_attrs
        done = frozen.state.is_finished()
        stop = about.get(STOPPED)
        outcome: Outcome | None = about.get("outcome", "failed") if done else None
        shown = outcome in ("finished", "stopped") and frozen.values is not None
        complete = len(frozen.params) == len(self.space.dimensions)
        return Trial(
            frozen.number,
            self.space.words(frozen.params) if complete else (),
            outcome,
            tuple(frozen.values) if shown else None,
            about.get("steps"),
            about.get("total_steps"),
            about.get("run_id"),
            about.get("reason"),
            None if stop is None else (stop[0], stop[1]),
            dict(frozen.intermediate_values),
            about.get("loss"),
        )


def best_of(trials: Sequence[Trial], objectives: Sequence[Score]) -> Trial | None:
    """Return the best finished trial on the front by the first objective; of equals, that of the lowest loss.

    A score may be 0 for all trials where none has learnt enough. Without a loss, the earliest of equals.
    """
    sign = -1 if objectives[0].higher_is_better else 1

    def order(trial: Trial) -> tuple[float, float]:
        return sign * (trial.values or ())[0], math.inf if trial.loss is None else trial.loss

    return min(front_of(trials, objectives), key=order, default=None)


def best_so_far(trials: Sequence[Trial], objectives: Sequence[Score], name: str) -> str | None:
    """Return `best so far: trial 3, valid_loss 2.310`; None before any has finished. `name`: of the first objective."""
    best = best_of(trials, objectives)
    if best is None or best.values is None:
        return None
    return f"best so far: trial {best.number}, {name} {best.values[0]:,.{objectives[0].digits}f}"


def front_of(trials: Sequence[Trial], objectives: Sequence[Score]) -> list[Trial]:
    """Return the finished trials that no other dominates."""
    done = [trial for trial in trials if trial.finished and trial.values is not None]
    return [done[index] for index in front([trial.values or () for trial in done], objectives)]


def of_asked(count: int, asked: int) -> str:
    """Return `7 of 20 trials`; of more than are asked for by now, both numbers."""
    if count <= asked:
        return f"{count} of {how_many(asked, 'trial')}"
    return f"{count} trials, for {asked} that are asked for,"


def counts_of(trials: Sequence[Trial]) -> str:
    """Count outcomes, as in `12 finished, 6 stopped early, 1 failed`."""
    names: dict[Outcome | None, str] = {
        "finished": "finished",
        "stopped": "stopped early",
        "diverged": "diverged",
        "failed": "failed",
        None: "begun",
    }
    counts = Counter(trial.outcome for trial in trials)
    return ", ".join(f"{counts[outcome]} {name}" for outcome, name in names.items() if counts[outcome])


def saved_line(trials: Sequence[Trial]) -> str | None:
    """Return `7 trials stopped early: 3,400 of 16,000 steps saved, 21 %`; None if none was stopped."""
    stopped = [trial for trial in trials if trial.outcome == "stopped"]
    if not stopped:
        return None
    heading = f"{how_many(len(stopped), 'trial')} stopped early"
    if any(trial.total_steps is None or trial.steps is None for trial in stopped):
        return f"{heading}; the number of steps saved is unknown, since training is not limited by steps"
    saved = sum((trial.total_steps or 0) - (trial.steps or 0) for trial in stopped)
    whole = sum(trial.total_steps or trial.steps or 0 for trial in trials if trial.outcome in ("finished", "stopped"))
    return f"{heading}: {saved:,} of {whole:,} steps saved, {saved / max(whole, 1):.0%}".replace("%", " %")
