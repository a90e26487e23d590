"""What a language model reads of a corpus, whichever kind: documents, of which sentences of one side are some."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ablab.errors import MachineError, UserError, is_installed
from ablab.transformer.data.blocks import subsample
from ablab.transformer.data.corpus import MODEL, SPLITS, Corpus, Pair, is_file
from ablab.transformer.data.documents.text_corpus import TextCorpus, allowed_tokenizers
from ablab.transformer.data.keys import is_blank
from ablab.transformer.data.text import Text

SIDES = {"src": 0, "tgt": 1}

USUAL = "tgt"
"""The side of a parallel corpus that is read where none is named."""

A_SENTENCE = 60
"""Characters of a sentence, about."""


@dataclass(frozen=True)
class OneSide:
    """One side of a parallel corpus, read as a `TextCorpus` is: each of its sentences is a document."""

    corpus: Corpus

    @property
    def _side(self) -> int:
        return SIDES[self.corpus.side or USUAL]

    @property
    def characters(self) -> int:
        return A_SENTENCE * (self.corpus.pairs_in("train") or 0)

    @property
    def test_names(self) -> list[str]:
        return self.corpus.test_names

    def check(self) -> None:
        # As the sentence pairs that the files hold, without the settings of their translation.
        pairs = {"side": None, "tokenizer": "bpe", "bleu_tokenizer": "13a"}
        self.corpus.model_copy(update=pairs).check()

    def count(self, split: str) -> int | None:
        return self.corpus.pairs_in(split)

    def digests(self) -> dict[str, str]:
        return self.corpus.digests()

    def test_digest(self) -> str:
        return self.corpus.test_digest()

    def documents(self, split: str) -> Iterator[str]:
        if split == "valid":
            yield from self._texts(islice(self.corpus.valid_split().pairs, self.corpus.valid_pairs))
            return
        pairs: Iterator[Pair] = self.corpus.read_train()
        if self.corpus.train_pairs is not None:
            count = self.corpus.pairs_in("train")
            found = list(pairs) if count is None else pairs
            rows = subsample(len(found) if isinstance(found, list) else count or 0, self.corpus.train_pairs).tolist()
            pairs = (pair for pair, chosen in zip(found, rows, strict=True) if chosen)
        yield from self._texts(pairs)

    def tests(self) -> list[tuple[str, Iterator[str]]]:
        splits = self.corpus.test_splits()
        return [(split.name, self._texts(islice(split.pairs, self.corpus.test_pairs))) for split in splits]

    def _texts(self, pairs: Iterator[Pair]) -> Iterator[str]:
        for pair in pairs:
            text = self.corpus.as_read([pair])[0][self._side].strip()
            if not is_blank(text):
                yield text


def text_of(data: Corpus | TextCorpus) -> OneSide | TextCorpus:
    """Return the documents of a corpus."""
    return OneSide(data) if isinstance(data, Corpus) else data


def one_side(data: Corpus | TextCorpus) -> Corpus | TextCorpus:
    """Return a parallel corpus as the text of its target side, unless it names a side."""
    is_open = isinstance(data, Corpus) and data.side is None
    return data.model_copy(update={"side": USUAL}) if is_open else data


def check_texts(data: Corpus | TextCorpus) -> None:
    """Raise UserError, before anything is written, when a file, a library or the tokenizer is missing."""
    _check_tokenizer(data.tokenizer)
    text_of(data).check()


def _check_tokenizer(name: str) -> None:
    if not is_file(name):
        return
    path = Path(name).expanduser()
    library = "tiktoken" if path.suffix == ".tiktoken" else "tokenizers"
    if path.suffix == MODEL:
        raise UserError(f"data.tokenizer={name}: may not give back a text as it was; {allowed_tokenizers()}")
    if not path.is_file():
        raise UserError(f"data.tokenizer={name}: no such file; {allowed_tokenizers()}")
    if not is_installed(library):
        raise MachineError(f"data.tokenizer={name}: {library} is needed; pip install 'ablab[text]' brings it")


def wanted(data: Corpus | TextCorpus, split: str) -> int | None:
    """Return the number of documents of a split that the options ask for; None: all."""
    found: int | None = getattr(data, _count_of(data, split))
    return found


def in_full(data: Corpus | TextCorpus) -> Corpus | TextCorpus:
    """Return a corpus with all documents of validation and test."""
    return data.model_copy(update={_count_of(data, split): None for split in ("valid", "test")})


def _count_of(data: Corpus | TextCorpus, split: str) -> str:
    return f"{split}_{'pairs' if isinstance(data, Corpus) else 'documents'}"


def check_tests(data: Corpus | TextCorpus) -> None:
    """Raise UserError where the test sentences that are asked for, of files that are here, have no text."""
    if not isinstance(data, Text) or data.test_pairs is None:
        return
    if not any(True for _, documents in OneSide(data).tests() for _ in documents):
        raise UserError(
            f"data.test_pairs={data.test_pairs}: none of these has text on the side {data.side or USUAL}; allowed: "
            "more of them, or null for all"
        )


def check_sizes(data: Corpus | TextCorpus) -> None:
    """Raise UserError when the options ask for more documents of a split than there are, as far as that is known."""
    if isinstance(data, Corpus):
        data.check_pairs()
        return
    for split, spoken in SPLITS.items():
        most, asked = data.count(split), wanted(data, split)
        if asked is not None and asked > most:
            raise UserError(
                f"data.{split}_documents={asked}: there are {most:,} {spoken} documents; allowed: 1 to {most}, or null "
                "for all"
            )
