"""The file of claims about a table: what an experiment file says of runs that others trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ablab.errors import UserError
from ablab.files import json_digest
from ablab.judge.results_table import Results
from ablab.judge.table_metrics import TableMetric
from ablab.study.experiment import Declared, ErrorEstimate, Expectation, Labels, check_seeds, read_as
from ablab.tasks.task import FAILURES

At = Literal["last", "best"] | Annotated[int, Field(ge=0)]
"""Which of the values of a metric counts: the last, the best, or that of a step."""


class TableClaim(Expectation):
    """A claim about any metric of the table."""

    metric: str | None = None


class TableExperiment(Declared):
    """The file of claims.

    `arm`, `seed`: of a table with a row for each run, the columns that name its arm and seed; its scores are then the
    columns of `metric`, of `metrics` and of the claims. Of runs of another tool they are words of these, as the keys of
    `where` are, which all runs that count have; `at`: which of the values of a metric counts. `better`: of the metric.
    `seeds`: those on which claims are judged; None: all that the table has. `arms`: all names of arms that the table is
    to have, which registered claims need that do not name theirs.
    """

    question: str = ""
    source: str | None = None
    arm: Annotated[list[str], BeforeValidator(lambda arm: [arm] if isinstance(arm, str) else arm)] = Field(
        default_factory=list
    )
    seed: str = "seed"
    where: dict[str, str] = Field(default_factory=dict)
    at: At = "last"
    baseline: str | None = None
    within: str | None = None
    seeds: Annotated[list[int], Field(min_length=1), AfterValidator(check_seeds)] | None = None
    arms: Annotated[list[str], Field(min_length=1)] | None = None
    labels: Labels = Field(default_factory=dict)
    metric: str | None = None
    better: Literal["higher", "lower"] | None = None
    metrics: dict[str, TableMetric] = Field(default_factory=dict)
    claims: list[TableClaim] = Field(default_factory=list)
    error: ErrorEstimate = "moderated"

    @model_validator(mode="after")
    def _one_direction(self) -> "TableExperiment":
        if self.better is not None:
            if self.metric is None:
                raise ValueError("allowed with better: the metric that it is of, as metric")
            said = self.metrics.get(self.metric)
            if said is not None and "lower_is_better" in said.model_fields_set:
                raise ValueError(f"allowed with better: no metrics.{self.metric}.lower_is_better, which says it too")
        return self

    @property
    def declared(self) -> dict[str, TableMetric]:
        """What is declared of metrics, with the direction of the one that arms are compared by."""
        if self.better is None or self.metric is None:
            return self.metrics
        said = self.metrics.get(self.metric, TableMetric()).model_dump(exclude_unset=True)
        whole = TableMetric.model_validate({**said, "lower_is_better": self.better == "lower"})
        return {**self.metrics, self.metric: whole}

    @property
    def named_metrics(self) -> list[str]:
        """The metrics that it names, without the share of failures."""
        asked = (self.metric, *self.metrics, *(claim.metric for claim in self.claims))
        return list(dict.fromkeys(name for name in asked if name is not None and name != FAILURES))

    @property
    def open_claims(self) -> list[TableClaim]:
        """The claims of which only the table's arms say what they are about: their number, or what a mean is over."""
        return [claim for claim in self.claims if self._is_open(claim)]

    def _is_open(self, claim: TableClaim) -> bool:
        if claim.arm is None or claim.arm == "each" or claim.baseline == "before":
            return True  # of an effect or an interaction, too
        return self.within is not None and self.within not in {word.partition("=")[0] for word in claim.arm.split(",")}

    def asking_too(self, metric: str) -> "TableExperiment":
        """Return it with one more metric to read: that by which arms are compared, where it names none."""
        if self.metric is None:
            return self.model_copy(update={"metric": metric})
        return self.model_copy(update={"metrics": {metric: TableMetric(), **self.metrics}})

    @property
    def content(self) -> str:
        """Digest of what is declared, which comments and the order of keys do not change."""
        return json_digest(self.model_dump(mode="json", exclude_unset=True), 11)


@dataclass(frozen=True)
class JudgedTable:
    """What is judged now. `place`: of the table; None: it is a frame. `store`: whose register is held to it."""

    place: str | None
    results: Results
    experiment: TableExperiment
    store: Path


def read_claims(path: Path) -> TableExperiment:
    """Read a file of claims. Raises UserError where it is not there, or is none."""
    if not path.is_file():
        raise UserError(f"claims={path}: no such file")
    return read_as(TableExperiment, path)
