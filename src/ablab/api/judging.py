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
from ablab.judge.selection_of_table import TableExperiment, of_frame
from ablab.report.page import page
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of

RESAMPLES = 2000
"""Of the test items, where a frame has them."""


@dataclass(frozen=True)
class JudgedFrame:
    """What the runs of a frame show. `document`: the whole report as data."""

    document: Document

    @property
    def verdicts(self) -> list[ClaimLine]:
        """The claims, each with its outcome, difference, interval, p and sentence (`words`)."""
        return self.document.claims

    def to_rows(self) -> Rows:
        """Return a row for each claim, which `to_pandas()` makes a frame of."""
        kept = ("arm", "baseline", "metric", "expect", "margin", "outcome", "difference", "p", "corrected", "n")
        rows = []
        for claim in self.verdicts:
            span = claim.interval
            ends = {"low": span and span.low, "high": span and span.high}
            rows.append({**{name: getattr(claim, name) for name in kept}, **ends, "words": claim.words})
        return Rows(rows)

    @cached_property
    def text(self) -> str:
        """A line for each claim, after the notes on all."""
        notes = [f"Note: {note}" for note in self.document.notes]
        return "\n".join([*notes, *(f"{plain_words(one, self.document.metric)} {one.judged}" for one in self.verdicts)])

    def page(self, path: str | Path = "report.html") -> Path:
        """Write the report as one HTML page, and return its path."""
        write_text(Path(path), page(self.document))
        return Path(path)

    def __str__(self) -> str:
        return self.text


def judge_frame(
    frame: Any,
    metric: str | None = None,
    *,
    arm: str | Sequence[str] | None = None,
    seed: str = "seed",
    better: Literal["higher", "lower"] | None = None,
    baseline: str | None = None,
    margin: float = 0.0,
    claims: Sequence[Mapping[str, Any]] | None = None,
    within: str | None = None,
    error: Literal["moderated", "paired"] = "moderated",
    question: str = "",
) -> JudgedFrame:
    """Judge the runs of a frame of pandas or polars, or of a list of dicts.

    Either a row is a run: `arm` names the columns that tell arms apart, `seed` that of the seed, and `metric` that of
    the score. Or a row is a score, in the columns arm, seed, metric and value. `better`: which values are. `claims`: as
    in an experiment file; None: every arm is better than the baseline, by at least `margin` if that is given. Claims
    about a frame are exploratory: nobody knows what was seen before they were made.

    Raises UserError for a frame or a claim that cannot be judged.
    """
    columns = [] if arm is None else list(arm) if isinstance(arm, list | tuple) else [arm]
    _check_names([*columns, seed, *([] if metric is None else [metric])])
    if not all(isinstance(claim, Mapping) for claim in claims or ()) or isinstance(claims, Mapping):
        raise UserError('judge: claims: allowed: a list of claims, such as [{"arm": "b", "expect": "greater"}]')
    said: dict[str, Any] = {"question": question, "arm": columns, "seed": seed, "error": error}
    said |= {key: value for key, value in (("metric", metric), ("baseline", baseline), ("within", within)) if value}
    if better is not None:
        if better not in ("higher", "lower"):
            raise UserError(f"better={better}: allowed: higher, lower")
        if metric is None:
            raise UserError(f"better={better}: of which metric is not said; allowed: with metric=")
        said["metrics"] = {metric: {"lower_is_better": better == "lower"}}
    try:
        asked = TableExperiment.model_validate({**said, "claims": [dict(claim) for claim in claims or ()]})
        selection = of_frame(frame, asked)
        if claims is None:
            expect = "greater" if selection.measure.higher_is_better else "less"
            every = [{"arm": "each", "expect": expect, "margin": margin}]
            selection = of_frame(frame, TableExperiment.model_validate({**said, "claims": every}))
    except ValidationError as refused:
        raise UserError(f"judge: {first_error(refused, said)}") from None
    return JudgedFrame(document_of(selection, RESAMPLES, lambda: None))


def _check_names(names: Sequence[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"judge: column {name!r}: allowed: a name that is text")
