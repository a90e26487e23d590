"""Preparation of a corpus for training: subsample, tokenizers, ids; done once and shared by all runs."""

import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from ablab.data.batches import Sentences
from ablab.data.corpus import Corpus, Pair, is_file
from ablab.data.tokenizer import Tokenizer, given_tokenizer, load_tokenizers, save_tokenizers, train_tokenizer
from ablab.errors import UserError
from ablab.fields import Role
from ablab.files import half_written, json_digest, read_json, read_lines, sha256, write_json, write_lines
from ablab.seeding import derive

PREPARATION = 2
"""Version of the preparation; raise it when the same corpus would come out differently, so that it is prepared anew."""

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Prepared:
    """The folder of a prepared corpus, read on demand. Its name determines its content."""

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Numbers of pairs kept and dropped, the unigram loss and checksums."""
        content: dict[str, Any] = read_json(self.folder / MANIFEST)
        return content

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Tokenizers of source and target; the same object when the vocabulary is joint."""
        return load_tokenizers(self.folder)

    @cached_property
    def train(self) -> tuple[Sentences, Sentences]:
        """Source and target ids of the training pairs."""
        return Sentences.load(self.folder, "train.src"), Sentences.load(self.folder, "train.tgt")

    @cached_property
    def valid(self) -> tuple[Sentences, Sentences]:
        """Source and target ids of the validation pairs."""
        return Sentences.load(self.folder, "valid.src"), Sentences.load(self.folder, "valid.tgt")

    @property
    def scoring(self) -> dict[str, Any]:
        """The settings of scores that differ from the usual ones, by field of scoring.Scoring."""
        return dict(self.manifest.get("scoring", {}))

    @cached_property
    def valid_text(self) -> list[Pair]:
        """The raw validation pairs, in the order of `valid`."""
        src, tgt = (read_lines(self.folder / f"valid.{side}.txt") for side in ("src", "tgt"))
        return list(zip(src, tgt, strict=True))


def prepare(corpus: Corpus, store: Path, say: Callable[[str], None]) -> Prepared:
    """Return the corpus's folder below `store`; prepare it if missing or damaged. Safe in concurrent processes."""
    folder = store / corpus_id(corpus)
    store.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not _intact(folder):
            say(f"preparing {corpus.kind} {corpus.src}-{corpus.tgt} ...")
            _replace(folder, lambda made: _make(corpus, made))
    return Prepared(folder)


def corpus_id(corpus: Corpus) -> str:
    """Return 16 hex digits of the digest of everything that decides the prepared corpus."""
    content = {
        "preparation": PREPARATION,
        "sentencepiece": version("sentencepiece"),
        "options": corpus.effective().part(Role.RECIPE),
        "digest": corpus.train_digest(),
    }
    return json_digest(content, 16)


def nested_subsample(count: int, wanted: int | None) -> list[int]:
    """Return the indices of a subsample of `wanted` of `count` pairs, in corpus order; a larger one contains a smaller.

    It is the same for all runs and seeds, as the seed must not vary the corpus.
    """
    if wanted is None or wanted >= count:
        return list(range(count))
    order = np.random.default_rng(derive(0, "subsample", count)).permutation(count)
    return sorted(order[:wanted].tolist())


def _replace(folder: Path, make: Callable[[Path], None]) -> None:
    """Make the folder anew. Only the holder of its lock comes here: what is half-made was left by a kill."""
    for left in half_written(folder.parent):
        if left.name.startswith(f".{folder.name}."):
            shutil.rmtree(left)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        make(made)
        made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _intact(folder: Path) -> bool:
    try:
        sums: dict[str, str] = read_json(folder / MANIFEST)["sha256"]
        return all(sha256(folder / name) == checksum for name, checksum in sums.items())
    except (OSError, UserError, ValueError, LookupError, TypeError):
        return False


