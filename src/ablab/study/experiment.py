"""The format of experiments/<name>.yaml: a question, and the runs that are to answer it, written before they begin."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ablab.errors import UserError, choices, first_error
from ablab.search.settings import SearchBlock

FOLDER = Path("experiments")

Level = str | int | float | bool | list[str] | None
"""The value of a key, as YAML writes it."""

Words = list[str]
"""Words of the form `key=value`, as typed on the command line."""


class Declared(BaseModel):
    """Base of every part of the file: unknown keys are refused, and numbers are not read from strings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Metric = Literal["test_bleu", "test_chrf", "test_loss", "valid_bleu", "valid_loss"]

Claimed = Literal[
    "test_bleu",
    "test_chrf",
    "test_loss",
    "valid_bleu",
    "valid_loss",
    "training_speed",
    "decoding_speed",
    "failures",
    "depth",
    "pruned_bleu",
]
"""Metrics of claims. `failures`: share of runs that diverge. `depth`: decoder layers left when pruning has cost `fall`
BLEU. `pruned_bleu`: test BLEU with `layers` decoder layers, of a pruned model or of a whole one of that depth.
"""


ErrorEstimate = Literal["moderated", "paired"]
"""How the noise of a claim is estimated: with the help of the study's other arms, or from its own pairs alone."""


class Claim(Declared):
    """An expected outcome of an arm against another. `margin`: the smallest difference that matters, in the metric."""

    arm: str
    baseline: str | None = None
    metric: Claimed | None = None
    expect: Literal["greater", "less", "equal"]
    margin: Annotated[float, Field(ge=0)] = 0.0
    fall: Annotated[float, Field(gt=0)] | None = None
    layers: Annotated[int, Field(ge=1)] | None = None
    published: str | None = None
    source: str | None = None


class Tune(Declared):
    """Values of one key, tried for every arm on separate seeds; the value best on validation becomes the arm's."""

    key: str = "optim.lr"
    values: Annotated[list[float | int], Field(min_length=2)]
    seeds: Annotated[list[int], Field(min_length=1)]
    metric: Literal["loss", "bleu"] = "loss"


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("allowed: seeds that differ")
    return seeds


class Experiment(Declared):
    """The whole file. `factors`: levels of a key, or named levels with the words of each; the first is the default.

    `error`: moderated unless given.
    """

    question: str
    source: str | None = None
    common: Words = []
    factors: dict[str, list[Level] | dict[str, Words]] = {}
    design: Literal["factorial", "one_at_a_time", "leave_one_out", "zip", "arms"] = "factorial"
    arms: dict[str, Words] = {}
    exclude: list[dict[str, Level]] = []
    baseline: str | dict[str, Level] | None = None
    seeds: Annotated[list[int], Field(min_length=1), AfterValidator(_distinct)]
    metric: Metric = "test_bleu"
    claims: list[Claim] = []
    error: ErrorEstimate | None = None
    tune: Tune | None = None
    search: SearchBlock | None = None


def find(name: str) -> Path:
    """Return the file of an experiment, given its name or path. Raises UserError, naming the experiments that exist."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if path.is_file():
        return path
    there = sorted(file.stem for file in FOLDER.glob("*.yaml"))
    known = choices(name, there) if there else "there are none here"
    raise UserError(f"experiment={name}: no file {path}; {known}")


def read(path: Path) -> Experiment:
    """Read and validate the file by itself; whether its words compose to runs is checked when they are composed."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        # Not resolved: `${...}` in a word is for the run's configuration.
        values: Any = OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, UnicodeDecodeError, YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: not an experiment; it needs keys such as question, factors, seeds")
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, values)}") from None
