"""A corpus of the user's own parallel files."""

from pathlib import Path
from typing import Annotated, Literal

from ablab.data.corpus import Corpus, OneOrMore, Split, digest_of, joint_digest, listed
from ablab.data.text_files import count_pairs, digest_of_pair, locate, read_pairs
from ablab.errors import UserError
from ablab.fields import RUNTIME

Prefix = Annotated[str | None, RUNTIME]
"""Path prefix `folder/name` of the files `folder/name.<lang>`; a runtime option, as the digests cover their content."""

Prefixes = Annotated[Annotated[str | list[str], OneOrMore] | None, RUNTIME]
"""One path prefix or a list of them."""


class Text(Corpus):
    """Parallel files by prefix: `data.train=corpus/train` reads `corpus/train.en` and `corpus/train.de`.

    All three prefixes are required; they default to null only because no path could be guessed.
    """

    kind: Literal["text"]
    train: Prefix
    valid: Prefix
    test: Prefixes

    def check(self) -> None:
        """Raise UserError for a missing prefix or file, or one test set under two prefixes."""
        super().check()
        for key in ("train", "valid", "test"):
            self._files(key)
        places = [source.resolve() for source, _ in self._files("test")]
        if len(set(places)) < len(places):
            raise UserError(f"data.test=[{','.join(self._prefixes('test'))}]: allowed: each test set once")

    @property
    def test_names(self) -> list[str]:
        """The last component of each prefix; with as many folders before it as tell the prefixes apart."""
        paths = [Path(prefix).parts for prefix in self._prefixes("test")]
        names = [["/".join(path[-depth:]) for path in paths] for depth in range(1, max(map(len, paths)) + 1)]
        return next((each for each in names if len(set(each)) == len(each)), names[-1])

    def train_digest(self) -> str:
        """Return the digest of the sentences of the training and validation files."""
        return digest_of([digest_of_pair(*files) for key in ("train", "valid") for files in self._files(key)])

    def test_digest(self) -> str:
        """Return the digest of the sentences of the test files."""
        return joint_digest([digest_of_pair(*files) for files in self._files("test")])

    def pairs_in(self, split: str) -> int:
        """Return the number of lines of each file; UserError if the two differ."""
        return min(count_pairs(*files) for files in self._files(split))

    def train_split(self) -> Split:
        return self._split("train")

    def valid_split(self) -> Split:
        return self._split("valid")

    def test_splits(self) -> list[Split]:
        named = zip(self.test_names, self._files("test"), strict=True)
        return [Split(name, read_pairs(*files)) for name, files in named]

    def _split(self, key: str) -> Split:
        ((prefix, files),) = zip(self._prefixes(key), self._files(key), strict=True)
        return Split(Path(prefix).name, read_pairs(*files))

    def _files(self, key: str) -> list[tuple[Path, Path]]:
        """Return the files of both languages, for each prefix."""
        found = []
        for prefix in self._prefixes(key):
            try:
                found.append((locate(prefix, self.src), locate(prefix, self.tgt)))
            except UserError as error:
                raise UserError(f"data.{key}={prefix}: {error}") from None
        return found

    def _prefixes(self, key: str) -> list[str]:
        given: str | list[str] | None = getattr(self, key)
        prefixes = listed(given or "")
        if not all(prefixes):
            raise UserError(
                f"data.{key} is needed, a path without the language, such as data.{key}=corpus/{key} "
                f"for corpus/{key}.{self.src} and corpus/{key}.{self.tgt}, plain or .gz."
            )
        return prefixes
