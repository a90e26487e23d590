"""The interface of a corpus: splits of sentence pairs, and digests that are known before they are read."""

import abc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, model_validator

from ablab.errors import UserError
from ablab.fields import EVALUATION, RUNTIME, Count, Formerly, Group, ReadIf
from ablab.transformer.data.normalization import IDENTITY, USUAL, Rule, is_plain
from ablab.transformer.data.scoring import NEEDS, is_installed, tokenizer_of

Pair = tuple[str, str]
"""A source sentence and its target sentence, raw."""


SPLITS = {"train": "training", "valid": "validation", "test": "test"}
"""Names of the splits, as in field names -> as in messages."""


TRAINED = ("bpe", "char")
"""Kinds of SentencePiece models that preparation trains."""

MODEL = ".model"

OF_TEXT = ("bpe", "unigram", "char", "byte")
"""Tokenizers of plain text, without a file."""

FILES_OF_TEXT = (".json", ".tiktoken")
"""Endings of the files of existing tokenizers of plain text, as the libraries `tokenizers` and `tiktoken` read them."""


_plain: dict[tuple[type, str], bool] = {}
"""Answers of `Corpus.is_plain`: a study asks for each of its runs."""


EXTRA_TOKENS = 50
"""Tokens by which a translation may exceed its source, unless the tokenizer needs more."""


def extra_tokens(tokenizer: str, max_tokens: int) -> int:
    """Return by how many tokens a translation may exceed its source: of characters, by as many as a target may have.

    Subwords of two languages are about as many; a Chinese sentence has a fourth of the characters of an English one.
    """
    return max(EXTRA_TOKENS, max_tokens) if tokenizer == "char" else EXTRA_TOKENS


def is_file(tokenizer: str) -> bool:
    """Return whether a value of `data.tokenizer` is the path of a model."""
    return tokenizer.endswith((MODEL, *FILES_OF_TEXT))


def learns(tokenizer: str) -> bool:
    """Return whether a tokenizer takes its vocabulary from the text, so that `data.vocab_size` has an effect."""
    return tokenizer != "byte" and not is_file(tokenizer)


def _tokenizer(value: str) -> str:
    if value not in (*TRAINED, *OF_TEXT) and not is_file(value):
        raise ValueError(
            f"{_OF_PAIRS}; for task=language_model: {', '.join(OF_TEXT)}, or a file such as tokenizer.json"
        )
    return value


_OF_PAIRS = f"allowed: {', '.join(TRAINED)}, or the path of a SentencePiece model, such as spm{MODEL}"


def with_digest(tokenizer: str) -> str:
    """Return the digest of an existing tokenizer, with the ending of its file, for its path."""
    path = Path(tokenizer).expanduser()
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}{path.suffix}"


def _check_model(path: str, *, joint: bool) -> None:
    if not Path(path).expanduser().is_file():
        raise UserError(f"data.tokenizer={path}: no such file; allowed: a SentencePiece model, {', '.join(TRAINED)}")
    if not joint:
        raise UserError(f"data.tokenizer={path}: one vocabulary for both languages; allowed: data.joint_vocab=true")


@dataclass(frozen=True)
class Split:
    """The sentence pairs of one split. `name` is its name in tables, such as `test_2016_flickr`."""

    name: str
    pairs: list[Pair] = field(repr=False)


SIZED = ("bpe", "unigram")
"""Tokenizers that fail where the text does not support `data.vocab_size`."""

OF_BOTH_SIDES = ReadIf(("side",), lambda side: side is None, "task=translation")
"""Marks what one side alone, the text of a language model, gives no effect."""


_NORMALISED = ReadIf(
    ("tokenizer", "side"),
    lambda tokenizer, side: side is None and not is_file(tokenizer),
    f"task=translation and data.tokenizer={', '.join(TRAINED)}",
)


