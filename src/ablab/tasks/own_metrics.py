"""Metrics of users' own: functions of a test set's translations, which `conf/metric/<name>.yaml` names."""

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ablab.code.find import Part, find_part
from ablab.code.folders import cached_by_folders, user_confs
from ablab.code.load import failure_of, load
from ablab.config.plain_yaml import read_mapping
from ablab.errors import UserError, about, first_error
from ablab.store.records import Evaluation
from ablab.store.run_folder import RunFolder
from ablab.store.shared import stored_text
from ablab.tasks.registry import known_scores, of_arms

TEXTS = ("hypotheses", "references", "sources")
"""What a metric may ask for by name: raw sentences of the test set, in its order."""


class OwnMetric(BaseModel):
    """A metric as its YAML file declares it. `digits`: after the decimal point."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    target: str = Field(alias="_target_")
    title: str
    unit: str = ""
    digits: int = Field(2, ge=0)
    better: Literal["higher", "lower"]

    @property
    def part(self) -> Part:
        """The function, read from its source."""
        return find_part(self.target)

    def value(self, folder: RunFolder, evaluation: Evaluation) -> float | None:
        """Return the value of a run's translations; None where they are gone. UserError if it is no number."""
        hypotheses = folder.hypotheses(evaluation.evaluation_id)
        text = stored_text(folder.outputs, evaluation.references)
        if not hypotheses or text is None:
            return None
        texts = {"hypotheses": hypotheses, **text._asdict()}
        metric = load(self.part)
        try:
            found = metric(**{name: texts[name] for name in self.part.signature.parameters})
        except Exception as error:
            raise UserError(f"{self.target}: {failure_of(error, [self.part])} for {folder.run_id}") from error
        if not isinstance(found, Real) or not isfinite(found):
            raise UserError(f"{self.target}: gave {found!r} for {folder.run_id}; allowed: a finite number")
        return float(found)


@cached_by_folders
def own_metrics() -> Mapping[str, OwnMetric]:
    """Return the user's metrics by name, without those that cannot be read: see `check_metric`."""
    found = {}
    for conf in reversed(user_confs()):  # of two metrics with one name the first folder's is taken, as of options
        for path in sorted((conf / "metric").glob("[!.]*.yaml")):
            with suppress(UserError):
                found[path.stem] = _read(path)
    return found


def check_metric(name: str) -> None:
    """Raise UserError if the user has a file for a metric of this name that declares none, or that shadows one of ours.

    Such a file is no obstacle for those who ask for other metrics.
    """
    for conf in user_confs():
        if (path := conf / "metric" / f"{name}.yaml").is_file():
            _read(path)


def _read(path: Path) -> OwnMetric:
    if path.stem in (ours := (*known_scores(), *of_arms())):
        raise UserError(f"{path}: ablab has a metric of this name; allowed: any name but {', '.join(ours)}")
    values: Any = read_mapping(path, "no metric; it needs _target_, title and better")
    try:
        metric = OwnMetric.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, values)}") from None
    with about(path):
        taken = metric.part.signature.parameters
    if unknown := [name for name in taken if name not in TEXTS]:
        raise UserError(
            f"{path}: {metric.target} takes {unknown[0]}, and a metric has no fields; allowed: {', '.join(TEXTS)}"
        )
    return metric
