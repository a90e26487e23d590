"""The words that a person would say first: what verdicts show."""

from math import inf
from typing import NamedTuple

from ablab.judge.failures import RANK, SHARE
from ablab.judge.lines import EXPLORATORY, ClaimLine
from ablab.report.names import pair_of
from ablab.text import exactly

OPEN = ("inconclusive", "not testable", "provisional")
"""Outcomes that show nothing."""


class Bounds(NamedTuple):
    """The difference, arm less baseline in the measure claimed, lies above `low` and below `high`."""

    low: float
    high: float

    def and_(self, other: "Bounds") -> "Bounds":
        return Bounds(max(self.low, other.low), min(self.high, other.high))


NOTHING = Bounds(-inf, inf)

UNSHOWN = ", not shown to exceed the margin"

STRENGTHS = {
    (-1, 1): "within the margin",
    (0, 1): "above 0 by less than the margin",
    (-1, 0): "below 0 by less than the margin",
    (0, inf): f"above 0{UNSHOWN}",
    (-inf, 0): f"below 0{UNSHOWN}",
    (1, inf): "above the margin",
    (-inf, -1): "below 0 by more than the margin",
    (-1, inf): "if below 0, then by less than the margin",
    (-inf, 1): "if above 0, then by less than the margin",
}
"""What is shown, with the margin as the unit."""


def shown(claim: ClaimLine) -> Bounds:
    """Return what the verdict shows; of ranks, by which scores would have to be shifted; of shares, the side alone."""
    margin = margin_of(claim)
    if claim.outcome in OPEN:
        return NOTHING
    if claim.outcome == "equivalent" or (claim.expect == "equal" and claim.outcome == "supported"):
        return Bounds(-margin, margin).and_(_different(claim))
    if claim.expect == "not_worse":
        is_above = (claim.outcome == "supported") == is_worse_below(claim)
        edge = -margin if is_worse_below(claim) else margin
        return (Bounds(edge, inf) if is_above else Bounds(-inf, edge)).and_(_different(claim))
    is_large = claim.large or claim.expect == "equal"
    is_small = claim.small or claim.outcome == "real, but smaller than matters"
    low, high = margin if is_large else 0.0, margin if is_small and not is_large else inf
    return Bounds(low, high) if _is_above(claim) else Bounds(-high, -low)


def strength(claim: ClaimLine) -> str | None:
    """Return what is shown relative to the margin, in words; None without a margin or a verdict, and for shares."""
    margin = margin_of(claim)
    if not margin or claim.outcome in OPEN:
        return None
    if claim.title == RANK.title:
        return _strength_of_ranks(claim)
    low, high = shown(claim)
    words = STRENGTHS[low / margin, high / margin]
    # Of the better side, *not worse* asks nothing but whether the difference is 0.
    return words.removesuffix(UNSHOWN) if claim.expect == "not_worse" else words


def _strength_of_ranks(claim: ClaimLine) -> str | None:
    if claim.expect == "equal" or (claim.expect == "not_worse" and claim.outcome == "refuted"):
        return None
    if claim.expect == "not_worse":
        return "with the margin added"
    return f"{'also' if claim.large else 'not'} with the margin taken off"


def margin_of(claim: ClaimLine) -> float:
    """Return the margin at which a claim was judged: 0 for shares of failures, which have none."""
    return 0.0 if claim.title == SHARE.title else claim.margin


def amount(claim: ClaimLine) -> str:
    """Return the margin with its unit, `0.5 BLEU`; ranks have another one."""
    if claim.title != claim.about:
        return f"the margin of {exactly(claim.margin)}"
    is_plural = len(claim.unit) > 3 and claim.unit.endswith("s") and "/" not in claim.unit  # ms and fps are not
    singular = claim.margin == 1 and is_plural and not claim.unit.endswith("ss")
    return f"{exactly(claim.margin)} {claim.unit.removesuffix('s') if singular else claim.unit}".rstrip()


def is_worse_below(claim: ClaimLine) -> bool:
    """Return whether a lower value of the measure claimed is the worse one; so it is where older reports do not say."""
    return claim.higher_is_better is not False


def _different(claim: ClaimLine) -> Bounds:
    if not claim.different:
        return NOTHING
    return Bounds(0.0, inf) if _is_above(claim) else Bounds(-inf, 0.0)


def _is_above(claim: ClaimLine) -> bool:
    """Return on which side of 0 the difference lies, in the measure claimed."""
    if claim.expect in ("greater", "less"):
        return (claim.expect == "greater") == (claim.outcome != "refuted")
    is_more = (claim.difference or 0.0) > 0
    if claim.title == claim.about:
        return is_more
    # Of ranks, the better side won more; of shares of failures, the worse side has more.
    is_better = is_more == (claim.title == RANK.title)
    return is_better == is_worse_below(claim)


