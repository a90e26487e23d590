"""Encoded sentences, and the padded batches that are made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from torch import Tensor

from ablab.files.disk import replacing
from ablab.transformer.data.encoding import in_a_row, with_ends
from ablab.transformer.model.tokens import BOS, EOS, PAD

Ids = npt.NDArray[np.int32]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sentences:
    """Encoded sentences, concatenated in `tokens`: sentence i is tokens[offsets[i]:offsets[i + 1]]."""

    tokens: Ids
    offsets: Index

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Sentences":
        """Append end-of-sentence to each sentence and concatenate them."""
        tokens, lengths = with_ends(*in_a_row(sentences))
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(tokens, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Index:
        """Number of tokens of each sentence, end-of-sentence included."""
        return np.diff(self.offsets)

    def first(self, count: int) -> "Sentences":
        """Return the first `count` sentences."""
        return Sentences(self.tokens[: self.offsets[count]], self.offsets[: count + 1])

    def chosen(self, rows: Sequence[int]) -> "Sentences":
        """Return the sentences `rows`, in this order."""
        return Sentences.of([self.tokens[self.offsets[row] : self.offsets[row + 1] - 1].tolist() for row in rows])

    def padded(self, rows: Index) -> Ids:
        """Return the sentences `rows` as a matrix [rows, longest], padded with PAD at the end."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        positions = np.minimum(starts[:, None] + columns, len(self.tokens) - 1)
        return np.where(inside, self.tokens[positions], PAD).astype(np.int32)

    def save(self, folder: Path, name: str) -> list[str]:
        """Write both arrays and return the names of the files."""
        arrays: dict[str, npt.NDArray[Any]] = {
            f"{name}.tokens.npy": self.tokens,
            f"{name}.offsets.npy": self.offsets,
        }
        for file, array in arrays.items():
            with replacing(folder / file) as temporary, temporary.open("wb") as opened:
                write_array_header_1_0(opened, header_data_from_array_1_0(array))
                opened.write(array.data)  # numpy's own writing does not say what the disk answered
        return [*arrays]

    @classmethod
    def load(cls, folder: Path, name: str) -> "Sentences":
        """Map both arrays into memory, which the runs of one machine share."""
        tokens, offsets = (np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in ("tokens", "offsets"))
        return cls(tokens, offsets)


def like_lengths(lengths: Index, batch_tokens: int) -> Iterator[Index]:
    """Yield rows in batches of at most `batch_tokens` padded tokens, or one longer sentence.

    The longest come first, so that a shortage of memory shows at once.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size


class MicroBatch(Protocol):
    """A part of an optimiser step: a named tuple of tensors, some of which a model reads and some of which it predicts.

    `inputs`: what the model is called with. `real`: indices in the flattened labels of the tokens to predict; `tokens`:
    their number. `positions`: of everything that is read or predicted, padding included; `filled`: without it.
    """

    @property
    def inputs(self) -> tuple[Tensor, ...]: ...

    @property
    def labels(self) -> Tensor: ...

    @property
    def real(self) -> Tensor: ...

    @property
    def tokens(self) -> int: ...

    @property
    def positions(self) -> int: ...

    @property
    def filled(self) -> int: ...


class Batch(NamedTuple):
    """A padded batch of sentence pairs. `tgt` starts with BOS; `labels` at i is the token after position i of `tgt`.

    `real`: indices of the tokens in the flattened labels, padding excluded. It is computed before a batch goes to a
    device, so that no step has to wait for the device to return it.
    """

    src: Int[Tensor, "batch src_len"]
    tgt: Int[Tensor, "batch tgt_len"]
    labels: Int[Tensor, "batch tgt_len"]
    real: Int[Tensor, "tokens"]

    @classmethod
    def of(
        cls, src: Int[Tensor, "batch src_len"], tgt: Int[Tensor, "batch tgt_len"], labels: Int[Tensor, "batch tgt_len"]
    ) -> "Batch":
        """Make a batch of tensors on the CPU and compute `real`."""
        return cls(src, tgt, labels, (labels.flatten() != PAD).nonzero().flatten())

    @property
    def tokens(self) -> int:
        """Number of target tokens, with ends of sentences and without padding."""
        return len(self.real)

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        """Source and target so far."""
        return self.src, self.tgt

    @property
    def positions(self) -> int:
        """Number of source and target positions."""
        return self.src.numel() + self.labels.numel()

    @property
    def filled(self) -> int:
        """Number of source and target tokens."""
        return int((self.src != PAD).sum()) + self.tokens


def collate(src: Sentences, tgt: Sentences, rows: Index) -> Batch:
    """Pad the pairs `rows` and return them as a batch on the CPU."""
    labels = torch.from_numpy(tgt.padded(rows)).long()
    begin = torch.full((len(rows), 1), BOS)
    # The decoder input is the labels shifted by one; nothing follows an end of sentence, so it becomes padding.
    shifted = torch.cat([begin, labels[:, :-1]], dim=1)
    shifted = shifted.masked_fill(shifted == EOS, PAD)
    return Batch.of(torch.from_numpy(src.padded(rows)).long(), shifted, labels)


def padding_share_of(batches: Sequence[MicroBatch]) -> float:
    """Return the share of positions that are padding."""
    return 1 - sum(batch.filled for batch in batches) / sum(batch.positions for batch in batches)
