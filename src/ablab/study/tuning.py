"""Tuning: each arm can have settings of its own, found with an equal budget, on validation, on other seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ablab.errors import UserError
from ablab.fields import as_typed, flatten
from ablab.store.records import Record
from ablab.study.design import Arm, number_of
from ablab.study.experiment import Tune
from ablab.tasks.registry import task_recorded

Words = tuple[str, ...]

USUAL = "usual settings"
"""The trial that leaves an arm as it is."""

FEWEST = 3
"""Values of a key below which each of them is an end."""

TUNING = "tuning"
"""The factor `within` of a study whose arms are compared at usual settings and tuned."""

TUNED = ", tuned"
"""Ending of the name of an arm with its best settings."""


@dataclass(frozen=True)
class TuningTrial:
    """Settings that were tried for an arm. `cost`: mean over seeds of what is minimised; None if a seed diverged.

    `loss`: the mean validation loss, which orders trials of equal cost: other scores may not tell those apart that
    learn too little. `seconds`: the machine time of each run, by its id. `is_usual`: the settings are the arm's own,
    which a list of values can name too. `of_runs`: the values of the tuned keys that its runs have, whatever said them.
    `unread`: those of the words that have no effect in the arm.
    """

    words: Words
    cost: float | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    is_usual: bool = False
    loss: float | None = None
    of_runs: Mapping[str, Any] = field(default_factory=dict)
    unread: Words = ()

    @property
    def read(self) -> Words:
        """The words that have an effect in the arm, beside its others."""
        return tuple(word for word in self.words if word not in self.unread)

    def values(self) -> dict[str, str]:
        """Return the values of the tuned keys, as typed."""
        own = {key: as_typed(value) for key, value in self.of_runs.items()}
        return own | {word.partition("=")[0]: word.partition("=")[2] for word in self.read}

    @property
    def name(self) -> str:
        """The settings as a user would type them."""
        return ",".join(self.read) or USUAL


@dataclass(frozen=True)
class Tuned:
    """An arm, what was tried for it, and the best of that."""

    arm: Arm
    trials: Sequence[TuningTrial]
    best: TuningTrial

    @property
    def name(self) -> str:
        """The name of the arm with its best settings, where it stands beside the arm as it is."""
        return f"{self.arm.name}{TUNED}"

    @property
    def words(self) -> Words:
        """The words of the arm with its best settings."""
        return (*self.arm.words, *self.best.read)


def trial_arms(arms: Sequence[Arm], settings: Sequence[Words], lean: Words = ()) -> list[Arm]:
    """Return every arm with all settings to try. `lean`: words that leave out what tuning needs nothing of."""
    return [Arm(_trial_name(arm, words), (*arm.words, *words, *lean)) for arm in arms for words in settings]


def tuned_of(
    arms: Sequence[Arm],
    tune: Tune,
    settings: Sequence[Words],
    records: Mapping[str, Sequence[Record]],
    usual: Mapping[str, str],
    read: Mapping[str, Words],
) -> list[Tuned]:
    """Return each arm with its best settings.

    `records`: of each trial arm, one for each seed. `usual`: of each arm, the id of a run of tuning with its own
    settings, whether such a run was made or not. `read`: of each trial arm, the words that its runs read.
    """
    found = []
    for arm in arms:
        names = [_trial_name(arm, words) for words in settings]
        trials = [
            _trial(words, records[name], tune, usual[arm.name], read[name])
            for words, name in zip(settings, names, strict=True)
        ]
        found.append(Tuned(arm, trials, _best(arm, trials)))
    return found


def _trial(words: Words, records: Sequence[Record], tune: Tune, usual: str, read: Words) -> TuningTrial:
    return TuningTrial(
        words,
        _mean(records, tune.metric),
        loss=_mean(records, None),
        seconds={record.run_id: record.cost.seconds for record in records},
        is_usual=any(record.run_id == usual for record in records),
        of_runs={key: value for key, value in flatten(records[0].settings).items() if key in tune.keys},
        unread=tuple(word for word in words if word not in read),
    )


def _best(arm: Arm, trials: Sequence[TuningTrial]) -> TuningTrial:
    """Return the best trial; of equals, that of the lowest loss, then the first.

    Raises UserError if none trains the arm.
    """
    trained = [trial for trial in trials if trial.cost is not None]
    if not trained:
        tried = "; ".join(trial.name for trial in trials)
        raise UserError(f"tune: {arm.name} diverges with each of {tried}; allowed: settings that train it")
    return min(trained, key=lambda trial: (trial.cost or 0.0, trial.loss or 0.0))


def at_an_edge(tuned: Tuned) -> list[str]:
    """Return the words of the best settings that lie at an end of what was tried: a better value may lie beyond."""
    tried = [trial.values() for trial in tuned.trials]
    found = []
    for key, value in tuned.best.values().items():
        known = {number_of(values[key]) for values in tried if key in values}
        numbers = sorted(number for number in known if number is not None)
        if len(numbers) >= FEWEST and number_of(value) in (numbers[0], numbers[-1]):
            found.append(f"{key}={value}")
    return found


def _trial_name(arm: Arm, words: Words) -> str:
    return ",".join([arm.name, *(words or [USUAL])])


def _mean(records: Sequence[Record], metric: str | None) -> float | None:
    """Return the mean of what is minimised; of the loss, if no metric is named."""
    if any(record.state != "finished" for record in records):
        return None
    return statistics.fmean(_one(record, metric) for record in records)


def _one(record: Record, metric: str | None) -> float:
    task = task_recorded(record.settings)
    score = task.scores[task.loss] if metric is None else task.validated[metric]
    value = score.value(record, None)
    if value is None:
        raise UserError(f"tune.metric={metric}: {record.run_id} has no {score.title}")
    return -value if score.higher_is_better else value
