"""The format of experiments/<name>.yaml, and its reading: a question, and the runs that are to answer it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ablab.code.folders import part_folders, shipped_experiments
from ablab.config.keys import text_of
from ablab.config.plain_yaml import read_mapping, take_for_text
from ablab.errors import UserError, choices, first_error, hint
from ablab.fields import alternatives
from ablab.search.settings import Dimensions, SearchBlock
from ablab.statistics.looks import FEWEST, LATEST_FIRST, MOST, Looks
from ablab.tasks.declared import DECLARING, Declaring
from ablab.tasks.own_metrics import check_metric, own_metrics
from ablab.tasks.registry import known_tasks, task_in_words
from ablab.tasks.task import FAILURES, Task
from ablab.text import is_one_line

Level = str | int | float | bool | list[str] | None
"""The value of a key, as YAML writes it."""

Words = list[str]
"""Words of the form `key=value`, as typed on the command line."""


class Declared(BaseModel):
    """Base of every part of the file: unknown keys are refused, and numbers are not read from strings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _among(more: Callable[[Iterable[Task]], Iterable[str]] = lambda _: (), *, costs: bool = False) -> AfterValidator:
    """Accept the scores of the file's own task with its costs, or else of any task, the user's own metrics, and
    `costs`; and what `more` names of these tasks.
    """

    def check(name: str, info: ValidationInfo) -> str:
        check_metric(name)
        own = _own_task(info)
        tasks = own or known_tasks()
        scores = [task.measured if own or costs else task.scores for task in tasks]
        allowed = dict.fromkeys((*chain(*scores), *(() if own else own_metrics()), *more(tasks)))
        if name not in allowed:
            raise ValueError(choices(name, allowed))
        return name

    return AfterValidator(check)


def _own_task(info: ValidationInfo) -> tuple[Task, ...]:
    """Return the task whose scores the file itself declares, if it does."""
    return () if info.context is None else (info.context,)


Metric = Annotated[str, _among()]

Compared = Annotated[str, _among(costs=True)]
"""Metrics of which each run has a value."""

WORTH = "worth"
"""Metric of claims about the factor of compute by which the baseline would score as well."""


def _of_claims(tasks: Iterable[Task]) -> Iterator[str]:
    yield from (FAILURES, WORTH, *chain(*(task.of_curves for task in tasks)))


Claimed = Annotated[str, _among(_of_claims, costs=True)]
"""Metrics of claims."""


def _check_labels(labels: dict[str, str]) -> dict[str, str]:
    for name, said in labels.items():
        if not said.strip() or not is_one_line(said) or "=" in said or said != said.strip():
            raise ValueError(f"allowed: a name on one line, without =; {name} has {said!r}")
    if len(set(labels.values())) < len(labels):
        raise ValueError("allowed: labels that differ")
    return labels


Labels = Annotated[dict[str, str], AfterValidator(_check_labels)]
"""What people call a level, such as `layerdrop=0.2`, or an arm: in sentences, tables and pictures alike."""

ErrorEstimate = Literal["moderated", "paired"]
"""How the noise of a claim is estimated: with the help of the study's other arms, or from its own pairs alone."""


class Expectation(Declared):
    """An expected outcome: of an `arm` against another, of the main `effect` of a level, or of an `interaction`.

    `arm`: each stands for every arm but its baseline; `baseline`: before, for the arm before in the list, as in a
    ladder. `expect`: not_worse needs a margin, and takes the metric's direction into account. `margin`: the smallest
    difference that matters, in the metric. `secondary`: judged in a family of its own, beside that of the primary
    claims.
    """

    arm: str | None = None
    effect: str | None = None
    interaction: list[str] | None = None
    baseline: str | None = None
    expect: Literal["greater", "less", "equal", "not_worse"]
    secondary: bool = False
    margin: Annotated[float, Field(ge=0)] = 0.0
    fall: Annotated[float, Field(gt=0)] | None = None
    layers: Annotated[int, Field(ge=1)] | None = None
    heads: Annotated[int, Field(ge=1)] | None = None
    published: str | None = None
    source: str | None = None


class Claim(Expectation):
    """A claim about runs of ablab."""

    metric: Claimed | None = None


def _a_list(seeds: object) -> object:
    if not isinstance(seeds, list):
        raise ValueError("allowed: a list such as [1, 2, 3], or {from: 3, to: 6}")
    return seeds


def check_seeds(seeds: list[int]) -> list[int]:
    """Return the seeds; ValueError where they are out of range, or one comes twice."""
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise ValueError("allowed: seeds from 0, below 2**63")
    if len(set(seeds)) < len(seeds):
        raise ValueError("allowed: seeds that differ")
    return seeds


def _validated(key: str, info: ValidationInfo) -> str:
    allowed = dict.fromkeys(score for task in _own_task(info) or known_tasks() for score in task.validated)
    if key not in allowed:
        raise ValueError(choices(key, allowed))
    return key


TuningMetric = Annotated[str, AfterValidator(_validated)]
"""A score of validation, as in a record's validations."""


