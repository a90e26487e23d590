"""Claims and their verdicts in sentences, with what a reader should know beside them."""

from collections.abc import Iterator, Mapping, Sequence

from ablab.console import duration
from ablab.judge.document import EXPLORATORY, Advice, ClaimLine, FollowedLine
from ablab.judge.failures import RANK
from ablab.judge.format import interval_text, p_words, percent, signed
from ablab.judge.tuned import UNDECIDED, by_tuning, is_tuned
from ablab.report.shown import is_worse_below, margin_of, strength
from ablab.statistics.power import MOST_SEEDS
from ablab.study.claims import EXPECTED


def with_words(lines: Sequence[ClaimLine]) -> list[ClaimLine]:
    """Return all claims of a report with what is claimed, and with sentences on the verdict."""
    said = []
    for without, pair in zip(lines, by_tuning(lines), strict=True):
        line = without.model_copy(update={"strength": strength(without)})
        sentences = [_verdict(line, _family(line, lines)), *_beside(line), *_tuning(line, pair)]
        mark = EXPLORATORY if line.exploratory else ""
        update = {"claimed": claimed(line), "words": f"{mark}{claimed(line)}: {' '.join(sentences)}"}
        said.append(line.model_copy(update=update))
    return said


def claimed(line: ClaimLine) -> str:
    """Return what is claimed, in the names of the study: `norm=scalenorm above norm=pre in test BLEU`."""
    return f"{line.arm} {EXPECTED[line.expect]} {line.baseline} in {line.about}"


def exploratory_words(line: ClaimLine) -> str:
    """Return a sentence on why a claim is exploratory, with the space before it; empty for one that is not."""
    return "" if line.exploratory is None else f" Exploratory: {line.exploratory}."


def _family(line: ClaimLine, lines: Sequence[ClaimLine]) -> str:
    """Return what the p of a claim is corrected for; empty where it is the only one of its family."""
    together = [one for one in lines if one.later == line.later]
    claims = sum(one.secondary == line.secondary for one in together)
    which = " secondary" if line.secondary else " primary" if claims < len(together) else ""
    return f"{claims}{' later' * line.later}{which} claims" if claims > 1 else ""


def _verdict(line: ClaimLine, family: str) -> str:
    """Return the verdict and its figures."""
    outcome = _with_margin(line)
    if line.reason is not None:
        return f"{outcome}; {line.reason}."
    is_ = "so far is" if line.outcome == "provisional" else "is"
    sentence = (
        f"{outcome}. {_compared(line)}The difference {is_} {_measured(line, signed(line.difference, line.digits))}"
    )
    if line.interval is not None:
        sentence += f", {100 * line.interval.level:.4g} % interval {interval_text(line.interval, line.digits)}"
    corrected = "" if line.corrected is None else f", {p_words(line.corrected, _hypothesis(line))}"
    several = f" corrected for {family}" if family and corrected else ""
    seeds = "runs an arm" if line.interval is None else "seeds"
    return f"{sentence}{corrected}{several}, {line.n} {seeds}."


def _with_margin(line: ClaimLine) -> str:
    """Return the outcome, and the margin that it depends on."""
    if line.strength is None:
        return f"{line.outcome} (margin {line.margin:g})" if line.margin else line.outcome
    return f"{line.outcome}, {line.strength.replace('the margin', f'the margin of {line.margin:g}')}"


def _hypothesis(line: ClaimLine) -> str:
    """Return what a p is of, with the space before it; empty where it is of no difference and there is no margin.

    Of *equal* and *not worse* the p of the likelier side is given, that the margin is not kept or that it is.
    """
    margin, difference = margin_of(line), line.difference or 0.0
    if not margin or line.title != line.about:
        return ""
    if line.expect in ("greater", "less"):
        return " of no difference"
    if line.expect == "equal":
        is_kept = abs(difference) < margin
        return f" of a difference of {margin:g} or more" if is_kept else f" of a difference within {margin:g}"
    is_kept = (difference if is_worse_below(line) else -difference) > -margin
    return (
        f" of being worse by {margin:g} or more" if is_kept else f" of being worse by less than {margin:g}, or better"
    )


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
        if line.other is not None:
            interval = interval_text(line.other.interval, line.digits)
            p = "" if line.other.p is None else f", uncorrected {p_words(line.other.p)}"
            yield f"This is the {line.test}; the {line.other.test} alone gives {interval}{p}."
        if line.advice is not None:
            yield f"{advice_words(line.advice, line.expect).capitalize()}."
        if line.near_failures:
            yield f"Nearly failed: {', '.join(line.near_failures)}."
    if line.union is not None:
        family = f"{line.union.claims}{' secondary' * line.secondary} claims that studies registered on these runs"
        yield f"Over all {family}, {p_words(line.union.p)}: {line.union.outcome}."
    if line.unlike is not None:
        yield f"The arms were not made alike: they differ in {line.unlike}."
    if line.chosen is not None:
        yield f"The weights were chosen by the same score: {line.chosen}."
    if line.followed is not None and line.reason is None:
        yield _looks(line.followed, line)


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


def _tuning(line: ClaimLine, pair: Mapping[bool, ClaimLine]) -> Iterator[str]:
    if line.tuning is not None:
        settings = "At the usual settings" if is_tuned(line) else "With tuned settings"
        how = "it is open whether tuning changes the verdict" if line.tuning == UNDECIDED else line.tuning
        yield f"{settings} the verdict is {pair[not is_tuned(line)].outcome}: {how}."


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
