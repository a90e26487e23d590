"""The report's tables as text: written once, so that every rendering shows the same figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from ablab.report.document import ArmLine, ClaimLine, DifferenceLine, Document
from ablab.report.written import interval_text, number, p_text, signed
from ablab.screen import duration


@dataclass(frozen=True)
class Table:
    """`left`: how many columns, from the first, hold words and not figures. `notes`: below it."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    notes: Sequence[str] = ()


TABLES = frozenset(("claims", "arms", "differences", "effects"))
"""Their keys."""


def tables(document: Document) -> list[Table]:
    """Those that have rows, in the order in which they are read."""
    found = [claims_table(document), arms_table(document), differences_table(document), effects_table(document)]
    return [table for table in found if table.rows]


def claims_table(document: Document) -> Table:
    """Verdicts."""
    return Table(
        "claims",
        "Claims",
        ["claim", "verdict", "difference", "interval", "p (corrected)", "n", "published"],
        [_claim(claim) for claim in document.claims],
        left=2,
        notes=[
            f"{claim.arm}: exploratory, {claim.exploratory}."
            for claim in document.claims
            if claim.exploratory is not None
        ],
    )


def arms_table(document: Document) -> Table:
    """Scores, seeds, cost; every hole marked."""
    columns = [
        *("arm", document.title, "95 % interval", "sd", "min to max", "seeds", "chrF", "validation loss"),
        *("parameters", "training time", "target tokens/s", "sentences/s", "notes"),
    ]
    return Table("arms", "Arms", columns, [_arm(document, arm) for arm in document.arms])


def differences_table(document: Document) -> Table:
    """Arms less the baseline."""
    columns = [
        *("arm", "difference", "95 % interval", "p", "seeds and sentences", "p"),
        *("test set alone, p", "seen with 80 % power", "n", "notes"),
    ]
    return Table(
        "differences",
        f"Differences from {document.baseline}",
        columns,
        [_difference(document, line) for line in document.differences],
    )


def effects_table(document: Document) -> Table:
    """Of a factorial design."""
    return Table(
        "effects",
        "Main effects and interactions",
        ["effect", "kind", "difference", "95 % interval", "p", "n"],
        [
            [
                effect.what,
                effect.kind,
                signed(effect.difference, document.digits),
                interval_text(effect.interval, document.digits),
                p_text(effect.p),
                str(effect.n),
            ]
            for effect in document.effects
        ],
        left=2,
    )


def _claim(claim: ClaimLine) -> list[str]:
    expected = {"greater": "above", "less": "below", "equal": "level with"}[claim.expect]
    margin = f", margin {number(claim.margin, claim.digits)}" if claim.margin else ""
    return [
        f"{claim.arm} {expected} {claim.baseline} in {claim.about}{margin}",
        claim.outcome + (" (exploratory)" if claim.exploratory else ""),
        signed(claim.difference, claim.digits),
        interval_text(claim.interval, claim.digits),
        p_text(claim.corrected),
        str(claim.n),
        claim.published or "",
    ]


def _arm(document: Document, arm: ArmLine) -> list[str]:
    digits = document.digits
    extent = "" if arm.minimum is None else f"{number(arm.minimum, digits)} to {number(arm.maximum, digits)}"
    holes = [f"{n} {state}" for state, n in arm.missing.items()]
    moving = ["under-trained"] if arm.convergence == "moving" else []
    return [
        arm.name + (" (baseline)" if arm.is_baseline else ""),
        number(arm.mean, digits),
        interval_text(arm.interval, digits, sign=False),
        number(arm.sd, digits),
        extent,
        str(arm.finished) if arm.finished == arm.planned else f"{arm.finished} of {arm.planned}",
        number(arm.chrf, 2),
        number(arm.valid_loss, 3),
        number(arm.parameters, 0),
        "" if arm.train_seconds is None else duration(arm.train_seconds),
        number(arm.tokens_per_second, 0),
        number(arm.decoding_speed, 0),
        "; ".join([*arm.notes, *holes, *moving]),
    ]


def _difference(document: Document, line: DifferenceLine) -> list[str]:
    digits = document.digits
    notes = [line.refused, line.crossed_refused, line.randomisation_refused]
    if line.seeds_needed is not None and line.effect is not None:
        cost = "" if not line.seconds_needed else f", {duration(line.seconds_needed)} more of machine time"
        notes.append(f"{line.seeds_needed} seeds would see {number(line.effect, digits)} with 80 % power{cost}")
    return [
        line.arm,
        signed(line.difference, digits),
        interval_text(line.interval, digits),
        p_text(line.p),
        interval_text(line.crossed, digits),
        p_text(line.crossed_p),
        p_text(line.randomisation_p),
        number(line.detectable, digits),
        str(line.n),
        "; ".join(note for note in notes if note),
    ]
