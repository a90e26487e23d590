"""The configuration that ablab ships, and the parts that it names; with the standard library alone."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import ablab

PRIMARY = "ablab"
"""Name of the configuration that all options complete. No user's file is likely to have it, as `config` would be."""


@cache
def shipped_conf() -> Path:
    """Return `ablab/conf` in an installed wheel, `conf/` at the root of a checkout."""
    package = Path(ablab.__file__).parent
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


@cache
def shipped_experiments() -> Path:
    """Return the folder of ablab's own experiments, beside its configuration."""
    return shipped_conf().parent / "experiments"


@cache
def shipped_targets(group: str) -> Mapping[str, str]:
    """Return the class or function behind each of ablab's own kinds of a group."""
    found = {}
    for path in sorted((shipped_conf() / group).glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        target = re.search(r"^\s*_target_: *(\S+)", text, re.MULTILINE)
        kind = re.search(r"^\s*kind: *(\S+)", text, re.MULTILINE)
        if target is not None and kind is not None:
            found[kind[1]] = target[1]
    return found
