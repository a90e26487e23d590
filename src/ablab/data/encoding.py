"""Encoding of blocks of text as arrays of ids; without torch, as processes of their own do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ablab.data.blocks import Block
from ablab.data.tokenizer import Tokenizer, load_tokenizers
from ablab.model.tokens import EOS


@dataclass(frozen=True)
class EncodingTask:
    """A block of pairs, the folder of the tokenizers, and the most tokens that a side may have, its end included."""

    block: Block
    tokenizers: Path
    max_tokens: int


@dataclass(frozen=True)
class EncodedBlock:
    """Of source and target: the ids of all sentences in a row, each with its end, and the length of each sentence.

    `empty` pairs lack a side; `overlong` ones have a side of too many tokens. Neither are here.
    """

    tokens: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
    lengths: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    empty: int
    overlong: int


def encode_block(task: EncodingTask) -> EncodedBlock:
    """Encode both sides of a block and leave out overlong pairs."""
    sides = task.block.sides()
    spoken = len(sides[0])
    src, tgt = (tokenizer.encode(side) for tokenizer, side in zip(_tokenizers(task.tokenizers), sides, strict=True))
    fits = [max(len(s), len(t)) + 1 <= task.max_tokens for s, t in zip(src, tgt, strict=True)]
    (src_tokens, src_lengths), (tgt_tokens, tgt_lengths) = (in_a_row(list(compress(side, fits))) for side in (src, tgt))
    return EncodedBlock(
        tokens=(src_tokens, tgt_tokens),
        lengths=(src_lengths, tgt_lengths),
        empty=task.block.chosen - spoken,
        overlong=spoken - sum(fits),
    )


@lru_cache(maxsize=1)
def _tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    return load_tokenizers(folder)


def in_a_row(sentences: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Append end-of-sentence to each sentence and concatenate them; return the tokens and the lengths."""
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    total = int(lengths.sum())
    tokens = np.full(total + len(sentences), EOS, dtype=np.int32)
    # Each token stands as many places later as sentences have ended before it.
    places = np.arange(total) + np.repeat(np.arange(len(sentences)), lengths)
    tokens[places] = np.fromiter(chain.from_iterable(sentences), dtype=np.int32, count=total)
    return tokens, lengths + 1
