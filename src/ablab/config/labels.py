"""What people call an arm: by what the experiment calls its levels, or else by what their options are called.

`norm=scalenorm,layerdrop=0` is ScaleNorm without LayerDrop.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ablab.config.groups import file_of, groups

SAID = re.compile(r"^# spoken(?: beside (\w+))?: (.+)$", re.MULTILINE)
"""The line of an option's YAML file that says what people call the option. One without it keeps its name.

`beside` names a group that decides with it: with `placement=post`, `norm=pre` is no PreNorm.
"""

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

    blank = [level for level in labels if "=" in level and re.search(r"\s", level) and level in name]
    if blank:  # a name of text with blanks cannot be parted into its levels: only what is said of them is known
        longest = sorted(blank, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest)), lambda found: labels[found[0]], name)

    def said(found: re.Match[str]) -> str:
        levels = levels_in(found[0])
        return found[0] if all(parts([one], labels) == ([one], []) for one in levels) else of_levels(levels, labels)

    return re.sub(LEVELS, said, name)


def levels_in(name: str) -> list[str]:
    """Return the levels that a name is a list of; none where it is another name."""
    return re.findall(LEVEL, name) if re.fullmatch(LEVELS, name) else []


def of_levels(levels: list[str], labels: Mapping[str, str] = NONE, among: Sequence[str] = ()) -> str:
    """Return levels as a person says them together; `among`: all levels of their arm, where these are some of them."""
    there, missing = parts(levels, labels, among)
    if "LayerDrop" in missing and any(level.startswith("layerdrop_") for level in levels):  # a stack has it
        there = [*there, *(level for level in levels if level.startswith("layerdrop="))]
        missing = [name for name in missing if name != "LayerDrop"]
    if not there:
        return f"no {listed(missing, 'or')}"
    head, *rest = there
    with_ = [f"with {listed(rest, 'and')}"] if rest else []
    return " ".join([head, *with_, *([f"without {listed(missing, 'or')}"] if missing else [])])


def parts(
    levels: list[str], labels: Mapping[str, str] = NONE, among: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return what the levels bring, and what they leave out."""
    factors = {level.partition("=")[0] for level in among or levels}
    said = [
        part
        for level in levels
        for part in ([labels[level]] if level in labels else _level(level, factors).split(" with "))
    ]
    missing = [name.removeprefix("no ") for name in said if name.startswith("no ")]
    return [name for name in said if not name.startswith("no ")], missing


def listed(names: list[str], last: str) -> str:
    """Return names in a sentence: `a, b and c`."""
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _level(level: str, factors: Collection[str]) -> str:
    factor, _, value = level.partition("=")
    if value in groups().get(factor, ()):
        said = _said_in(file_of(factor, value))
        return next((said[other] for other in (*factors, "") if other in said), level)
    return OF_SETTINGS.get(level) or (f"{NUMBERED[factor]} {value}" if factor in NUMBERED else level)


@cache
def _said_in(file: Path) -> Mapping[str, str]:
    """Return what an option is called beside a factor of some group, and elsewhere, under the empty name."""
    return dict(SAID.findall(file.read_text(encoding="utf-8", errors="replace")))
