"""The folder of Hydra groups, which is also the registry of options: an option exists if its YAML file does."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import ablab


@cache
def conf_dir() -> Path:
    """Return `ablab/conf` in an installed wheel, `conf/` at the root of a checkout."""
    package = Path(ablab.__file__).parent
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


@cache
def groups() -> dict[str, list[str]]:
    """Return each group with its options."""
    return {
        folder.name: sorted(file.stem for file in folder.glob("*.yaml"))
        for folder in sorted(conf_dir().iterdir())
        if folder.is_dir()
    }


@cache
def default_choices() -> dict[str, str]:
    """Return the default option of each group."""
    entries = _read(conf_dir() / "config.yaml")["defaults"]
    chosen = {group: option for entry in entries if isinstance(entry, dict) for group, option in entry.items()}
    return {group: option for group, option in chosen.items() if group in groups()}


def option_files(group: str, option: str) -> list[Path]:
    """Return the file of an option, preceded by the files of the options of its group that it builds on."""
    path = conf_dir() / group / f"{option}.yaml"
    bases = (entry.partition("@")[0] for entry in _content(path).get("defaults", []) if isinstance(entry, str))
    return [*(file for base in bases if base != "_self_" for file in option_files(group, base)), path]


def option_values(group: str, option: str) -> dict[str, Any]:
    """Return the fields of its own group that an option sets."""
    fields: dict[str, Any] = {}
    for path in option_files(group, option):
        content = _read(path)
        content.pop("defaults", None)
        fields |= content.get(group, {} if _is_global(path) else content)
    return fields


def implied_choices(group: str, option: str) -> dict[str, str]:
    """Return the options of other groups that this option implies: `norm=post` implies placement=post."""
    content = _read(conf_dir() / group / f"{option}.yaml")
    entries = (entry for entry in content.get("defaults", []) if isinstance(entry, dict))
    return {key.removeprefix("override /"): str(value) for entry in entries for key, value in entry.items()}


@cache
def named_values(group: str, field: str) -> frozenset[str]:
    """Return every value that a field has in the group's files: the names that our registries know.

    So a new norm needs only its class and its YAML file; this check, which must not import torch, then knows it.
    """
    contents = (option_values(group, option) for option in groups()[group])
    return frozenset(content[field] for content in contents if field in content)


def _is_global(path: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith("# @package _global_")


@cache
def _content(path: Path) -> dict[str, Any]:
    from omegaconf import OmegaConf

    content = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def _read(path: Path) -> dict[str, Any]:
    """Return a copy, so that a caller's changes do not affect the cached content."""
    return deepcopy(_content(path))
