"""Tuned arms: what tuning found, its curves, and claims that are made at usual and at tuned settings."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import numpy as np

from ablab.judge.contrasts import arms_of, independent, shared_scores
from ablab.judge.document import LineOf, Series, TuningLine
from ablab.judge.estimates import borrowed, borrows
from ablab.judge.lines import ClaimLine
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated_contrast
from ablab.statistics.multiple import holm
from ablab.statistics.paired import Paired, of_differences
from ablab.statistics.tuning_curve import MOST, best_of, expected_best
from ablab.statistics.verdict import ALPHA, Outcome
from ablab.study.claims import Settled
from ablab.study.design import number_of
from ablab.study.study import names_of
from ablab.study.tuning import TUNED, Tuned, at_an_edge
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
        {
            (value, sign * trial.cost)
            for trial in one.trials
            if trial.cost is not None and (value := number_of(trial.values().get(key, ""))) is not None
        }
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


POSITIVE = ("supported", "real, but smaller than matters")
NOT_YET = ("not testable", "provisional")
OPEN = ("inconclusive", *NOT_YET)

SAME = "the same"
UNDECIDED = "open"
"""The verdicts differ, and the difference between them may be chance."""


def with_tuning(selection: SelectedArms, lines: Sequence[ClaimLine]) -> list[ClaimLine]:
    """Add, to each claim that is made with tuned and with usual settings, how both verdicts go together.

    A study that tunes nothing, and a table, may have arms of such names.
    """
    if not selection.tuned:
        return [*lines]
    pairs = by_tuning(lines)
    both = [(pair[False], pair[True]) for number, pair in enumerate(pairs) if len(pair) == 2 and pair[True] == number]
    shown = dict(zip(both, are_shown([_change(selection, lines, *one) for one in both]), strict=True))
    return [
        line.model_copy(update={"tuning": together(lines[pair[False]].outcome, lines[pair[True]].outcome, is_shown)})
        if (is_shown := shown.get((pair.get(False, -1), pair.get(True, -1)))) is not None
        else line
        for line, pair in zip(lines, pairs, strict=True)
    ]


def by_tuning(lines: Sequence[ClaimLine]) -> list[Mapping[bool, int]]:
    """Return, for each claim, where those stand that claim the same at usual settings (False) and with tuned (True)."""
    pairs: dict[tuple[object, ...], dict[bool, int]] = {}
    for number, line in enumerate(lines):
        pairs.setdefault(_key(line), {})[is_tuned(line)] = number
    return [pairs[_key(line)] for line in lines]


def are_shown(changes: Sequence[Paired | Moderated | None]) -> list[bool]:
    """Return which differences of differences are shown: a family with an error rate of its own, ALPHA (Holm 1979).

    None: one that cannot be tested; it keeps its place.
    """
    return [bool(p <= ALPHA) for p in holm([1.0 if change is None else change.p for change in changes])]


def _change(selection: SelectedArms, lines: Sequence[ClaimLine], usual: int, tuned: int) -> Paired | Moderated | None:
    """Compare the tuned difference with the usual one, over the runs of all their arms; None where that cannot be.

    A study that adds seeds has looked at its claims before, and this test has no boundaries.
    """
    if selection.looks is not None or any(lines[one].outcome in NOT_YET for one in (usual, tuned)):
        return None
    claims = selection.claims[tuned], selection.claims[usual]
    if not any(map(selection.is_later, claims)):
        selection = selection.as_registered  # seeds that came later decide nothing about registered claims
    try:
        arms, weights = _weighted(selection, *claims)
        measure = selection.measure_of(claims[0])
        if not arms or any(arm.diverged for arm in arms):
            return None
        scores = shared_scores(arms, measure)
        if selection.error == "moderated" and borrows(claims[0], measure):
            own_weights, own_scores = independent(arms, weights, scores)
            lent = borrowed(selection, arms, measure)
            return moderated_contrast(own_scores, own_weights, lent) if own_scores else None
        return of_differences(np.array(weights) @ np.array(scores))
    except NotTestable:
        return None


def _weighted(selection: SelectedArms, tuned: Settled, usual: Settled) -> tuple[list[ArmRuns], list[float]]:
    """Return the arms of the one claim less the other, and their weights; an arm that counts in both alike drops out.

    Raises NotTestable where an arm is gone.
    """
    arms: dict[str, ArmRuns] = {}
    weights: dict[str, float] = {}
    for claim, sign in ((tuned, 1.0), (usual, -1.0)):
        for arm, weight in zip(arms_of(selection, claim), claim.weights.values(), strict=True):
            arms[arm.name] = arm
            weights[arm.name] = weights.get(arm.name, 0.0) + sign * weight
    kept = [name for name, weight in weights.items() if weight]
    return [arms[name] for name in kept], [weights[name] for name in kept]


def together(usual: Outcome, tuned: Outcome, is_shown: bool) -> str | None:
    """Return how the outcomes at the usual settings and with tuned ones go together; None where neither says anything.

    is_shown: that their differences differ. That one claim is supported and the other inconclusive does not show it
    (Gelman and Stern 2006). Two equal verdicts do not show that the differences are equal either.
    """
    pair = (usual, tuned)
    if any(one in NOT_YET for one in pair) or all(one in OPEN for one in pair):
        return None
    one, other = (each in POSITIVE for each in pair)
    if usual == tuned or (one and other):
        return SAME
    if not is_shown:
        return UNDECIDED
    if {usual, tuned} == {"supported", "refuted"}:
        return "reversed"
    if one != other:
        return "only when untuned" if one else "only when tuned"
    return "not the same"


def _key(line: ClaimLine) -> tuple[object, ...]:
    arm, baseline = (names_of(name)[0].removesuffix(TUNED) for name in (line.arm, line.baseline))
    return arm, baseline, line.about, line.expect, line.margin


def is_tuned(line: ClaimLine) -> bool:
    """Return whether a claim is about tuned arms: an arm that tuning left as it is has both names."""
    return any(all(one.endswith(TUNED) for one in names_of(name)) for name in (line.arm, line.baseline))
