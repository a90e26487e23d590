"""A verdict in the words that a person would say first; the figures follow in another sentence."""

from typing import NamedTuple

from ablab.judge.document import ClaimLine
from ablab.judge.failures import RANK, SHARE
from ablab.report.spoken import spoken_pair


class Forms(NamedTuple):
    """How two arms compare: where the measure of the first is higher, lower, or alike, and where it is not worse."""

    higher: str
    lower: str
    alike: str
    not_worse: str

    def opposite(self, form: str) -> str:
        """Return the form that a refuted claim leaves."""
        return self.lower if form == self.higher else self.higher


QUALITY = Forms("is better than", "is worse than", "is as good as", "is no worse than")
OF_METRIC = {
    "training_speed": Forms(
        "trains faster than", "trains more slowly than", "trains as fast as", "trains no more slowly than"
    ),
    "decoding_speed": Forms(
        "decodes faster than", "decodes more slowly than", "decodes as fast as", "decodes no more slowly than"
    ),
    "memory": Forms(
        "needs more memory than", "needs less memory than", "needs as much memory as", "needs no more memory than"
    ),
    "failures": Forms(
        "diverges more often than", "diverges less often than", "diverges as often as", "diverges no more often than"
    ),
    "depth": Forms(
        "needs more decoder layers than",
        "does with fewer decoder layers than",
        "needs as many decoder layers as",
        "needs no more decoder layers than",
    ),
}
"""Forms for what is no score."""


def plain_words(claim: ClaimLine, metric: str) -> str:
    """Return the verdict in plain words, without figures. `metric`: the report's own, which need not be named."""
    forms, of = _forms(claim, metric)
    arm, baseline, both = spoken_pair(claim.arm, claim.baseline)
    after = f", {both}" if both else ""
    asked = {"greater": forms.higher, "less": forms.lower, "equal": forms.alike, "not_worse": forms.not_worse}[
        claim.expect
    ]
    said = {
        "supported": asked,
        "refuted": _refuted(claim, forms, asked),
        "equivalent": forms.alike,
        "real, but smaller than matters": asked,
    }.get(claim.outcome)
    if said is None:
        return f"{_open(claim)} {arm} {asked} {baseline}{of}{after}."
    little = ", but by less than matters" if claim.outcome.startswith("real") else ""
    return f"{_capital(arm)} {said} {baseline}{of}{after}{little}{_instead(claim)}."


def _forms(claim: ClaimLine, metric: str) -> tuple[Forms, str]:
    """Return the forms for what the claim is about, and its name unless that goes without saying."""
    if claim.metric in OF_METRIC:
        return OF_METRIC[claim.metric], ""
    of = "" if claim.metric == metric else f" in {claim.about}"
    higher_is_better = claim.higher_is_better
    if higher_is_better is None:
        return Forms("is above", "is below", "is level with", "is not worse than"), of
    better, worse, alike, not_worse = QUALITY
    return Forms(better, worse, alike, not_worse) if higher_is_better else Forms(worse, better, alike, not_worse), of


def _refuted(claim: ClaimLine, forms: Forms, asked: str) -> str:
    if claim.expect in ("greater", "less"):
        return forms.opposite(asked)
    if claim.expect == "not_worse":
        return forms.lower if claim.higher_is_better is not False else forms.higher
    # Of ranks, the better side won more; of shares of failures, the worse side has more.
    if claim.title == claim.about:
        return forms.higher if (claim.difference or 0) > 0 else forms.lower
    better = ((claim.difference or 0) > 0) == (claim.title == RANK.title)
    return forms.higher if better == (claim.higher_is_better is not False) else forms.lower


def _open(claim: ClaimLine) -> str:
    if claim.outcome == "provisional":
        return "It is too early to say whether"
    if claim.outcome == "not testable":
        return "It cannot be judged whether"
    return "These seeds cannot tell whether" if claim.n != 1 else "One seed cannot tell whether"


def _instead(claim: ClaimLine) -> str:
    if claim.title == claim.about:
        return ""
    return {SHARE.title: ", by the share of runs that diverged", RANK.title: ", diverged runs ranked last"}[claim.title]


def _capital(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with an identifier."""
    first = text.partition(" ")[0]
    return text if "=" in first or "_" in first else text[:1].upper() + text[1:]
