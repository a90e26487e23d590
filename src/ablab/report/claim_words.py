"""Claims and their verdicts in sentences, with what a reader should know beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from ablab.config.labels import NONE
from ablab.judge.document import Document
from ablab.judge.failures import RANK
from ablab.judge.lines import (
    EXPLORATORY,
    Advice,
    ClaimLine,
    Compared,
    FollowedLine,
    Sign,
    interval_text,
)
from ablab.judge.tuned import SAME, UNDECIDED, by_tuning, is_tuned
from ablab.report.names import pair_of
from ablab.report.plain_words import is_worse_below, margin_of, strength
from ablab.statistics.power import MOST_SEEDS
from ablab.statistics.verdict import Outcome
from ablab.study.claims import EXPECTED
from ablab.text import duration, exactly, how_many, p_words, percent, signed


def with_words(lines: Sequence[ClaimLine], labels: Mapping[str, str] = NONE) -> list[ClaimLine]:
    """Return all claims of a report with what is claimed, with sentences on the verdict, and with their labels."""
    said = []
    for without, pair in zip(lines, by_tuning(lines), strict=True):
        line = without.model_copy(update={"strength": strength(without)})
        is_of_several = sum((one.secondary, one.later) == (line.secondary, line.later) for one in lines) > 1
        sentences = [_verdict(line, is_of_several=is_of_several), *_beside(line), *_tuning(line, lines, pair)]
        mark = EXPLORATORY if line.exploratory else ""
        update = {"claimed": claimed(line), "words": f"{mark}{claimed(line)}: {' '.join(sentences)}"}
        said.append(line.model_copy(update={**update, "pair": list(pair_of(line.arm, line.baseline, labels))}))
    return said


def claimed(line: ClaimLine) -> str:
    """Return what is claimed, in the names of the study: `norm=scalenorm above norm=pre in test BLEU`."""
    return f"{line.arm} {EXPECTED[line.expect]} {line.baseline} in {line.about}"


ANSWERS = get_args(Outcome)
"""Outcomes in the order in which they are counted."""


def answers(claims: Sequence[ClaimLine]) -> str:
    """Return all verdicts in a sentence, `3 supported, 1 refuted; exploratory: 1 supported.`, and one on levels."""
    kinds = [[one.outcome for one in claims if bool(one.exploratory) == is_aside] for is_aside in (False, True)]
    told = [", ".join(f"{kind.count(one)} {one}" for one in ANSWERS if one in kind) for kind in kinds]
    marked = [text if place == 0 else f"{EXPLORATORY.lower()}{text}" for place, text in enumerate(told) if text]
    return f"{'; '.join(marked).capitalize()}.{_levels(claims)}"


def _levels(claims: Sequence[ClaimLine]) -> str:
    """Return a sentence on the levels of the claims' intervals, with the space before it; empty where all have 95 %."""
    levels = sorted({one.interval.level for one in claims if one.interval and one.corrected is not None})
    first = " primary" if any(one.secondary for one in claims) else ""
    counts = Counter(f"{' later' * one.later}{' secondary' if one.secondary else first}" for one in claims)
    families = [f"{count}{kind} claims" for kind, count in sorted(counts.items()) if count > 1]
    if not levels or not families:
        return ""
    extent = " to ".join(dict.fromkeys(f"{100 * level:.4g}" for level in (levels[0], levels[-1])))
    how = "in equal parts" if any(one.followed for one in claims) else "and the share of a settled one passes on (Holm)"
    each = " each" if len(families) > 1 else ""
    return (
        f" Each interval is at the level at which its claim is judged ({extent} %): {' and '.join(families)} share an "
        f"error rate of 5 %{each}, {how}."
    )


def exploratory_words(line: ClaimLine) -> str:
    """Return a sentence on why a claim is exploratory, with the space before it; empty for one that is not."""
    return "" if line.exploratory is None else f" Exploratory: {line.exploratory}."


