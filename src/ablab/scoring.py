"""BLEU and chrF of detokenised text against raw references, always with their signatures; without torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from ablab.errors import UserError


@dataclass(frozen=True)
class Scoring:
    """How text is scored: sacrebleu's tokenizer of BLEU, and whether case is ignored (its option -lc)."""

    tokenizer: str = "13a"
    lowercase: bool = False


USUAL = Scoring()


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
    sentences: list[list[int]]


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


def looks_tokenised(sentences: Sequence[str]) -> bool:
    """Return whether most sentences that end with a full stop have a space before it, so that scores would mislead."""
    ends = [sentence.rstrip() for sentence in sentences if sentence.rstrip().endswith(".")]
    return len(ends) >= 10 and sum(end.endswith(" .") for end in ends) > len(ends) / 2


def sentence_statistics(
    hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring = USUAL
) -> list[list[int]]:
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