class Corpus(Group):
    """A source of parallel text: the fields are its options, the methods read it.

    Everything is lazy. The constructor checks values only. `check` checks that files exist without reading them. The
    digests may read bytes, but decode nothing and avoid the network where possible. The splits return all pairs;
    preparation takes `train_pairs`, `valid_pairs` and `test_pairs` of them, and `check_pairs` checks beforehand that
    there are as many.
    Each kind adds a field `test` that names its test set, or a list of them: together they are one test set, and
    `test_pairs` is taken of each. Fields have no defaults: those stand only in `conf/data/<kind>.yaml`.
    `hard_vocab_limit`: refuse a `vocab_size` that the text does not support, or else take the nearest that it does. It
    is runtime: where both train, they train the same. `tokenizer`: the kind of SentencePiece model to train, or the
    path of one; `normalization`: the rule of one that is trained. `overlap`: what becomes of training pairs whose
    source is in validation or test, or nearly so. `bleu_tokenizer`: sacrebleu's; null is replaced by that of the target
    language, so that a record names the one that was used. `side`: the one that a language model reads as text, each
    sentence as a document; null: both, as sentence pairs.
    """

    kind: str
    src: str
    tgt: str
    side: Annotated[Literal["src", "tgt"] | None, Formerly(None)]
    vocab_size: Annotated[int, Field(ge=4), ReadIf(("tokenizer",), learns, f"data.tokenizer={', '.join(TRAINED)}")]
    hard_vocab_limit: Annotated[
        bool,
        RUNTIME,
        Formerly(True),
        ReadIf(("tokenizer",), lambda tokenizer: tokenizer in SIZED, "data.tokenizer=bpe"),
    ]
    joint_vocab: Annotated[bool, OF_BOTH_SIDES]
    max_tokens: Annotated[Count, OF_BOTH_SIDES]
    tokenizer: Annotated[str, AfterValidator(_tokenizer), Formerly("bpe")]
    normalization: Annotated[Rule, Formerly(USUAL), _NORMALISED]
    lowercase: Annotated[bool, Formerly(False)]
    overlap: Annotated[Literal["keep", "drop"], Formerly("keep")]
    bleu_tokenizer: Annotated[
        Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"], Formerly("13a"), OF_BOTH_SIDES
    ]
    train_pairs: Count | None
    valid_pairs: Count | None
    test_pairs: Annotated[Count | None, EVALUATION]

    @model_validator(mode="before")
    @classmethod
    def _name_the_bleu_tokenizer(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("bleu_tokenizer", "") is not None:
            return values
        target = values.get("tgt")
        return {**values, "bleu_tokenizer": tokenizer_of(target if isinstance(target, str) else "")}

    def check(self) -> None:
        """Raise UserError, before anything is written, when a file or a language is missing."""
        if self.side is not None:
            raise UserError(f"data.side={self.side}: task=translation reads both sides; allowed: null")
        if self.tokenizer not in TRAINED and not self.tokenizer.endswith(MODEL):
            raise UserError(f"data.tokenizer={self.tokenizer}: {_OF_PAIRS}")
        if self.src == self.tgt:
            raise UserError(f"data.src and data.tgt must be two languages, got {self.src} for both.")
        if is_file(self.tokenizer):
            _check_model(self.tokenizer, joint=self.joint_vocab)
        if not is_installed(self.bleu_tokenizer):
            modules, language = " and ".join(NEEDS[self.bleu_tokenizer]), self.bleu_tokenizer.partition("-")[0]
            raise UserError(
                f"data.bleu_tokenizer={self.bleu_tokenizer}: {modules} are needed; "
                f"allowed: pip install 'sacrebleu[{language}]', or data.bleu_tokenizer=char"
            )

    def effective(self) -> Group:
        """Return the corpus with its rule of normalisation, or the digest of an existing tokenizer for its path."""
        if is_file(self.tokenizer):
            return self.model_copy(update={"tokenizer": with_digest(self.tokenizer)})
        return self.model_copy(update={"normalization": self.rule}) if self.is_read("normalization") else self

    @property
    def rule(self) -> Rule:
        """The rule by which tokenizers that are trained here normalise.

        `auto` gives back what it was given: it is the usual rule where that changes nothing, else the identity.
        """
        if self.normalization != "auto":
            return self.normalization
        return USUAL if self.is_plain() else IDENTITY

    def is_plain(self) -> bool:
        """Return whether the usual rule leaves training and validation text as it is, white space apart.

        Known before the corpus is prepared, as the digests are. A corpus that needs the network for that says no.
        """
        digest = (type(self), self.train_digest())
        if digest not in _plain:
            pairs = chain(self.read_train(), self.valid_split().pairs)
            _plain[digest] = is_plain(chain.from_iterable(pairs))
        return _plain[digest]

    @property
    def scoring(self) -> dict[str, Any]:
        """The settings of scores that differ from sacrebleu's usual ones, by field of scoring.Scoring."""
        chosen = {"tokenizer": self.bleu_tokenizer, "lowercase": self.lowercase}
        usual = {"tokenizer": "13a", "lowercase": False}
        return {key: value for key, value in chosen.items() if value != usual[key]}

    def as_read(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs as they are trained on and scored: in lower case, if that is asked for."""
        return [(source.lower(), target.lower()) for source, target in pairs] if self.lowercase else list(pairs)

    def pairs_in(self, split: str) -> int | None:
        """Return the number of pairs of a split, of the smallest of several test sets.

        None if only the network could tell. Reads at most what digests do.
        """
        return None

    def check_pairs(self) -> None:
        """Raise UserError when the options ask for more pairs of a split than `pairs_in` counts."""
        for split in SPLITS:
            if (count := self.pairs_in(split)) is not None:
                self.check_wanted(split, count)

    def check_wanted(self, split: str, count: int) -> None:
        """Raise UserError when the options ask for more than the `count` pairs of a split."""
        wanted: int | None = getattr(self, f"{split}_pairs")
        if wanted is not None and wanted > count:
            having = "the smallest test set" if split == "test" and len(self.test_names) > 1 else "the corpus"
            raise UserError(
                f"data.{split}_pairs={wanted}: {having} has {count:,} {SPLITS[split]} pairs; "
                f"allowed: 1 to {count}, or null for all"
            )

    @property
    def test_name(self) -> str:
        """Name of the test set in tables, such as `test_2016_flickr + test_2017_flickr`."""
        return " + ".join(self.test_names)

    @property
    @abc.abstractmethod
    def test_names(self) -> list[str]:
        """Name of each test set in tables, in the order of `test`; no two are equal, and nothing is read."""

    def digests(self) -> dict[str, str]:
        """Return the digests of what decides the training text and the selection: of test text where it is dropped."""
        dropped = {"dropped": self.test_digest()} if self.overlap == "drop" else {}
        return {"digest": self.train_digest(), **dropped}

    @abc.abstractmethod
    def train_digest(self) -> str:
        """Return the hex SHA-256 of what decides the training and validation text; part of the run's identity."""

    @abc.abstractmethod
    def test_digest(self) -> str:
        """Return the hex SHA-256 of what decides the test text; part of the evaluation's identity."""

    @abc.abstractmethod
    def train_split(self) -> Split:
        """Return all training pairs, in the order of the corpus."""

    def read_train(self) -> Iterator[Pair]:
        """Yield all training pairs, in the order of the corpus; a corpus on disk need not hold them in memory."""
        yield from self.train_split().pairs

    @abc.abstractmethod
    def valid_split(self) -> Split:
        """Return the validation pairs."""

    def test_split(self) -> Split:
        """Return the pairs of all test sets, one after the other."""
        return Split(self.test_name, [pair for split in self.test_splits() for pair in split.pairs])

    @abc.abstractmethod
    def test_splits(self) -> list[Split]:
        """Return the pairs of each test set that `test` names, in this order."""


def _of_pairs(data: object) -> object:
    if not isinstance(data, Corpus):
        raise ValueError("allowed: a corpus of sentence pairs with task=translation")
    return data


Parallel = Annotated[InstanceOf[Corpus], BeforeValidator(_of_pairs)]
"""A field that holds a corpus of sentence pairs, and says so of one that holds other text."""


OUTSIDE_THE_VOCABULARY = ("data.max_tokens", "data.bleu_tokenizer", "data.valid_pairs")
"""Fields of a recipe's `data` that decide no tokenizer."""


def text_settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `data.*` of a flat recipe, with what it leaves out since that was so before there was a field."""
    later = {f"data.{name}": marks.formerly.value for name, marks in Corpus.marks().items() if marks.formerly}
    own = {key: value for key, value in recipe.items() if key.startswith("data.")}
    return {**later, **own} if own else {}


def vocabulary_settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a flat recipe that decide the tokenizers: where they are equal, so are these.

    A model that is given is the same whatever text it is used on.
    """
    found = text_settings(recipe)
    if is_file(str(found.get("data.tokenizer"))):
        return {key: found[key] for key in ("data.tokenizer", "data.lowercase")}
    return {key: value for key, value in found.items() if key not in OUTSIDE_THE_VOCABULARY}


def listed(names: str | Sequence[str]) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else list(names)


def _distinct(names: object) -> object:
    """Check the value of `test` before its type, so that a wrong one gives one error."""
    several = [names] if isinstance(names, str) else names
    if not (isinstance(several, list) and several and all(isinstance(name, str) for name in several)):
        raise ValueError("allowed: a test set, or a list of them, such as [one,another]")
    if len(set(several)) < len(several):
        raise ValueError("allowed: each test set once")
    return names


OneOrMore = BeforeValidator(_distinct)
"""Marks a field `test` that takes a name or a list of different names."""


def joint_digest(digests: Sequence[str]) -> str:
    """Return the digest of several test sets; that of a single one stays what it is."""
    return digests[0] if len(digests) == 1 else digest_of(list(digests))


def digest_of(content: object) -> str:
    """Return the hex SHA-256 of plain values, computed from their JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
