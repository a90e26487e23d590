"""The source of a part: where it lies, what it takes and reads, and a digest of all it is made of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ablab
from ablab.code.definitions import Definition, Key, Sources, code_of, reached
from ablab.code.folders import part_folders
from ablab.code.hidden import Hidden, hidden, may_hide
from ablab.code.modules import File, Folder, Package
from ablab.code.readers import NOTHING
from ablab.code.signature import Signature, SignatureError, literal_of, signature, with_bases
from ablab.errors import UserError
from ablab.files import json_digest, sha256
from ablab.former import current

NEEDS_FILES = "needs_files"
"""Names, in the class or beside the function, the files that a part reads: paths relative to its own, or patterns."""

NEEDS_NO_OTHER = "needs_files_only"
"""Says, as True in the same place, that the part reads and runs no other files than these: the source may not tell."""


class Own(Package):
    """ablab's own modules, which parts from outside may still name as they were."""

    def file_of(self, name: str) -> Path | None:
        return super().file_of(current(name))


OWN = Own(Path(ablab.__file__).parent)

MAY_READ = (("ablab.transformer.data.corpus", "Corpus"), ("ablab.tracking.tracker", "Tracker"))
"""The modules and names of classes that may read and write files: from these every corpus and every tracker derives."""


@dataclass(frozen=True)
class Part:
    """A class or function that an option names. `version`: of the installed distribution that it came with, if any."""

    target: str
    package: Package
    signature: Signature
    version: str | None

    @property
    def is_own(self) -> bool:
        """Whether the part is ablab's."""
        return self.package is OWN

    @property
    def file(self) -> Path:
        """The file that defines it, or that imports it from elsewhere."""
        path = self.package.file_of(self.signature.module.name)
        assert path is not None
        return path

    @property
    def folder(self) -> Path:
        """The folder from which Python imports it."""
        return self.package.folder if isinstance(self.package, Folder) else self.package.folder.parent

    @cached_property
    def definitions(self) -> Mapping[Key, Definition]:
        """All definitions that the part reaches in its folder or package, itself among them."""
        read = NOTHING
        while True:
            sources = Sources(self.package, read=read)
            found = reached(sources, [self.target])
            # What is read of its text may name more, which may read more.
            if (now := read | sources.read_by(found)) == read:
                return found
            read = now

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The files that the part says it reads, by their path relative to `folder`."""
        named = self._said(NEEDS_FILES)
        return {} if named is None else needed_files(self.target, named, self.file, self.folder)

    @property
    def needs_no_other(self) -> bool:
        """Whether the part says that it reads and runs no files but these."""
        said = self._said(NEEDS_NO_OTHER)
        if not isinstance(said, bool | None):
            raise UserError(f"_target_={self.target}: {NEEDS_NO_OTHER}={said!r}; allowed: True, False")
        return bool(said)

    def _said(self, name: str) -> Any:
        """Return what the class, or else its module, binds to a name; None if neither does."""
        said = self.signature.constants.get(name)
        if said is None and (found := self.signature.module.definitions.get(name)) is not None:
            return literal_of(found[-1])
        return said

    @cached_property
    def code(self) -> str:
        """12 hex digits of these definitions and files, and the version, if any.

        Comments and where a definition stands do not count. Docstrings, annotations and messages of errors do only if
        something of the part may read them.
        """
        digest = code_of(self.definitions).digest
        if self.files:
            digest = json_digest([digest, {place: sha256(path) for place, path in self.files.items()}], len(digest))
        return digest if self.version is None else f"{digest} {self.version}"

    def sources(self) -> dict[str, Path]:
        """Return the files that hold what the part is made of or reads, and the one it is named by."""
        named_by = self.target.rpartition(".")[0]
        names = {named_by, self.signature.module.name, *(key.module for key in self.definitions)}
        files = [file for name in sorted(names) if (file := self.package.file_of(name)) is not None]
        return {**{str(file.relative_to(self.folder)): file for file in files}, **self.files}


NOT_DOTTED = "no dotted name; allowed: <module>.<class or function>, as in parts.MyNorm"


def is_dotted(target: str) -> bool:
    """Return whether a text names something in a module, as in parts.MyNorm."""
    return re.fullmatch(r"\w+(\.\w+)+", target) is not None


def find_part(target: str, beside: Sequence[Path] = ()) -> Part:
    """Find and read a part by its dotted name; UserError if it is nowhere, or if its signature cannot be read.

    `beside`: the folders of the options that name it, of which the conf lies there; they are looked in first.
    """
    if OWN.holds(target):
        return _found(target, ())
    folders = part_folders()
    return _found(target, (*(one for one in folders if one in beside), *(one for one in folders if one not in beside)))


@cache
def _found(target: str, folders: Sequence[Path]) -> Part:
    if not is_dotted(target):
        raise UserError(f"_target_={target}: {NOT_DOTTED}")
    packages, version = _packages(target, folders)
    if not packages:
        where = " or ".join(map(str, folders))
        raise UserError(f"_target_={target}: there is no module {target.partition('.')[0]} in {where}, nor installed")
    try:
        read = signature(target, [*packages, OWN])
    except SignatureError as error:
        raise UserError(f"_target_={target}: {error}") from None
    part = Part(target, packages[0], read, version)
    if isinstance(part.package, Folder) or not (part.is_own or part.version):
        try:
            _check_imports(part)
            if part.version is None:
                _check_hidden(part)
        except SyntaxError as error:
            raise UserError(f"_target_={target}: {error.filename}, line {error.lineno}: {error.msg}") from None
    return part


def as_now(part: Part) -> Part:
    """Return a part as its files are by now, whatever was read of them before."""
    # An installed module is found as it was: in the folder where it lies, it would have no version.
    return _found.__wrapped__(part.target, [part.package.folder] if type(part.package) is Folder else [])


def _packages(target: str, folders: Sequence[Path]) -> tuple[list[Package], str | None]:
    """Return the packages that may hold the target: one, or none; and the version if it is installed."""
    if OWN.holds(target):
        return [OWN], None
    for folder in folders:
        if (there := Folder(folder)).holds(target):
            return [there], None
    name = target.partition(".")[0]
    spec = find_spec(name)
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        return [], None
    if spec.submodule_search_locations:
        package: Package = Package(Path(next(iter(spec.submodule_search_locations))), strict=False)
    else:
        assert spec.origin is not None
        package = File(Path(spec.origin))
    return [package], next(_versions(name), None)


def _versions(package: str) -> Iterator[str]:
    """Yield names and versions of the distributions that brought a package."""
    names = metadata.packages_distributions().get(package, [])
    # Python 3.10 knows only those that list their packages.
    every = map(metadata.distribution, names) if names else metadata.distributions()
    yield from (f"{one.metadata['Name']} {one.version}" for one in every if names or _has(one, package))


def _has(distribution: metadata.Distribution, package: str) -> bool:
    return any(file.parts[0] in (package, f"{package}.py") for file in distribution.files or ())


def _check_imports(part: Part) -> None:
    """Refuse a star import of own code, or of what reads files: what a part uses of it could not be told."""
    is_free = part.version is not None or part.needs_no_other or _may_read(part)
    for key in part.definitions:
        module = part.package.module(key.module)
        assert module is not None
        for target in module.names.get("*", ()):
            if part.package.holds(target) or (not is_free and may_hide(target.removesuffix(".*"))):
                place = part.package.file_of(key.module)
                raise UserError(
                    f"{place}: from {target.removesuffix('.*')} import * hides what {part.target} is made of; "
                    "allowed: the names"
                )


def _check_hidden(part: Part) -> None:
    """Refuse a part of the study's own that reads a file or runs code which neither its source nor the part names.

    A corpus may read, as the digest of its text belongs to the recipe, and so may a tracker, which decides no number.
    """
    if part.needs_no_other:
        return
    files, beside = part.files.values(), part.file.parent.absolute()
    for each in hidden(part.package, part.definitions, beside, files, reads=not _may_read(part)):
        raise UserError(
            f"_target_={part.target}: {part.package.file_of(each.module)}, line {each.line}: {each.words}, so that an "
            f"edit of it would go unseen; allowed: {_allowed(each, beside)}"
        )


def _allowed(found: Hidden, beside: Path) -> str:
    """Return what would name the file, or the code."""
    where = "in the class or beside the function"
    if found.path is not None:
        path = beside / found.path
        if not path.is_relative_to(beside) or ".." in found.path.parts:
            return f"a file in {beside} that {NEEDS_FILES} names {where}"
        name = path.relative_to(beside).as_posix()
        if found.path.exists() and not found.path.samefile(path):
            return f'Path(__file__).parent / "{name}"; that in the current folder is another file'
        return f'{NEEDS_FILES} = ["{name}"] {where}'
    named = "import statements" if found.is_code else 'a path that the source tells, as in open("<file>")'
    files = "" if found.is_code else f', with {NEEDS_FILES} = ["<file>", ...] {where}'
    return f"{named}{files}; or {NEEDS_NO_OTHER} = True there, if {NEEDS_FILES} names all that the part reads and runs"


def _may_read(part: Part) -> bool:
    bases = with_bases(part.target, [part.package, OWN]) if part.signature.is_class else []
    return any((module.name, each.name) in MAY_READ for module, each in bases)


def needed_files(target: str, patterns: object, beside: Path, folder: Path) -> dict[str, Path]:
    """Return the files that the patterns name, by their path relative to `folder`; UserError if one names none.

    `beside`: the file that defines the part, from which the patterns start.
    """
    if not isinstance(patterns, Sequence) or isinstance(patterns, str) or not all(map(_is_pattern, patterns)):
        raise UserError(
            f'_target_={target}: {NEEDS_FILES}={patterns!r}; allowed: a list of paths or patterns, as in ["gain.txt"]'
        )
    found: dict[str, Path] = {}
    for pattern in patterns:
        files = sorted(path for path in beside.parent.glob(pattern) if path.is_file())
        if not files:
            raise UserError(f"_target_={target}: {NEEDS_FILES}: there is no file {pattern} in {beside.parent}")
        found |= {path.relative_to(folder).as_posix(): path for path in files}
    return found


def _is_pattern(each: object) -> bool:
    return isinstance(each, str) and bool(each) and not Path(each).is_absolute() and ".." not in Path(each).parts
