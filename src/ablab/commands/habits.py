"""What Hydra's users type out of habit: its flags, and `++key=value`."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ablab.errors import UserError, choices

VERSION = "--version"
MANY = ("-m", "--multirun")
CFG, PACKAGE, INFO, RESOLVE = ("-c", "--cfg"), ("-p", "--package"), ("-i", "--info"), "--resolve"

FLAGS = (*MANY, *CFG, RESOLVE, *PACKAGE, *INFO, "--config-dir", VERSION, "--help")
"""The flags of a train line."""

INSTEAD = {
    "--hydra-help": "--help lists every option; --info names the folders that options come from",
    "--run": "a line without -m is one run",
    "-r": "a line without -m is one run",
    "--config-path": "--config-dir FOLDER, which adds options of your own",
    "-cp": "--config-dir FOLDER, which adds options of your own",
    "--config-name": "--config-dir FOLDER, which adds options of your own",
    "-cn": "--config-dir FOLDER, which adds options of your own",
    "--experimental-rerun": "the line typed again, with rerun=true to train again",
    "--shell-completion": "ablab completion bash, zsh or fish",
    "-sc": "ablab completion bash, zsh or fish",
}
"""Flags of Hydra that a train line does not take, with what there is instead."""


@dataclass(frozen=True)
class Shown:
    """What a train line is asked to show in place of training: `cfg` job, hydra or all, a `package` of it, or info."""

    cfg: str | None = None
    package: str | None = None
    resolve: bool = False
    info: bool = False


def as_meant(words: Sequence[str]) -> list[str]:
    """Return the words with `++key=value`, and Hydra's `+experiment=name`, as `key=value`: every key exists.

    A `~` that the shell left at the beginning of a path is the home folder, as some shells have it.
    """
    meant = [word[2:] if word.startswith("++") else word[word.startswith("+experiment=") :] for word in words]
    return [AT_HOME.sub(lambda found: f"{found[1]}={os.path.expanduser('~')}", word) for word in meant]


OF_PATHS = r"outputs|to|archive|stamp|table|claims|run|runs|folder|picture|attention|init_from|experiment|data\.path"
AT_HOME = re.compile(rf"^({OF_PATHS})=~(?=/|$)")
"""A path below the home folder, under a key that takes one."""


def take_flags(words: Sequence[str]) -> tuple[list[str], Shown | None]:
    """Split off the flags that show something; return the other words, -m among them.

    Raises UserError for a flag that does not exist here, or that lacks its value.
    """
    others: list[str] = []
    shown = nothing = Shown()
    waiting = iter(words)
    for word in waiting:
        flag, equals, value = word.partition("=")
        if flag in CFG:
            shown = replace(shown, cfg=_value(flag, value if equals else next(waiting, ""), ("job", "hydra", "all")))
        elif flag in PACKAGE:
            shown = replace(shown, package=value if equals else next(waiting, ""))
        elif word == RESOLVE:
            shown = replace(shown, resolve=True)
        elif flag in INFO:
            shown = replace(shown, info=_value(flag, value or "all", ("all",)) == "all")
        elif word.startswith("-") and word not in MANY:
            raise UserError(f"{word}: no such flag; {_instead(flag)}")
        else:
            others.append(word)
    if shown == nothing:
        return others, None
    if any(word in MANY for word in others):
        raise UserError(
            "-m: a study is many configurations; allowed: --cfg and --info without -m, or the study command"
        )
    if shown.cfg is None and (shown.resolve or shown.package is not None):
        raise UserError(f"{RESOLVE if shown.resolve else PACKAGE[1]}: it goes with --cfg; allowed: --cfg job {RESOLVE}")
    return others, shown


def _value(flag: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise UserError(f"{flag} {value or 'without a value'}: {choices(value, allowed)}")
    return value


def _instead(flag: str) -> str:
    return f"allowed: {INSTEAD[flag]}" if flag in INSTEAD else choices(flag, FLAGS)


def show(words: Sequence[str], shown: Shown) -> None:
    """Print the composed configuration, or where it comes from; nothing is trained or written."""
    for line in [*(_info(words) if shown.info else ()), *(() if shown.cfg is None else _configuration(words, shown))]:
        sys.stdout.write(f"{line}\n")


def _configuration(words: Sequence[str], shown: Shown) -> Iterator[str]:
    """Yield the configuration as YAML: as written, or resolved, where a smoke run is as small as it will be."""
    import yaml

    from ablab.config import compose
    from ablab.config.overrides import parse
    from ablab.config.schema import own_values
    from ablab.config.values import values_of, written

    if shown.cfg == "hydra":
        raise UserError("--cfg hydra: a single run has no settings of Hydra's; allowed: --cfg job")
    schema = type(compose(words).config)  # an invalid configuration is refused here as everywhere
    typed = parse(words)
    job: Any = own_values(schema, values_of(typed).resolved if shown.resolve else written(typed))
    if shown.resolve and job["smoke"]:
        job = schema.shrink(job)
    for part in () if shown.package is None else shown.package.split("."):
        if not isinstance(job, dict) or part not in job:
            raise UserError(f"--package {shown.package}: {choices(part, job if isinstance(job, dict) else ())}")
        job = job[part]
    yield yaml.safe_dump(job, sort_keys=False, allow_unicode=True).rstrip("\n").removesuffix("\n...")


def _info(words: Sequence[str]) -> Iterator[str]:
    """Yield the version, the folders of options in the order in which they are searched, and the chosen options."""
    from ablab.code.folders import shipped_conf, user_confs
    from ablab.config import compose
    from ablab.config.groups import file_of

    chosen = compose(words).choices
    yield version()
    yield "Folders of options, the first that has an option wins:"
    yield from (f"  {folder}" for folder in (*user_confs(), shipped_conf()))
    yield "Options:"
    width = max(map(len, chosen))
    yield from (f"  {group:<{width}}  {option:<14} {file_of(group, option)}" for group, option in chosen.items())


def version() -> str:
    """Return the versions of ablab, Python and some libraries, in a line."""
    import platform

    from ablab.code.machine import SHOWN, installed

    found = {name: installed(name) for name in ("ablab", *SHOWN)}
    libraries = [f"{name} {number}" for name, number in found.items() if number is not None and name != "ablab"]
    return f"ablab {found['ablab']} ({', '.join([f'Python {platform.python_version()}', *libraries])})"
