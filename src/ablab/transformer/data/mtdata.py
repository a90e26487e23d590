"""Any corpus of the mtdata index (Gowda et al. 2021), with test sets of sacrebleu or mtdata; an optional extra.

The index holds nearly 300,000 corpora: mtdata takes about 20 s to build it, once, and 3 s to load it. It is
therefore used only to read sentences, never to check a configuration.
"""

import gzip
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from ablab.errors import UserError, choices
from ablab.fields import EVALUATION, RUNTIME
from ablab.files import one_line
from ablab.transformer.data.corpus import Corpus, OneOrMore, Pair, Split, digest_of, listed
from ablab.transformer.data.keys import has_both_sides
from ablab.transformer.data.text_files import read_pairs


class MtData(Corpus):
    """A corpus of mtdata ids, as `mtdata list` prints them; `valid` and `test` may also be sacrebleu names.

    Ids contain a version. The digests are of the ids and the version of mtdata, which parses the text, not of the text.
    `path` is the folder of downloads, `~/.cache/ablab/mtdata` when null.
    """

    kind: Literal["mtdata"]
    train: list[str]
    valid: str
    test: Annotated[str | list[str], EVALUATION, OneOrMore]
    path: Annotated[str | None, RUNTIME]

    def check(self) -> None:
        """Raise UserError for a missing package, a malformed id, or a test set without these languages."""
        super().check()
        _version()
        if not self.train:
            raise UserError("data.train needs at least one mtdata id, such as Statmt-news_commentary-16-deu-eng.")
        for name in self.train:
            _check_id("train", name)
        for key, name in (("valid", self.valid), *(("test", name) for name in self.test_names)):
            if is_set(name):
                check_set(name, self.src, self.tgt)
            else:
                _check_id(key, name)

    @property
    def test_names(self) -> list[str]:
        """Names of the test sets in sacrebleu or mtdata."""
        return listed(self.test)

    def train_digest(self) -> str:
        """Return the digest of the names of the training and validation corpora and mtdata's version."""
        return digest_of(["mtdata", _version(), self.src, self.tgt, self.train, self.valid])

    def test_digest(self) -> str:
        """Return the digest of the names of the test sets and mtdata's version."""
        names = self.test_names
        return digest_of(["mtdata", _version(), self.src, self.tgt, names[0] if len(names) == 1 else names])

    def is_plain(self) -> bool:
        """Return False: what the text is like is known only once it has been downloaded."""
        return False

    def train_split(self) -> Split:
        """Return the corpora of `train`, concatenated."""
        return self._checked("train", Split("train", [pair for name in self.train for pair in self._read(name)]))

    def valid_split(self) -> Split:
        return self._checked("valid", Split(self.valid, self._held_out(self.valid)))

    def test_splits(self) -> list[Split]:
        return [Split(name, self._held_out(name)) for name in self.test_names]

    def _checked(self, key: str, split: Split) -> Split:
        """Check the number of pairs, known only after reading. Not for test sets: these are read after training."""
        self.check_wanted(key, len(split.pairs))
        return split

    def _held_out(self, name: str) -> list[Pair]:
        if is_set(name):
            return read_set(name, self.src, self.tgt)
        return self._read(name)

    def _read(self, name: str) -> list[Pair]:
        from ablab.transformer.data.kept import cache_folder

        folder = Path(self.path).expanduser() if self.path else cache_folder("mtdata")
        return read(name, self.src, self.tgt, folder)


def read(name: str, src: str, tgt: str, folder: Path) -> list[Pair]:
    """Read one corpus of the index from `folder`, or else from the network; its pairs are ordered (src, tgt).

    Raises UserError for unknown languages or ids, a monolingual corpus, other languages, or a failed download.
    """
    with _quiet_import(folder):
        from mtdata.cache import Cache
        from mtdata.entry import DatasetId
        from mtdata.index import INDEX
        from mtdata.iso.bcp47 import BCP47Tag, bcp47
        from mtdata.parser import Parser

    try:
        languages = bcp47(src), bcp47(tgt)
    except ValueError as error:
        raise UserError(f"mtdata does not know the languages {src}-{tgt}: {error}.") from None
    try:
        entry = INDEX[DatasetId.parse(name)]
    except Exception:  # mtdata raises KeyError, AssertionError, ValueError or Exception for an unknown id
        raise UserError(f"{name} is not in mtdata's index{_nearest(name, INDEX.entries)}.") from None
    if len(entry.did.langs) != 2:
        raise UserError(f"{name} is in one language, {entry.did.lang_str}; parallel text is needed.")
    fits, swapped = BCP47Tag.check_compat_swap(languages, entry.did.langs)
    if not fits:
        raise UserError(f"{name} is in {entry.did.lang_str}, not in data.src={src} and data.tgt={tgt}.")
    try:
        parser = Parser(Cache(folder).get_entry(entry), ext=entry.in_ext or None, ent=entry)
        with _opened_as_plain_files():
            pairs = [(_line(row[0]), _line(row[1])) for row in parser.read_segs(show_pbar=False)]
    except Exception as error:  # network, archive or format: of any type, often an assertion with a number
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"mtdata cannot get {name} from {entry.url}: {reason}.") from None
    if not any(map(has_both_sides, pairs)):
        raise UserError(f"{name}: none of its {len(pairs)} pairs has two sides.")
    return [(second, first) for first, second in pairs] if swapped else pairs


