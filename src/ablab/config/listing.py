"""The listing of fields for help pages: keys, values and comments of the chosen options, as in their YAML files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ablab.code.folders import PRIMARY, shipped_conf
from ablab.config.groups import TARGET, default_choices, groups, implied_choices, option_files, option_values
from ablab.config.kinds import defaults_of, fields_of
from ablab.fields import as_typed

TOP = ""
"""The section of keys outside any section."""

OF_HYDRA = ("defaults", "hydra")
"""Sections that users of a run never set."""


def typed_choices(words: Sequence[str]) -> dict[str, str]:
    """Return the option of each group under these words. Words that choose none are ignored: help is never refused."""
    pairs = (word.partition("=")[::2] for word in words)
    typed = {group: option for group, option in pairs if option in groups().get(group, ())}
    implied = {g: o for group, option in typed.items() for g, o in implied_choices(group, option).items()}
    return default_choices() | implied | typed


def listed_fields(chosen: Mapping[str, str]) -> list[str]:
    """Return a line per field; where options set fields of other groups, as corpora do of training, the final value."""
    sections: dict[str, dict[str, str]] = {TOP: {}}
    files = [(TOP, shipped_conf() / f"{PRIMARY}.yaml")]
    files += [(group, path) for group, option in chosen.items() for path in option_files(group, option)]
    read = {group: fields_of(group, option) for group, option in chosen.items()}
    for group, path in files:
        for section, key, line in _lines(group, path):
            own = read.get(section)
            if own is None or key in own or key == TARGET:
                sections.setdefault(section, {})[key] = line
    for group, option in chosen.items():
        kind = option_values(group, option).get("kind")
        for field, default in () if kind is None else defaults_of(group, kind).items():
            sections.setdefault(group, {}).setdefault(field, f"{field}: {as_typed(default)}  # the part's own default")
    return [
        *sections[TOP].values(),
        *(line for section in sections if section for line in (f"{section}:", *_indented(sections[section]))),
    ]


def fields_of_group(group: str, option: str) -> list[str]:
    """Return a line per field of its own group that an option sets."""
    found = (field for path in option_files(group, option) for field in _lines(group, path))
    return list({key: line for section, key, line in found if section == group}.values())


def _indented(section: Mapping[str, str]) -> Iterator[str]:
    yield from (f"  {line}" for line in section.values())


def _lines(group: str, path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and line of each field of a file."""
    content = path.read_text(encoding="utf-8").splitlines()
    is_global = group == TOP or content[0].startswith("# @package _global_")
    section = TOP if is_global else group
    for line in content:
        if not line.strip() or line.lstrip().startswith(("#", "-")):
            continue
        key, _, value = line.strip().partition(":")
        if is_global and not line.startswith(" "):
            section = TOP
            if not value.strip():  # it opens a section
                section = key
                continue
        if section not in OF_HYDRA and not (key == TARGET and shipped_conf() in path.parents):
            yield section, key, line.strip()
