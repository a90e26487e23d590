"""The Multi30k corpus (Elliott et al. 2016): image captions in four languages, 29,000 training pairs."""

import logging
import os
import tempfile
from itertools import product
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BeforeValidator

from ablab.errors import UserError, choices
from ablab.fields import EVALUATION, RUNTIME
from ablab.files.disk import publish
from ablab.transformer.data.corpus import Corpus, OneOrMore, Split, digest_of, joint_digest, listed
from ablab.transformer.data.text_files import CHUNK, content_digest, count_pairs, locate, read_pairs

Language = Literal["en", "de", "fr", "cs"]
TestSet = Literal["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]

TEST_LANGUAGES = {
    "test_2016_flickr": ("cs", "de", "en", "fr"),
    "test_2017_flickr": ("de", "en", "fr"),
    "test_2017_mscoco": ("de", "en", "fr"),
    "test_2018_flickr": ("cs", "de", "en", "fr"),
}

LAYOUTS = ("", "data/task1/raw")
"""Places of the files below `data.path`: directly in it, or as in a clone of the official repository."""

CHECKSUMS = {
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    "test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    "test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    "test_2017_mscoco.de": "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
    "test_2017_mscoco.en": "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
    "test_2017_mscoco.fr": "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
}
"""SHA-256 of the sentences, whatever the compression and line ends. Files not listed must come from `data.path`."""


SIZES = {
    "train": 29_000,
    "val": 1_014,
    "test_2016_flickr": 1_000,
    "test_2017_flickr": 1_000,
    "test_2017_mscoco": 461,
    "test_2018_flickr": 1_071,
}
"""Number of pairs in the official files."""


def _official(names: str | list[str]) -> str | list[str]:
    """Check names, after `OneOrMore` and before the type, whose error would name each of its parts."""
    for name in listed(names):
        if name not in TEST_LANGUAGES:
            raise ValueError(choices(name, TEST_LANGUAGES))
    return names


class Multi30k(Corpus):
    """Multi30k from a folder, or downloaded from the official repository to the user's cache.

    A folder may hold other text than the official files, so the digests are of its content. Without a folder the
    digests are of the known checksums, so that planning a study downloads nothing.
    """

    kind: Literal["multi30k"]
    src: Language
    tgt: Language
    test: Annotated[TestSet | list[TestSet], EVALUATION, BeforeValidator(_official), OneOrMore]
    path: Annotated[str | None, RUNTIME]
    url: Annotated[str, RUNTIME]

    def check(self) -> None:
        """Raise UserError for a test set without one of the languages, or a file that is neither local nor known."""
        super().check()
        for test, language in product(self.test_names, (self.src, self.tgt)):
            if language not in TEST_LANGUAGES[test]:
                raise UserError(
                    f"data.test={test} does not exist in {language}, only in "
                    f"{', '.join(TEST_LANGUAGES[test])}; in {language} there are "
                    f"{', '.join(name for name, has in TEST_LANGUAGES.items() if language in has)}."
                )
        for split in ("train", "val", *self.test_names):
            for language in (self.src, self.tgt):
                self._local(split, language) if self.path else _checksum(split, language)

    @property
    def test_names(self) -> list[str]:
        """The official names of the test sets."""
        return listed(self.test)

    def train_digest(self) -> str:
        """Return the digest of the sentences of the training and validation files."""
        return digest_of([self._digest("train"), self._digest("val")])

    def test_digest(self) -> str:
        """Return the digest of the sentences of the test files."""
        return joint_digest([self._digest(name) for name in self.test_names])

    def is_plain(self) -> bool:
        """Return True for the official files, where a test holds it; those in a folder may be others."""
        return self.path is None or super().is_plain()

    def pairs_in(self, split: str) -> int:
        """Return the number of lines of the files in the folder; without a folder, of the official files."""
        names = {"train": ["train"], "valid": ["val"], "test": self.test_names}[split]
        if not self.path:
            return min(SIZES[name] for name in names)
        return min(count_pairs(self._local(name, self.src), self._local(name, self.tgt)) for name in names)

    def train_split(self) -> Split:
        """Return the training pairs, 29,000 in the official files."""
        return self._split("train")

    def valid_split(self) -> Split:
        """Return the validation pairs: `val` in the official files, 1,014 pairs."""
        return self._split("val")

    def test_splits(self) -> list[Split]:
        """Return the pairs of each test set: 1,000 in the official files, 461 for mscoco, 1,071 for 2018."""
        return [self._split(name) for name in self.test_names]

    def _split(self, split: str) -> Split:
        return Split(split, read_pairs(self._file(split, self.src), self._file(split, self.tgt)))

    def _digest(self, split: str) -> str:
        return digest_of(
            [
                content_digest(self._local(split, language)) if self.path else _checksum(split, language)
                for language in (self.src, self.tgt)
            ]
        )

    def _file(self, split: str, language: str) -> Path:
        return self._local(split, language) if self.path else self._cached(split, language)

    def _local(self, split: str, language: str) -> Path:
        folder = Path(self.path or "").expanduser()
        if not folder.is_dir():
            raise UserError(f"data.path={self.path} is not a folder.")
        inner = next((layout for layout in reversed(LAYOUTS) if (folder / layout).is_dir()), "")
        try:
            return locate(folder / inner / split, language)
        except UserError as error:
            raise UserError(f"data.path={self.path}: {error}") from None

    def _cached(self, split: str, language: str) -> Path:
        from ablab.transformer.data.kept import cache_folder

        path = cache_folder("multi30k") / f"{split}.{language}.gz"
        checksum = _checksum(split, language)
        try:
            if not _intact(path, checksum):
                fetch(f"{self.url}/{path.name}", path, checksum)
        except UserError as error:
            raise UserError(
                f"{error} Where the files are at hand, name their folder: data.path=<folder of {path.name}>."
            ) from None
        return path


def _intact(path: Path, checksum: str) -> bool:
    try:
        return content_digest(path) == checksum
    except UserError:  # absent, or cut short by a full disk: a download repairs both
        return False


def _checksum(split: str, language: str) -> str:
    name = f"{split}.{language}"
    if name not in CHECKSUMS:
        raise UserError(
            f"{name} of Multi30k is not downloaded, as its checksum is not known here: "
            "clone https://github.com/multi30k/dataset and name its folder, data.path=<folder>."
        )
    return CHECKSUMS[name]


TIMEOUT = 30
"""Seconds without a byte before a download fails."""

log = logging.getLogger(__name__)


def fetch(url: str, target: Path, checksum: str) -> None:
    """Download `url` to `target`, which is written only if its sentences have this SHA-256; else raise UserError.

    Two processes may fetch the same file at once: each writes a file of its own, and the last rename wins.
    """
    import http.client  # only a download needs them, and lists of runs are to be quick
    import urllib.error

    log.info("downloading %s", url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".part-", suffix=target.suffix)
    except OSError as error:
        raise UserError(f"{target.parent} cannot be written: {error.strerror or error}.") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _stream(url, file)
        if (received := content_digest(part)) != checksum:
            raise UserError(f"its text has SHA-256 {received[:12]}..., expected {checksum[:12]}...")
        publish(part, target)
    except urllib.error.HTTPError as error:
        error.close()
        raise UserError(f"{url} cannot be downloaded: the server says {error.code} {error.reason}.") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise UserError(f"{url} cannot be downloaded: {reason}.") from None
    except UserError as error:
        raise UserError(f"{url} came damaged: {str(error).replace(str(part), 'it')}") from None
    finally:
        part.unlink(missing_ok=True)


def _stream(url: str, file: IO[bytes]) -> None:
    import urllib.request

    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        expected, received = answer.headers.get("Content-Length"), 0
        while chunk := answer.read(CHUNK):
            received += file.write(chunk)
        if expected is not None and received < int(expected):
            raise UserError(f"{received} of {expected} bytes arrived.")
