"""A corpus of the user's own parallel files, two by prefix or one with both sides."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ablab.errors import UserError
from ablab.fields import RUNTIME, Count, Formerly, as_typed
from ablab.transformer.data.corpus import Corpus, OneOrMore, Pair, Split, digest_of, joint_digest, listed
from ablab.transformer.data.kept import kept
from ablab.transformer.data.normalization import is_plain
from ablab.transformer.data.splitting import HeldOut, hold_out
from ablab.transformer.data.text_files import JSONL, Table, count_pairs, digest_of_pair, is_table, locate, stream_pairs


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

Prefix = Annotated[str | None, RUNTIME]
"""Path prefix `folder/name` of the files `folder/name.<lang>`, or the path of one file with both languages.

A runtime option, as the digests cover the content.
"""

Prefixes = Annotated[Annotated[str | list[str], OneOrMore] | None, RUNTIME]
"""One path prefix or a list of them."""

HELD_OUT = ("valid", "test")


class Text(Corpus):
    """Parallel files by prefix: `data.train=corpus/train` reads `corpus/train.en` and `corpus/train.de`.

    A path that ends with .tsv or .jsonl is one file with both sides; `columns` names its JSON fields, by default the
    languages. `split`: sizes of the validation set, and of the test set, to be taken from the training files; whatever
    is not split off needs a prefix of its own. Prefixes default to null only because no path could be guessed.
    """

    kind: Literal["text"]
    train: Prefix
    valid: Prefix
    test: Prefixes
    columns: Annotated[Annotated[list[str], Field(min_length=2, max_length=2)] | None, RUNTIME, Formerly(None)]
    split: Annotated[Annotated[list[Count], Field(min_length=1, max_length=2)] | None, Formerly(None)]

    def check(self) -> None:
        """Raise UserError for a missing prefix or file, or one test set under two prefixes."""
        super().check()
        for key in ("train", *HELD_OUT):
            if key in self._cut and getattr(self, key) is not None:
                raise UserError(
                    f"data.{key}={getattr(self, key)}: data.split takes the {key} pairs from data.train; allowed: "
                    f"one of the two{', such as data.split=[SIZE] for validation alone' * (key == 'test')}"
                )
            self._sources(key)
        prefixes = [prefix for key in ("train", *HELD_OUT) if key not in self._cut for prefix in self._prefixes(key)]
        if self.columns is not None and not any(prefix.endswith(JSONL) for prefix in prefixes):
            raise UserError(f"data.columns={as_typed(self.columns)}: names fields of .jsonl files, and there are none")
        places = [source.paths[0].resolve() for source in self._sources("test")]
        if len(set(places)) < len(places):
            raise UserError(f"data.test=[{','.join(self._prefixes('test'))}]: allowed: each test set once")

    @property
    def _cut(self) -> tuple[str, ...]:
        """The splits that are taken from the training files."""
        return HELD_OUT[: len(self.split or ())]

    @property
    def test_names(self) -> list[str]:
        """The last component of each prefix; with as many folders before it as tell the prefixes apart."""
        if "test" in self._cut:
            return [f"{Path(self._prefixes('train')[0]).name}.test"]
        paths = [Path(prefix).parts for prefix in self._prefixes("test")]
        names = [["/".join(path[-depth:]) for path in paths] for depth in range(1, max(map(len, paths)) + 1)]
        return next((each for each in names if len(set(each)) == len(each)), names[-1])

    def train_digest(self) -> str:
        """Return the digest of the sentences of the training and validation files."""
        keys = [key for key in ("train", "valid") if key not in self._cut]
        return digest_of([source.digest() for key in keys for source in self._sources(key)] + self._twins())

    def test_digest(self) -> str:
        """Return the digest of the sentences of the test files."""
        digest = joint_digest([source.digest() for source in self._sources("test")])
        of_split = {"split": self.split, "of": digest, **({"rule": self._twins()} if self._twins() else {})}
        return digest_of(of_split) if "test" in self._cut else digest

    def is_plain(self) -> bool:
        """Return whether the usual rule changes none of the files of training and validation, white space apart."""
        keys = [key for key in ("train", "valid") if key not in self._cut]
        return all(_is_plain(source) for key in keys for source in self._sources(key))

    def pairs_in(self, split: str) -> int:
        """Return the number of lines of each file; UserError if the two differ."""
        if self.split is not None and split in ("train", *self._cut):
            return self._left()[0] if split == "train" else len(self._part(split))
        return min(source.count() for source in self._sources(split))

    def train_split(self) -> Split:
        return Split(Path(self._prefixes("train")[0]).name + ".train" * bool(self._cut), list(self.read_train()))

    def read_train(self) -> Iterator[Pair]:
        (source,) = self._sources("train")
        return filter(self._held().leaves, source.stream()) if self._cut else source.stream()

    def valid_split(self) -> Split:
        return self._split("valid")

    def test_splits(self) -> list[Split]:
        if "test" in self._cut:
            return [self._split("test")]
        named = zip(self.test_names, self._sources("test"), strict=True)
        return [Split(name, source.pairs()) for name, source in named]

    def _split(self, key: str) -> Split:
        if key in self._cut:
            return Split(f"{Path(self._prefixes('train')[0]).name}.{key}", self._part(key))
        ((prefix, source),) = zip(self._prefixes(key), self._sources(key), strict=True)
        return Split(Path(prefix).name, source.pairs())

    def _part(self, key: str) -> list[Pair]:
        """Return the pairs that are taken from the training files for validation or test."""
        return list(self._held().parts[HELD_OUT.index(key)])

    def _held(self) -> HeldOut:
        (source,) = self._sources("train")
        return _held_out(source, source.digest(), tuple(self.split or ()))

    def _left(self) -> tuple[int, int]:
        """Return the number of pairs that `split` leaves to train on, and that of the twins that it leaves out."""
        (source,) = self._sources("train")

        def count() -> list[int]:
            held, left, twins = self._held(), 0, 0
            for pair in source.stream():
                left += held.leaves(pair)
                twins += held.is_twin(pair)
            return [left, twins]

        left, twins = kept(source.paths, ("left, twins", source.digest(), list(self.split or ())), count)
        return int(left), int(twins)

    def _twins(self) -> list[str]:
        """Return the rule by which twins are split, where the text has some: elsewhere it changes nothing."""
        return ["twins together"] if self._cut and self._left()[1] else []

    def _sources(self, key: str) -> list[Source]:
        """Return what is read for each prefix."""
        is_split = bool(self._cut) and key in ("train", *self._cut)
        found: list[Source] = []
        for prefix in self._prefixes("train" if key in self._cut else key):
            try:
                source = self._source(prefix)
            except UserError as error:
                raise UserError(f"data.{key}={prefix}: {error}") from None
            found.append(Lowered(source) if is_split and self.lowercase else source)
        return found

    def _source(self, prefix: str) -> TwoFiles | Table:
        if not is_table(prefix):
            return TwoFiles(locate(prefix, self.src), locate(prefix, self.tgt))
        first, second = self.columns or (self.src, self.tgt)
        table = Table(Path(prefix).expanduser(), (first, second))
        table.check()
        return table

    def _prefixes(self, key: str) -> list[str]:
        given: str | list[str] | None = getattr(self, key)
        prefixes = listed(given or "")
        if not all(prefixes):
            or_split = "" if key == "train" else "; data.split=[VALID,TEST] takes so many pairs from data.train instead"
            raise UserError(
                f"data.{key} is needed, a path without the language, such as data.{key}=corpus/{key} "
                f"for corpus/{key}.{self.src} and corpus/{key}.{self.tgt}, plain or .gz, or a .tsv or .jsonl file"
                f"{or_split}."
            )
        return prefixes


def _is_plain(source: Source) -> bool:
    (found,) = kept(source.paths, ("plain", source.digest()), lambda: [is_plain(chain.from_iterable(source.stream()))])
    return bool(found)


@lru_cache(maxsize=1)
def _held_out(source: Source, digest: str, sizes: tuple[int, ...]) -> HeldOut:
    """Split once for all who ask in a row; `digest` tells one content of the files from another."""
    return hold_out(source.stream(), sizes)
