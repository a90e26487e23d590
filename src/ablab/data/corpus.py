"""The interface of a corpus: splits of sentence pairs, and digests that are known before they are read."""

import abc
import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated

from ablab.errors import UserError
from ablab.fields import EVALUATION, Count, Group

Pair = tuple[str, str]
"""A source sentence and its target sentence, raw."""


SPLITS = {"train": "training", "valid": "validation", "test": "test"}
"""Names of the splits, as in field names -> as in messages."""


@dataclass(frozen=True)
class Split:
    """The sentence pairs of one split. `name` is its name in tables, such as `test_2016_flickr`."""

    name: str
    pairs: list[Pair] = field(repr=False)


class Corpus(Group):
    """A source of parallel text: the fields are its options, the methods read it.

    Everything is lazy. The constructor checks values only. `check` checks that files exist without reading them. The
    digests may read bytes, but decode nothing and avoid the network where possible. The splits return all pairs;
    preparation takes `train_pairs`, `valid_pairs` and `test_pairs` of them, and `check_pairs` checks beforehand that
    there are as many.
    Each kind adds a field `test` that names its test set. Fields have no defaults: those stand only in
    `conf/data/<kind>.yaml`.
    """

    kind: str
    src: str
    tgt: str
    vocab_size: Count
    joint_vocab: bool
    max_tokens: Count
    train_pairs: Count | None
    valid_pairs: Count | None
    test_pairs: Annotated[Count | None, EVALUATION]

    def check(self) -> None:
        """Raise UserError, before anything is written, when a file or a language is missing."""
        if self.src == self.tgt:
            raise UserError(f"data.src and data.tgt must be two languages, got {self.src} for both.")

    def pairs_in(self, split: str) -> int | None:
        """Return the number of pairs of a split; None if only the network could tell. Reads at most what digests do."""
        return None

    def check_pairs(self) -> None:
        """Raise UserError when the options ask for more pairs of a split than `pairs_in` counts."""
        for split in SPLITS:
            if (count := self.pairs_in(split)) is not None:
                self.check_wanted(split, count)

    def check_wanted(self, split: str, count: int) -> None:
        """Raise UserError when the options ask for more than the `count` pairs of a split."""
        wanted: int | None = getattr(self, f"{split}_pairs")
        if wanted is not None and wanted > count:
            raise UserError(
                f"data.{split}_pairs={wanted}: the corpus has {count:,} {SPLITS[split]} pairs; "
                f"allowed: 1 to {count}, or null for all"
            )

    @property
    @abc.abstractmethod
    def test_name(self) -> str:
        """Name of the test set in tables; equals `test_split().name`, and reads nothing."""

    @abc.abstractmethod
    def train_digest(self) -> str:
        """Return the hex SHA-256 of what decides the training and validation text; part of the run's identity."""

    @abc.abstractmethod
    def test_digest(self) -> str:
        """Return the hex SHA-256 of what decides the test text; part of the evaluation's identity."""

    @abc.abstractmethod
    def train_split(self) -> Split:
        """Return all training pairs, in the order of the corpus."""

    @abc.abstractmethod
    def valid_split(self) -> Split:
        """Return the validation pairs."""

    @abc.abstractmethod
    def test_split(self) -> Split:
        """Return the pairs of the test set that `test` names."""


def digest_of(content: object) -> str:
    """Return the hex SHA-256 of plain values, computed from their JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
