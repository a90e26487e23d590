"""The help pages, generated from the options of each verb and from the configuration folder, without heavy imports."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

from ablab.code.folders import PRIMARY, shipped_conf
from ablab.config.groups import TARGET, default_choices, groups, implied_choices, option_files, option_values
from ablab.config.keys import fields_of
from ablab.config.kinds import defaults_of
from ablab.config.schema import has, schema_of
from ablab.fields import as_typed
from ablab.tasks.verbs import VERBS, ListedGroup, Options, options_of
from ablab.text import is_script

WIDEST = 120
"""Most columns of a page: longer lines are hard to read."""


def _columns() -> int:
    """Return the columns of a page: those of the terminal, or 80 where it does not tell."""
    return max(40, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def overview() -> str:
    """Return the output of `ablab` without arguments: for each verb, the first line of its page."""
    verbs = {verb: options_of(verb) for verb in VERBS}
    starts = {verb: f"ablab {verb}{_essential_words(options)} ..." for verb, options in verbs.items()}
    width = max(map(len, starts.values()))
    return "\n".join(
        [
            "ablab: ablation studies of Transformers in machine translation, and of any program",
            "",
            *(
                line
                for verb, options in verbs.items()
                for line in _hanging(f"  {starts[verb]:<{width}}  ", summary(options))
            ),
            "",
            "ablab <verb> --help lists the options of a verb.",
            "In a checkout: python train.py, study.py, report.py, prune.py, translate.py.",
        ]
    )


def summary(options: type[Options]) -> str:
    """Return the first line of a verb's text."""
    return _text(options).partition("\n")[0]


def page(verb: str, words: Sequence[str]) -> str:
    """Return the help page of a verb; those of train and prune depend on the other words."""
    options = options_of(verb)
    lines = [*options.usage, "", *_paragraphs(_text(options))]
    if listed := list(option_lines(options)):
        lines += ["", "Options (* is the default):", *listed]
    if verb == "train":
        lines += _groups_and_fields(words)
    if options.listed is not None:
        lines += _options_of_group(options.listed, words)
    text = "\n".join(lines)
    # Outside a checkout there are no scripts.
    return text if is_script() else re.sub(r"python (\w+)\.py", r"ablab \1", text)


def option_lines(options: type[Options]) -> Iterator[str]:
    """Yield the lines of each option: its name, description, choices or range, and default."""
    schema = options.model_json_schema()
    for name, field in schema["properties"].items():
        facts = _facts(field, is_required=name in schema.get("required", ()))
        yield from _row(name, field["description"], "; ".join(facts))


def _row(name: str, description: str, facts: str) -> list[str]:
    return _hanging(f"  {name:<16} ", f"{description} ({facts})" if facts else description)


