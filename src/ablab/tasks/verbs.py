"""Verbs: where each one lives, what its help page says, and how its options are read from `key=value` words.

Nothing heavy is imported, so that help and completion come at once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ablab.errors import UserError, choices, first_error, hint
from ablab.fields import Group

PLATFORM, TRANSLATION = "ablab.commands", "ablab.transformer.translation.verbs"
LANGUAGE_MODEL = "ablab.transformer.language_model.verbs"

VERBS: Mapping[str, str] = {
    "demo": PLATFORM,
    "train": PLATFORM,
    "study": PLATFORM,
    "report": PLATFORM,
    "register": PLATFORM,
    "try": PLATFORM,
    "confirm": PLATFORM,
    "loop": PLATFORM,
    "floor": PLATFORM,
    "prune": TRANSLATION,
    "translate": TRANSLATION,
    "generate": LANGUAGE_MODEL,
    "analyse": TRANSLATION,
    "export": TRANSLATION,
    "ls": PLATFORM,
    "show": PLATFORM,
    "diff": PLATFORM,
    "rm": PLATFORM,
    "sync": PLATFORM,
    "dashboard": PLATFORM,
    "board": PLATFORM,
    "verify": PLATFORM,
    "pack": PLATFORM,
    "new": PLATFORM,
    "check": PLATFORM,
    "selfcheck": TRANSLATION,
    "completion": PLATFORM,
}
"""The package of each verb, in the order of the overview. Of `prune` it has the function `prune.prune` and the class
`options.PruneOptions`."""


class ListedGroup(NamedTuple):
    """A group of the configuration that a help page lists. `about`: what it chooses; `also`: what else can be set."""

    group: str
    about: str
    also: str


TextOrJson = Annotated[Literal["text", "json"], Field(description="format of the output")]
Outputs = Annotated[str, Field(description="folder of all runs and studies")]


class Options(Group):
    """Base of the options of a verb, typed as `key=value` words.

    The docstring of a subclass is the text of the verb's help page; its first line is the verb's line in the overview.
    The docstring of a field is its description there. `usage`: first lines of the page. `listed`: what it lists besides
    the options. `takes_settings`: the verb also takes words of a train line. `output`: dotted name of the model of what
    it prints with format=json.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)
    usage: ClassVar[Sequence[str]]
    listed: ClassVar[ListedGroup | None] = None
    takes_settings: ClassVar[bool] = False
    output: ClassVar[str | None] = None


AnyOptions = TypeVar("AnyOptions", bound=Options)

RUN_ID = re.compile(r"r[0-9a-f]{4,}")
"""What looks like the id of a run, or the beginning of one."""


def command_of(verb: str) -> Callable[[Sequence[str]], int]:
    """Return the function that takes the words behind a verb and returns the exit code."""
    name = module_of(verb)
    command: Callable[[Sequence[str]], int] = getattr(import_module(f"{VERBS[verb]}.{name}"), name)
    return command


def module_of(verb: str) -> str:
    """Return the name of a verb's module, and of the function in it: a word of Python has an underscore more."""
    return f"{verb}_" if iskeyword(verb) else verb


def options_of(verb: str) -> type[Options]:
    """Return the options of a verb."""
    options: type[Options] = getattr(import_module(f"{VERBS[verb]}.options"), f"{verb.capitalize()}Options")
    return options


def read_words(kind: type[AnyOptions], arguments: Sequence[str]) -> AnyOptions:
    """Parse `key=value` words into options; UserError for unknown, missing or invalid keys.

    Values are plain strings, as a run's display name with its commas would not survive Hydra's grammar.
    """
    words: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if "run" in kind.model_fields and RUN_ID.fullmatch(argument):
            raise UserError(f"{argument}: a value without its key; did you mean run={argument}?")
        if key not in kind.model_fields:
            is_condition = "where" in kind.model_fields and equals and not hint(key, [*kind.model_fields])
            meant = f"; a condition is typed where='{argument}'" if is_condition else ""
            raise UserError(f"{argument}: no such key; {choices(key, kind.model_fields)}{meant}")
        if not equals:
            raise UserError(f"{key}: no value; allowed: {key}=<value>")
        if key in words:
            raise UserError(f"{argument}: {key} is given twice; allowed: once")
        # Hydra's words have quotes around a path with blanks; it is to be one store for all verbs.
        is_quoted = key == "outputs" and len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        words[key] = value[1:-1] if is_quoted else value
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in words:
            raise UserError(f"{name}: missing; say {name}={'<id>' if name == 'run' else '...'}")
    try:
        return kind.model_validate(words, strict=False)
    except ValidationError as error:
        raise UserError(first_error(error, words)) from None


def split_words(kind: type[AnyOptions], arguments: Sequence[str]) -> tuple[AnyOptions, list[str]]:
    """Parse the words whose keys are options of the verb; return the options, and the other words."""
    own = [word for word in arguments if word.partition("=")[0] in kind.model_fields]
    return read_words(kind, own), [word for word in arguments if word not in own]


class LawChecked(BaseModel):
    """A law, and what breaks it; None where it holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    law: str
    broken: str | None


class PartsChecked(BaseModel):
    """The laws of the parts that were named, or of the arms of a study."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    holds: bool
    laws: list[LawChecked]


def say_json(output: BaseModel) -> None:
    """Print an output, alone, on standard output."""
    print(output.model_dump_json(indent=1))  # noqa: T201
