"""Fair arms: each may have a learning rate of its own, found with an equal budget, on validation, on other seeds."""

import statistics
from collections.abc import Sequence

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.study.design import Arm, written
from ablab.study.experiment import Level, Tune


def trial_arms(arms: Sequence[Arm], tune: Tune) -> list[Arm]:
    """Every arm with every value. Their depth-quality curves interest nobody."""
    return [
        Arm(_trial_name(arm, tune, value), (*arm.words, f"{tune.key}={written(value)}", "pruning=none"))
        for arm in arms
        for value in tune.values
    ]


def tuned_arms(arms: Sequence[Arm], tune: Tune, records: dict[str, list[Record]]) -> list[Arm]:
    """Every arm with the value that is best for it. `records`: of each trial arm, one for each seed."""
    return [Arm(arm.name, (*arm.words, f"{tune.key}={written(_best(arm, tune, records))}")) for arm in arms]


def _trial_name(arm: Arm, tune: Tune, value: Level) -> str:
    return f"{arm.name},{tune.key}={written(value)}"


def _best(arm: Arm, tune: Tune, records: dict[str, list[Record]]) -> Level:
    """By the mean over seeds; a value under which any seed diverges is out. Of equals, the first."""
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
