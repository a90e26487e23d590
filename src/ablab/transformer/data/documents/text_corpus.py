"""Corpora of documents: their splits, given or held out by content, and digests known before they are prepared."""

import abc
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from ablab.errors import UserError
from ablab.fields import EVALUATION, RUNTIME, Count, Group, ReadIf
from ablab.transformer.data.blocks import subsample
from ablab.transformer.data.corpus import (
    FILES_OF_TEXT,
    OF_TEXT,
    SIZED,
    SPLITS,
    OneOrMore,
    digest_of,
    is_file,
    joint_digest,
    learns,
    listed,
    with_digest,
)
from ablab.transformer.data.kept import kept
from ablab.transformer.data.keys import key

HELD_OUT = ("valid", "test")


def _tokenizer(value: str) -> str:
    if value not in OF_TEXT and not value.endswith(FILES_OF_TEXT):
        raise ValueError(allowed_tokenizers())
    return value


def allowed_tokenizers() -> str:
    """Return the words of an error about `data.tokenizer`."""
    return f"allowed: {', '.join(OF_TEXT)}, or the path of a file such as tokenizer.json or gpt2.tiktoken"


Names = Annotated[Annotated[str | list[str], OneOrMore] | None, RUNTIME]
"""Places of a split. Runtime options, as the digests cover the documents."""

PartShare = Annotated[float, Field(gt=0, lt=1)]


class Facts(NamedTuple):
    """The digest of the documents of a split, their number, and that of their characters."""

    digest: str
    documents: int
    characters: int


