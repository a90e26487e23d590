"""A study as data: its arms, claims with their verdicts, and tables, as the report has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.api.tables import Rows
from ablab.config.grammar import spelled
from ablab.judge.document import Document
from ablab.judge.flaws import checked
from ablab.judge.lines import ArmLine, ClaimLine
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_of_kept import of_kept
from ablab.judge.selection_of_study import check_begun, of_study
from ablab.report.latex import latex
from ablab.report.names import named
from ablab.report.sentences import document_of
from ablab.study.definition import define
from ablab.study.study import label_of

if TYPE_CHECKING:
    import pandas

RESAMPLES = 10_000
"""Resamples of each resampling test, as of `ablab report`."""


@dataclass(frozen=True)
class LaunchedStudy:
    """A study that was launched. Its report is computed when something of it is first asked for; nothing is written."""

    selection: SelectedArms

    def __repr__(self) -> str:
        return f"<Study {self.name}: {self.question}>"

    @property
    def name(self) -> str:
        return self.selection.name

    @property
    def question(self) -> str:
        return self.selection.question

    @cached_property
    def document(self) -> Document:
        """The whole report as data, the same that `report.json` has."""
        return document_of(self.selection, RESAMPLES)

    @property
    def arms(self) -> list[ArmLine]:
        """Each arm with its mean, interval and runs."""
        return self.document.arms

    @property
    def claims(self) -> list[ClaimLine]:
        """Each claim with its verdict: `outcome`, `words`, `difference`, `interval`, `p`."""
        return self.document.claims

    @property
    def notes(self) -> list[str]:
        """What the report says beside its figures: flaws, departures, exploratory claims, missing runs."""
        return self.document.notes

    def table(self) -> Rows:
        """Return a row for each run of each arm: what it is, score of the study's metric, validation loss, cost."""
        loss = self.document.loss
        costs = {run.folder.run_id: run.record.cost for arm in self.selection.arms for run in arm.runs if run.record}
        rows = (
            {
                "study": self.name,
                "arm": arm.name,
                "label": label_of(arm.name, self.selection.labels),
                "is_baseline": arm.is_baseline,
                "id": run.run_id,
                "seed": run.seed,
                "state": run.state,
                self.document.metric: run.score,
                **({} if loss is None else {loss.name: run.loss}),
                "parameters": None if (cost := costs.get(run.run_id)) is None else cost.parameters or None,
                "minutes": None if cost is None else round(cost.seconds / 60, 2),
            }
            | {self.document.metric: run.score}  # a score of one's own may be called minutes
            for arm in self.arms
            for run in arm.runs
        )
        return Rows(rows, self.notes)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a DataFrame, with the notes in its `attrs`; Error where pandas is not installed."""
        return self.table().to_pandas()

    def to_latex(self) -> str:
        """Return the report's tables in LaTeX, as report.tex has them."""
        return latex(named(self.document))


def study_of(name: str, words: Sequence[str], store: Path) -> LaunchedStudy:
    """Open the study of this name; Error where there is none, or none of its runs has begun."""
    selection = of_kept((f"experiment={name}", *words), store)
    if selection is None:
        named, there = spelled("experiment", name), spelled("outputs", str(store))
        selection = of_study(define((f"experiment={named}", *words, f"outputs={there}")))
    check_begun(selection)
    return LaunchedStudy(checked(selection))
