"""Tuning: each arm can have a learning rate of its own, found with an equal budget, on validation, on other seeds."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.study.design import Arm, written
from ablab.study.experiment import Level, Tune


def trial_arms(arms: Sequence[Arm], tune: Tune) -> list[Arm]:
    """Return every arm with every value to try, without pruning: depth-quality curves of tuning runs are not needed."""
    return [
        Arm(_trial_name(arm, tune, value), (*arm.words, f"{tune.key}={written(value)}", "pruning=none"))
        for arm in arms
        for value in tune.values
    ]


def tuned_arms(arms: Sequence[Arm], tune: Tune, records: dict[str, list[Record]]) -> list[Arm]:
    """Return every arm with its best value. `records`: of each trial arm, one for each seed."""
    words = {arm.name: f"{tune.key}={written(_best(arm, tune, records))}" for arm in arms}
    return [replace(arm, words=(*arm.words, words[arm.name])) for arm in arms]


def _trial_name(arm: Arm, tune: Tune, value: Level) -> str:
    return f"{arm.name},{tune.key}={written(value)}"


def _best(arm: Arm, tune: Tune, records: dict[str, list[Record]]) -> Level:
    """Return the best value by the mean over seeds; values under which a seed diverges are excluded. The first of
    equals.
    """
    scores: list[tuple[float, Level]] = []
    for value in tune.values:
        found = records[_trial_name(arm, tune, value)]
        if all(record.state == "finished" for record in found):
            scores.append((statistics.fmean(_cost(record, tune) for record in found), value))
    if not scores:
        tried = ", ".join(written(value) for value in tune.values)
        raise UserError(f"tune: {arm.name} diverges with every {tune.key} of {tried}; allowed: values that train it")
    return min(scores, key=lambda score: score[0])[1]


def _cost(record: Record, tune: Tune) -> float:
    assert record.selected is not None
    return record.selected.loss if tune.metric == "loss" else -record.selected.bleu