def _make(corpus: Corpus, folder: Path) -> None:
    everything = corpus.as_read(corpus.train_split().pairs)
    valid_pairs = corpus.as_read(corpus.valid_split().pairs[: corpus.valid_pairs])
    valid_spoken = [pair for pair in valid_pairs if all(side.strip() for side in pair)]
    if not valid_spoken:
        raise UserError(f"data={corpus.kind}: the validation set has no pair with both sides")
    chosen = [everything[i] for i in nested_subsample(len(everything), corpus.train_pairs)]
    spoken = [pair for pair in chosen if all(side.strip() for side in pair)]
    tokenizers = _train_tokenizers(corpus, spoken)
    train, overlong = _encode(spoken, tokenizers, max_tokens=corpus.max_tokens)
    valid, _ = _encode(valid_spoken, tokenizers, max_tokens=None)
    if not len(train[0]):
        raise UserError(
            f"data.max_tokens={corpus.max_tokens}: no training pair is left: "
            f"{len(chosen) - len(spoken)} have an empty side, {overlong} are longer"
        )

    names = [*_save(folder, "train", train), *_save(folder, "valid", valid)]
    names += save_tokenizers(folder, tokenizers)
    for side, lines in zip(("src", "tgt"), zip(*valid_spoken, strict=True), strict=True):
        write_lines(folder / f"valid.{side}.txt", lines)
        names.append(f"valid.{side}.txt")
    manifest = {
        "kind": corpus.kind,
        "vocab": [len(tokenizer) for tokenizer in tokenizers],
        "train": {
            "pairs": len(everything),
            "chosen": len(chosen),
            "dropped_empty": len(chosen) - len(spoken),
            "dropped_overlong": overlong,
            "kept": len(train[0]),
            "src_tokens": len(train[0].tokens),
            "tgt_tokens": len(train[1].tokens),
        },
        "valid": {"pairs": len(valid_pairs), "dropped_empty": len(valid_pairs) - len(valid_spoken)},
        "unigram_loss": unigram_loss(train[1], valid[1]),
        **({"scoring": corpus.scoring} if corpus.scoring else {}),
        "sha256": {name: sha256(folder / name) for name in names},
    }
    write_json(folder / MANIFEST, manifest)
    # All files must be on the disk before the folder is renamed.
    for name in names:
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def _train_tokenizers(corpus: Corpus, pairs: Sequence[Pair]) -> tuple[Tokenizer, Tokenizer]:
    if is_file(corpus.tokenizer):
        given = given_tokenizer(Path(corpus.tokenizer).expanduser())
        return given, given
    src, tgt = ([pair[side] for pair in pairs] for side in (0, 1))
    size, kind = corpus.vocab_size, corpus.tokenizer
    if corpus.joint_vocab:
        joint = train_tokenizer([*src, *tgt], size, kind)
        return joint, joint
    return train_tokenizer(src, size, kind), train_tokenizer(tgt, size, kind)


def check_vocabulary(corpus: Corpus) -> None:
    """Raise UserError if the corpus does not support its `vocab_size`; reads all of it and trains a tokenizer."""
    everything = corpus.as_read(corpus.train_split().pairs)
    chosen = [everything[i] for i in nested_subsample(len(everything), corpus.train_pairs)]
    _train_tokenizers(corpus, [pair for pair in chosen if all(side.strip() for side in pair)])


def _encode(
    pairs: Sequence[Pair], tokenizers: tuple[Tokenizer, Tokenizer], *, max_tokens: int | None
) -> tuple[tuple[Sentences, Sentences], int]:
    """Return the ids of both sides, and the number of pairs dropped for a side of over `max_tokens`, end included."""
    src, tgt = (tokenizer.encode([pair[side] for pair in pairs]) for side, tokenizer in enumerate(tokenizers))
    kept = [
        (s, t) for s, t in zip(src, tgt, strict=True) if max_tokens is None or max(len(s), len(t)) + 1 <= max_tokens
    ]
    sides = Sentences.of([s for s, _ in kept]), Sentences.of([t for _, t in kept])
    return sides, len(pairs) - len(kept)


def _save(folder: Path, name: str, sides: tuple[Sentences, Sentences]) -> list[str]:
    return [
        file
        for side, sentences in zip(("src", "tgt"), sides, strict=True)
        for file in sentences.save(folder, f"{name}.{side}")
    ]


def unigram_loss(train: Sentences, valid: Sentences) -> float:
    """Return nats per validation token of a model that knows only the token frequencies of training.

    One is added to the count of every token that occurs, so that the loss of a token new in validation is finite.
    """
    counts = Counter(train.tokens.tolist())
    unseen = set(valid.tokens.tolist()) - set(counts)
    total = len(train.tokens) + len(counts) + len(unseen)
    return -sum(math.log((counts[token] + 1) / total) for token in valid.tokens.tolist()) / len(valid.tokens)
