"""The `completion` command: a shell's Tab key completes verbs, groups, options, fields and values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from ablab.commands.habits import FLAGS
from ablab.commands.options import CompletionOptions
from ablab.errors import DONE, UserError, choices
from ablab.tasks.verbs import VERBS, options_of, read_words

BASH = """\
_ablab() {
    local typed="${COMP_LINE:0:$COMP_POINT}" IFS=$'\\n'
    local word="${typed##* }"
    COMPREPLY=($(ablab completion "of=$typed" 2>/dev/null))
    # Bash breaks words at "=", and completes only what follows it.
    [[ -n "$BASH_VERSION" && "$word" == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    [[ -n "$BASH_VERSION" && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
    return 0
}
"""
SHELLS = {
    "bash": f"{BASH}complete -o default -F _ablab ablab\n",
    "zsh": """\
#compdef ablab
_ablab() {
    local -a found
    found=("${(@f)$(ablab completion "of=$LBUFFER" 2>/dev/null)}")
    compadd -Q -S '' -- ${(M)found:#*=}
    compadd -Q -- ${found:#*=}
}
compdef _ablab ablab
""",
    "fish": "complete -c ablab -f -a '(ablab completion of=(commandline -cp | string collect) 2>/dev/null)'\n",
}
"""By shell, what it must run once so that Tab asks `ablab completion of=<the line so far>`."""


OF_STUDIES = ("report", "verify", "pack")
"""Verbs that take the words of a study, and no settings of a run beside them."""


def completion(arguments: Sequence[str]) -> int:
    """Print the script of a shell, or what may follow a line."""
    shell, *rest = arguments or [""]
    if shell in SHELLS:
        rest = list(arguments[1:])
        found: Iterable[str] = [SHELLS[shell].rstrip("\n")]
    elif shell.startswith("of="):
        found = candidates(shell.removeprefix("of="))
    else:
        raise UserError(f"completion {shell!r}: unknown shell; {choices(shell, SHELLS)}")
    read_words(CompletionOptions, rest)
    print("\n".join(found))  # noqa: T201
    return DONE


def candidates(line: str) -> list[str]:
    """Return the words that may stand in place of the last word of a line such as `ablab train norm=sc`."""
    *typed, word = [*line.split(), *([""] if line.endswith(" ") else [])] or [""]
    before = typed[1:]
    if not typed or not before:
        return [verb for verb in VERBS if verb.startswith(word)]
    verb, *typed = before
    if verb not in VERBS:
        return []
    if word.startswith("-") and verb == "train":
        return [flag for flag in FLAGS if flag.startswith(word) and flag.startswith("--")]
    key, equals, value = word.partition("=")
    if not equals:
        return [f"{name}=" for name in dict.fromkeys(_keys(verb, typed)) if name.startswith(word)]
    *earlier, last = value.split(",")  # several values, as in a sweep
    start = ",".join([*earlier, ""]) if earlier else ""
    return [f"{key}={start}{each}" for each in _values(verb, typed, key) if each.startswith(last)]


def _keys(verb: str, typed: Sequence[str]) -> Iterator[str]:
    options = options_of(verb)
    yield from options.model_fields
    if options.takes_settings or verb in OF_STUDIES:
        from ablab.config.groups import groups

        yield from (*groups(), "experiment")
        yield from _fields(typed)


def _values(verb: str, typed: Sequence[str], key: str) -> list[str]:
    """Return the values that a key can have, as far as they can be counted."""
    options = options_of(verb)
    takes_settings = options.takes_settings or verb in OF_STUDIES
    if key == "experiment" and (takes_settings or key in options.model_fields):
        from ablab.study.experiment import names

        return names()
    if key in options.model_fields:
        return _choices(options.model_json_schema()["properties"][key])
    if not takes_settings:
        return []
    from ablab.config.groups import groups

    return groups().get(key) or _choices(_fields(typed).get(key, {}))


def _fields(typed: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the JSON schema of each field that the options of these words have, by dotted name."""
    from ablab.commands.help import typed_choices
    from ablab.config.groups import option_values
    from ablab.config.kinds import class_of
    from ablab.config.schema import schema_of
    from ablab.fields import is_group

    found: dict[str, Mapping[str, Any]] = {}
    chosen = typed_choices(typed)
    for name, field in schema_of(option_values("task", chosen["task"]).get("kind")).model_fields.items():
        kind: Any = class_of(name, option_values(name, chosen[name]).get("kind")) if name in chosen else None
        kind = kind or field.annotation
        if is_group(kind):
            properties = kind.model_json_schema()["properties"]
            found |= {f"{name}.{key}": value for key, value in properties.items() if key not in ("kind", "code")}
        elif name not in chosen:
            found[name] = TypeAdapter(kind).json_schema()
    return found


def _choices(schema: Mapping[str, Any]) -> list[str]:
    """Return the values that a JSON schema counts: those of an enumeration, or of a truth value."""
    kinds = [schema, *schema.get("anyOf", ())]
    listed = [str(value) for kind in kinds for value in kind.get("enum", [kind["const"]] if "const" in kind else [])]
    return listed + ["true", "false"] * any(kind.get("type") == "boolean" for kind in kinds)