class Tune(Declared):
    """Settings that are tried for every arm on separate seeds; those best on validation become the arm's.

    Either `values` of one `key`; or `trials` of a `space`: the usual settings, and draws from the space that are the
    same for every arm (`draws`: the seed of these). `judged`: claims are judged with tuned settings alone, or at usual
    settings too.
    """

    key: str = "optim.lr"
    values: Annotated[list[float | int], Field(min_length=2)] | None = None
    space: Dimensions | None = None
    trials: Annotated[int, Field(ge=2)] | None = None
    draws: Annotated[int, Field(ge=0)] = 1
    seeds: Annotated[list[int], Field(min_length=1), AfterValidator(check_seeds)]
    metric: TuningMetric = "loss"
    judged: Literal["both", "tuned"] = "both"

    @model_validator(mode="after")
    def _one_way(self) -> "Tune":
        if (self.values is None) == (self.space is None) or (self.space is None) != (self.trials is None):
            raise ValueError("allowed: values of one key, or a space and the number of its trials")
        if len(set(self.values or ())) < len(self.values or ()):
            raise ValueError("allowed: values that differ")
        if self.space is not None and "key" in self.model_fields_set:
            raise ValueError("allowed: a key with values, or a space, which names its own")
        return self

    @property
    def keys(self) -> list[str]:
        """The keys that it varies."""
        return [self.key] if self.space is None else list(self.space)


class Added(Declared):
    """Seeds 1, 2, 3 and so on: `from` so many for every arm, then one more at a time for the arms of open claims.

    There are at most `to` of them, and none is added once the runs have taken so many `hours` of machine time together.
    They begin `after` a seed, if those up to it have judged such claims before.
    """

    first: Annotated[int, Field(alias="from", ge=FEWEST, le=LATEST_FIRST)]
    last: Annotated[int, Field(alias="to", ge=FEWEST + 1, le=MOST)]
    after: Annotated[int, Field(ge=0, lt=2**32)] = 0
    hours: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _rising(self) -> "Added":
        if self.last <= self.first:
            raise ValueError(f"allowed: to above from, which is {self.first}")
        return self

    @property
    def looks(self) -> Looks:
        """A look at the claims after each seed."""
        return Looks(self.first, self.last)

    @property
    def planned(self) -> list[int]:
        """All seeds that there may be, in order."""
        return [*range(self.after + 1, self.after + self.last + 1)]


def _kind(seeds: object) -> str:
    return "added" if isinstance(seeds, dict | Added) else "listed"


class Experiment(Declared):
    """The whole file. `factors`: levels of a key, or named levels with the words of each; the first is the default.

    `within`: a factor, such as the language, in each level of which arms are compared with a baseline of their own.
    `seeds`: a list, or added until every claim is settled. `error`: see `decisive_error`. `worth`: the baseline is
    trained at half and at twice its length, too, of the setting named, or else of the task. `labels`: what people call
    a level or an arm.
    """

    question: str
    source: str | None = None
    common: Words = []
    factors: dict[str, list[Level] | dict[str, Words]] = {}
    design: Literal["factorial", "one_at_a_time", "leave_one_out", "ladder", "zip", "arms"] = "factorial"
    arms: dict[str, Words] = {}
    labels: Labels = {}
    exclude: list[dict[str, Level]] = []
    baseline: str | dict[str, Level] | None = None
    within: str | None = None
    seeds: Annotated[
        Annotated[list[int], Field(min_length=1), BeforeValidator(_a_list), AfterValidator(check_seeds), Tag("listed")]
        | Annotated[Added, Tag("added")],
        Discriminator(_kind),
    ]
    metric: Metric
    claims: list[Claim] = []
    error: ErrorEstimate | None = None
    tune: Tune | None = None
    search: SearchBlock | None = None
    worth: bool | str = False

    @model_validator(mode="before")
    @classmethod
    def _by_the_score_of_its_task(cls, values: Any) -> Any:
        """Fill in the metric by which the task's runs are compared, where the file names none."""
        if not isinstance(values, Mapping) or "metric" in values:
            return values
        common, arms = values.get("common") or [], values.get("arms")
        first = next(iter(arms.values()), None) if isinstance(arms, Mapping) else None
        both = [*common, *(first or [])] if isinstance(common, list) and isinstance(first, list | None) else common
        task = task_in_words(both)
        return {**values, "metric": task.primary}

    @property
    def decisive_error(self) -> ErrorEstimate:
        """The estimate of noise that decides: as declared; else moderated, but paired where seeds are added."""
        return self.error or ("paired" if isinstance(self.seeds, Added) else "moderated")

    @property
    def spoken(self) -> dict[str, str]:
        """What people call its levels: its labels. Values of a command keep their names, also those of options here."""
        levels = [
            (f"{factor}={name}", words)
            for factor, of in self.factors.items()
            if isinstance(of, dict)
            for name, words in of.items()
        ]
        own = {name: name for name, words in levels if words and words[0].startswith("task.")}
        return {**own, **self.labels}

    @model_validator(mode="after")
    def _confirmed_at_once(self) -> "Experiment":
        if self.search is not None and isinstance(self.seeds, Added):
            raise ValueError("allowed with search: a list of seeds, on which its winner is confirmed at once")
        return self