class Forms(NamedTuple):
    """How two arms compare: where the measure of the first is higher, and where it is lower."""

    higher: str
    lower: str


QUALITY = Forms("is better than", "is worse than")
OF_METRIC = {
    "training_speed": Forms("trains faster than", "trains more slowly than"),
    "decoding_speed": Forms("decodes faster than", "decodes more slowly than"),
    "memory": Forms("needs more memory than", "needs less memory than"),
    "failures": Forms("diverges more often than", "diverges less often than"),
    "depth": Forms("needs more decoder layers than", "does with fewer decoder layers than"),
}
"""Forms for what is no score."""

MORE_IS_BETTER = ("training_speed", "decoding_speed")
"""Those of which more is better."""


def plain_words(claim: ClaimLine, metric: str) -> str:
    """Return what the verdict shows in plain words, with no figure but the margin.

    `metric`: the report's own, which need not be named. A claim that is exploratory says so first.
    """
    said = _asked(claim, metric) if claim.outcome in OPEN else _shown(claim, metric)
    said = f"{said}{_instead(claim)}."
    if claim.exploratory:
        return f"{EXPLORATORY}{said}"
    # A name that has no other for people stays as it is typed: `adam` and `Adam` may be two arms.
    typed = [name for name in (claim.arm, claim.baseline) if name in (claim.pair or ()) and " " not in name]
    return said if said.startswith(tuple(typed)) else _capital(said)


def _shown(claim: ClaimLine, metric: str) -> str:
    margin, (low, high) = margin_of(claim), shown(claim)
    if low < 0 < high:
        if -low == high:
            return _alike(claim, metric)
        return f"if {_compared(claim, metric, is_higher=low == -inf, after=f', then by less than {amount(claim)}')}"
    if margin and margin in (low, -high):
        return _compared(claim, metric, is_higher=low > 0, by=f" by at least {amount(claim)}")
    after = "" if inf in (-low, high) else f", but by less than {amount(claim)}"
    return _compared(claim, metric, is_higher=low >= 0, after=after)


def _asked(claim: ClaimLine, metric: str) -> str:
    """Return the question that is open."""
    margin = margin_of(claim)
    if claim.expect == "equal":
        return f"{_open(claim)} {_alike(claim, metric) if margin else _alike(claim, metric, 'differ')}"
    if claim.expect == "not_worse":
        by = f" by {amount(claim)} or more" if margin else ""
        return f"{_open(claim)} {_compared(claim, metric, is_higher=not is_worse_below(claim), by=by)}"
    return f"{_open(claim)} {_compared(claim, metric, is_higher=claim.expect == 'greater')}"


def _compared(claim: ClaimLine, metric: str, *, is_higher: bool, by: str = "", after: str = "") -> str:
    forms, of = _forms(claim, metric)
    arm, baseline, both = claim.pair or pair_of(claim.arm, claim.baseline)
    return f"{arm} {forms.higher if is_higher else forms.lower} {baseline}{of}{by}{both and f', {both}'}{after}"


def _alike(claim: ClaimLine, metric: str, differ: str = "") -> str:
    arm, baseline, both = claim.pair or pair_of(claim.arm, claim.baseline)
    of = "" if claim.metric == metric else f" in {claim.about}"
    return f"{arm} and {baseline} {differ or f'differ by less than {amount(claim)}'}{of}{both and f', {both}'}"


def _forms(claim: ClaimLine, metric: str) -> tuple[Forms, str]:
    """Return the forms for what the claim is about, and its name unless that goes without saying."""
    # Whoever says of a table that less speed is better means something else by that name.
    if claim.metric in OF_METRIC and claim.higher_is_better in (None, claim.metric in MORE_IS_BETTER):
        return OF_METRIC[claim.metric], ""
    of = "" if claim.metric == metric else f" in {claim.about}"
    if claim.higher_is_better is None:
        return Forms("is above", "is below"), of
    return QUALITY if claim.higher_is_better else Forms(QUALITY.lower, QUALITY.higher), of


def _open(claim: ClaimLine) -> str:
    if claim.outcome == "provisional":
        return "it is too early to say whether"
    if claim.outcome == "not testable":
        return "it cannot be judged whether"
    return "these seeds cannot tell whether" if claim.n != 1 else "one seed cannot tell whether"


def _instead(claim: ClaimLine) -> str:
    if claim.title == claim.about:
        return ""
    return {SHARE.title: ", by the share of runs that diverged", RANK.title: ", diverged runs ranked last"}[claim.title]


def _capital(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with an identifier."""
    first = text.partition(" ")[0]
    return text if "=" in first or "_" in first else text[:1].upper() + text[1:]
