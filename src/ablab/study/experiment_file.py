"""Find and read experiments/<name>.yaml."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from ablab.errors import UserError, choices, first_error
from ablab.parts.folders import part_folders
from ablab.parts.shipped import shipped_experiments
from ablab.plain_yaml import checked
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
        values: Any = yaml.load(checked(path.read_text(encoding="utf-8")), Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # PyYAML leaves bad dates to Python
        raise UserError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: not an experiment; it needs keys such as question, factors, seeds")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, values)}") from None


class Loader(yaml.SafeLoader):
    """YAML with the booleans and numbers of version 1.2, in which `off` is a word and 1e-3 a number.

    Keys are text: a level may be called on, 0.1 or true. A key that comes twice is an error.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            key.tag = self.DEFAULT_SCALAR_TAG
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} comes twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


BOOL, INT, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float"))
WHOLE = r"[-+]?[0-9]+$"
"""Without the octal numbers of version 1.1, in which 010 is 8, and times such as 1:30."""

TRUE_OR_FALSE = "(true|True|TRUE|false|False|FALSE)$"
OTHERWISE = (BOOL, INT, FLOAT, "tag:yaml.org,2002:timestamp")
"""What version 1.1 reads otherwise."""

NUMBER = r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
"""A whole number too: the resolver of those comes first."""

Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(BOOL, re.compile(TRUE_OR_FALSE), list("tTfF"))
Loader.add_constructor(INT, lambda loader, node: int(loader.construct_scalar(node)))
Loader.add_implicit_resolver(INT, re.compile(WHOLE), list("-+0123456789"))
Loader.add_implicit_resolver(FLOAT, re.compile(NUMBER), list("-+.0123456789"))
