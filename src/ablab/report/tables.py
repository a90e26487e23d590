"""The report's tables as text, built once so that every output format shows the same figures."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from ablab.judge.document import Beside, Document, MetricLine, SetLine, TuningLine, WorthLine
from ablab.judge.lines import (
    ArmLine,
    ClaimLine,
    Compared,
    DifferenceLine,
    EffectLine,
    OtherTest,
    Span,
    digits_shown,
    interval_text,
)
from ablab.report.claim_words import claimed, hypothesis, notes_on_claim, p_of
from ablab.report.columns import Column, Line, ReportTable, table_of
from ablab.text import duration, exactly, how_many, number, p_text, signed

TABLES = frozenset(("claims", "arms", "differences", "effects", "worth", "test_sets", "metrics", "tuning", "otherwise"))
"""Keys of all tables."""

OTHERWISE = "otherwise"
"""Key of the table that stands folded, or after all others: no figure of it decides anything."""


def tables(document: Document) -> list[ReportTable]:
    """Return the tables that have rows, in reading order."""
    makers = (claims_table, arms_table, test_sets_table, differences_table, effects_table, worth_table, tuning_table)
    return [table for make in (*makers, metrics_table, otherwise_table) if (table := make(document)).rows]


def claims_table(document: Document) -> ReportTable:
    """Return claims and verdicts."""
    columns: list[Column[ClaimLine]] = [
        Column(
            "claim",
            _claimed,
            leads=True,
            data=lambda claim: {"claim": _claimed(claim), "arm": claim.arm, "baseline": claim.baseline},
        ),
        Column("verdict", lambda claim: claim.verdict, leads=True),
        Column("notes", notes_on_claim, is_sparse=True, leads=True),
        Column("difference", _difference, data=lambda claim: {"difference": claim.difference, "unit": claim.unit}),
        _span("interval", lambda claim: claim.interval, lambda claim: claim.digits, has_levels=True),
        _p("p (corrected)", lambda claim: claim.corrected),
        Column("p is of", hypothesis, is_sparse=True),
        _figure("n", lambda claim: claim.n, 0),
        Column("test", lambda claim: claim.test or "", is_sparse=True),
        Column("published", lambda claim: " ".join((claim.published or "").split()), is_sparse=True),
        Column("source", lambda claim: " ".join((claim.source or "").split()), is_sparse=True),
    ]
    return table_of("claims", "Claims", columns, document.claims)


def arms_table(document: Document) -> ReportTable:
    """Return scores, seeds and cost of each arm by effect, with missing runs marked."""
    digits, names = document.digits, {said: name for name, said in document.labels.items()}
    columns: list[Column[ArmLine]] = [
        _arm(lambda arm: arm.name, lambda arm: arm.is_baseline),
        Column("notes", lambda arm: _notes_on_arm(document, arm), is_sparse=True, leads=True),
        _figure(document.title, lambda arm: arm.mean, digits, unit=document.unit),
        _span("95 % interval", lambda arm: arm.interval, digits, sign=False),
        _figure("sd", lambda arm: arm.sd, digits),
        Column(
            "min to max", lambda arm: _extent(arm, digits), data=lambda arm: {"min": arm.minimum, "max": arm.maximum}
        ),
        Column("seeds", _seeds, data=lambda arm: {"seeds": arm.counted, "seeds planned": arm.planned}),
        *(_beside(other) for other in document.beside if other.name != document.metric),
        _figure("parameters", lambda arm: arm.parameters, 0, is_sparse=True),
        Column(
            "training time",
            lambda arm: "" if arm.train_seconds is None else duration(arm.train_seconds),
            is_sparse=True,
            data=lambda arm: {"time (min)": None if arm.train_seconds is None else arm.train_seconds / 60},
        ),
        _figure(f"{document.nouns.tokens}/s", lambda arm: arm.tokens_per_second, 0, is_sparse=True),
        _figure(f"{document.nouns.items}/s", lambda arm: arm.decoding_speed, 0, is_sparse=True),
        Column("in the study", lambda arm: names.get(arm.name, ""), is_sparse=True),
    ]
    return table_of("arms", "Arms", columns, arms_by_effect(document))


def _beside(other: Beside) -> Column[ArmLine]:
    return _figure(other.title, lambda arm: arm.scores.get(other.name), other.digits, unit=other.unit, is_sparse=True)


def _arm(name: Callable[[Line], str], is_baseline: Callable[[Line], bool]) -> Column[Line]:
    """Return the column of an arm. Programs read its plain name, by which they join tables."""
    return Column(
        "arm",
        lambda line: name(line) + (" (baseline)" if is_baseline(line) else ""),
        leads=True,
        data=lambda line: {"arm": name(line), "is baseline": int(is_baseline(line))},
    )


def _figure(
    title: str,
    read: Callable[[Line], float | None],
    digits: int | Callable[[Line], int],
    *,
    write: Callable[[float | None, int], str] = number,
    unit: str = "",
    is_sparse: bool = False,
) -> Column[Line]:
    """Return a column of figures, which people read with so many digits. `unit`: what the title may not say of it."""
    return Column(
        title,
        lambda line: write(read(line), digits if isinstance(digits, int) else digits(line)),
        is_sparse,
        data=lambda line: {with_unit(title, unit): read(line)},
    )


def with_unit(title: str, unit: str) -> str:
    """Return the title of a measure with its unit, unless it ends with that."""
    return title if not unit or f" {title}".endswith(f" {unit}") else f"{title} ({unit})"


def _p(title: str, read: Callable[[Line], float | None], *, is_sparse: bool = False) -> Column[Line]:
    return Column(title, lambda line: p_text(read(line)), is_sparse, data=lambda line: {title: read(line)})


def _span(
    title: str,
    read: Callable[[Line], Span | None],
    digits: int | Callable[[Line], int],
    *,
    sign: bool = True,
    has_levels: bool = False,
) -> Column[Line]:
    """Return a column of intervals, each with its level if they have several; programs read two, of their ends."""

    def cell(line: Line) -> str:
        text = interval_text(interval := read(line), digits if isinstance(digits, int) else digits(line), sign=sign)
        return text if interval is None or not has_levels else f"{text} at {100 * interval.level:.4g} %"

    def data(line: Line) -> dict[str, float | None]:
        low, high, level = (None, None, None) if (one := read(line)) is None else (one.low, one.high, 100 * one.level)
        return {f"{title} low": low, f"{title} high": high, **({f"{title} level (%)": level} if has_levels else {})}

    return Column(title, cell, data=data)


def test_sets_table(document: Document) -> ReportTable:
    """Return the score of each arm on each of several test sets."""
    score = next((line.score for line in document.test_sets), "")
    columns: list[Column[SetLine]] = [
        Column("test set", lambda line: line.test_set, leads=True),
        _arm(lambda line: line.arm, lambda line: line.arm == document.baseline),
        _figure(document.nouns.items, lambda line: line.sentences, 0),
        _figure(score, lambda line: line.mean, 2),
        _figure("sd", lambda line: line.sd, 2),
        _figure("seeds", lambda line: line.n, 0),
    ]
    return table_of("test_sets", "By test set", columns, document.test_sets)


def differences_table(document: Document) -> ReportTable:
    """Return differences of the arms from the baseline, the best first."""
    digits = document.digits
    columns: list[Column[DifferenceLine]] = [
        Column("arm", lambda line: line.arm, leads=True),
        Column("notes", lambda line: _notes_on_difference(document, line), is_sparse=True, leads=True),
        *_decisive(document, document.differences),
        _figure("seen with 80 % power", lambda line: line.detectable, digits),
        _figure("n", lambda line: line.n, 0),
        Column("test", lambda line: line.test or "", is_sparse=True),
    ]
    title = f"Differences from {document.baselines}"
    return table_of("differences", title, columns, differences_by_effect(document))


def effects_table(document: Document) -> ReportTable:
    """Return the effects of a factorial design."""
    columns: list[Column[EffectLine]] = [
        Column("effect", lambda effect: effect.what, leads=True),
        Column("kind", lambda effect: effect.kind, leads=True),
        Column("notes", lambda effect: effect.refused or "", is_sparse=True, leads=True),
        *_decisive(document, document.effects),
        _figure("n", lambda effect: effect.n, 0),
        Column("test", lambda effect: effect.test or "", is_sparse=True),
    ]
    return table_of("effects", "Main effects and interactions", columns, document.effects)


TIMES = "times the baseline's compute"


def worth_table(document: Document) -> ReportTable:
    """Return what arms are worth in compute, the most first."""
    columns: list[Column[WorthLine]] = [
        Column("arm", lambda line: line.arm, leads=True),
        Column(
            "notes",
            lambda line: line.refused or "beyond the lengths that were trained" * line.beyond,
            is_sparse=True,
            leads=True,
        ),
        Column(TIMES, _times, is_sparse=True, data=lambda line: {TIMES: line.factor}),
        Column("95 % interval", _span_of_worth, is_sparse=True, data=_ends_of_worth),
        _figure("by its unfinished curve, at least", lambda line: line.at_least, 2, is_sparse=True),
        _figure("n", lambda line: line.n, 0),
    ]
    lines = sorted(document.worth, key=lambda line: -(line.factor or line.at_least or 0.0))
    return table_of("worth", f"Worth in compute of {document.baselines}", columns, lines)


def _times(line: WorthLine) -> str:
    if line.saturated:
        gain, loss = "twice the compute is not shown to gain", "half the compute is not shown to lose"
        return f"unbounded: {loss if line.is_loss else gain}"
    if line.factor is not None and line.beyond:
        return f"{'above' if line.factor > 1 else 'below'} {line.factor:g}"
    return number(line.factor, 2)


def _span_of_worth(line: WorthLine) -> str:
    if line.low is None:
        return ""
    low = "0" if line.low == 0 else f"{line.low:.2f}"
    return f"[{low}, {'no end' if line.high is None else f'{line.high:.2f}'}]"


def _ends_of_worth(line: WorthLine) -> dict[str, float | None]:
    """Return the ends of the interval; one without an upper end goes to infinity."""
    high = inf if line.high is None and line.low is not None else line.high
    return {"95 % interval low": line.low, "95 % interval high": high}


def metrics_table(document: Document) -> ReportTable:
    """Return how well each metric tells the arms apart."""
    columns: list[Column[MetricLine]] = [
        Column("metric", lambda line: line.title + (" (declared)" if line.declared else ""), leads=True),
        _figure("sd between arms", lambda line: line.between, lambda line: line.digits),
        _figure("sd within arms", lambda line: line.within, lambda line: line.digits),
        _figure("signal to noise", lambda line: line.ratio, 2),
        _figure("F", lambda line: line.f, 2),
        _figure("omega squared", lambda line: line.omega_squared, 2),
        _figure("seeds to a verdict", lambda line: line.seeds, 0, is_sparse=True),
        _figure("arms", lambda line: line.arms, 0),
        _figure("runs", lambda line: line.runs, 0),
    ]
    return table_of("metrics", "Which metric sees best (exploratory)", columns, document.metrics)


def next_metric(document: Document) -> str:
    """Return which metric a next study may declare, and what this one saw of it; empty where nothing was seen."""
    known = sorted((line for line in document.metrics if line.seeds is not None), key=lambda line: line.seeds or 0)
    if not known:
        return ""
    best, declared = known[0], next((line for line in document.metrics if line.declared), known[0])
    takes = "more than can be planned" if declared.seeds is None else how_many(declared.seeds, "seed")
    beside = "" if declared is best else f"; {declared.title}, which this one declared, takes {takes}"
    return (
        f"For a next study, {best.title} sees most: {how_many(best.seeds or 0, 'seed')} of each arm would show a "
        f"difference that is usual here{beside}. To choose a metric after its runs is exploratory."
    )


def tuning_table(document: Document) -> ReportTable:
    """Return what tuning found for each arm, on validation."""
    columns: list[Column[TuningLine]] = [
        Column("arm", lambda line: line.arm, leads=True),
        Column("chosen", lambda line: line.settings + (" (at an end)" if line.edges else ""), leads=True),
        _figure("best", lambda line: line.best, 3),
        _figure("usual settings", lambda line: line.usual, 3),
        _figure("worst", lambda line: line.worst, 3),
        _figure("best of half the trials", _best_of_half, 3),
        _figure("trials", lambda line: line.trials, 0),
        _figure("diverged", lambda line: line.diverged, 0),
    ]
    metric = document.tuning[0].metric if document.tuning else ""
    return table_of("tuning", f"Tuning, by {metric}", columns, document.tuning)


class Otherwise(NamedTuple):
    """A difference computed in a way that does not decide. `digits`: of its interval."""

    compared: str
    how: str
    why: str
    digits: int
    interval: Span | None
    p: float | None


def otherwise_table(document: Document) -> ReportTable:
    """Return the intervals and p of differences by the methods that do not decide, and why they differ."""
    columns: list[Column[Otherwise]] = [
        Column("difference", lambda one: one.compared, leads=True),
        Column("method", lambda one: one.how, leads=True),
        Column("differs because", lambda one: one.why, leads=True),
        _span("interval", lambda one: one.interval, lambda one: one.digits, has_levels=True),
        _p("p, uncorrected", lambda one: one.p, is_sparse=True),
    ]
    pairs = [(f"{line.arm} - {line.baseline or document.baseline}", line) for line in differences_by_effect(document)]
    ways = (_by_seeds, _on_sentences)
    lines = [one for name, line in pairs for way in ways for one in way(document, name, line)]
    lines += [one for line in document.effects for one in _by_seeds(document, line.what, line)]
    every: list[Compared] = [*document.differences, *document.effects]
    shown = {line.claim for line in every}
    lines += [
        _of_claim(claim, claim.other)
        for place, claim in enumerate(document.claims)
        if claim.other and place not in shown
    ]
    return table_of(OTHERWISE, "How else it can be computed", columns, lines)


def _by_seeds(document: Document, compared: str, line: Compared) -> Iterator[Otherwise]:
    if (plain := line.uncorrected) is not None:
        is_narrow = line.interval is not None and line.interval.level < plain.interval.level
        narrow = "two-sided; the claim's interval is that of one-sided tests"
        why = narrow if is_narrow else "not corrected for other claims"
        yield Otherwise(compared, plain.test, why, document.digits, plain.interval, plain.p)
    if (other := line.other) is not None:
        yield Otherwise(compared, other.test, _noise(other), document.digits, other.interval, other.p)


def _on_sentences(document: Document, compared: str, line: DifferenceLine) -> Iterator[Otherwise]:
    digits, items = document.digits, document.nouns.items
    if line.crossed is not None or line.crossed_refused is not None:
        why = line.crossed_refused or f"other {items} of this kind, too"
        yield Otherwise(compared, f"seeds and {items}, bootstrap", why, digits, line.crossed, line.crossed_p)
    if line.randomisation_p is not None or line.randomisation_refused is not None:
        why = line.randomisation_refused or f"other {items} alone, for these very runs"
        yield Otherwise(compared, "test set alone, randomisation", why, digits, None, line.randomisation_p)


def _of_claim(claim: ClaimLine, other: OtherTest) -> Otherwise:
    compared = f"{claim.arm} - {claim.baseline}, {claim.about}"
    return Otherwise(compared, other.test, _noise(other), claim.digits, other.interval, other.p)


def _noise(other: OtherTest) -> str:
    if other.test.startswith("moderated"):
        return "noise moderated by the other arms, without pairs"
    if other.test.startswith("Welch"):
        return "noise of each of these arms, without pairs"
    return "noise of these pairs of runs alone"


def _claimed(claim: ClaimLine) -> str:
    return claimed(claim) + (f", margin {exactly(claim.margin)}" if claim.margin else "")


def _difference(claim: ClaimLine) -> str:
    return "" if claim.difference is None else f"{signed(claim.difference, claim.digits)} {claim.unit}".rstrip()


def levels(lines: Sequence[Compared]) -> list[str]:
    """Return the levels of their intervals, ascending: `95`, or `97.5` and `98.75`."""
    found = {line.interval.level for line in lines if line.interval}
    return [f"{100 * level:.4g}" for level in sorted(found)]


def _decisive(document: Document, lines: Sequence[Compared]) -> list[Column[Any]]:
    """Return the columns of a difference and of what decides: interval, p, and what that is of.

    Levels stand in the cells where there are several.
    """
    every = levels(lines)

    def digits(line: Compared) -> int:
        return digits_shown(line.difference, line.interval, document.digits)

    is_claimed = any(line.claim is not None for line in lines)
    title = "interval" if len(every) > 1 else f"{(*every, 95)[0]} % interval"
    interval: Column[Compared] = _span(title, lambda line: line.interval, digits, has_levels=len(every) > 1)
    p: Column[Compared] = _p("p", lambda line: line.p)
    return [
        _figure("difference", lambda line: line.difference, digits, write=signed, unit=document.unit),
        interval,
        p,
        Column[Compared]("p is of", lambda line: p_of(document, line) if is_claimed else "", is_sparse=True),
    ]


def _notes_on_arm(document: Document, arm: ArmLine) -> str:
    holes = [f"{n} {state}" for state, n in arm.missing.items()]
    return "; ".join([*arm.notes, *holes, *_moving(document, arm.name)])


def _extent(arm: ArmLine, digits: int) -> str:
    return "" if arm.minimum is None else f"{number(arm.minimum, digits)} to {number(arm.maximum, digits)}"


def _seeds(arm: ArmLine) -> str:
    return str(arm.counted) if arm.counted == arm.planned else f"{arm.counted} of {arm.planned}"


def _moving(document: Document, name: str, *, whose: str = "") -> list[str]:
    state = next(arm.convergence for arm in document.arms if arm.name == name)
    return [f"{whose}under-trained"] if state == "moving" else []


def _notes_on_difference(document: Document, line: DifferenceLine) -> str:
    notes = [line.refused] if line.refused else []
    notes += [*_moving(document, line.arm), *_moving(document, line.baseline or document.baseline, whose="baseline ")]
    return "; ".join(notes)


def _best_of_half(line: TuningLine) -> float | None:
    """Return the best of half the trials, on average; None where as many have diverged."""
    place = (line.trials + 1) // 2 - line.diverged - 1
    return line.expected[place] if place >= 0 else None


def differences_by_effect(document: Document) -> list[DifferenceLine]:
    """Return the differences, the best first, and those that have none last.

    In the order of the study where arms have baselines of their own: their differences do not compare.
    """
    if document.within:
        return document.differences
    sign = -1.0 if document.higher_is_better else 1.0
    return sorted(document.differences, key=lambda line: (line.difference is None, sign * (line.difference or 0.0)))


def arms_by_effect(document: Document) -> list[ArmLine]:
    """Return the arms in the order of their differences, after the baseline."""
    if document.within:
        return document.arms
    places = {line.arm: place for place, line in enumerate(differences_by_effect(document))}
    return sorted(document.arms, key=lambda arm: (not arm.is_baseline, places.get(arm.name, len(places))))
