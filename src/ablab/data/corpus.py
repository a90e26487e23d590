"""What a corpus is to the rest of the house: named sentence pairs, and a digest that is known beforehand."""

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
"""As the fields call them, and as people do."""


@dataclass(frozen=True)
class Split:
    """Sentence pairs of one split. `name` is what a table calls it, such as `test_2016_flickr`."""

    name: str
    pairs: list[Pair] = field(repr=False)


class Corpus(Group):
    """One source of parallel text: its options (the fields) and how to read it (the methods).

    Everything is lazy. Constructing it checks values only; `check` looks at files without reading them; the
    digests may read bytes, but decode nothing and never touch the network if that can be avoided; the splits
    deliver all they have: who prepares the corpus takes `train_pairs`, `valid_pairs` and `test_pairs` of it, and
    `check_pairs` says beforehand whether there are so many.
    Each kind adds a field `test` that names its test set, and has no defaults: `conf/data/<kind>.yaml` is the
    one place for those.
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
        """How many pairs a split has; None where only the network could tell. Reads what the digests read, or less."""
        return None

    def check_pairs(self) -> None:
        """Raise UserError when more pairs of a split are asked for than it has, as far as that is known beforehand."""
        for split in SPLITS:
            if (count := self.pairs_in(split)) is not None:
                self.check_wanted(split, count)

    def check_wanted(self, split: str, count: int) -> None:
        """Raise UserError when more pairs of a split are asked for than the `count` that it has."""
        wanted: int | None = getattr(self, f"{split}_pairs")
        if wanted is not None and wanted > count:
            raise UserError(
                f"data.{split}_pairs={wanted}: the corpus has {count:,} {SPLITS[split]} pairs; "
                f"allowed: 1 to {count}, or null for all"
            )

    @property
    @abc.abstractmethod
    def test_name(self) -> str:
        """What a table calls the test set; equals `test_split().name`, and reads nothing."""

    @abc.abstractmethod
    def train_digest(self) -> str:
        """Hex SHA-256 of what decides the training and validation text; part of the run's identity."""

    @abc.abstractmethod
    def test_digest(self) -> str:
        """Hex SHA-256 of what decides the test text; part of the evaluation's identity."""

    @abc.abstractmethod
    def train_split(self) -> Split:
        """All training pairs, in the corpus's own order."""

    @abc.abstractmethod
    def valid_split(self) -> Split:
        """The validation pairs."""

    @abc.abstractmethod
    def test_split(self) -> Split:
        """The pairs of the test set named by `test`."""


def digest_of(content: object) -> str:
    """Hex SHA-256 of plain values, by their JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
