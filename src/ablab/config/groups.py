"""The folders of Hydra groups, which are also the registry of options: an option exists if its YAML file does.

The user's folders and those of installed packages add options to ablab's own, and go before those of the same name.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from ablab.code.find import NOT_DOTTED, is_dotted
from ablab.code.folders import PRIMARY, cached_by_folders, shipped_conf, shipped_targets, user_confs
from ablab.config.plain_yaml import read_mapping
from ablab.errors import UserError, choices
from ablab.former import current

TARGET = "_target_"
"""The key by which an option names its part, as Hydra does."""


@cached_by_folders
def groups() -> Mapping[str, list[str]]:
    """Return each group with its options."""
    return {group: list(files) for group, files in _files().items()}


@cached_by_folders
def _files() -> dict[str, dict[str, Path]]:
    """Return the file of each option by group. Of two with one name the user's is meant, as in Hydra's search path."""
    found = {
        folder.name: {file.stem: file for file in folder.glob("[!.]*.yaml")}
        for folder in sorted(shipped_conf().iterdir())
        if folder.is_dir()
    }
    for conf in reversed(user_confs()):
        for group, options in found.items():
            options |= {file.stem: file for file in (conf / group).glob("[!.]*.yaml")}
    return {group: dict(sorted(options.items())) for group, options in found.items()}


@cache
def default_choices() -> dict[str, str]:
    """Return the default option of each group."""
    entries = _read(shipped_conf() / f"{PRIMARY}.yaml")["defaults"]
    chosen = {group: option for entry in entries if isinstance(entry, dict) for group, option in entry.items()}
    return {group: option for group, option in chosen.items() if group in groups()}


def file_of(group: str, option: str) -> Path:
    """Return the file of an option."""
    return _files()[group][option]


@cache
def shipped_options(group: str) -> frozenset[str]:
    """Return the names of ablab's own options of a group."""
    return frozenset(path.stem for path in (shipped_conf() / group).glob("[!.]*.yaml"))


def is_shipped(group: str, option: str) -> bool:
    """Return whether an option is ablab's own."""
    return file_of(group, option).parents[1] == shipped_conf()


def option_files(group: str, option: str, above: Sequence[str] = ()) -> list[Path]:
    """Return the file of an option, preceded by the files of the options of its group that it builds on.

    `above`: the options that build on this one. UserError where its file names no option, or one of these.
    """
    path, line = file_of(group, option), (option, *above)
    names = (entry.partition("@")[0] for entry in _defaults(path) if isinstance(entry, str))
    bases = [name for name in names if name != "_self_"]
    for base in bases:
        if base in line:
            raise UserError(f"{path}: defaults: {base} builds on itself; allowed: another option of {group}")
        if base not in groups()[group]:
            raise UserError(f"{path}: defaults: {base}: unknown option of {group}; {choices(base, groups()[group])}")
    return [*(file for base in bases for file in option_files(group, base, line)), path]


def _defaults(path: Path) -> list[Any]:
    """Return the entries of an option's defaults list."""
    entries = _content(path).get("defaults") or []
    if not isinstance(entries, list):
        raise UserError(f"{path}: defaults: {entries}: no list; allowed: [option], as in Hydra")
    return entries


def option_values(group: str, option: str) -> dict[str, Any]:
    """Return the fields of its own group that an option sets, with the kind of its part."""
    fields: dict[str, Any] = {}
    for path in option_files(group, option):
        content = _read(path)
        content.pop("defaults", None)
        own = content.get(group, {} if _is_global(path) else content)
        if group in content and not _is_global(path):
            raise UserError(
                f"{path}: {group}: a section, in a file of the fields of {group}; allowed: the fields alone, or "
                "# @package _global_ as the first line"
            )
        if not isinstance(own, dict):
            raise UserError(
                f"{path}: {group}: no fields; allowed: {TARGET}: <module>.<class>, and values of its fields"
            )
        fields |= own
    return with_kind(group, fields, file_of(group, option))


def with_kind(group: str, fields: Mapping[str, Any], where: object = "") -> dict[str, Any]:
    """Return an option's fields with the part's kind in place of its target.

    The kind of a part of ablab is a name of its own, so that its class can move; that of any other is its target.
    """
    if TARGET not in fields:
        return dict(fields)
    target = current(str(fields[TARGET]))
    shipped = next((kind for kind, each in shipped_targets(group).items() if each == target), None)
    if shipped is None and not is_dotted(target):
        raise UserError(f"{where}: {TARGET}={target}: {NOT_DOTTED}")
    kind = fields.get("kind", shipped or target)
    if kind != (shipped or target):
        raise UserError(f"{where}: kind={kind} beside {TARGET}={target}; allowed: {TARGET} alone")
    return {"kind": kind, **{key: value for key, value in fields.items() if key not in (TARGET, "kind")}}


def implied_choices(group: str, option: str) -> dict[str, str]:
    """Return the options of other groups that this option implies: `norm=post` implies placement=post."""
    entries = (entry for path in option_files(group, option) for entry in _defaults(path) if isinstance(entry, dict))
    found = {key.removeprefix("optional "): str(value) for entry in entries for key, value in entry.items()}
    return {key.removeprefix("override /"): value for key, value in found.items()}


@cached_by_folders
def kinds(group: str) -> frozenset[str]:
    """Return every kind of a group that some option has.

    So a new part needs only its class and its YAML file; this check, which must not import torch, then knows it.
    """
    # A user's option may have a kind of ours, but only a target makes a new one. It may also bear the name of one of
    # ours, as in a copy of our folder, which takes no kind away.
    found = {str(kind) for option in groups()[group] if (kind := kind_in(group, option))}
    return frozenset(_shipped_kinds(group) | {kind for kind in found if "." in kind})


@cache
def _shipped_kinds(group: str) -> frozenset[str]:
    """Return every kind that ablab's own files name."""
    found = set()
    for path in (shipped_conf() / group).glob("[!.]*.yaml"):
        content = _read(path)
        fields = content.get(group, {} if _is_global(path) else content)
        found.add(with_kind(group, fields, path).get("kind"))
    return frozenset(str(kind) for kind in found if kind)


def kind_in(group: str, option: str) -> Any:
    """Return the kind that an option names; None where a user's file cannot be read, which is told if it is chosen."""
    try:
        return option_values(group, option).get("kind")
    except UserError:
        if is_shipped(group, option):
            raise
        return None


def _is_global(path: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith("# @package _global_")


@cache
def _content(path: Path) -> dict[str, Any]:
    content = read_mapping(path, f"no fields; allowed: {TARGET}: <module>.<class>, and values of its fields")
    return {str(key): value for key, value in content.items()}


def _read(path: Path) -> dict[str, Any]:
    """Return a copy, so that a caller's changes do not affect the cached content."""
    return deepcopy(_content(path))
