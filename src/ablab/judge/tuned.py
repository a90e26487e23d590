"""Arms at their usual settings and tuned: what tuning found, and which verdicts stand both ways."""

from collections.abc import Iterator, Sequence
from math import comb

from ablab.judge.document import ClaimLine, TuningLine
from ablab.judge.selection import SelectedArms
from ablab.study.study import names_of
from ablab.study.tuning import TUNED, Tuned, at_an_edge
from ablab.tasks.score import Score

POSITIVE = ("supported", "real, but smaller than matters")
NOT_YET = ("not testable", "provisional")
OPEN = ("inconclusive", *NOT_YET)


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


def expected_best(costs: Sequence[float], of: int) -> list[float]:
    """Return the mean of the smallest of k costs, over all choices of k trials (Dodge et al. 2019).

    costs: of the trials that did not diverge, ascending; of: the number of all trials, n. k runs from one more than
    have diverged, so that every choice has a cost, to n. The smallest of k is cost i (from 0) in comb(n - i - 1, k - 1)
    of comb(n, k) choices.
    """
    return [
        sum(cost * comb(of - i - 1, k - 1) for i, cost in enumerate(costs)) / comb(of, k)
        for k in range(of - len(costs) + 1, of + 1)
    ]


def with_tuning(lines: Sequence[ClaimLine]) -> list[ClaimLine]:
    """Say of each claim that is made with tuned and with usual settings how both verdicts go together."""
    pairs: dict[tuple[object, ...], dict[bool, ClaimLine]] = {}
    for line in lines:
        pairs.setdefault(_key(line), {})[_is_tuned(line)] = line
    return [_told(line, pairs[_key(line)]) for line in lines]


def _told(line: ClaimLine, pair: dict[bool, ClaimLine]) -> ClaimLine:
    if len(pair) < 2 or (said := _together(pair[False], pair[True])) is None:
        return line
    other = "At the usual settings" if _is_tuned(line) else "With tuned settings"
    words = f"{line.words} {other} the verdict is {pair[not _is_tuned(line)].outcome}: {said}."
    return line.model_copy(update={"tuning": said, "words": words})


def _together(usual: ClaimLine, tuned: ClaimLine) -> str | None:
    """Return how the verdicts go together; None where both are open, or one is no verdict."""
    one, other = usual.outcome in POSITIVE, tuned.outcome in POSITIVE
    if all(line.outcome in OPEN for line in (usual, tuned)) or any(line.outcome in NOT_YET for line in (usual, tuned)):
        return None
    if usual.outcome == tuned.outcome:
        return "robust"
    if {usual.outcome, tuned.outcome} == {"supported", "refuted"}:
        return "reversed"
    if one != other:
        return "only when untuned" if one else "only when tuned"
    return "robust" if one else "not the same"


def _names(name: str) -> Iterator[str]:
    for one in names_of(name):
        yield one.removesuffix(TUNED)


def _key(line: ClaimLine) -> tuple[object, ...]:
    arm, baseline = (next(_names(name)) for name in (line.arm, line.baseline))
    return arm, baseline, line.about, line.expect, line.margin


def _is_tuned(line: ClaimLine) -> bool:
    """Return whether a claim is about tuned arms: an arm that tuning left as it is has both names."""
    return any(all(one.endswith(TUNED) for one in names_of(name)) for name in (line.arm, line.baseline))
