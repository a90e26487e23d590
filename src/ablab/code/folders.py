"""Folders of configuration and of parts: what ablab ships, that of installed packages, and the user's."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar

import ablab
from ablab.errors import UserError

PRIMARY = "ablab"
"""Name of the configuration that all options complete. No user's file is likely to have it, as `config` would be."""

VARIABLE = "ABLAB_CONFIG_DIR"
"""Folders of configuration beside ./conf, separated as in PATH, or by line ends. Processes of a sweep inherit it."""

ENTRY_POINTS = "ablab.conf"
"""The entry points by which an installed package offers its options: `name = "package:conf"`."""

CONFIG_DIR = ("--config-dir", "-cd")

SEARCHPATH = "hydra.searchpath"

P = ParamSpec("P")
R = TypeVar("R")


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
    for path in sorted((shipped_conf() / group).glob("[!.]*.yaml")):
        text = path.read_text(encoding="utf-8")
        target = re.search(r"^\s*_target_: *(\S+)", text, re.MULTILINE)
        kind = re.search(r"^\s*kind: *(\S+)", text, re.MULTILINE)
        if target is not None and kind is not None:
            found[kind[1]] = target[1]
    return found


def user_confs() -> tuple[Path, ...]:
    """Return the folders of configuration that are not ablab's own: the user's, then those of installed packages."""
    return _confs(_here(), os.environ.get(VARIABLE, ""))


def cached_by_folders(function: Callable[P, R]) -> Callable[P, R]:
    """Cache what a function returns, apart for each choice of `user_confs`, on whose files it depends."""

    @cache
    def found(_confs: Sequence[Path], *given: P.args, **named: P.kwargs) -> R:
        return function(*given, **named)

    @wraps(function)
    def with_folders(*given: P.args, **named: P.kwargs) -> R:
        return found(user_confs(), *given, **named)  # type: ignore[arg-type]  # all of them are hashable

    return with_folders


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UserError("the current folder is gone; allowed: cd to one that is there") from None


def part_folders() -> tuple[Path, ...]:
    """Return the folders whose Python files may be parts: those that hold a user's conf, then the current one."""
    here = _here()
    confs = _of_user(here, os.environ.get(VARIABLE, ""))
    return tuple(dict.fromkeys((*(conf.parent for conf in confs), Path(here).resolve())))


@cache
def _confs(here: str, variable: str) -> tuple[Path, ...]:
    own = shipped_conf().resolve()
    return tuple(dict.fromkeys(conf for conf in (*_of_user(here, variable), *_of_packages()) if conf != own))


def _of_user(here: str, variable: str) -> Iterator[Path]:
    named = [Path(each) for each in _parted(variable)]
    yield from (conf.resolve() for conf in (*named, Path(here, "conf")) if conf.is_dir())


def _parted(variable: str) -> list[str]:
    """Return the folders in the variable's value, which lines part where one of them has a colon in its name."""
    return [each for each in variable.split("\n" if "\n" in variable else os.pathsep) if each]


@cache
def _of_packages() -> tuple[Path, ...]:
    """Return the folders that installed packages offer, without importing a package."""
    found = []
    for point in metadata.entry_points(group=ENTRY_POINTS):
        package, _, inside = point.value.partition(":")
        confs = _folders_of(f"{package}.{inside or 'conf'}")
        found += [conf.resolve() for conf in confs if conf.is_dir()]
    return tuple(found)


def _folders_of(dotted: str) -> list[Path]:
    """Return where a folder inside of a package may lie, without importing the package."""
    package, *inside = dotted.split(".")
    spec = find_spec(package)
    return [] if spec is None else [Path(root, *inside) for root in spec.submodule_search_locations or ()]


def take_folders(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Split off Hydra's words for folders of configuration: `--config-dir FOLDER` and `hydra.searchpath=[...]`.

    Return the other words, and the new value of VARIABLE, or None if no folder is named. UserError for a missing one.
    """
    others, named = [], []
    waiting = iter(words)
    for word in waiting:
        key, equals, value = word.partition("=")
        if key in CONFIG_DIR:
            named.append(_existing(value if equals else next(waiting, ""), word))
        elif key == SEARCHPATH:
            places = [each.strip(" '\"") for each in value.strip("[]").split(",")]
            named += [_existing(_path_of(each), word) for each in places if each]
        else:
            others.append(word)
    before = _parted(os.environ.get(VARIABLE, ""))
    for folder in before:
        if not Path(folder).is_dir():
            raise UserError(f"{VARIABLE}: {folder} is no folder; allowed: folders that hold <group>/<option>.yaml")
    if not named:
        return others, None
    folders = [*map(str, named), *before]
    return others, "".join(f"{folder}\n" for folder in folders)


def _path_of(place: str) -> str:
    """Return the folder of an entry of Hydra's search path: a path, `file://<path>` or `pkg://<package>`."""
    if not place.startswith("pkg://"):
        return place.removeprefix("file://")
    return next(map(str, _folders_of(place.removeprefix("pkg://"))), place)


def _existing(path: str, word: str) -> Path:
    if not path or not Path(path).is_dir():
        raise UserError(f"{word}: {path or 'nothing'} is no folder; allowed: one that holds <group>/<option>.yaml")
    if next(Path(path).glob("*/[!.]*.yaml"), None) is None:
        raise UserError(f"{word}: {path} has no options; allowed: a folder that holds <group>/<option>.yaml")
    return Path(path).resolve()
