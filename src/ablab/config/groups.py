"""The folder of Hydra groups. It is also the list of what there is: an option exists when its YAML does."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import ablab


@cache
def conf_dir() -> Path:
    """`ablab/conf` in an installed wheel, `conf/` at the root of a checkout."""
    package = Path(ablab.__file__).parent
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


@cache
def groups() -> dict[str, list[str]]:
    """Each group with its options."""
    return {
        folder.name: sorted(file.stem for file in folder.glob("*.yaml"))
        for folder in sorted(conf_dir().iterdir())
        if folder.is_dir()
    }


@cache
def default_choices() -> dict[str, str]:
    """The option that each group has when nobody chooses."""
    entries = _read(conf_dir() / "config.yaml")["defaults"]
    chosen = {group: option for entry in entries if isinstance(entry, dict) for group, option in entry.items()}
    return {group: option for group, option in chosen.items() if group in groups()}


def option_files(group: str, option: str) -> list[Path]:
    """The file of an option, after those of the options of its group that it builds on."""
    path = conf_dir() / group / f"{option}.yaml"
    bases = (entry.partition("@")[0] for entry in _content(path).get("defaults", []) if isinstance(entry, str))
    return [*(file for base in bases if base != "_self_" for file in option_files(group, base)), path]


def option_values(group: str, option: str) -> dict[str, Any]:
    """The fields of its own group that an option sets."""
    fields: dict[str, Any] = {}
    for path in option_files(group, option):
        content = _read(path)
        content.pop("defaults", None)
        fields |= content.get(group, {} if _is_global(path) else content)
    return fields


def implied_choices(group: str, option: str) -> dict[str, str]:
    """The options of other groups that choosing this one means: `norm=post` is placement=post."""
    content = _read(conf_dir() / group / f"{option}.yaml")
    entries = (entry for entry in content.get("defaults", []) if isinstance(entry, dict))
    return {key.removeprefix("override /"): str(value) for entry in entries for key, value in entry.items()}


@cache
def named_values(group: str, field: str) -> frozenset[str]:
    """Every value that a field has in the group's files: what our own registries know by name.

    So a new norm costs its class and its YAML file, and this check, which must not import torch, knows it.
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
    """A copy: nobody's changes are another's."""
    return deepcopy(_content(path))
