"""Sentences as ids, end-of-sentence included, in two flat arrays: cheap to store, to map and to batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ablab.model.tokens import EOS, PAD

Ids = npt.NDArray[np.int32]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sentences:
    """`tokens` holds all sentences one after the other; sentence i is tokens[offsets[i]:offsets[i + 1]]."""

    tokens: Ids
    offsets: Index

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Sentences":
        """Append end-of-sentence to each, and join."""
        lengths = [len(sentence) + 1 for sentence in sentences]
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        tokens = np.full(offsets[-1], EOS, dtype=np.int32)
        for start, sentence in zip(offsets, sentences, strict=False):
            tokens[start : start + len(sentence)] = sentence
        return cls(tokens, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Index:
        """Tokens of each sentence, its end included."""
        return np.diff(self.offsets)

    def first(self, count: int) -> "Sentences":
        """The first `count` of them."""
        return Sentences(self.tokens[: self.offsets[count]], self.offsets[: count + 1])

    def chosen(self, rows: Sequence[int]) -> "Sentences":
        """Some of them, in this order."""
        return Sentences.of([self.tokens[self.offsets[row] : self.offsets[row + 1] - 1].tolist() for row in rows])

    def padded(self, rows: Index) -> Ids:
        """The sentences `rows` as a matrix [rows, longest], filled up with PAD at the end."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        positions = np.minimum(starts[:, None] + columns, len(self.tokens) - 1)
        return np.where(inside, self.tokens[positions], PAD).astype(np.int32)

    def save(self, folder: Path, name: str) -> list[str]:
        """Write both arrays; returns the names of the files."""
        files = [f"{name}.tokens.npy", f"{name}.offsets.npy"]
        np.save(folder / files[0], self.tokens)
        np.save(folder / files[1], self.offsets)
        return files

    @classmethod
    def load(cls, folder: Path, name: str) -> "Sentences":
        """Mapped into memory: runs on one machine share it."""
        tokens, offsets = (np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in ("tokens", "offsets"))
        return cls(tokens, offsets)
