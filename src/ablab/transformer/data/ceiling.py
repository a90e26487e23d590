"""What a perfect model could score on the validation set, measured before any model is trained."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ablab.transformer.data.corpus import Corpus, is_file
from ablab.transformer.data.normalization import IDENTITY
from ablab.transformer.data.scoring import USUAL, Scoring, bleu
from ablab.transformer.data.tokenizer import Tokenizer

LOWEST = 99.0
"""BLEU of the references through the tokenizer below which a line says so."""

CHARACTERS = "char"


def ceiling(references: Sequence[str], tokenizer: Tokenizer, scoring: Scoring) -> dict[str, float]:
    """Return BLEU of the references against themselves, as they are and through the tokenizer.

    `itself` is 100, or 0 where no reference has four tokens; `through` is what no translation can exceed, as all are
    put together from the tokenizer's pieces. `characters`, where `itself` is 0: the same by characters.
    """
    itself = bleu(references, references, scoring)
    through = bleu(tokenizer.decode(tokenizer.encode(references)), references, scoring)
    found = {"itself": itself, "through": through}
    if itself < LOWEST:
        found["characters"] = bleu(references, references, Scoring(CHARACTERS, scoring.lowercase))
    return found


def remarks(corpus: Corpus, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about each thing that keeps scores from meaning what they seem to, and how it is scored and read.

    The manifest of a corpus that an older version prepared says less.
    """
    if corpus.bleu_tokenizer != USUAL.tokenizer:
        yield f"BLEU by sacrebleu's tokenizer {corpus.bleu_tokenizer} (data.bleu_tokenizer)"
    if corpus.normalization == "auto" and not is_file(corpus.tokenizer) and corpus.rule == IDENTITY:
        yield "data.normalization=identity: SentencePiece's nmt_nfkc would change the text"
    found = manifest.get("ceiling")
    if found is not None and found["itself"] < LOWEST:
        by_characters = found["characters"] >= LOWEST
        yield (
            f"BLEU cannot tell good translations from bad ones: the validation references score {found['itself']:.2f} "
            f"against themselves, as none has four tokens for {corpus.bleu_tokenizer}; allowed: "
            f"{'data.bleu_tokenizer=char, by which they score 100, or ' if by_characters else ''}training.monitor=loss"
        )
    elif found is not None and found["through"] < LOWEST:
        yield (
            f"BLEU can reach {found['through']:.2f} at most: the tokenizer does not give back the validation "
            f"references; allowed: {_mends(corpus)}"
        )
    unknown = manifest.get("unknown")
    if unknown is not None and any(unknown.values()):
        yield (
            f"unknown to the tokenizer: {unknown['src']:,} source and {unknown['tgt']:,} target tokens of training "
            "(characters that it lacks, or its own signs, such as <unk> and <s>)"
        )


def _mends(corpus: Corpus) -> str:
    if is_file(corpus.tokenizer):
        return "a data.tokenizer that was trained on such text and normalises nothing, or one that is trained here"
    larger = "a larger data.vocab_size"
    # A rule that was found by itself and is not the identity changes nothing of the text.
    return larger if corpus.normalization in ("auto", IDENTITY) else f"data.normalization={IDENTITY}, or {larger}"
