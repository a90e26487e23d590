"""The noise of runs that is known before a study has ended: how much scores scatter from seed to seed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ablab.fields import flatten
from ablab.statistics.moderated import near_failures
from ablab.store.index import index_of
from ablab.store.records import AnyEvaluation, Record
from ablab.store.run_folder import RunFolder, all_runs
from ablab.study.study import Study
from ablab.tasks.score import Recipe, Score

KIND = ("schema", "data.digest", "model.d_model", "model.encoder_layers", "model.decoder_layers", "training.max_steps")
"""Fields of a recipe that runs of like kind share."""


class ScoredRun(NamedTuple):
    """A trained run and the evaluation that the study would make, if it has it."""

    folder: RunFolder
    record: Record
    evaluation: AnyEvaluation | None


@dataclass(frozen=True)
class Noise:
    """The standard deviation of a run's score within arms. `runs`: that show it; `origin`: where they lie."""

    sd: float
    runs: int
    origin: str


def known_noise(study: Study, metrics: Iterable[str]) -> dict[str, Noise]:
    """Return the noise of metrics from the finished runs of this study, or else of its store's like runs.

    A metric is left out where no arm has two. Arms with a run that diverged or nearly failed say nothing about the
    others.
    """
    own, index = defaultdict(list), index_of(study.outputs)
    usual = flatten(study.cells[0].planned.recipe)
    for cell in study.runs.values():
        folder, record = cell.planned.folder, cell.planned.folder.record()
        if record is not None:
            own[cell.arm].append(ScoredRun(folder, record, index.evaluation(folder, cell.planned.evaluation_id)))
    scores = {metric: study.task.scores[metric] for metric in metrics}
    found = {metric: _pooled(own.values(), score, "this study", usual) for metric, score in scores.items()}
    if None in found.values():
        alike = _like_runs(study)
        found = {
            metric: noise or _pooled(alike, scores[metric], "like runs of the store", usual)
            for metric, noise in found.items()
        }
    return {metric: noise for metric, noise in found.items() if noise is not None}


def _like_runs(study: Study) -> list[list[ScoredRun]]:
    """Return the store's trained runs of the study's kind, by arm."""
    first = study.cells[0].planned
    alike, index = defaultdict(list), index_of(study.outputs)
    for folder in all_runs(study.outputs):
        record = folder.record()
        if record is not None and _kind(folder.recipe()) == _kind(first.recipe):
            evaluation = index.evaluation(folder, first.evaluation_id)
            alike[record.condition_id].append(ScoredRun(folder, record, evaluation))
    return list(alike.values())


def _kind(recipe: Mapping[str, object]) -> tuple[object, ...]:
    flat = flatten(recipe)
    return tuple(flat.get(key) for key in KIND)


def _pooled(arms: Iterable[Iterable[ScoredRun]], score: Score, origin: str, usual: Recipe) -> Noise | None:
    """Return the noise of the arms whose values are in one measure with those of the usual recipe."""
    known = {}
    for number, runs in enumerate(arms):
        values, trained = [], None
        for folder, record, evaluation in runs:
            if record.state == "diverged":
                break
            trained, value = folder, score.value(record, evaluation)
            values += [] if value is None else [value]
        else:
            if len(values) > 1 and trained and score.unlike([usual, flatten(trained.recipe())]) is None:
                known[str(number)] = np.array(values)
    for failing in near_failures(known, higher_is_better=score.higher_is_better):
        del known[failing]
    df = sum(values.size - 1 for values in known.values())
    if not df:
        return None
    squares = sum((values.size - 1) * float(values.var(ddof=1)) for values in known.values())
    return Noise((squares / df) ** 0.5, sum(values.size for values in known.values()), origin)
