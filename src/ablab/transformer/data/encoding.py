"""Encoding of blocks of text as arrays of ids; without torch, as processes of their own do it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from pathlib import Path

import numpy as np

from ablab.transformer.data.blocks import Block
from ablab.transformer.data.overlap import Hashes, hashes
from ablab.transformer.data.tokenizer import load_tokenizers
from ablab.transformer.data.words import Numbers, Tokens, WordEncoder, in_a_row
from ablab.transformer.model.tokens import EOS

Encode = Callable[[Sequence[str]], tuple[Tokens, Numbers]]


@dataclass(frozen=True)
class EncodingTask:
    """A block of pairs, the folder of the tokenizers, and the most tokens that a side may have, its end included.

    `by_words`: the tokenizers were trained here, so that no piece spans two words.
    """

    block: Block
    tokenizers: Path
    by_words: bool
    max_tokens: int


@dataclass(frozen=True)
class EncodedBlock:
    """Of source and target: the ids of all sentences in a row, each with its end, and the length of each sentence.

    `keys`: hashes of the pairs, to compare others with. `empty` pairs lack a side; `overlong` ones have a side of too
    many tokens. Neither are here.
    """

    sides: list[tuple[Tokens, Numbers]]
    keys: Hashes
    empty: int
    overlong: int


def encode_block(task: EncodingTask) -> EncodedBlock:
    """Encode both sides of a block and leave out overlong pairs."""
    encoders, text = _encoders(task.tokenizers, task.by_words), task.block.sides()
    sides = [encode(side) for encode, side in zip(encoders, text, strict=True)]
    (_, src_lengths), (_, tgt_lengths) = sides
    fits = np.maximum(src_lengths, tgt_lengths) + 1 <= task.max_tokens
    kept = [(tokens[np.repeat(fits, lengths)], lengths[fits]) for tokens, lengths in sides]
    return EncodedBlock(
        sides=[with_ends(tokens, lengths) for tokens, lengths in kept],
        keys=hashes(compress(zip(*text, strict=True), fits)),
        empty=task.block.chosen - len(fits),
        overlong=len(fits) - int(fits.sum()),
    )


@lru_cache(maxsize=1)
def _encoders(folder: Path, by_words: bool) -> tuple[Encode, Encode]:
    src, tgt = load_tokenizers(folder)
    if not by_words:
        return lambda lines: in_a_row(src.encode(lines)), lambda lines: in_a_row(tgt.encode(lines))
    of_src = WordEncoder(src)
    return of_src.encode, of_src.encode if tgt is src else WordEncoder(tgt).encode


def with_ends(tokens: Tokens, lengths: Numbers) -> tuple[Tokens, Numbers]:
    """Append end-of-sentence to each sentence."""
    ended = np.full(len(tokens) + len(lengths), EOS, dtype=np.int32)
    # Each token stands as many places later as sentences have ended before it.
    ended[np.arange(len(tokens)) + np.repeat(np.arange(len(lengths)), lengths)] = tokens
    return ended, lengths + 1
