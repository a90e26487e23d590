"""The file of a declared study: in a store, its name belongs to that file, and another file of the name to no study.

Files are compared by what they declare, so that comments and the place of a project do not matter. A registration
keeps the path of the file from the store, as the two are mostly moved together.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ablab.errors import UserError
from ablab.files import json_digest, read_json, write_text
from ablab.study.experiment import Experiment, read


class StudyFile(NamedTuple):
    """An experiment file, and what it declares."""

    path: Path
    experiment: Experiment

    @property
    def content(self) -> str:
        """Digest of what is declared; what later versions of the format add does not change it."""
        # A space of a search is either of two types, which pydantic would warn of.
        declared = self.experiment.model_dump(mode="json", exclude_unset=True, by_alias=True, warnings=False)
        return json_digest(declared, 11)

    def registered(self, outputs: Path) -> dict[str, str]:
        """Return what a registration in this store keeps of it."""
        return {"file": os.path.relpath(self.path.resolve(), outputs.resolve()), "content": self.content}


def kept_file(folder: Path) -> Path:
    """Return where the folder of a study keeps what its file said at the last registration."""
    return folder / f"{folder.name}.yaml"


def keep(file: StudyFile, folder: Path) -> None:
    """Keep the file with the study: an archive of it can be reported where the file is not."""
    text = file.path.read_text(encoding="utf-8")
    if (path := kept_file(folder)) != file.path:
        write_text(path, text)


def kept(folder: Path) -> StudyFile | None:
    """Return what a study keeps of its file, as long as it was registered so; None for studies of before it was kept.

    Raises UserError where it was edited.
    """
    path = kept_file(folder)
    if not path.is_file():
        return None
    found = StudyFile(path, read(path))
    if found.content not in _contents(_registered(folder)):
        raise UserError(f"{path}: it is not what was registered; allowed: that, or the experiment's own file")
    return found


def check_own(file: StudyFile | None, folder: Path, outputs: Path) -> None:
    """Raise UserError where the study in this folder was registered from another file, which says something else."""
    known = _registered(folder)
    if file is None or not known or file.content in _contents(known):
        return
    places = ((outputs.resolve() / entry["file"]).resolve() for entry in known)
    other = next((place for place in places if place.is_file()), None)
    # The file was moved, edited in place, or is a copy of the other.
    if other is None or other == file.path.resolve() or _content_at(other) == file.content:
        return
    raise UserError(
        f"{file.path}: in {outputs} the study {folder.name} is that of another file, {_shown(other)}, which says "
        f"something else; allowed: another name for this file, another outputs=FOLDER, or an edit of that file"
    )


def is_edit(file: StudyFile | None, known: Sequence[dict[str, Any]]) -> bool:
    """Return whether a registered study says something that it never said before."""
    contents = _contents(known)
    return file is not None and bool(contents) and file.content not in contents


def entries_of(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a file that a study keeps, as far as it can be read: reports tell what became of it."""
    try:
        found = read_json(path)
    except (OSError, UserError):
        return []
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _registered(folder: Path) -> list[dict[str, Any]]:
    """Return the registrations that name their file, which older ones do not."""
    return [entry for entry in entries_of(folder / "registered.json") if isinstance(entry.get("file"), str)]


def _contents(known: Sequence[dict[str, Any]]) -> set[str]:
    return {entry["content"] for entry in known if "content" in entry}


def _content_at(path: Path) -> str | None:
    try:
        return StudyFile(path, read(path)).content
    except UserError:
        return None


def _shown(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
