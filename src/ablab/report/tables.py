"""The report's tables as text, built once so that every output format shows the same figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ablab.console import duration
from ablab.report.document import ArmLine, ClaimLine, DifferenceLine, Document, TuningLine
from ablab.report.format import advice_words, interval_text, number, p_text, signed
from ablab.report.order import arms_by_effect, differences_by_effect
from ablab.study.claims import EXPECTED


@dataclass(frozen=True)
class ReportTable:
    """A table of strings. `left`: number of leading columns that hold words, not figures."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


TABLES = frozenset(("claims", "arms", "differences", "effects", "test_sets", "metrics", "tuning"))
"""Keys of all tables."""


def tables(document: Document) -> list[ReportTable]:
    """Return the tables that have rows, in reading order."""
    return [table for make in MAKERS if (table := make(document)).rows]


def claims_table(document: Document) -> ReportTable:
    """Return claims and verdicts."""
    columns = ["claim", "verdict", "notes", "difference", "interval", "p (corrected)", "n", "test", "published"]
    return _without_empty(
        ReportTable("claims", "Claims", columns, [_claim(claim) for claim in document.claims], left=3)
    )


def arms_table(document: Document) -> ReportTable:
    """Return scores, seeds and cost of each arm by effect, with missing runs marked."""
    columns = [
        *("arm", "notes", document.title, "95 % interval", "sd", "min to max", "seeds", "chrF", "test loss"),
        *("validation loss", "parameters", "training time", "target tokens/s", "sentences/s"),
    ]
    return _without_empty(
        ReportTable("arms", "Arms", columns, [_arm(document, arm) for arm in arms_by_effect(document)], left=2)
    )


def test_sets_table(document: Document) -> ReportTable:
    """Return BLEU of each arm on each of several test sets."""
    columns = ["test set", "arm", "sentences", "test BLEU", "sd", "seeds"]
    rows = [
        [
            line.test_set,
            line.arm + (" (baseline)" if line.arm == document.baseline else ""),
            f"{line.sentences:,}",
            number(line.mean, 2),
            number(line.sd, 2),
            str(line.n),
        ]
        for line in document.test_sets
    ]
    return ReportTable("test_sets", "By test set", columns, rows, left=2)


def differences_table(document: Document) -> ReportTable:
    """Return differences of the arms from the baseline, the best first."""
    columns = [
        *("arm", "notes", "difference", "95 % interval", "p", "seeds and sentences", "p, seeds and sentences"),
        *("p, test set alone", "seen with 80 % power", "n"),
    ]
    rows = [_difference(document, line) for line in differences_by_effect(document)]
    baseline = document.baselines
    return _without_empty(ReportTable("differences", f"Differences from {baseline}", columns, rows, left=2))


def effects_table(document: Document) -> ReportTable:
    """Return the effects of a factorial design."""
    table = ReportTable(
        "effects",
        "Main effects and interactions",
        ["effect", "kind", "notes", "difference", "95 % interval", "p", "n"],
        [
            [
                effect.what,
                effect.kind,
                effect.refused or "",
                signed(effect.difference, document.digits),
                interval_text(effect.interval, document.digits),
                p_text(effect.p),
                str(effect.n),
            ]
            for effect in document.effects
        ],
        left=3,
    )
    return _without_empty(table)


def metrics_table(document: Document) -> ReportTable:
    """Return how well each metric tells the arms apart."""
    columns = ["metric", "sd between arms", "sd within arms", "signal to noise", "F", "omega squared", "arms", "runs"]
    rows = [
        [
            line.title + (" (declared)" if line.declared else ""),
            number(line.between, line.digits),
            number(line.within, line.digits),
            number(line.ratio, 2),
            number(line.f, 2),
            number(line.omega_squared, 2),
            str(line.arms),
            str(line.runs),
        ]
        for line in document.metrics
    ]
    return ReportTable("metrics", "Which metric sees best (exploratory)", columns, rows)


def _best_of_half(line: TuningLine) -> float | None:
    """Return the best of half the trials, on average; None where as many have diverged."""
    place = (line.trials + 1) // 2 - line.diverged - 1
    return line.expected[place] if place >= 0 else None


def tuning_table(document: Document) -> ReportTable:
    """Return what tuning found for each arm, on validation."""
    columns = ["arm", "chosen", "best", "usual settings", "worst", "best of half the trials", "trials", "diverged"]
    rows = [
        [
            line.arm,
            line.settings + (" (at an end)" if line.edges else ""),
            number(line.best, 3),
            number(line.usual, 3),
            number(line.worst, 3),
            number(_best_of_half(line), 3),
            str(line.trials),
            str(line.diverged),
        ]
        for line in document.tuning
    ]
    metric = document.tuning[0].metric if document.tuning else ""
    return ReportTable("tuning", f"Tuning, by {metric}", columns, rows, left=2)


