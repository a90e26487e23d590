"""What one path prefix stands for: two parallel files, one file with both sides, or either of them in lower case."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ablab.transformer.data.corpus import Pair, digest_of
from ablab.transformer.data.tables import Table
from ablab.transformer.data.text_files import count_pairs, digest_of_pair, stream_pairs


@dataclass(frozen=True)
class TwoFiles:
    """Two parallel files."""

    src: Path
    tgt: Path

    def digest(self) -> str:
        return digest_of_pair(self.src, self.tgt)

    def count(self) -> int:
        return count_pairs(self.src, self.tgt)

    def pairs(self) -> list[Pair]:
        return list(self.stream())

    def stream(self) -> Iterator[Pair]:
        return stream_pairs(self.src, self.tgt)

    @property
    def paths(self) -> list[Path]:
        return [self.src, self.tgt]


@dataclass(frozen=True)
class Lowered:
    """A source in lower case. A split must see it so: else sentences that case alone tells apart get into two parts."""

    of: TwoFiles | Table

    def digest(self) -> str:
        return digest_of({"lowercase": self.of.digest()})

    def count(self) -> int:
        return self.of.count()

    def pairs(self) -> list[Pair]:
        return list(self.stream())

    def stream(self) -> Iterator[Pair]:
        return ((source.lower(), target.lower()) for source, target in self.of.stream())

    @property
    def paths(self) -> list[Path]:
        return self.of.paths


Source = TwoFiles | Table | Lowered
