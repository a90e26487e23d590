"""The chain of custody of a run: from its record to the bytes that it rests on, link by link.

A figure of a report is in an evaluation, whose digest the register has; the evaluation has the digests of translations
and references, the record those of weights, tokenizers and corpus, and its name is the digest of the recipe.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ablab.errors import UserError
from ablab.files import sha256
from ablab.store.chain import RECORD, Chain, History
from ablab.store.pack import unpacked
from ablab.store.records import Evaluation, Record
from ablab.store.register import REGISTER, as_entered, file_digest
from ablab.store.run_folder import LAST, SELECTED, STATE, TOKENIZERS, RunFolder
from ablab.store.shared import DIGEST, REFERENCES, is_stored_code, is_stored_text, place_of
from ablab.tasks.identity import run_id

GONE = "is gone"


class Link(NamedTuple):
    """A link: the file that it is about, relative to the store, and what is wrong with it; None if it holds."""

    file: str
    fault: str | None


def links(folder: RunFolder, chain: Chain) -> Iterator[Link]:
    """Yield the links of a finished run, from the register down; those that later files would rest on come first.

    A run or an evaluation of before digests were recorded has fewer, and so has one that was packed without some files.
    """
    index = unpacked(folder.outputs)
    for link in _links(folder, chain):
        if index is None or link.fault != GONE or not index.lacks(link.file):
            yield link


def _links(folder: RunFolder, chain: Chain) -> Iterator[Link]:
    name, history = _known(folder, chain)
    entered = None if history.is_older or not chain.digests else history.files
    yield from _entered(folder, RECORD, entered)
    try:
        record, recipe = folder.record(), folder.recipe()
        evaluations, curves = folder.evaluations(), folder.curves()
    except UserError as error:
        file, _, fault = str(error).partition(": ")
        is_own = Path(file).is_relative_to(folder.path)
        place = str(Path(file).relative_to(folder.path)) if is_own else RECORD
        yield Link(_place(folder, place), fault if is_own else str(error))
        return
    if record is None:
        return
    if not chain.digests and record.stretches and record.stretches[-1].left is not None:
        yield Link(REGISTER, GONE)  # runs of before the register began do not say what training left
    for file, digest in (entered or {}).items():
        if not as_entered(folder.path / file, digest).exists():
            yield Link(_place(folder, file), f"was entered in the register and {GONE}")
    own = run_id(recipe) == name == record.run_id
    yield Link(_place(folder, "recipe.yaml"), None if own else f"is not the recipe of {record.run_id}")
    for evaluation in evaluations:
        yield from _entered(folder, f"evaluations/{evaluation.evaluation_id}.json", entered)
        yield from _of_evaluation(folder, evaluation)
    for curve in curves:
        yield from _entered(folder, f"curves/{curve.curve_id}.json", entered)
        lost = [point.evaluation_id for point in curve.points if not folder.has_evaluation(point.evaluation_id)]
        yield Link(
            _place(folder, f"curves/{curve.curve_id}.json"), f"rests on {lost[0]}, which is gone" if lost else None
        )
    if record.metrics is not None:
        yield _file(folder, folder.metrics, record.metrics, "measured in training")
    yield from _of_code(folder, record)
    yield from _of_weights(folder, record)
    for name, digest in record.data.get("artefacts", {}).items():
        yield _file(folder, folder.artefacts / name, digest, "given in training")
    yield from _of_corpus(folder, record)
    yield from _of_stretches(folder, record)


def _known(folder: RunFolder, chain: Chain) -> tuple[str, History]:
    """Return the id of a run, and what the register knows of it: of one that was set aside, what it had known then."""
    if folder.path.parent.name != "superseded":
        return folder.run_id, chain.histories.get(folder.run_id, History())
    name, record = folder.run_id.partition("-")[0], folder.path / RECORD
    digest = file_digest(record) if record.exists() else None
    aside = chain.histories.get(name, History()).aside
    known = (History(is_older, files) for is_older, files in aside if is_older or files.get(RECORD) == digest)
    return name, next(known, History())


def _of_evaluation(folder: RunFolder, evaluation: Evaluation) -> Iterator[Link]:
    if evaluation.hypotheses is not None:
        yield _file(folder, folder.translations(evaluation.evaluation_id), evaluation.hypotheses, "translated")
    if evaluation.n_best is not None:
        yield _file(folder, folder.n_best(evaluation.evaluation_id), evaluation.n_best, "translated")
    if not evaluation.references:
        return
    holds = is_stored_text(folder.outputs, evaluation.test_name, evaluation.references)
    there = {True: None, False: "is not the text that was translated", None: GONE}[holds]
    yield Link(f"corpora/{evaluation.references}/{REFERENCES}", there)


def _of_code(folder: RunFolder, record: Record) -> Iterator[Link]:
    """Yield whether the definitions are those that the record names. Older records hold them themselves."""
    digest = record.provenance.get(DIGEST)
    if digest is not None:
        holds = is_stored_code(folder.outputs, digest)
        there = {True: None, False: "is not the code that it was trained with", None: GONE}[holds]
        yield Link(place_of(digest), there)


def _of_weights(folder: RunFolder, record: Record) -> Iterator[Link]:
    if record.selected is not None and record.selected.sha256 is not None:
        yield _file(folder, folder.checkpoints / SELECTED, record.selected.sha256, "selected")
    if (state := record.data.get("state")) is not None:
        yield _file(folder, folder.checkpoints / STATE, state, "left by training")
    sums: Mapping[str, str] = record.data.get("sha256", {})
    for name in TOKENIZERS:
        if name in sums:
            yield _file(folder, folder.checkpoints / name, sums[name], "trained with")


def _of_corpus(folder: RunFolder, record: Record) -> Iterator[Link]:
    corpus = folder.outputs / "corpora" / str(record.data.get("corpus"))
    for name, digest in record.data.get("sha256", {}).items():
        yield _file(folder, corpus / name, digest, "trained on")


def _of_stretches(folder: RunFolder, record: Record) -> Iterator[Link]:
    """Yield whether each stretch of training began from what the one before it had left."""
    for number, (before, after) in enumerate(pairwise(record.stretches), 1):
        if after.began_from is not None:
            broken = before.left != after.began_from
            fault = f"its stretch {number + 1} began from another checkpoint than stretch {number} left"
            yield Link(_place(folder, RECORD), fault if broken else None)
    last = record.stretches[-1].left if record.stretches else None
    if last is not None:
        yield _file(folder, folder.checkpoints / LAST, last, "left by training")


def _entered(folder: RunFolder, file: str, entered: Mapping[str, str] | None) -> Iterator[Link]:
    """Yield whether the file is what was entered; nothing if the run is older than the register."""
    if entered is None:
        return
    path = folder.path / file
    if file not in entered:
        yield Link(_place(folder, file), "is not in the register")
    elif path.exists():
        same = file_digest(path) == entered[file]
        yield Link(_place(folder, file), None if same else "is not what was entered in the register")


def _file(folder: RunFolder, path: Path, digest: str, how: str) -> Link:
    place = path.relative_to(folder.outputs).as_posix()
    if not path.is_file():
        return Link(place, GONE)
    return Link(place, None if sha256(path) == digest else f"is not what was {how}")


def _place(folder: RunFolder, file: str) -> str:
    return f"runs/{folder.run_id}/{file}"
