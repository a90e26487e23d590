"""What a corpus is to the rest of the house: named sentence pairs, and a digest that is known beforehand."""

import abc
from dataclasses import dataclass, field
from typing import Annotated

from ablab.fields import EVALUATION, Count, Group

Pair = tuple[str, str]
"""A source sentence and its target sentence, raw."""


@dataclass
class Split:
    """Sentence pairs of one split. `name` is what a table calls it, such as `test_2016_flickr`."""

    name: str
    pairs: list[Pair] = field(repr=False)


class Corpus(Group):
    """One source of parallel text: its options (the fields) and how to read it (the methods).

    Everything is lazy. Constructing it checks values only; `check` looks at files without reading them;
    `train_digest` and `test_digest` may read bytes, but decode nothing; `train`, `valid` and `test` deliver.
    """

    kind: str
    src: str
    tgt: str
    vocab_size: Count
    joint_vocab: bool
    max_tokens: Count
    train_pairs: Count | None
    test: Annotated[str, EVALUATION]

    @abc.abstractmethod
    def check(self) -> None:
        """Raise UserError, before anything is written, when a file or a language is missing."""

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
