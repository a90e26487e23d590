"""Archives of studies: what a report stands on, with the digest of each file, to be verified without the store."""

import hashlib
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal
from zipfile import ZipInfo

from pydantic import StringConstraints, ValidationError, field_validator

from ablab.errors import UserError, is_installed, reason
from ablab.files import sha256
from ablab.files.disk import replacing
from ablab.store.chain import Chain
from ablab.store.records import Strict
from ablab.store.register import CLAIMS, REGISTER, is_waiting
from ablab.store.run_folder import SELECTED, STATE, TOKENIZERS, RunFolder
from ablab.store.shared import DIGEST, REFERENCES, SOURCES, place_of

LZMA = [import_module("lzma").LZMAError] if is_installed("_lzma") else []
"""The error of a library without which a Python may be built, as it may without bzip2."""

INDEX, README = "pack.json", "README.md"
"""The first files of an archive."""

OF_A_RUN = (
    *("recipe.yaml", "record.json", "metrics.csv", "evaluations", "curves", "artefacts", "parts", "failure.json"),
    *(f"checkpoints/{name}" for name in (SELECTED, STATE, *TOKENIZERS)),
)

TEXT = ("corpora/*", "runs/*/evaluations/*.t[sx][tv]", "runs/*/artefacts/*", "reports/*", "studies/*.png")
"""What shows sentences of the test set, or translations of them, and the pictures of a report that does."""

REGISTRATIONS = "studies/*/registered.json"

STORAGE = "optuna.json"
"""The file of a search, for its trials alone: the URL of a database may hold a password."""

LARGEST = 1100
"""Bytes that a byte of an archive may stand for: deflate reaches 1,032, and counts by bzip2 about 20."""


class Contents(Strict):
    """What an archive has beside recipes, records and results. `text`: what shows sentences."""

    weights: bool
    text: bool = True

    def has(self, place: str) -> bool:
        """Return whether a file of the store is of what is packed."""
        parts = PurePosixPath(place).parts
        if (parts[0] in ("runs", "studies") and parts[2:3] == ("tracking",)) or parts[-1] == STORAGE:
            return False  # what waits for a tracker shows nothing that the report does not; a storage has passwords
        if place.startswith("runs/") and "/checkpoints/" in place:
            return self.weights and not place.endswith(".pt")
        return self.text or not any(fnmatch(place, shown) for shown in TEXT)


OneLine = Annotated[str, StringConstraints(pattern=r"^[^/\x00-\x1f\x7f\u0085\u2028\u2029]*$")]
"""Text that cannot pass for a line of what verifies it, and is no path."""


class PackIndex(Contents):
    """What an archive holds. `stamp`: the end of the register. `files`: SHA-256 of each."""

    pack: Literal[1] = 1
    name: OneLine
    made: OneLine
    stamp: str | None
    runs: Sequence[Annotated[str, StringConstraints(pattern=r"^r[0-9a-f]+$")]]
    files: dict[Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f\u0085\u2028\u2029]*$")], str]

    @field_validator("runs")
    @classmethod
    def _each_once(cls, runs: Sequence[str]) -> Sequence[str]:
        if len(set(runs)) != len(runs):
            raise ValueError("a run is listed twice")
        return runs

    def lacks(self, file: str) -> bool:
        """Return whether archives like this leave the file out, so that it is not missed."""
        if file.startswith("runs/") and file.split("/")[1] not in self.runs:
            return False  # of a run that was trained where the archive was unpacked
        if fnmatch(file, REGISTRATIONS):
            return file not in self.files  # older archives have that of their own study alone
        is_known = file.startswith(("runs/", "code/")) or PurePosixPath(file).name in (SOURCES, REFERENCES)
        return not (is_known and self.has(file))


def unpacked(store: Path) -> PackIndex | None:
    """Return what was packed of a store that is an unpacked archive; None of any other."""
    path = store / INDEX
    return _index_in(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=8)
def _index_in(path: Path, _changed: int) -> PackIndex | None:
    with suppress(OSError, ValidationError):
        return PackIndex.model_validate_json(path.read_bytes())
    return None


def has_no_texts(folder: RunFolder) -> bool:
    """Return whether a run is of an archive that leaves out all that shows sentences."""
    index = unpacked(folder.outputs)
    return index is not None and not index.text and folder.run_id in index.runs


def pack(
    path: Path, name: str, made: str, runs: Sequence[RunFolder], folders: Sequence[Path], contents: Contents
) -> PackIndex:
    """Write an archive of the runs of one store, of the folders of their study and report, and of the register.

    Raises UserError for what is in several stores.
    """
    outputs = _absolute(runs[0].outputs)
    for folder in (*(run.path for run in runs), *folders):
        if not _absolute(folder).is_relative_to(outputs):
            raise UserError(f"{folder} is not in {outputs}; allowed: an archive of what is in one store (outputs=)")
    register = outputs / REGISTER
    content = register.read_bytes() if register.exists() else b""
    found = {_absolute(file).relative_to(outputs).as_posix(): file for file in _files(outputs, runs, folders)}
    files = {place: file for place, file in found.items() if contents.has(place)}
    index = PackIndex(
        **contents.model_dump(),
        name=name,
        made=made,
        stamp=Chain.read(content).stamp,
        runs=[run.run_id for run in runs],
        files={
            place: hashlib.sha256(content).hexdigest() if place == REGISTER else sha256(file)
            for place, file in sorted(files.items())
        },
    )
    _check_still(Chain.read(content), Chain.of(outputs), files)
    about = _about(index, set(found) - set(files))
    index.files[README] = hashlib.sha256(about.encode()).hexdigest()
    with replacing(path) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(INDEX, json.dumps(index.model_dump(), indent=1))
        archive.writestr(README, about)
        for place, file in files.items():
            packed = content if place == REGISTER else file.read_bytes()  # runs that end meanwhile add to the register
            about_file = ZipInfo.from_file(file, place, strict_timestamps=False)  # it can say no time before 1980
            archive.writestr(about_file, packed, compression(place), compresslevel=9)
            if hashlib.sha256(packed).hexdigest() != index.files[place]:
                raise UserError(f"{file} {MEANWHILE}")
    return index


