"""Encoding of documents, a part of the text at a time, by all cores and without torch; counts to learn from."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ablab.transformer.data.documents.tokenizers import TextTokenizer, load_tokenizer
from ablab.transformer.data.keys import key, near_key
from ablab.transformer.data.normalization import SPACE
from ablab.transformer.data.vocabulary import RESERVED

PART = 1 << 20
"""Characters of a part of the text, or one longer document."""

Numbers = npt.NDArray[np.int64]


def parts_of(documents: Iterable[str]) -> Iterator[list[str]]:
    """Yield the documents in parts."""
    part: list[str] = []
    size = 0
    for document in documents:
        part.append(document)
        size += len(document)
        if size >= PART:
            yield part
            part, size = [], 0
    if part:
        yield part


def count_characters(documents: Sequence[str]) -> Counter[str]:
    """Return how often each character occurs."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(document)
    return counts


_WORD = re.compile(rf"[^\s\0{SPACE}{RESERVED}]+")
"""Words without what SentencePiece gives a meaning of its own: that, and white space but spaces, is cut into bytes."""


def count_words(documents: Sequence[str]) -> dict[str, int]:
    """Return how often each word occurs."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(_WORD.findall(document))
    return dict(counts)


@dataclass(frozen=True)
class EncodingPart:
    """A part of the text, and the folder of the tokenizer."""

    folder: Path
    documents: Sequence[str]


@dataclass(frozen=True)
class EncodedPart:
    """The tokens of some documents in a row, each with its end.

    Of each document: `lengths` in tokens, `sizes` in bytes, `unknown` characters, and its `keys` [documents * 2], by
    which it is compared with others. `inexact`: how many documents do not come back from their tokens, for
    another reason than unknown characters.
    """

    tokens: npt.NDArray[Any]
    lengths: Numbers
    sizes: Numbers
    unknown: Numbers
    keys: npt.NDArray[np.uint64]
    inexact: int


def encode_part(task: EncodingPart) -> EncodedPart:
    """Encode a part in a process of its own."""
    return encoded(_tokenizer(task.folder), task.documents)


def encoded(tokenizer: TextTokenizer, documents: Sequence[str]) -> EncodedPart:
    """Encode documents."""
    ids = tokenizer.encode_all(documents)
    end = np.array([tokenizer.end], dtype=dtype_of(tokenizer))
    ended = [piece for each in ids for piece in (each.astype(end.dtype), end)]
    return EncodedPart(
        tokens=np.concatenate([*ended, end[:0]]),
        lengths=_numbers(len(each) + 1 for each in ids),
        sizes=_numbers(len(document.encode()) for document in documents),
        unknown=_numbers(map(tokenizer.unknown_in, ids)),
        keys=hashes(documents),
        inexact=0 if tokenizer.is_exact else sum(map(ne, _decoded(tokenizer, ids), documents)),
    )


def given_back(tokenizer: TextTokenizer, documents: Sequence[str]) -> Sequence[str]:
    """Return what is left of documents in their tokens: all but unknown characters, unless the tokenizer is inexact."""
    return documents if tokenizer.is_exact else [*_decoded(tokenizer, tokenizer.encode_all(documents))]


def _decoded(tokenizer: TextTokenizer, ids: Sequence[npt.NDArray[Any]]) -> Iterator[str]:
    return map(tokenizer.decode, map(_plain, ids))


def _plain(ids: npt.NDArray[Any]) -> list[int]:
    found: list[int] = ids.tolist()
    return found


def hashes(documents: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return the hashes of the keys and near keys of documents, [documents * 2], by which they are compared."""
    return np.array([_hash(text) for each in documents for text in (key(each), near_key(each))], dtype=np.uint64)


def dtype_of(tokenizer: TextTokenizer) -> npt.DTypeLike:
    """Return the type of the stored ids: two bytes where they suffice."""
    return np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32


def _numbers(values: Iterable[int]) -> Numbers:
    return np.fromiter(values, dtype=np.int64)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@lru_cache(maxsize=1)
def _tokenizer(folder: Path) -> TextTokenizer:
    return load_tokenizer(folder)
