"""Tuned arms: what tuning found, and its curves."""

from collections.abc import Iterator, Sequence
from math import inf

from ablab.judge.document import LineOf, Series, TuningLine
from ablab.judge.selection import SelectedArms
from ablab.statistics.tuning_curve import MOST, best_of, expected_best
from ablab.study.tuning import Tuned, at_an_edge, number_of
from ablab.tasks.score import Score
from ablab.text import counted


def tuning_lines(selection: SelectedArms) -> list[TuningLine]:
    """Return a line on each arm that was tuned."""
    score = selection.task.validated[selection.tuning_metric] if selection.tuned else None
    return [] if score is None else [_line(one, score) for one in selection.tuned]


def _line(tuned: Tuned, score: Score) -> TuningLine:
    sign = -1.0 if score.higher_is_better else 1.0
    costs = trained_costs(tuned)
    usual = next((trial.cost for trial in tuned.trials if trial.is_usual), None)
    return TuningLine(
        arm=tuned.arm.name,
        metric=score.title,
        usual=None if usual is None else sign * usual,
        best=sign * costs[0],
        worst=sign * costs[-1],
        settings=tuned.best.name,
        trials=len(tuned.trials),
        diverged=len(tuned.trials) - len(costs),
        expected=[sign * value for value in expected_best(costs, of=len(tuned.trials))],
        edges=at_an_edge(tuned),
    )


def trained_costs(tuned: Tuned) -> list[float]:
    """Return the costs of the settings that train the arm, ascending."""
    return sorted(trial.cost for trial in tuned.trials if trial.cost is not None)


LEVEL = 0.8
"""Of the bands, as Lourie et al. (2024) draw them: few draws bound little."""

WIDE = 8.0
"""Ratio of the largest to the least value from which their axis is logarithmic."""

FEWEST = 2
"""Draws up to which a band must have both ends to be drawn at all."""


def tuning_series(selection: SelectedArms) -> list[Series]:
    """Return the sensitivity to each tuned number, and the tuning curves; empty where no arm was tuned."""
    if not selection.tuned:
        return []
    score = selection.task.validated[selection.tuning_metric]
    title, sign = f"{score.title[:1].upper()}{score.title[1:]}", -1.0 if score.higher_is_better else 1.0
    return [*_sensitivity(selection.tuned, title, sign), *_curves(selection.tuned, title, sign)]


def _sensitivity(tuned: Sequence[Tuned], title: str, sign: float) -> Iterator[Series]:
    keys = list(dict.fromkeys(key for one in tuned for trial in one.trials for key in map(_setting, trial.words)))
    for place, key in enumerate(keys, 1):
        lines = [line for one in tuned if (line := _by_value(one, key, sign)) is not None]
        if not lines:
            continue
        values = [x for line in lines for x in line.x]
        alone = len(keys) == 1
        yield Series(
            key=f"tuning_{place}",
            title=f"{title} by {key}",
            x=key,
            y=title,
            lines=lines,
            caption="On validation, mean over the seeds of tuning; settings under which a seed diverged have no point."
            + ("" if alone else " Other settings were drawn anew for each point."),
            is_log=min(values) > 0 and max(values) / min(values) >= WIDE,
            is_joined=alone,
        )


def _by_value(one: Tuned, key: str, sign: float) -> LineOf | None:
    found = sorted(
        (value, sign * trial.cost)
        for trial in one.trials
        for value in [next((number_of(word) for word in trial.words if _setting(word) == key), None)]
        if value is not None and trial.cost is not None
    )
    return _line_of(one, *zip(*found, strict=True)) if len(found) > 1 else None


def _curves(tuned: Sequence[Tuned], title: str, sign: float) -> Iterator[Series]:
    trials = counted(sorted({len(one.trials) for one in tuned}))
    yield Series(
        key="tuning_curve",
        title="Tuning curve",
        x="settings tried",
        y=title,
        lines=[line for one in tuned if (line := _expected(one, sign)) is not None],
        caption=f"The best of so many of the {trials} settings, on average over the order in which they were tried.",
    )
    if bounded := [line for one in tuned if (line := _bounded(one, sign)) is not None]:
        yield Series(
            key="tuning_bands",
            title="Best of few draws",
            x="settings drawn",
            y=title,
            lines=bounded,
            caption=f"The median of the best of so many draws, with exact bands of {100 * LEVEL:.0f} % (Lourie et al. "
            "2024), as far as these have both ends.",
        )


def _expected(one: Tuned, sign: float) -> LineOf | None:
    costs, trials = trained_costs(one), len(one.trials)
    best = expected_best(costs, of=trials)
    return _line_of(one, range(trials - len(costs) + 1, trials + 1), [sign * value for value in best])


def _bounded(one: Tuned, sign: float) -> LineOf | None:
    """Return the curve of an arm whose settings were drawn; values that a file lists are no draws."""
    if all(trial.words for trial in one.trials):
        return None
    drawn = [inf if trial.cost is None else trial.cost for trial in one.trials if trial.words]
    curve = best_of(drawn, LEVEL) if 1 < len(drawn) <= MOST else []
    if len(curve) < FEWEST:
        return None
    ends = [sorted((sign * point.low, sign * point.high)) for point in curve]
    return LineOf(
        arm=one.arm.name,
        x=[point.k for point in curve],
        mean=[sign * point.estimate for point in curve],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
    )


def _line_of(one: Tuned, x: Sequence[float], y: Sequence[float]) -> LineOf:
    return LineOf(arm=one.arm.name, x=list(x), mean=list(y), low=list(y), high=list(y))


def _setting(word: str) -> str:
    return word.partition("=")[0]
