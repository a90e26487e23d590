"""Find and read experiments/<name>.yaml."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from ablab.code.folders import part_folders, shipped_experiments
from ablab.config.keys import text_of
from ablab.config.plain_yaml import read_yaml, take_for_text
from ablab.errors import UserError, choices, first_error
from ablab.fields import alternatives
from ablab.study.experiment import Declared, Experiment

FOLDER = Path("experiments")

Kind = TypeVar("Kind", bound=Declared)


def find(name: str) -> Path:
    """Return the file of an experiment, given its name or path: the user's own before one that ablab ships.

    Raises UserError, naming the experiments that exist.
    """
    if name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise UserError(f"experiment={name}: there is no such file")
        return Path(name)
    found = next((path for folder in _folders() if (path := folder / f"{name}.yaml").is_file()), None)
    if found is None:
        raise UserError(f"experiment={name}: no file {FOLDER / name}.yaml; {choices(name, names())}")
    return found


def names() -> list[str]:
    """Return the names of all experiments, in alphabetical order."""
    return sorted({file.stem for folder in _folders() for file in folder.glob("*.yaml")})


def _folders() -> list[Path]:
    """Return the folders of experiments: those beside the user's folders of options, ./experiments, and ablab's."""
    beside = [folder / FOLDER for folder in part_folders() if folder != Path.cwd()]
    return [*beside, FOLDER, shipped_experiments()]


def read(path: Path) -> Experiment:
    """Read and validate the file by itself; whether its words compose to runs is checked when they are composed."""
    return read_as(Experiment, path)


def read_as(kind: type[Kind], path: Path) -> Kind:
    """Read and validate a YAML file as this kind of declaration."""
    try:
        # `${...}` stays as it is: in a word it is for the run's configuration.
        values: Any = read_yaml(path.read_text(encoding="utf-8"), partial(_leave_text, kind=kind))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # PyYAML leaves bad dates to Python
        raise UserError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: not an experiment; it needs keys such as question, factors, seeds")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, values)}") from None


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