MAKERS = (*(claims_table, arms_table, test_sets_table, differences_table, effects_table, tuning_table, metrics_table),)
"""Functions that make the tables, in reading order."""

SPARSE = (
    *("notes", "chrF", "parameters", "training time", "target tokens/s", "sentences/s"),
    "test loss",
    "validation loss",
    "seeds and sentences",
    "p, seeds and sentences",
    "p, test set alone",
    "test",
    "published",
)
"""Columns that are left out where they would be empty."""


def _without_empty(table: ReportTable) -> ReportTable:
    kept = [
        number
        for number, column in enumerate(table.columns)
        if column not in SPARSE or any(row[number] for row in table.rows)
    ]
    return replace(
        table,
        columns=[table.columns[number] for number in kept],
        rows=[[row[number] for number in kept] for row in table.rows],
        left=sum(number < table.left for number in kept),
    )


def _claim(claim: ClaimLine) -> list[str]:
    margin = f", margin {claim.margin:g}" if claim.margin else ""
    secondary = "secondary" if claim.secondary else None
    exploratory = None if claim.exploratory is None else f"exploratory: {claim.exploratory}"
    unlike = None if claim.unlike is None else f"not made alike: {claim.unlike}"
    level = f" at {100 * claim.interval.level:.4g} %" if claim.interval else ""
    return [
        f"{claim.arm} {EXPECTED[claim.expect]} {claim.baseline} in {claim.about}{margin}",
        claim.verdict + (" (exploratory)" if claim.exploratory else ""),
        "; ".join(note for note in (claim.reason, secondary, exploratory, unlike, *_marks(claim)) if note),
        "" if claim.difference is None else f"{signed(claim.difference, claim.digits)} {claim.unit}".rstrip(),
        f"{interval_text(claim.interval, claim.digits)}{level}",
        p_text(claim.corrected),
        str(claim.n),
        claim.test or "",
        " ".join((claim.published or "").split()),
    ]


def _marks(claim: ClaimLine) -> Iterator[str]:
    if claim.advice is not None:
        yield advice_words(claim.advice, claim.expect)
    if claim.near_failures:
        yield f"nearly failed: {', '.join(claim.near_failures)}"
    if claim.chosen is not None:
        yield f"chosen by the same score: {claim.chosen}"
    if claim.other is not None:
        interval = interval_text(claim.other.interval, claim.digits)
        p = "" if claim.other.p is None else f", uncorrected p {p_text(claim.other.p)}"
        yield f"{claim.other.test} alone: {interval}{p}"


def _arm(document: Document, arm: ArmLine) -> list[str]:
    digits = document.digits
    extent = "" if arm.minimum is None else f"{number(arm.minimum, digits)} to {number(arm.maximum, digits)}"
    holes = [f"{n} {state}" for state, n in arm.missing.items()]
    return [
        arm.name + (" (baseline)" if arm.is_baseline else ""),
        "; ".join([*arm.notes, *holes, *_moving(document, arm.name)]),
        number(arm.mean, digits),
        interval_text(arm.interval, digits, sign=False),
        number(arm.sd, digits),
        extent,
        str(arm.finished) if arm.finished == arm.planned else f"{arm.finished} of {arm.planned}",
        number(arm.chrf, 2),
        "" if document.metric == "test_loss" else number(arm.test_loss, 3),
        "" if document.metric == "valid_loss" else number(arm.valid_loss, 3),
        number(arm.parameters, 0),
        "" if arm.train_seconds is None else duration(arm.train_seconds),
        number(arm.tokens_per_second, 0),
        number(arm.decoding_speed, 0),
    ]


def _moving(document: Document, name: str, *, whose: str = "") -> list[str]:
    state = next(arm.convergence for arm in document.arms if arm.name == name)
    return [f"{whose}under-trained"] if state == "moving" else []


def _difference(document: Document, line: DifferenceLine) -> list[str]:
    digits = document.digits
    notes = [line.refused, line.crossed_refused, line.randomisation_refused]
    notes += [*_moving(document, line.arm), *_moving(document, line.baseline or document.baseline, whose="baseline ")]
    return [
        line.arm,
        "; ".join(note for note in notes if note),
        signed(line.difference, digits),
        interval_text(line.interval, digits),
        p_text(line.p),
        interval_text(line.crossed, digits),
        p_text(line.crossed_p),
        p_text(line.randomisation_p),
        number(line.detectable, digits),
        str(line.n),
    ]
