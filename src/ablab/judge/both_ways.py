"""Claims that are made at usual and at tuned settings: how their two verdicts go together."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from ablab.judge.contrasts import arms_of, shared_scores
from ablab.judge.document import ClaimLine
from ablab.judge.estimates import borrowed, borrows
from ablab.judge.prospects import ALPHA
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated_contrast
from ablab.statistics.multiple import holm
from ablab.statistics.paired import Paired, of_differences
from ablab.study.claims import Settled
from ablab.study.study import names_of
from ablab.study.tuning import TUNED

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
        line.model_copy(update={"tuning": together(lines[pair[False]], lines[pair[True]], is_shown)})
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
    try:
        arms, weights = _weighted(selection, *claims)
        measure = selection.measure_of(claims[0])
        if not arms or any(arm.diverged for arm in arms):
            return None
        scores = shared_scores(arms, measure)
        if selection.error == "moderated" and borrows(claims[0], measure):
            return moderated_contrast(scores, weights, borrowed(selection.rows, arms, measure))
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


class OneVerdict(Protocol):
    """What is read of a verdict: its outcome."""

    @property
    def outcome(self) -> str: ...


def together(usual: OneVerdict, tuned: OneVerdict, is_shown: bool) -> str | None:
    """Return how the verdicts at the usual settings and with tuned ones go together; None where neither says anything.

    is_shown: that their differences differ. That one claim is supported and the other inconclusive does not show it
    (Gelman and Stern 2006). Two equal verdicts do not show that the differences are equal either.
    """
    pair = (usual, tuned)
    if any(one.outcome in NOT_YET for one in pair) or all(one.outcome in OPEN for one in pair):
        return None
    one, other = (each.outcome in POSITIVE for each in pair)
    if usual.outcome == tuned.outcome or (one and other):
        return SAME
    if not is_shown:
        return UNDECIDED
    if {usual.outcome, tuned.outcome} == {"supported", "refuted"}:
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
