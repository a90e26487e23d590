"""The folder of Hydra groups. It is also the list of what there is: an option exists when its YAML does."""

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


def option_values(group: str, option: str) -> dict[str, Any]:
    """The fields that an option sets."""
    return _read(conf_dir() / group / f"{option}.yaml")


@cache
def named_values(group: str, field: str) -> frozenset[str]:
    """Every value that a field has in the group's files: what our own registries know by name.

    So a new norm costs its class and its YAML file, and this check, which must not import torch, knows it.
    """
    contents = (option_values(group, option) for option in groups()[group])
    return frozenset(content.get(group, content)[field] for content in contents)


def _read(path: Path) -> dict[str, Any]:
    from omegaconf import OmegaConf

    content = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}
