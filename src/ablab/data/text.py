"""A corpus of the user's own parallel files."""

from pathlib import Path
from typing import Annotated, Literal

from ablab.data.corpus import Corpus, Split, digest_of
from ablab.data.text_files import count_pairs, digest_of_pair, locate, read_pairs
from ablab.errors import UserError
from ablab.fields import RUNTIME

Prefix = Annotated[str | None, RUNTIME]
"""Path prefix `folder/name` of the files `folder/name.<lang>`; a runtime option, as the digests cover their content."""


class Text(Corpus):
    """Parallel files by prefix: `data.train=corpus/train` reads `corpus/train.en` and `corpus/train.de`.

    All three prefixes are required; they default to null only because no path could be guessed.
    """

    kind: Literal["text"]
    train: Prefix
    valid: Prefix
    test: Prefix

    def check(self) -> None:
        """Raise UserError for a missing prefix or file."""
        super().check()
        for key in ("train", "valid", "test"):
            self._files(key)

    @property
    def test_name(self) -> str:
        """Last component of the prefix."""
        return self._name("test")

    def train_digest(self) -> str:
        """Return the digest of the sentences of the training and validation files."""
        return digest_of([digest_of_pair(*self._files("train")), digest_of_pair(*self._files("valid"))])

    def test_digest(self) -> str:
        """Return the digest of the sentences of the test files."""
        return digest_of_pair(*self._files("test"))

    def pairs_in(self, split: str) -> int:
        """Return the number of lines of each file; UserError if the two differ."""
        return count_pairs(*self._files(split))

    def train_split(self) -> Split:
        return self._split("train")

    def valid_split(self) -> Split:
        return self._split("valid")

    def test_split(self) -> Split:
        return self._split("test")

    def _split(self, key: str) -> Split:
        return Split(self._name(key), read_pairs(*self._files(key)))

    def _files(self, key: str) -> tuple[Path, Path]:
        prefix = self._prefix(key)
        try:
            return locate(prefix, self.src), locate(prefix, self.tgt)
        except UserError as error:
            raise UserError(f"data.{key}={prefix}: {error}") from None

    def _name(self, key: str) -> str:
        return Path(self._prefix(key)).name

    def _prefix(self, key: str) -> str:
        prefix: str | None = getattr(self, key)
        if not prefix:
            raise UserError(
                f"data.{key} is needed, a path without the language, such as data.{key}=corpus/{key} "
                f"for corpus/{key}.{self.src} and corpus/{key}.{self.tgt}, plain or .gz."
            )
        return prefix