def _verdict(line: ClaimLine, *, is_of_several: bool) -> str:
    """Return the verdict and its figures. `is_of_several`: the claim shares its error rate with others."""
    outcome = _with_margin(line)
    if line.reason is not None:
        return f"{outcome}; {line.reason}."
    is_ = "so far is" if line.outcome == "provisional" else "is"
    sentence = (
        f"{outcome}. {_compared(line)}The difference {is_} {_measured(line, signed(line.difference, line.digits))}"
    )
    if line.interval is not None:
        sentence += f", {100 * line.interval.level:.4g} % interval {interval_text(line.interval, line.digits)}"
    of = f" of {hypothesis(line)}" if line.margin and hypothesis(line) else ""
    corrected = "" if line.corrected is None else f", {'corrected ' * is_of_several}{p_words(line.corrected, of)}"
    runs = f"{'at least ' * line.uneven}{how_many(line.n, 'run')} an arm"
    seeds = runs if line.interval is None else how_many(line.n, "seed")
    return f"{sentence}{corrected}, {seeds}."


def _with_margin(line: ClaimLine) -> str:
    """Return the outcome, and the margin that it depends on."""
    if line.strength is None:
        return f"{line.outcome} (margin {exactly(margin)})" if (margin := margin_of(line)) else line.outcome
    return f"{line.outcome}, {line.strength.replace('the margin', f'the margin of {exactly(line.margin)}')}"


def hypothesis(line: ClaimLine) -> str:
    """Return what the p of a claim is the probability under; empty where there is no p.

    Of *equal* and *not worse* the p of the likelier side is given, that the margin is not kept or that it is; of ranks,
    the verdict alone tells which.
    """
    margin, difference = margin_of(line), line.difference or 0.0
    shown = exactly(margin)
    if line.corrected is None:
        return ""
    if line.expect in ("greater", "less") or not margin:
        return "no difference"
    if line.title != line.about:
        return _of_ranks(line, shown)
    if line.expect == "equal":
        return f"a difference of {shown} or more" if abs(difference) < margin else f"a difference within {shown}"
    is_kept = (difference if is_worse_below(line) else -difference) > -margin
    return f"being worse by {shown} or more" if is_kept else f"being worse by less than {shown}, or better"


def _of_ranks(line: ClaimLine, margin: str) -> str:
    if line.expect == "equal":
        return f"a difference within {margin}, by ranks"
    of = {"supported": f"{margin} or more", "refuted": f"less than {margin}, or better"}.get(line.outcome)
    return f"being worse by {of}, by ranks" if of else ""


def _compared(line: ClaimLine) -> str:
    """Return a sentence on what was compared where it is not what was claimed."""
    if line.title == line.about:
        return ""
    if line.title == RANK.title:
        return f"Runs diverged, so that all runs are ranked by {line.about}, diverged ones last. "
    return "Runs diverged, so that arms are compared by their shares of failures. "


def _measured(line: ClaimLine, figure: str) -> str:
    return f"{figure} {line.unit}".rstrip()


def _beside(line: ClaimLine) -> Iterator[str]:
    """Yield what a reader should know: see `ClaimLine`."""
    if line.reason is None:
        yield from (f"{words[:1].upper()}{words[1:]}." for words in _marks(line))
    if line.union is not None:
        family = f"{line.union.claims}{' secondary' * line.secondary} claims that studies registered on these runs"
        yield f"Over all {family}, {p_words(line.union.p)}: {line.union.outcome}."
    if line.unlike is not None:
        yield f"The arms were not made alike: they differ in {line.unlike}."
    if line.chosen is not None:
        yield f"The weights were chosen by the same score: {line.chosen}."
    if line.followed is not None and line.reason is None:
        yield _looks(line.followed, line)


CONDITIONS = {
    "wide": "the scores of {arm} scatter {figure:.1f} times as much as those of the other arms (by their median "
    "variance, corrected for few seeds)",
    "quiet": "the scores of {arm} scatter {figure:.2f} times as much as those of the other arms",  # of older reports
    "groups": "scores within arms fall into two groups; the error rate is that of noise near normal",
    "order": "scores follow those of the seed before; the error rate is that of independent seeds",
    "opposed": "runs with the same seed vary in opposite directions (correlation {figure:.2f}), and the moderated t "
    "then errs more often than the paired t",
    "together": "runs with the same seed vary together (correlation {figure:.2f}); in a new study, `error: paired` "
    "would see smaller differences",
}
"""What the runs of a claim show, by the kind of condition."""