def _line(segment: str | None) -> str:
    """Return a segment as one line: some formats have line ends inside a segment, and None for an empty one."""
    return one_line(segment or "").strip()


@contextmanager
def _opened_as_plain_files() -> Iterator[None]:
    r"""Within the block mtdata reads packed files as it reads plain ones, as UTF-8 with only `\n` ending a line.

    By default mtdata leaves both to Python or to installed programs, so that a `\r` inside a sentence would end a
    line, and the same corpus could have other pairs on another machine.
    """
    import mtdata.utils

    before = dict(mtdata.utils.COMPRESSORS)
    import bz2
    import lzma

    packed: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    mtdata.utils.COMPRESSORS.update({ending: partial(opened, newline="\n") for ending, opened in packed.items()})
    try:
        yield
    finally:
        mtdata.utils.COMPRESSORS.update(before)


def _nearest(name: str, known: Any) -> str:
    """Return `; did you mean a, b?` from ids of the same languages, as comparing with all ids takes seconds."""
    languages = "-".join(name.split("-")[3:])
    ids = [str(did) for did in known if did.lang_str == languages] or [str(did) for did in known]
    near = get_close_matches(name, ids, n=3)
    return f"; did you mean {', '.join(near)}?" if near else "; `mtdata list` prints all ids"


def _check_id(key: str, name: str) -> None:
    if len(name.split("-")) != 5:
        held_out = "" if key == "train" else " nor a test set of sacrebleu"
        raise UserError(
            f"data.{key}={name} is no mtdata id (group-name-version-language-language){held_out}; "
            "`mtdata list -l eng-deu` and `sacrebleu --list` print what there is."
        )


def _version() -> str:
    try:
        return metadata.version("mtdata")
    except metadata.PackageNotFoundError:
        raise UserError("data=mtdata needs the package mtdata: pip install 'ablab[mtdata]'") from None


@contextmanager
def _quiet_import(folder: Path) -> Iterator[None]:
    """Import mtdata within the block: set $MTDATA, below which it writes its index, and restore the root logger."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}.") from None
    os.environ.setdefault("MTDATA", str(folder))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def is_set(name: str) -> bool:
    """Return whether sacrebleu has a test set of this name."""
    from sacrebleu.dataset import DATASETS

    return name in DATASETS


def check_set(name: str, src: str, tgt: str) -> None:
    """Raise UserError when the test set lacks these languages in this direction."""
    from sacrebleu.dataset import DATASETS

    pairs = DATASETS[name].langpairs
    if f"{src}-{tgt}" not in pairs:
        raise UserError(f"{name} has no {src}-{tgt}; {choices(f'{src}-{tgt}', pairs)}.")


def read_set(name: str, src: str, tgt: str) -> list[Pair]:
    """Return the pairs of a test set, with the first of several references; downloads missing files.

    Raises UserError for a missing language pair, a failed download or a wrong checksum.
    """
    from sacrebleu.utils import get_reference_files, get_source_file

    check_set(name, src, tgt)
    langpair = f"{src}-{tgt}"
    try:
        files = get_source_file(name, langpair), get_reference_files(name, langpair)[0]
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"sacrebleu cannot download {name} {langpair}: {reason}.") from None
    except SystemExit:  # sacrebleu logs a wrong checksum, then exits
        raise UserError(f"sacrebleu refused what it downloaded for {name} {langpair}; see above.") from None
    return read_pairs(Path(files[0]), Path(files[1]))