FOLDER = Path("experiments")
ENDINGS = (".yaml", ".yml")

Kind = TypeVar("Kind", bound=Declared)


def find(name: str) -> Path:
    """Return the file of an experiment, given its name or path: the user's own before one that ablab ships.

    Raises UserError, naming the experiments that exist.
    """
    if name.endswith(ENDINGS):
        if not Path(name).is_file():
            raise UserError(f"experiment={name}: there is no such file")
        return Path(name)
    found = next((path for path in _places(name) if path.is_file()), None)
    if found is None:
        raise UserError(f"experiment={name}: no file {FOLDER / name}.yaml; {_choices(name)}")
    return found


def _choices(name: str) -> str:
    """Return which experiments there are: the user's own, and those that are like this one."""
    own = {file.stem for folder in _folders()[:-1] for file in _files(folder)}
    if not own:
        return choices(name, names())
    return f"allowed: {', '.join(sorted(own))}, and {len({*names()} - own)} that come with ablab{hint(name, names())}"


def is_there(name: str) -> bool:
    """Return whether there is an experiment of this name or path."""
    return Path(name).is_file() if name.endswith(ENDINGS) else any(path.is_file() for path in _places(name))


def names() -> list[str]:
    """Return the names of all experiments, in alphabetical order."""
    return sorted({file.stem for folder in _folders() for file in _files(folder)})


def _places(name: str) -> Iterator[Path]:
    """Yield where an experiment of this name may lie, the first choice first."""
    yield from (folder / f"{name}{ending}" for folder in _folders() for ending in ENDINGS)


def _files(folder: Path) -> list[Path]:
    return [path for ending in ENDINGS for path in folder.glob(f"[!.]*{ending}")]


def _folders() -> list[Path]:
    """Return the folders of experiments: those beside the user's folders of options, ./experiments, and ablab's."""
    beside = [folder / FOLDER for folder in part_folders() if folder != Path.cwd()]
    return [*beside, FOLDER, shipped_experiments()]


OF_LOOPS = {"budget", "floor", "looks", "stop", "keep", "confirmation"}
"""Keys that files of loops alone have."""


def read(path: Path) -> Experiment:
    """Read and validate the file by itself; whether its words compose to runs is checked when they are composed."""
    return read_as(Experiment, path, DECLARING)


def read_as(
    kind: type[Kind],
    path: Path,
    declaring: Mapping[str, Declaring] = MappingProxyType({}),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Kind:
    """Read and validate a YAML file as this kind of declaration. `declaring`: keys by which it may declare its task.

    `more`: keys that count as if the file had them.
    """
    kinds = reduce(or_, (each.block for each in declaring.values()), kind)
    allowed = "not an experiment; it needs keys such as question, factors, seeds"
    # `${...}` stays as it is: in a word it is for the run's configuration.
    values: Any = {**read_mapping(path, allowed, partial(_leave_text, kind=kinds)), **more}
    if kind is Experiment and "seeds" not in values and values.keys() & OF_LOOPS:
        raise UserError(f"{path}: it declares a loop; allowed: ablab loop experiment={path.stem}, and ablab try")
    own = next((each for key, each in declaring.items() if key in values), None)
    for key, each in declaring.items() if own is None else ():
        foreign = each.block.model_fields.keys() - kind.model_fields.keys()
        if (other := next((one for one in values if one in foreign), None)) is not None:
            raise UserError(f"{path}: {other} is said of a {key}, and there is none; allowed: with {key}: ...")
    try:
        if own is None:
            return kind.model_validate(values)
        block = {key: values[key] for key in own.block.model_fields if key in values}
        others = {key: value for key, value in values.items() if key not in block}
        values = own.in_words(own.block.model_validate(block), others)
        return kind.model_validate(values, context=task_in_words(values["common"]))
    except ValidationError as error:
        known = {key for each in alternatives(kinds) for key in each.model_fields}
        raise UserError(f"{path}: {first_error(error, values, known=known)}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _leave_text(node: yaml.Node, kind: Any) -> None:
    """Leave as text what the declaration has as text, such as an arm called 1.10, and levels of a field of text."""
    members = list(alternatives(kind))
    if isinstance(node, yaml.ScalarNode) and str in members and not {int, float, bool} & set(members):
        take_for_text(node)
    elif isinstance(node, yaml.SequenceNode):
        for each, inside in ((each, get_args(m)[0]) for each in node.value for m in members if get_origin(m) is list):
            _leave_text(each, inside)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if text_of(str(key.value)) is not None:
                take_for_text(value)
            for inside in _types_at(str(key.value), members):
                _leave_text(value, inside)


def _types_at(key: str, members: list[Any]) -> Iterator[Any]:
    """Yield the types that a mapping of one of these types may have at a key."""
    for member in members:
        if key == "<<":
            yield member
        elif get_origin(member) is dict:
            yield get_args(member)[1]
        elif isinstance(member, type) and issubclass(member, BaseModel):
            yield from (f.annotation for name, f in member.model_fields.items() if key in (name, f.alias))