def condition_words(found: Sign) -> str:
    """Format as `the scores of norm=post scatter 4.1 times as much as those of the other arms (...)`."""
    return CONDITIONS[found.kind].format(arm=found.arm, figure=found.figure)


def _looks(about: FollowedLine, line: ClaimLine) -> str:
    """Return a sentence on where a claim stands between its looks."""
    if about.state == "settled":
        sentence = f"It was settled by the look at {line.n} of at most {about.last} seeds"
        if about.bias is None or round(about.bias, line.digits) == 0:
            return f"{sentence}."
        bias = _measured(line, f"{abs(about.bias):.{line.digits}f}")
        side = "high" if about.bias > 0 else "low"
        return f"{sentence}; an estimate at such a stop is too {side} by {bias} on average."
    if about.state == "spent":
        return f"The last look, at {line.n} seeds, has not settled it."
    later = "" if about.chance is None else f"a later look would settle it with a chance of {percent(about.chance)}"
    if about.state == "hopeless":
        return f"After {line.n} of at most {about.last} seeds there is no point in going on: {later}."
    return f"It is open after {line.n} of at most {about.last} seeds{later and '; '}{later}."


def _tuning(line: ClaimLine, lines: Sequence[ClaimLine], pair: Mapping[bool, int]) -> Iterator[str]:
    if line.tuning is None:
        return
    other = lines[pair[not is_tuned(line)]]
    said = f"{'At the usual settings' if is_tuned(line) else 'With tuned settings'} the verdict is {other.outcome}"
    if line.tuning == SAME:
        yield f"{said}, too." if line.outcome == other.outcome else f"{said}."
    elif line.tuning == UNDECIDED:
        yield f"{said}: it is open whether tuning changes the difference."
    else:
        yield f"{said}: {line.tuning}, and the two differences differ."


def advice_words(advice: Advice, expect: str) -> str:
    """Format as `a new study of 33 seeds (14 to 80) would detect the margin with 80 % power, in 2 h of machine time`.

    A claim that something does not differ is supported, if that is so.
    """
    few, seeds, many = (
        f"more than {MOST_SEEDS}" if number is None else str(number)
        for number in (advice.fewest, advice.seeds, advice.most)
    )
    extent = f" ({few} to {many})" if few != many else ""
    cost = "" if not advice.seconds else f", in {duration(advice.seconds)} of machine time"
    study = f"a new study of {seeds} seeds{extent} would"
    if expect in ("greater", "less"):
        return f"{study} detect the margin with 80 % power{cost}"
    return f"if nothing differs, {study} support the claim with 80 % power{cost}"


def notes_on_claim(claim: ClaimLine) -> str:
    """Return what a reader of the figures should know of a claim, after the reason for its outcome."""
    secondary = "secondary" if claim.secondary else None
    exploratory = None if claim.exploratory is None else f"exploratory: {claim.exploratory}"
    unlike = None if claim.unlike is None else f"not made alike: {claim.unlike}"
    chosen = None if claim.chosen is None else f"chosen by the same score: {claim.chosen}"
    return "; ".join(filter(None, (claim.reason, secondary, exploratory, unlike, *_marks(claim), chosen)))


def p_of(document: Document, line: Compared) -> str:
    """Return what a p is of, and whether it is a claim's, which is corrected."""
    if line.p is None:
        return ""
    if line.claim is None:
        return "no difference, uncorrected"
    return f"{hypothesis(document.claims[line.claim])}, as claimed"


def _marks(claim: ClaimLine) -> Iterator[str]:
    """Yield what the runs of a claim show besides its verdict."""
    if claim.advice is not None:
        yield advice_words(claim.advice, claim.expect)
    if claim.near_failures:
        yield f"nearly failed: {', '.join(claim.near_failures)}"
    yield from map(condition_words, claim.conditions)
