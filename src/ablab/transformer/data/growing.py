"""Arrays of encoded sentences that are written part by part, in the format of `Sentences.save`."""

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from ablab.files.disk import naming


class GrowingArray:
    """A file in numpy's format for an array of one dimension, whose length is written when it is closed."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0
        self._file = path.open("wb")
        self._write_header()
        self._begin = self._file.tell()

    def append(self, part: npt.NDArray[Any]) -> None:
        """Write more of the array."""
        assert part.dtype == self.dtype
        with naming(self.path):
            self._file.write(np.ascontiguousarray(part).data)
        self.length += len(part)

    def close(self) -> None:
        """Write the length, for which numpy leaves room in its header."""
        with naming(self.path), self._file:
            self._file.seek(0)
            self._write_header()
            assert self._file.tell() == self._begin

    def _write_header(self) -> None:
        facts = {"descr": dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        write_array_header_1_0(self._file, facts)


class GrowingSentences:
    """The two files of `Sentences`, written while the sentences are encoded."""

    def __init__(self, folder: Path, name: str) -> None:
        self.files = [f"{name}.tokens.npy", f"{name}.offsets.npy"]
        self._tokens = GrowingArray(folder / self.files[0], np.int32)
        self._offsets = GrowingArray(folder / self.files[1], np.int64)
        self._offsets.append(np.zeros(1, dtype=np.int64))

    def append(self, tokens: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> None:
        """Add sentences: their tokens in a row, and their lengths."""
        self._offsets.append(self._tokens.length + np.cumsum(lengths))
        self._tokens.append(tokens)

    def __enter__(self) -> "GrowingSentences":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tokens.close()
        self._offsets.close()
