"""What people call an arm: by what the experiment calls its levels, or else by what their options are called.

`norm=scalenorm,layerdrop=0` is ScaleNorm without LayerDrop.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ablab.config.groups import file_of, groups

SAID = re.compile(r"^# spoken: (.+)$", re.MULTILINE)
"""The line of an option's YAML file that says what people call the option. One without it keeps its name."""

OF_SETTINGS = {
    **dict.fromkeys(("layerdrop=0", "layerdrop=0.0"), "no LayerDrop"),
    **{"training.precision=fp32": "fp32", "training.precision=bf16": "bf16"},
}
"""Levels of settings, which have no file."""

NUMBERED = {"layerdrop": "LayerDrop", "optim.lr": "learning rate", "model.dropout": "dropout"}
"""Factors whose levels are numbers."""

LEVEL = r"[^,=\s]+=(?:\[[^\]]*\]|[^,\s]*)"
LEVELS = rf"{LEVEL}(?:,{LEVEL})*"

NONE: Mapping[str, str] = MappingProxyType({})
"""The labels of a study that gives none."""


def label(name: str, labels: Mapping[str, str] = NONE) -> str:
    """Return what people call an arm, or a side of a claim; unchanged where it has no level with a label.

    `labels`: those that the experiment gives, by level.
    """

    def said(found: re.Match[str]) -> str:
        levels = levels_in(found[0])
        return found[0] if all(parts([one], labels) == ([one], []) for one in levels) else of_levels(levels, labels)

    return re.sub(LEVELS, said, name)


def levels_in(name: str) -> list[str]:
    """Return the levels that a name is a list of; none where it is another name."""
    return re.findall(LEVEL, name) if re.fullmatch(LEVELS, name) else []


def of_levels(levels: list[str], labels: Mapping[str, str] = NONE) -> str:
    """Return levels as a person says them together."""
    there, missing = parts(levels, labels)
    if "LayerDrop" in missing and any(level.startswith("layerdrop_") for level in levels):  # a stack has it
        there = [*there, *(level for level in levels if level.startswith("layerdrop="))]
        missing = [name for name in missing if name != "LayerDrop"]
    if not there:
        return f"no {listed(missing, 'or')}"
    head, *rest = there
    with_ = [f"with {listed(rest, 'and')}"] if rest else []
    return " ".join([head, *with_, *([f"without {listed(missing, 'or')}"] if missing else [])])


def parts(levels: list[str], labels: Mapping[str, str] = NONE) -> tuple[list[str], list[str]]:
    """Return what the levels bring, and what they leave out."""
    said = [
        part for level in levels for part in ([labels[level]] if level in labels else _level(level).split(" with "))
    ]
    missing = [name.removeprefix("no ") for name in said if name.startswith("no ")]
    return [name for name in said if not name.startswith("no ")], missing


def listed(names: list[str], last: str) -> str:
    """Return names in a sentence: `a, b and c`."""
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _level(level: str) -> str:
    factor, _, value = level.partition("=")
    if value in groups().get(factor, ()):
        return _said_in(file_of(factor, value)) or level
    return OF_SETTINGS.get(level) or (f"{NUMBERED[factor]} {value}" if factor in NUMBERED else level)


@cache
def _said_in(file: Path) -> str | None:
    found = SAID.search(file.read_text(encoding="utf-8", errors="replace"))
    return None if found is None else found[1]
