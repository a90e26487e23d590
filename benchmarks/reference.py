"""The reference pages of the documentation site: every verb and every setting, from the code and the YAML files.

python -m benchmarks.reference verbs|settings
"""

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from inspect import cleandoc
from typing import Any

from pydantic import TypeAdapter

from ablab import errors
from ablab.commands.help import fields_of_group, listed_fields, option_lines
from ablab.config.groups import default_choices, groups, option_files, option_values
from ablab.config.kinds import class_of
from ablab.config.schema import part_groups, schemas
from ablab.fields import Group, is_group
from ablab.tasks.verbs import VERBS, options_of
from ablab.transformer.config.schema import TranslationConfig

EXIT_CODES = {
    "DONE": "the command did what was asked",
    "FAILED": "something failed: a run, a check, the disk",
    "BAD_INPUT": "the input is wrong; the line says what is allowed",
    "DROPPED": "`try`: the change is not kept",
    "RUN_FAILED": "`try`: a run of the change failed",
    "DIVERGED": "`try`: a run of the change diverged",
    "NULL": "`try`: the change has no effect",
    "BUSY": "another process works on the run or the search",
    "STOPPED": "a search stopped the run as a poor trial (only processes of a sweep)",
    "UNSUITABLE": "the machine lacks what the settings need (only processes of a sweep)",
    "INTERRUPTED": "Ctrl-C or a signal; the same line goes on",
}


def verbs_page() -> str:
    """Return the page of all verbs, as their help pages have them, and of the exit codes."""
    lines = ["# Verbs", "", "In a checkout, `python train.py` is `ablab train`, and so on.", ""]
    for verb in VERBS:
        options = options_of(verb)
        summary, _, text = cleandoc(options.__doc__ or "").partition("\n")
        lines += [f"## {verb}", "", summary, "", "```", *options.usage, "```", ""]
        lines += [*_paragraphs(text.strip()), ""]
        if listed := list(option_lines(options)):
            lines += ["```", *(line[2:] for line in listed), "```", ""]
    codes = [f"| {getattr(errors, name)} | {meaning} |" for name, meaning in EXIT_CODES.items()]
    return "\n".join([*lines, "## Exit codes", "", "| code | meaning |", "| ---: | --- |", *codes, ""])


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text, its indented ones as code."""
    inside = False
    for line in text.splitlines():
        indented = line.startswith("  ") or (inside and not line.strip())
        if indented != inside:
            yield "```" if indented else "```\n"
        inside = indented
        yield line
    if inside:
        yield "```"


def settings_page() -> str:
    """Return the page of all groups, their options and their fields."""
    lines = [
        *("# Settings", "", "Typed as `group=option` and `group.field=value`. *Recipe* fields decide the weights and"),
        *("make the run id; *evaluation* fields decide how they are judged; *runtime* fields name nothing.", ""),
        *("## Without a group", "", *_table(TranslationConfig, _written("")), ""),
    ]
    for name, field in TranslationConfig.model_fields.items():
        if name not in groups() and is_group(kind := field.annotation):
            lines += [f"## {name}", "", *_table(kind, _written(name)), ""]
    for group, options in sorted(groups().items()):
        default = default_choices()[group]
        marked = ", ".join(f"`{option}`" + (" (default)" if option == default else "") for option in options)
        lines += [f"## {group}", "", marked, ""]
        for option in options:
            lines += list(_option(group, option))
    return "\n".join(lines)


def _option(group: str, option: str) -> Iterator[str]:
    """Yield the description of an option, and a table of its fields."""
    kind = option_values(group, option).get("kind")
    found = class_of(group, kind) or TranslationConfig.model_fields[group].annotation
    comments = [
        line[1:].strip()
        for path in option_files(group, option)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#") and "@package" not in line
    ]
    about = " ".join(comments) or _written(group, option).get("kind", ("", ""))[1]
    yield from (f"### {group}={option}", "", *([about, ""] if about else []))
    if is_group(found):
        rows = list(_table(found, _written(group, option)))
        for schema in schemas() if group not in part_groups() else ():  # fields that only another task has
            own = schema.model_fields[group].annotation if group in schema.model_fields else None
            if is_group(own):
                rows += list(_table(own, _written(group, option), found.model_fields))[2:]
        yield from ([*rows, ""] if len(rows) > 2 else [])


def _written(section: str, option: str | None = None) -> Mapping[str, tuple[str, str]]:
    """Return the value and the comment of each field as the YAML files have them, of an option or of the defaults."""
    found, place = {}, ""
    for line in listed_fields(default_choices()) if option is None else fields_of_group(section, option):
        if option is None and not line.startswith(" ") and line.endswith(":"):
            place = line[:-1]
        match = re.fullmatch(r"(\w+): *(.*?)(?: +# *(.*))?", line.strip())
        if match and (option is not None or place == section):
            found[match[1]] = (match[2], match[3] or "")
    return found


def _table(kind: type[Group], written: Mapping[str, tuple[str, str]], without: Collection[str] = ()) -> Iterator[str]:
    schema = kind.model_json_schema()["properties"]
    yield from ("| field | default | allowed | role | |", "| --- | --- | --- | --- | --- |")
    for name, marks in kind.marks().items():
        if (
            name in ("kind", "code", *without)
            or is_group(kind.model_fields[name].annotation)
            or "$ref" in schema.get(name, {})
        ):
            continue
        default, comment = written.get(name, ("", ""))
        needs = f" (with {marks.read_if.needs})" if marks.read_if is not None else ""
        # A validator of its own hides a field's type from the schema; the annotation has it.
        allowed = schema.get(name, {})
        if not {"type", "anyOf", "enum", "const"} & set(allowed):
            allowed = TypeAdapter(kind.model_fields[name].annotation).json_schema()
        cells = [f"`{name}`", f"`{default}`" if default else "", _allowed(allowed), marks.role.value]
        about = (comment + needs).strip().replace("<", "&lt;")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in [*cells, about]) + " |"


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return what a field takes, in words."""
    kinds = schema.get("anyOf", [schema])
    return " or ".join(dict.fromkeys(words for kind in kinds if (words := _one(kind))))


def _one(kind: Mapping[str, Any]) -> str:
    if "enum" in kind or "const" in kind:
        return ", ".join(f"`{value}`" for value in kind.get("enum", [kind.get("const")]))
    words = {"null": "`null`", "boolean": "`true`, `false`", "integer": "whole number", "number": "number"}
    named = words.get(str(kind.get("type")), "list" if kind.get("type") == "array" else "text")
    bounds = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ]
    return " ".join([named, *(f"{word} {_figure(kind[key])}" for key, word in bounds if key in kind)])


def _figure(bound: float) -> str:
    """Return a bound as a person would write it."""
    return "2^63" if bound == 2**63 else str(bound)


if __name__ == "__main__":
    print({"verbs": verbs_page, "settings": settings_page}[sys.argv[1]]())
