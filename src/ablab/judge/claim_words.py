"""A claim in words, and its verdict, with what a reader should know beside it."""

from typing import NamedTuple

from ablab.judge.document import Advice, OtherTest, Span
from ablab.judge.failures import RANK, SHARE, instead
from ablab.judge.format import advice_words, interval_text, number, p_words, signed
from ablab.judge.metrics import Measure
from ablab.statistics.verdict import Verdict
from ablab.study.claims import EXPECTED, Settled


class Caveats(NamedTuple):
    """What a reader should know beside the verdict; see `ClaimLine`."""

    other: OtherTest | None
    near_failures: list[str]
    advice: Advice | None
    unlike: str | None
    chosen: str | None


def verdict_words(claim: Settled, of: tuple[Measure, Measure], verdict: Verdict, family: str, marks: Caveats) -> str:
    """Return sentences on the verdict, without the claim. `of`: the measure claimed, and the one that was compared."""
    measure, shown = of
    outcome = _with_margin(claim, measure, verdict, strength(claim, verdict, shown))
    if verdict.reason is not None:
        return f"{outcome}; {verdict.reason}.{_of_origin(marks)}"
    difference = f"{signed(verdict.difference, shown.digits)} {shown.unit}".rstrip()
    is_ = "so far is" if verdict.outcome == "provisional" else "is"
    sentence = f"{outcome}. {instead(measure, shown)}The difference {is_} {difference}"
    if (interval := verdict.decided_by) is not None:
        sentence += f", {100 * interval.level:.4g} % interval {interval_text(Span.of(interval), shown.digits)}"
    of_what = " of no difference" if verdict.outcome == "equivalent" else ""
    corrected = "" if verdict.corrected is None else f", {p_words(verdict.corrected, of_what)}"
    several = f" corrected for {family}" if family and corrected else ""
    seeds = "runs an arm" if verdict.interval is None else "seeds"
    beside = _marked(claim, marks, verdict, shown) + _of_origin(marks)
    return f"{sentence}{corrected}{several}, {verdict.n} {seeds}.{beside}"


def claim_words(claim: Settled, measure: Measure) -> str:
    """Return what is claimed, in the names of the study: `norm=scalenorm above norm=pre in test BLEU`."""
    return f"{claim.arm} {EXPECTED[claim.expect]} {claim.baseline} in {measure.title}"


def _with_margin(claim: Settled, measure: Measure, verdict: Verdict, shows: str | None) -> str:
    """Return the outcome, and the margin that it depends on."""
    outcome = verdict.outcome if shows is None else f"{verdict.outcome}, {shows}"
    if not claim.margin:
        return outcome
    margin = number(claim.margin, measure.digits)
    named = outcome.replace("the margin", f"the margin of {margin}")
    return named if named != outcome else f"{outcome} (margin {margin})"


def _marked(claim: Settled, marks: Caveats, verdict: Verdict, shown: Measure) -> str:
    sentences = []
    if marks.other is not None:
        interval = interval_text(marks.other.interval, shown.digits)
        p = "" if marks.other.p is None else f", uncorrected {p_words(marks.other.p)}"
        sentences.append(f"This is the {verdict.test}; the {marks.other.test} alone gives {interval}{p}.")
    if marks.advice is not None:
        sentences.append(f"{advice_words(marks.advice, claim.expect).capitalize()}.")
    if marks.near_failures:
        sentences.append(f"Nearly failed: {', '.join(marks.near_failures)}.")
    return "".join(f" {sentence}" for sentence in sentences)


def _of_origin(marks: Caveats) -> str:
    unlike = "" if marks.unlike is None else f" The arms were not made alike: they differ in {marks.unlike}."
    return unlike + ("" if marks.chosen is None else f" The weights were chosen by the same score: {marks.chosen}.")


def strength(claim: Settled, verdict: Verdict, shown: Measure) -> str | None:
    """Return whether a supported difference exceeds its margin, in words; None without a margin, and for shares."""
    if not claim.margin or claim.expect in ("equal", "not_worse") or verdict.outcome != "supported" or shown is SHARE:
        return None
    if shown is RANK:
        return f"{'also' if verdict.large else 'not'} with the margin taken off"
    side = "above" if claim.expect == "greater" else "below"
    if not verdict.large:
        return f"{side} 0, not shown to exceed the margin"
    return "above the margin" if claim.expect == "greater" else "below 0 by more than the margin"