def _hanging(start: str, text: str) -> list[str]:
    """Return a text behind its start, folded so that nothing stands below the start."""
    indent = " " * len(start)
    return textwrap.wrap(
        text, _columns(), initial_indent=start, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a text, folded anew; of indented lines, examples, only what is said behind them."""
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        lines = paragraph.split("\n")
        if any(line.startswith(" ") for line in lines):
            # A line that goes on with what stands behind an example is one with it.
            joined = re.sub(r"\n {20,}(?=\S)", "  ", paragraph) if " ablab " in paragraph else paragraph
            examples = (re.fullmatch(r"( +\S.*? {2,})(\S.*)", line) or line for line in joined.split("\n"))
            for line in examples:
                yield from [line] if isinstance(line, str) else _hanging(line[1], " ".join(line[2].split()))
        else:
            yield from _hanging("", " ".join(lines))


def _field(line: str) -> list[str]:
    """Return a line of a YAML file, its comment folded behind where it begins."""
    start, mark, comment = line.partition(" # ")
    return _hanging(f"{start}{mark}", comment) if len(line) > _columns() and mark else [line]


def _facts(field: Mapping[str, Any], *, is_required: bool) -> list[str]:
    """Return choices with the default marked, or the range and the default; of an optional field, those of its type."""
    default = field.get("default")
    kind = next((one for one in field.get("anyOf", ()) if one["type"] != "null"), field)
    if "enum" in kind or "const" in kind:
        values = kind.get("enum") or [kind["const"]]
        return [_marked(values, default)]
    facts = ["required"] if is_required else []
    if kind["type"] in ("integer", "number"):
        facts += _range(kind)
    if default not in (None, ""):
        facts.append(f"default {as_typed(default)}")
    return facts


def _range(kind: Mapping[str, Any]) -> list[str]:
    low, high = kind.get("minimum"), kind.get("maximum")
    if low is not None and high is not None:
        return [f"{low} to {high}"]
    bounds = {"at least": low, "above": kind.get("exclusiveMinimum")}
    bounds |= {"at most": high, "below": kind.get("exclusiveMaximum")}
    return [f"{word} {bound}" for word, bound in bounds.items() if bound is not None]


def _text(options: type[Options]) -> str:
    return cleandoc(options.__doc__ or "")


def _essential_words(options: type[Options]) -> str:
    """Return the words of the usage line between the verb and the optional ones."""
    words = options.usage[0].partition(" [")[0].split()
    return "".join(f" {word}" for word in words[2:])


def _groups_and_fields(words: Sequence[str]) -> Iterator[str]:
    """Yield groups and options with the defaults marked, and the fields of the options that these words choose."""
    defaults = default_choices()
    width = max(len(group) for group in defaults)
    yield from ("", "Groups (group=option; * is the default):")
    for group, default in defaults.items():
        yield from _hanging(f"  {group:<{width}}  ", _marked(groups()[group], default))
    chosen = typed_choices(words)
    others = " ".join(f"{group}={option}" for group, option in chosen.items() if option != defaults[group])
    title = f"Fields and their defaults with {others or 'the default options'}; other options have other fields:"
    yield from ("", *_hanging("", title))
    yield from (folded for line in listed_fields(chosen) for folded in _field(f"  {line}"))


def _options_of_group(listed: ListedGroup, words: Sequence[str]) -> Iterator[str]:
    """Yield the options of a group, and the fields of the one that these words choose."""
    group, default = listed.group, default_choices()[listed.group]
    chosen = typed_choices(words)[group]
    chosen = default if chosen == "none" else chosen
    options = [option for option in groups()[group] if option != "none"]
    yield from _row(group, listed.about, _marked(options, default))
    title = f"Fields of {group}={chosen} and their defaults; you can also set fields of {listed.also}:"
    yield from ("", *_hanging("", title))
    yield from (folded for line in fields_of_group(group, chosen) for folded in _field(f"  {group}.{line}"))


def _marked(options: Sequence[str], default: str | None) -> str:
    return ", ".join(f"{option}*" if option == default else option for option in options)


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
    task = option_values("task", chosen["task"]).get("kind")
    schema = schema_of(task)
    sections: dict[str, dict[str, str]] = {TOP: {}}
    files = [(TOP, shipped_conf() / f"{PRIMARY}.yaml")]
    files += [(group, path) for group, option in chosen.items() for path in option_files(group, option)]
    read = {group: fields_of(group, option) for group, option in chosen.items()}
    for group, path in files:
        for section, key, line in _lines(group, path):
            own = read.get(section)
            if key != TARGET and not has(schema, key if section == TOP else f"{section}.{key}"):
                continue
            if own is None or key in own or key == TARGET:
                sections.setdefault(section, {})[key] = line
    for group, option in chosen.items():
        if group not in schema.model_fields:
            continue
        kind = option_values(group, option).get("kind")
        for field, default in () if kind is None else defaults_of(group, kind).items():
            sections.setdefault(group, {}).setdefault(field, f"{field}: {as_typed(default)}  # the part's own default")
    listed = list(sections.pop(TOP).values())
    for section, fields in sections.items():
        listed += [f"{section}:", *(f"  {line}" for line in fields.values())]
    return listed


def fields_of_group(group: str, option: str) -> list[str]:
    """Return a line per field of its own group that an option sets."""
    found = (field for path in option_files(group, option) for field in _lines(group, path))
    return list({key: line for section, key, line in found if section == group}.values())


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
