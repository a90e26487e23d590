"""Settings and objectives of a search, from an experiment file or the command line."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ablab.errors import UserError, choices, first_error
from ablab.fields import Count, Group
from ablab.tasks.registry import known_tasks
from ablab.tasks.score import Score, Scores
from ablab.tasks.task import Task

PARAMETERS = Score("parameters", "", 0, False, "training", "parameters")


def objectives_of(task: Task) -> Scores:
    """Return the objectives of a task's runs: scores of the selected weights on validation, their size, their speed.

    Of the test set only decoding time is used.
    """
    scores = {name: score for name, score in task.scores.items() if score.place == "validation"}
    speeds = {name: cost for name, cost in task.costs.items() if cost.place == "evaluating"}
    return {**scores, **({} if task.has_own_scores else {"parameters": PARAMETERS}), **speeds}


def direction_of(score: Score) -> Literal["minimize", "maximize"]:
    """Return Optuna's word for the better direction of an objective."""
    return "maximize" if score.higher_is_better else "minimize"


def label_of(score: Score) -> str:
    """Return the title of an objective with its unit, as an axis has it."""
    return score.title if score.title.endswith(score.unit) else f"{score.title} ({score.unit})"


def objectives_now() -> Scores:
    """Return the objectives of all tasks."""
    return {name: objective for task in known_tasks() for name, objective in objectives_of(task).items()}


def validated(task: Task) -> Mapping[str, str]:
    """Return the keys of objectives that every validation reports; only these can stop a trial."""
    return {name: score.key for name, score in task.scores.items() if score.place == "validation"}


def front(points: Sequence[Sequence[float]], objectives: Sequence[Score]) -> list[int]:
    """Return the indices of points that no other dominates: as good in every objective and better in one."""
    signs = [1 if objective.higher_is_better else -1 for objective in objectives]

    def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
        gains = [sign * (mine - theirs) for sign, mine, theirs in zip(signs, one, other, strict=True)]
        return min(gains) >= 0 < max(gains)

    return [i for i, point in enumerate(points) if not any(dominates(other, point) for other in points)]


Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _an_objective(value: object, info: ValidationInfo) -> object:
    # Of a task whose scores the file declares, or else of any.
    if value in (allowed := objectives_now() if info.context is None else objectives_of(info.context)):
        return value
    if str(value).startswith("test"):
        raise ValueError(f"allowed: {', '.join(allowed)}; choosing happens on validation, never on the test set")
    raise ValueError(choices(value, allowed))


def _different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("allowed: each objective once")
    return names


class ValueRange(Group):
    """The interval from `low` to `high`, both included.

    `log`: uniform in the logarithm. `step`: only low, low + step, and so on.
    """

    low: float | int
    high: float | int
    log: bool = False
    step: float | int | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> "ValueRange":
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low={self.low:g} and high={self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"a logarithm needs low above 0, got low={self.low:g}")
        if self.log and self.step is not None:
            raise ValueError("log and step exclude each other")
        if self.step is not None and (self.step <= 0 or self.steps == 0):
            raise ValueError(f"step must be above 0 and fit between low and high, got step={self.step:g}")
        return self

    @property
    def steps(self) -> int:
        """The number of whole steps from low to high; 0 without a step."""
        if self.step is None:
            return 0
        return int((_as_written(self.high) - _as_written(self.low)) / _as_written(self.step))

    @property
    def last(self) -> float | int:
        """The largest value: the high end, or the last step."""
        if self.step is None:
            return self.high
        last = _as_written(self.low) + self.steps * _as_written(self.step)
        return int(last) if isinstance(self.low, int) and isinstance(self.step, int) else float(last)


def _as_written(number: float) -> Decimal:
    """Return the decimal number that people read: in binary, 0.15 + 0.3 lies below 0.45."""
    return Decimal(str(number))


def interval(values: dict[str, Any]) -> ValueRange:
    """Validate the values of an interval; ValueError in one line."""
    try:
        return ValueRange.model_validate(values)
    except ValidationError as error:
        detail = error.errors()[0]
        where = "".join(f"{part}: " for part in detail["loc"])
        raise ValueError(
            f"allowed: low, high, log, step; {where}{detail['msg'].removeprefix('Value error, ')}"
        ) from None


def _levels_or_interval(value: object) -> object:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return interval({str(key): inner for key, inner in value.items()})
    raise ValueError("allowed: a list of levels, or {low, high, log, step}")


class Settings(Group):
    """Settings of a search.

    `trials`: the total, however often the command is repeated. `seed`: of the sampler. `training_seed`: of every trial.
    `storage`: null for a journal in the study's folder, or the URL of a database.
    """

    trials: Count = 20
    sampler: Literal["tpe", "random", "nsga2"] = "tpe"
    stopping: Literal["none", "median", "hyperband"] = "none"
    objectives: Annotated[
        list[Annotated[str, BeforeValidator(_an_objective)]], Field(min_length=1), AfterValidator(_different)
    ] = Field(default=["valid_loss"])
    seed: Seed = 1
    training_seed: Seed = 1
    storage: Annotated[str, Field(min_length=1)] | None = None

    def check(self, prefix: str) -> None:
        """Raise UserError for settings that exclude each other."""
        if self.stopping == "none":
            return
        if len(self.objectives) > 1:
            raise UserError(
                f"{prefix}stopping={self.stopping}: by one objective a trial can be called poor, by several it cannot; "
                f"allowed with {', '.join(self.objectives)}: none"
            )


Dimensions = Annotated[
    dict[str, Annotated[list[Any] | ValueRange, PlainValidator(_levels_or_interval)]], Field(min_length=1)
]
"""Levels or an interval for each key, as an experiment file has them."""


class SearchBlock(Settings):
    """The `search:` block of an experiment."""

    trials: Count
    space: Dimensions


def check_keys(words: Iterable[str]) -> None:
    """Raise UserError for `hydra.sweeper.<key>=` with a key that a search does not have."""
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        if key.startswith("hydra.sweeper.") and key.removeprefix("hydra.sweeper.") not in Settings.model_fields:
            raise UserError(
                f"{word}: no such key; {choices(key.removeprefix('hydra.sweeper.'), Settings.model_fields)}"
            )


def of_hydra(values: Mapping[str, Any], task: Task) -> Settings:
    """Return the settings in `hydra.sweeper.*`; UserError in one line.

    task: of the runs. The objective of one whose scores stand among its settings is the first of them by default.
    """
    from omegaconf import OmegaConf

    plain: Any = OmegaConf.to_container(OmegaConf.create(dict(values)), resolve=True)
    context = task if task.has_own_scores else None
    if plain.get("objectives") is None:
        plain["objectives"] = [task.primary] if context and task.primary else Settings().objectives
    try:
        settings = Settings.model_validate(
            {key: value for key, value in plain.items() if key != "_target_"}, context=context
        )
    except ValidationError as error:
        raise UserError(first_error(error, plain, "hydra.sweeper.")) from None
    settings.check("hydra.sweeper.")
    return settings