MEANWHILE = "changed while it was packed; the same line, typed again, packs what is there then"


def _check_still(before: Chain, after: Chain, places: Iterable[str]) -> None:
    """Raise UserError where a file was entered again while the files were read: they may not fit the register then."""
    for place in places:
        if before.files.get(place) != after.files.get(place):
            raise UserError(f"{place} {MEANWHILE}")


def compression(place: str) -> int:
    """Return how an archive compresses a file: bzip2 takes a third off what deflate makes of lists of counts."""
    return zipfile.ZIP_BZIP2 if place.endswith(".json") and is_installed("_bz2") else zipfile.ZIP_DEFLATED


def _about(index: PackIndex, left: Collection[str]) -> str:
    """Say what the archive is, to whom unpacks it. `left`: the files of its runs that it has not."""
    shown = {"weights": [f"*/checkpoints/{SELECTED}"], "texts": TEXT}
    left_out = [what for what, them in shown.items() if any(fnmatch(place, one) for place in left for one in them)]
    without = f" It leaves out {' and '.join(left_out)}." if left_out else ""
    said = (
        f"# {index.name}\n\nRuns of ablab, packed {index.made}.{without} Their register ended with {index.stamp}.\n\n"
        "    ablab verify archive=<this archive>            checks every file, and each score that it can make again\n"
    )
    if f"studies/{index.name}/{index.name}.yaml" in index.files:
        said += f"    ablab report experiment={index.name} outputs=<the unpacked folder>\n"
    return said


def _absolute(path: Path) -> Path:
    """Return the path from the root. Links are not followed: a folder of a store may lie elsewhere."""
    return Path(os.path.abspath(path))


DAMAGED = (
    *(OSError, EOFError, KeyError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, ValidationError, UnicodeDecodeError),
    *LZMA,
)
"""What the libraries raise for an archive that is damaged, or was made by another program."""


def unpack(path: Path, folder: Path) -> PackIndex:
    """Unpack an archive that may come from anyone into an empty folder; UserError names the first file that is wrong.

    Files that the index does not name are refused, as are names that lead out of the folder.
    """
    if not path.is_file():
        raise UserError(f"archive={path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            if len(infos) != len(archive.infolist()):
                raise UserError(f"{path}: not an archive of ablab pack (it has two entries of one name)")
            if sum(info.file_size for info in infos.values()) > LARGEST * path.stat().st_size:
                raise UserError(f"{path}: not an archive of ablab pack (it says that it unpacks to far more)")
            index = PackIndex.model_validate_json(archive.read(INDEX))
            for odd in sorted({*infos} ^ {INDEX, *index.files}):
                raise UserError(f"{path}: {odd} is {'missing' if odd in index.files else 'not in its index'}")
            for place, digest in index.files.items():
                _unpack(archive, infos[place], folder, digest, path)
            (folder / INDEX).write_bytes(archive.read(INDEX))
    except DAMAGED as error:
        told = reason(error) if isinstance(error, ValidationError) else str(error)
        raise UserError(f"{path}: not an archive of ablab pack ({told})") from None
    return index


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, digest: str, path: Path) -> None:
    place = PurePosixPath(info.filename)
    if place.is_absolute() or ".." in place.parts or "\\" in info.filename or info.is_dir():
        raise UserError(f"{path}: {info.filename} would lie outside of it")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise UserError(f"{path}: {info.filename} is a link; allowed: files")
    content = archive.read(info)
    if hashlib.sha256(content).hexdigest() != digest:
        raise UserError(f"{path}: {info.filename} is not what was packed")
    target = folder / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _files(outputs: Path, runs: Sequence[RunFolder], folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of an archive. UserError where a kill left one without its name: it would lack there for good."""
    places = [run.path / place for run in runs for place in ("", "evaluations", "curves")]
    for path in (path for place in (*places, *folders) for path in place.glob(".*") if is_waiting(path)):
        raise UserError(
            f"{path}: is being written, or a kill came before it had its name; allowed: to pack once the line that "
            "makes it was typed again"
        )
    yield from _within(outputs / REGISTER)
    yield from _within(outputs / CLAIMS)
    if any((folder / "registered.json").exists() for folder in folders):  # others may have claimed about the same runs
        for registered in sorted(outputs.glob(REGISTRATIONS)):
            yield from _within(registered)
    for folder in folders:
        yield from _within(folder)
    for run in runs:
        for name in OF_A_RUN:
            yield from _within(run.path / name)
        for evaluation in run.evaluations():
            if evaluation.references:
                yield from _within(outputs / "corpora" / evaluation.references)
        if (record := run.record()) is not None and (digest := record.provenance.get(DIGEST)) is not None:
            yield from _within(outputs / place_of(digest))


def _within(path: Path) -> Iterator[Path]:
    """Yield the file, or all files below the folder; not links, nor what is half-written or locked."""
    if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
        yield path
    elif path.is_dir() and not path.is_symlink():
        for below in sorted(path.iterdir()):
            yield from _within(below)