class TextCorpus(Group):
    """A source of documents: the fields are its options, the methods read it.

    As parallel corpora do, it declares its fields without defaults, and checks files before it reads them. `valid` and
    `test` name documents of their own, or else `valid_share` and `test_share` of the training documents are held out:
    those whose text has the largest and the smallest hashes, so that equal documents are in one part and a larger share
    contains a smaller. Where training is one document, these are its last parts, the test part at the end.
    `train_documents`: size of a nested subsample. `overlap`: what becomes of training documents that are, or nearly
    are, in validation or test.
    """

    kind: str
    train: Names
    valid: Names
    test: Names
    valid_share: Annotated[PartShare, ReadIf(("valid",), lambda valid: valid is None, "data.valid=null")]
    test_share: Annotated[PartShare, ReadIf(("test",), lambda test: test is None, "data.test=null")]
    tokenizer: Annotated[str, AfterValidator(_tokenizer)]
    vocab_size: Annotated[int, Field(ge=4), ReadIf(("tokenizer",), learns, "data.tokenizer=bpe, unigram, char")]
    hard_vocab_limit: Annotated[
        bool, RUNTIME, ReadIf(("tokenizer",), lambda tokenizer: tokenizer in SIZED, "data.tokenizer=bpe, unigram")
    ]
    overlap: Literal["keep", "drop"]
    train_documents: Count | None
    valid_documents: Count | None
    test_documents: Annotated[Count | None, EVALUATION]

    @abc.abstractmethod
    def check_places(self) -> None:
        """Raise UserError, before anything is written, when a file or a library is missing."""

    @abc.abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the documents of these places in order, empty ones left out."""

    @abc.abstractmethod
    def paths(self, names: Sequence[str]) -> list[Path]:
        """Return the files behind these places: what was found out of them is kept while they stay as they are."""

    @abc.abstractmethod
    def reading(self, names: Sequence[str]) -> Sequence[str | None]:
        """Return what decides which documents these places have of their files."""

    @abc.abstractmethod
    def name_of(self, place: str) -> str:
        """Return the name of a test set in tables."""

    def __str__(self) -> str:
        """Return the kind, which says enough of it in an error."""
        return self.kind

    def effective(self) -> Group:
        """Return the corpus with the digest of an existing tokenizer for its path."""
        return self.model_copy(update={"tokenizer": with_digest(self.tokenizer)}) if is_file(self.tokenizer) else self

    def check(self) -> None:
        """Raise UserError, before anything is written, when a file is missing or nothing is left to train on."""
        if not self._places("train"):
            raise UserError(
                "data.train is needed: files of text, a folder or a pattern, such as data.train=texts/*.txt"
            )
        if sum(self._shares) >= 1:
            raise UserError(
                f"data.valid_share={self.valid_share:g} and data.test_share={self.test_share:g}: nothing is left to "
                "train on; allowed: less than 1 together"
            )
        self.check_places()

    @property
    def _shares(self) -> tuple[float, float]:
        """Shares of the training documents that are held out for validation and test."""
        return (self.valid_share if self.valid is None else 0.0, self.test_share if self.test is None else 0.0)

    def _places(self, split: str) -> list[str]:
        return listed(getattr(self, split) or [])

    @property
    def test_names(self) -> list[str]:
        """Name of each test set in tables."""
        names = [self.name_of(place) for place in self._places("test")] or ["test"]
        return names if len(set(names)) == len(names) else self._places("test")

    def facts(self, names: Sequence[str]) -> Facts:
        """Return digest and sizes of the documents of these places, read once while the files stay as they are."""

        def find() -> list[str | int]:
            digest, documents, characters = hashlib.sha256(), 0, 0
            for document in self.read(names):
                content = document.encode()
                digest.update(len(content).to_bytes(8, "big") + content)
                documents += 1
                characters += len(document)
            return [digest.hexdigest(), documents, characters]

        found = Facts(*kept(self.paths(names), ("documents", *self.reading(names)), find))
        if not found.documents:
            raise UserError(f"{', '.join(names)}: no document with anything to read")
        return found

    def train_digest(self) -> str:
        """Return the digest of what decides the training and validation text."""
        names = [self._places("train"), *([self._places("valid")] if self.valid is not None else [])]
        return digest_of([self.facts(each).digest for each in names])

    def test_digest(self) -> str:
        """Return the digest of what decides the test text."""
        if self.test is not None:
            return joint_digest([self.facts([place]).digest for place in self._places("test")])
        return digest_of({"share": self.test_share, "of": self.facts(self._places("train")).digest})

    def digests(self) -> dict[str, str]:
        """Return the digests of what decides training and selection: of test text where it is dropped."""
        dropped = {"dropped": self.test_digest()} if self.overlap == "drop" else {}
        return {"digest": self.train_digest(), **dropped}

    def count(self, split: str) -> int:
        """Return the number of documents of a split; of the smallest of several test sets."""
        if split == "test" and self.test is not None:
            return min(self.facts([place]).documents for place in self._places("test"))
        if getattr(self, split) is not None and (split != "train" or not any(self._shares)):
            return self.facts(self._places(split)).documents
        return self._sizes()[tuple(SPLITS).index(split)]

    @property
    def characters(self) -> int:
        """Number of characters of the training files."""
        return self.facts(self._places("train")).characters

    def documents(self, split: str) -> Iterator[str]:
        """Yield the documents of training or validation, as many as the options ask for."""
        wanted: int | None = getattr(self, f"{split}_documents")
        if split != "train" or wanted is None:
            yield from _first(self._all(split), wanted)
            return
        rows = subsample(self.count("train"), wanted)
        yield from (document for document, chosen in zip(self._all(split), rows.tolist(), strict=True) if chosen)

    def tests(self) -> list[tuple[str, Iterator[str]]]:
        """Return the name of each test set, and its documents, as many as the options ask for."""
        sets = [self._all("test")] if self.test is None else [self.read([place]) for place in self._places("test")]
        return [(name, _first(found, self.test_documents)) for name, found in zip(self.test_names, sets, strict=True)]

    def _all(self, split: str) -> Iterator[str]:
        if split != "train" and getattr(self, split) is not None:
            return self.read(self._places(split))
        whole = self.read(self._places("train"))
        if not any(self._shares):
            return whole
        if self.facts(self._places("train")).documents == 1:
            return iter([self._parts(next(whole))[split]])
        bounds = self._bounds()
        return (document for document in whole if _split_of(document, bounds) == split)

    def _parts(self, document: str) -> dict[str, str]:
        """Cut the only document into training, validation and test, in this order."""
        valid, test = self._shares
        first, second = int(len(document) * (1 - valid - test)), int(len(document) * (1 - test))
        parts = {"train": document[:first], "valid": document[first:second], "test": document[second:]}
        held = [split for split, share in zip(HELD_OUT, self._shares, strict=True) if share]
        for split in ("train", *held):
            if not parts[split].strip():
                raise UserError(f"data.train: its only document of {len(document)} characters leaves none for {split}")
        return parts

    def _bounds(self) -> tuple[int, int]:
        """Return the hash below which a document is for test, and that from which it is for validation."""

        def find() -> list[int]:
            hashes = sorted({_hash(document) for document in self.read(self._places("train"))})
            valid, test = (max(1, round(share * len(hashes))) if share else 0 for share in self._shares)
            if valid + test >= len(hashes):
                raise UserError(
                    f"data.train: {len(hashes)} different documents are too few to hold out {valid + test}; allowed: "
                    "more of them (data.separator), or data.valid and data.test"
                )
            return [hashes[test], hashes[len(hashes) - valid] if valid else 1 << 64]

        places = self._places("train")
        below, above = kept(self.paths(places), ("bounds", *self.reading(places), *self._shares), find)
        return below, above

    def _sizes(self) -> tuple[int, int, int]:
        """Return how many documents of the training files are for training, validation and test."""

        def find() -> list[int]:
            bounds = self._bounds()
            splits = [_split_of(document, bounds) for document in self.read(places)]
            return [splits.count(split) for split in SPLITS]

        places = self._places("train")
        if self.facts(places).documents == 1:
            return 1, 1, 1
        train, valid, test = kept(self.paths(places), ("sizes", *self.reading(places), *self._shares), find)
        return train, valid, test


def _first(documents: Iterator[str], wanted: int | None) -> Iterator[str]:
    for number, document in enumerate(documents):
        if wanted is not None and number >= wanted:
            return
        yield document


def _split_of(document: str, bounds: tuple[int, int]) -> str:
    found = _hash(document)
    return "test" if found < bounds[0] else "valid" if found >= bounds[1] else "train"


def _hash(document: str) -> int:
    return int.from_bytes(hashlib.blake2b(key(document).encode(), digest_size=8).digest(), "big")
