"""The built-in corpus: numbers in words, from num2words and a seed; no file, no network."""

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import metadata, util
from pathlib import Path
from random import Random
from typing import Annotated, Literal

from ablab.data import number_sentences as sentences
from ablab.data.corpus import Corpus, Pair, Split, digest_of
from ablab.errors import UserError, choices
from ablab.fields import EVALUATION, Count


class Numbers(Corpus):
    """Spelled-out cardinals, years, ordinals and sums of money in two languages.

    `corpus_seed` decides the text; the run's seed never does. No source and no target sentence occurs twice,
    neither within a split nor in two of them. The splits are drawn one after the other, training first: a
    longer test set changes nobody's training, and begins with the shorter one.
    """

    kind: Literal["numbers"]
    train_size: Count
    valid_size: Count
    test_size: Annotated[Count, EVALUATION]
    corpus_seed: int
    test: Annotated[Literal["test"], EVALUATION]

    def check(self) -> None:
        """Raise UserError for a language that num2words has not."""
        super().check()
        known = _languages()
        for key, language in (("src", self.src), ("tgt", self.tgt)):
            if language not in known:
                raise UserError(f"data.{key}={language} is unknown to num2words; {choices(language, known)}.")

    @property
    def test_name(self) -> str:
        """There is one test set."""
        return self.test

    def train_digest(self) -> str:
        """Of the options that decide training and validation text, and the versions of who says them."""
        return digest_of([*self._origin(), self.train_size, self.valid_size])

    def test_digest(self) -> str:
        """Of all options that decide the test text; the other splits' too, as it avoids their sentences."""
        return digest_of([*self._origin(), self.train_size, self.valid_size, self.test_size])

    def pairs_in(self, split: str) -> int:
        """As many as are made."""
        return {"train": self.train_size, "valid": self.valid_size, "test": self.test_size}[split]

    def train_split(self) -> Split:
        """`train_size` pairs."""
        return Split("train", list(self._pairs()[: self.train_size]))

    def valid_split(self) -> Split:
        """`valid_size` pairs."""
        return Split("valid", list(self._pairs()[self.train_size : self.train_size + self.valid_size]))

    def test_split(self) -> Split:
        """`test_size` pairs."""
        return Split(self.test, list(self._pairs()[self.train_size + self.valid_size :]))

    def _pairs(self) -> tuple[Pair, ...]:
        size = self.train_size + self.valid_size + self.test_size
        return _generated(self.src, self.tgt, self.corpus_seed, size)

    def _origin(self) -> list[str | int]:
        versions: list[str | int] = ["numbers", sentences.VERSION, _speller_version()]
        return [*versions, self.src, self.tgt, self.corpus_seed]


@cache
def _speller_version() -> str:
    """Looked up once: a plan of a thousand runs would read the package's description three thousand times."""
    return metadata.version("num2words")


@lru_cache(maxsize=2)
def _generated(src: str, tgt: str, seed: int, size: int) -> tuple[Pair, ...]:
    """The first `size` distinct pairs; remembered, as the three splits are asked for one by one."""
    rng = Random(f"ablab numbers {seed}")
    stream = _distinct(sentences.sentences(rng, sentences.speller(src), sentences.speller(tgt)))
    return tuple(pair for pair, _ in zip(stream, range(size), strict=False))


def _distinct(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Only pairs of which neither side has occurred before."""
    sources: set[str] = set()
    targets: set[str] = set()
    misses = 0
    for source, target in pairs:
        if source in sources or target in targets:
            misses += 1
            if misses > sentences.MAX_MISSES:
                raise UserError(f"no more than {len(sources)} different sentences of numbers were found.")
            continue
        misses = 0
        sources.add(source)
        targets.add(target)
        yield source, target


@cache
def _languages() -> frozenset[str]:
    """What num2words speaks, read off its file names: importing it would cost every `--help` its patience."""
    spec = util.find_spec("num2words")
    if spec is None or spec.origin is None:
        raise UserError("data=numbers needs num2words: pip install num2words.")
    stems = (path.stem.removeprefix("lang_") for path in Path(spec.origin).parent.glob("lang_*.py"))
    parts = (stem.split("_", 1) for stem in stems)
    spoken = {"_".join([language.lower(), *region]) for language, *region in parts}
    return frozenset(spoken - {"eu"})  # no language, but what several share
