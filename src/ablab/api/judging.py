"""Verdicts on a data frame: what an experiment file says of a table, as arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ablab.api.tables import Rows
from ablab.errors import UserError, first_error
from ablab.files import write_text
from ablab.judge.document import Document
from ablab.judge.lines import ClaimLine
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_of_table import beside_of, of_frame
from ablab.judge.table_claims import TableExperiment, read_claims
from ablab.report.claim_words import hypothesis
from ablab.report.names import named
from ablab.report.page import page
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of

RESAMPLES = 2000
"""Of the test items, where a frame has them."""


@dataclass(frozen=True, repr=False)
class JudgedFrame:
    """What the runs of a frame show. `document`: the whole report as data."""

    document: Document

    @property
    def verdicts(self) -> list[ClaimLine]:
        """The claims, each with its outcome, difference, interval, p and sentence (`words`)."""
        return self.document.claims

    def to_rows(self) -> Rows:
        """Return a row for each claim, which `to_pandas()` makes a frame of, with the notes on all in its `attrs`.

        `p`: that of the verdict, corrected, of what `p_is_of` says; `p_no_difference`: uncorrected, two-sided, of no
        difference; `level`: of the interval, from `low` to `high`; `exploratory`: why the claim is, or None.
        """
        kept = ("arm", "baseline", "metric", "expect", "margin", "outcome", "difference", "n")
        rows = []
        for claim in self.verdicts:
            span = claim.interval
            ends = {"low": span and span.low, "high": span and span.high, "level": span and span.level}
            of_it = {"p": claim.corrected, "p_is_of": hypothesis(claim), "p_no_difference": claim.p}
            said = {**of_it, "exploratory": claim.exploratory, "words": claim.words}
            rows.append({**{name: getattr(claim, name) for name in kept}, **ends, **said})
        return Rows(rows, self.document.notes)

    @cached_property
    def text(self) -> str:
        """A line for each claim, after the notes on all."""
        read = named(self.document)
        notes = [f"Note: {note}" for note in read.notes]
        return "\n".join([*notes, *(f"{plain_words(one, read.metric)} {one.judged}" for one in read.claims)])

    def page(self, path: str | Path = "report.html") -> Path:
        """Write the report as one HTML page, and return its path."""
        if Path(path).is_dir():
            raise UserError(f"page: {path} is a folder; allowed: the name of a file")
        write_text(Path(path), page(named(self.document)))
        return Path(path)

    def __repr__(self) -> str:
        return self.text  # as a notebook shows it, and print


def judge_frame(
    frame: Any,
    metric: str | None = None,
    *,
    arm: str | Sequence[str] | None = None,
    seed: str | None = None,
    better: Literal["higher", "lower"] | None = None,
    baseline: str | float | None = None,
    margin: float = 0.0,
    claims: Sequence[Mapping[str, Any]] | str | Path | None = None,
    within: str | None = None,
    error: Literal["moderated", "paired"] = "moderated",
    question: str = "",
    at: int | Literal["last", "best"] | None = None,
    where: Mapping[str, str] | None = None,
    outputs: str | Path = "outputs",
) -> JudgedFrame:
    """Judge the runs of a frame of pandas or polars, of a list of dicts, or of what `ablab report table=` reads.

    Either a row is a run: `arm` names the columns that tell arms apart, `seed` that of the seed, and `metric` that of
    the score. Without `arm`, these are the columns in which runs differ, but for those that follow from the seed, are
    of one run alone, or hold broken numbers, which may be scores; a note says which were taken. Or a row is a score, in
    the columns arm, seed, metric and value. `better`: which values are. `claims`: as in an experiment file; None: every
    arm is better than the baseline, by at least `margin` if that is given. Such claims are exploratory: nobody knows
    what was seen before they were made. The path of a file of claims stands for all other arguments, as the file does
    that lies beside a table, results.yaml beside results.csv; `ablab register` may have entered it in the register of
    `outputs`. `at`, `where`: of runs of another tool, which value counts, and the words that runs must have.

    Raises UserError for a frame or a claim that cannot be judged.
    """
    if not isinstance(outputs, str | Path):
        raise UserError(f"judge: outputs={outputs}: allowed: a folder")
    columns = [] if arm is None else list(arm) if isinstance(arm, list | tuple) else [arm]
    _check_said(columns, seed, metric, better, where)
    given = {
        "metric": metric,
        "arm": columns or None,
        "seed": seed,
        "better": better,
        "baseline": None if baseline is None or baseline == "" else str(baseline),
        "within": None if within == "" else within,
        "error": None if error == "moderated" else error,
        "question": question or None,
        "at": at,
        "where": None if where is None else dict(where),
    }
    said = {key: value for key, value in given.items() if value is not None}  # as a file of claims has them
    if claims is None and isinstance(frame, str | Path) and (beside := beside_of(str(frame))).is_file():
        claims = beside
    if isinstance(claims, str | Path):
        if others := [*said, *["margin"] * bool(margin)]:
            raise UserError(f"judge: {others[0]}: not beside claims={claims}; allowed: in that file")
        selection = of_frame(frame, read_claims(Path(claims)), Path(outputs), Path(claims))
    else:
        selection = _selected(frame, said, claims, margin, Path(outputs))
    return JudgedFrame(document_of(selection, RESAMPLES))


def _selected(
    frame: Any, said: Mapping[str, Any], claims: Sequence[Mapping[str, Any]] | None, margin: float, outputs: Path
) -> SelectedArms:
    """Select the runs of a frame under claims that were made as arguments; None: every arm is better."""
    given = () if claims is None else claims
    if not isinstance(given, list | tuple) or not all(isinstance(claim, Mapping) for claim in given):
        raise UserError('judge: claims: allowed: a list of claims, such as [{"arm": "b", "expect": "greater"}]')
    if claims is not None and margin:
        raise UserError("judge: margin: not beside claims; allowed: in each of them")
    try:
        asked = TableExperiment.model_validate({**said, "claims": [dict(claim) for claim in given]})
        selection = of_frame(frame, asked, outputs)
        if claims is not None:
            return selection
        expect = "greater" if selection.measure.higher_is_better else "less"
        every = [{"arm": "each", "expect": expect, "margin": margin}]
        return of_frame(frame, TableExperiment.model_validate({**said, "claims": every}), outputs)
    except ValidationError as refused:
        raise UserError(f"judge: {first_error(refused, said)}") from None


def _check_said(columns: Sequence[Any], seed: Any, metric: Any, better: Any, where: Any) -> None:
    """Raise UserError for arguments that no file of claims could hold."""
    for name in (*columns, seed, metric):
        if name is not None and not isinstance(name, str):
            raise UserError(f"judge: column {name!r}: allowed: a name that is text")
    if where is not None and not isinstance(where, Mapping):
        raise UserError(f"judge: where={where}: allowed: a mapping, such as {{'study': 'lr'}}")
    if better is not None and better not in ("higher", "lower"):
        raise UserError(f"better={better}: allowed: higher, lower")
    if better is not None and metric is None:
        raise UserError(f"better={better}: of which metric is not said; allowed: with metric=")
