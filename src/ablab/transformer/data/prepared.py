"""Preparation of a corpus for training: subsample, tokenizers, ids; done once and shared by all runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from math import log
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ablab.fields import Role
from ablab.files import json_digest, read_json, read_lines
from ablab.text import Say
from ablab.transformer.data import preparation
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.blocks import Counting, subsample, unseen
from ablab.transformer.data.corpus import Corpus, Pair
from ablab.transformer.data.overlap import Overlap, hashes
from ablab.transformer.data.preparation import KEYS, make
from ablab.transformer.data.tokenizer import Tokenizer, load_tokenizers
from ablab.transformer.data.whole import MANIFEST, temporary, unless_whole
from ablab.transformer.model.tokens import UNK

PREPARATION = 3
"""Version of the preparation; raise it when the same corpus would come out differently, so that it is prepared anew."""


@dataclass(frozen=True)
class Prepared:
    """The folder of a prepared corpus, read on demand. Its name determines its content."""

    folder: Path

    def __getstate__(self) -> dict[str, Path]:
        """Give another process the folder alone, by a path that does not depend on where it runs."""
        return {"folder": self.folder.resolve()}

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

    @property
    def overlap(self) -> Overlap | None:
        """The overlap of validation with training; None for a corpus that was prepared before it was counted."""
        found = self.manifest.get("overlap")
        return None if found is None else Overlap(**found)

    def overlaps(self, pairs: Sequence[Pair]) -> dict[Literal["train", "valid"], Overlap] | None:
        """Return the overlap of other pairs with training and validation; None as for `overlap`, or if it is gone."""
        if not (self.folder / KEYS).is_file():
            return None
        ours = hashes(pairs)
        train = np.load(self.folder / KEYS, mmap_mode="r")
        return {"train": Overlap.between(ours, train), "valid": Overlap.between(ours, hashes(self.valid_text))}

    @cached_property
    def valid_text(self) -> list[Pair]:
        """The raw validation pairs, in the order of `valid`."""
        src, tgt = (read_lines(self.folder / f"valid.{side}.txt") for side in ("src", "tgt"))
        return list(zip(src, tgt, strict=True))

    @cached_property
    def valid_per_character(self) -> "PerCharacter":
        """What makes a loss per token of the validation set one per character of its references."""
        references, texts = self.valid[1], [tgt for _, tgt in self.valid_text]
        count = characters(texts)
        return PerCharacter(
            tokens=len(references.tokens) / count,
            unknown=unknown_nats(self.tokenizers[1], references, texts) / count,
        )


class PerCharacter(NamedTuple):
    """For each character of references: their `tokens`, ends included, and `unknown`, nats of what no token says."""

    tokens: float
    unknown: float

    def __call__(self, loss: float) -> float:
        """Return a loss per token as nats per character, which do not depend on the vocabulary."""
        return loss * self.tokens + self.unknown


SPELT_OUT = log(2 * (0x110000 - 0x800))
"""Nats of a character that a vocabulary lacks: one of all that Unicode can have, and a bit for whether one follows."""


def unknown_nats(tokenizer: Tokenizer, references: Sentences, texts: Sequence[str]) -> float:
    """Return the nats that spell out the unknown tokens of these references, whose texts are given.

    All characters that a vocabulary lacks, however many in a row, are one token, easily predicted: by the loss of
    tokens alone a vocabulary that reads nothing would win. So a run of n is spelt out, in n times SPELT_OUT nats: of N
    characters, runs have probabilities that sum to sum_n N^n (2N)^-n = 1. With those of the tokens they are
    probabilities of texts, whose sum is at most 1: the nats are the length of a code, as without unknown tokens.
    """
    return SPELT_OUT * tokenizer.unknown_characters(texts) if (references.tokens == UNK).any() else 0.0


def characters(lines: Iterable[str]) -> int:
    """Return the number of Unicode characters of raw sentences, without ends of lines."""
    return sum(map(len, lines))


def prepare(corpus: Corpus, store: Path, say: Say, counting: Counting = unseen) -> Prepared:
    """Return the corpus's folder below `store`; prepare it if missing or damaged. Safe in concurrent processes."""
    folder = store / corpus_id(corpus)
    with unless_whole(folder) as made:
        if made is not None:
            say(f"preparing {corpus.kind} {corpus.src}-{corpus.tgt} ...")
            make(corpus, made, counting)
    return Prepared(folder)


def check_vocabulary(corpus: Corpus, store: Path, counting: Counting = unseen) -> None:
    """Raise UserError if the corpus does not support its `vocab_size`; reads all of it and trains a tokenizer."""
    with temporary(store / f"vocabulary-{corpus_id(corpus)}") as made:
        preparation.check_vocabulary(corpus, made, counting)


def corpus_id(corpus: Corpus) -> str:
    """Return 16 hex digits of the digest of everything that decides the prepared corpus."""
    content = {
        "preparation": PREPARATION,
        "sentencepiece": version("sentencepiece"),
        "options": corpus.effective().part(Role.RECIPE),
        **corpus.digests(),
    }
    return json_digest(content, 16)


def nested_subsample(count: int, wanted: int | None) -> list[int]:
    """Return the indices of a subsample of `wanted` of `count` pairs, in corpus order; a larger one contains a smaller.

    It is the same for all runs and seeds, as the seed must not vary the corpus.
    """
    rows: list[int] = subsample(count, wanted).nonzero()[0].tolist()
    return rows
