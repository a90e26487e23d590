"""Encoded documents on disk, mapped into memory, so that a text of any size takes little of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ablab.transformer.data.documents.encoding import EncodedPart, Numbers, dtype_of, encoded
from ablab.transformer.data.documents.tokenizers import TextTokenizer
from ablab.transformer.data.growing import GrowingArray


@dataclass(frozen=True)
class Shard:
    """Encoded documents in a row: document i is tokens[starts[i]:starts[i + 1]], of which the last is its end.

    Of each document: `sizes`, the bytes of its text in UTF-8, and `unknown`, its characters without an id.
    """

    tokens: npt.NDArray[Any]
    starts: Numbers
    sizes: Numbers
    unknown: Numbers

    @classmethod
    def of(cls, tokenizer: TextTokenizer, documents: Sequence[str]) -> "Shard":
        """Encode documents in memory."""
        found = encoded(tokenizer, documents)
        starts = np.concatenate([[0], np.cumsum(found.lengths)]).astype(np.int64)
        return cls(found.tokens, starts, found.sizes, found.unknown)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Numbers:
        """Number of tokens of each document, its end included."""
        return np.diff(self.starts)

    def first(self, count: int) -> "Shard":
        """Return the first `count` documents."""
        end = self.starts[min(count, len(self))]
        return Shard(self.tokens[:end], self.starts[: count + 1], self.sizes[:count], self.unknown[:count])

    def document(self, number: int) -> npt.NDArray[Any]:
        """Return the tokens of a document, without its end."""
        return self.tokens[self.starts[number] : self.starts[number + 1] - 1]

    @classmethod
    def load(cls, folder: Path, name: str) -> "Shard":
        """Map the arrays into memory, which the runs of one machine share."""
        return cls(**{part.name: np.load(folder / f"{name}.{part.name}.npy", mmap_mode="r") for part in fields(cls)})


class GrowingShard:
    """The files of a shard, written while its documents are encoded."""

    def __init__(self, folder: Path, name: str, tokenizer: TextTokenizer) -> None:
        self.tokens = GrowingArray(folder / f"{name}.tokens.npy", dtype_of(tokenizer))
        self.starts, self.sizes, self.unknown = (
            GrowingArray(folder / f"{name}.{part}.npy", np.int64) for part in ("starts", "sizes", "unknown")
        )
        self.starts.append(np.zeros(1, dtype=np.int64))

    @property
    def arrays(self) -> Sequence[GrowingArray]:
        return self.tokens, self.starts, self.sizes, self.unknown

    @property
    def files(self) -> list[str]:
        """Names of the files."""
        return [array.path.name for array in self.arrays]

    def append(self, part: EncodedPart) -> None:
        self.starts.append(self.tokens.length + np.cumsum(part.lengths))
        self.tokens.append(part.tokens)
        self.sizes.append(part.sizes)
        self.unknown.append(part.unknown)

    def __enter__(self) -> "GrowingShard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for array in self.arrays:
            array.close()
