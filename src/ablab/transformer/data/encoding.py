"""Encoding of blocks of text as arrays of ids, word by word; without torch, as processes of their own do it.

Most words of a text were seen before, and their ids need not be found again. A tokenizer that was trained here has no
piece that spans two words, so that the ids of a sentence are those of its words in a row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ablab.transformer.data.blocks import Block
from ablab.transformer.data.normalization import SPACE
from ablab.transformer.data.overlap import Hashes, hashes
from ablab.transformer.data.tokenizer import Tokenizer, load_tokenizers
from ablab.transformer.model.tokens import EOS, UNK

MOST = 1 << 21
"""Tokens of remembered words, above which all are forgotten: a hundred megabytes with the words."""

Tokens = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
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


def in_a_row(sentences: Sequence[Sequence[int]]) -> tuple[Tokens, Numbers]:
    """Return the tokens of all sentences in a row, and the length of each."""
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    return np.fromiter(chain.from_iterable(sentences), dtype=np.int32, count=int(lengths.sum())), lengths


class WordEncoder:
    """Encodes sentences as `tokenizer` does, which must have been trained on words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._normalise = tokenizer._processor.normalize
        self._of_words = _of_normalised(tokenizer)
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._tokens: Tokens = np.empty(0, dtype=np.int32)
        self._ends: Numbers = np.zeros(1, dtype=np.int64)  # of word n in the tokens: from ends[n] to ends[n + 1]

    def encode(self, sentences: Sequence[str]) -> tuple[Tokens, Numbers]:
        """Return the tokens of all sentences in a row, and the length of each."""
        lines = self._normalise(list(sentences))
        words = "".join(lines).split(SPACE)[1:]
        self._learn(words)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), dtype=np.int64, count=len(words))
        begins = self._ends[numbers]
        sizes = self._ends[numbers + 1] - begins
        before = np.concatenate([[0], np.cumsum(sizes)])  # tokens before each word
        tokens = self._tokens[np.arange(before[-1]) + np.repeat(begins - before[:-1], sizes)]
        counts = np.fromiter((line.count(SPACE) for line in lines), dtype=np.int64, count=len(lines))
        return _joined(tokens, before[np.concatenate([[0], np.cumsum(counts)])])

    def _learn(self, words: Sequence[str]) -> None:
        """Encode the words that are new."""
        if len(self._tokens) > MOST:
            self._forget()
        new = list(set(words).difference(self._numbers))
        tokens, lengths = in_a_row(self._of_words.encode([f"{SPACE}{word}" for word in new]))
        self._numbers.update(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))
        self._tokens = np.concatenate([self._tokens, tokens])
        self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(lengths)])


def _joined(tokens: Tokens, ends: Numbers) -> tuple[Tokens, Numbers]:
    """Join unknown tokens that follow each other, as SentencePiece does; sentence n is from ends[n] to ends[n + 1]."""
    unknown = tokens == UNK
    again = np.zeros(len(tokens), dtype=np.bool_)
    again[1:] = unknown[1:] & unknown[:-1]
    again[ends[:-1][ends[:-1] < len(tokens)]] = False
    left_out = np.concatenate([[0], np.cumsum(again)])[ends]
    return tokens[~again], np.diff(ends - left_out)


def _of_normalised(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer for words that are normalised already."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    content = proto.ModelProto()
    content.ParseFromString(tokenizer.model)
    content.normalizer_spec.Clear()
    content.normalizer_spec.add_dummy_prefix = False
    content.normalizer_spec.remove_extra_whitespaces = False
    return Tokenizer(content.SerializeToString())
