"""Training of tokenizers on the counts of words.

SentencePiece splits normalised sentences at the spaces, counts the words and drops the sentences; characters it counts
too. So the counts give the same model as the text, to the last byte, and they can be taken in parallel, a part of the
text at a time, where SentencePiece would hold all of it in memory.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files.disk import naming
from ablab.transformer.data.blocks import Block
from ablab.transformer.data.normalization import SPACE, USUAL, Rule, normalizer, spec_of
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK

RESERVED = "\u2585"
"""SentencePiece's sign for unknown characters. It trains on no sentence that has one."""

MANY = 1 << 20
"""Different words above which counts are written down, to be added up by SentencePiece."""


@dataclass(frozen=True)
class CountingTask:
    """A block of pairs, the sides of it whose words are counted (0 is the source, 1 the target), and their rule."""

    block: Block
    sides: Sequence[int]
    rule: Rule = USUAL


def count_block(task: CountingTask) -> dict[str, int]:
    sides = task.block.sides()
    return count_words([sentence for side in task.sides for sentence in sides[side]], task.rule)


def count_words(sentences: Sequence[str], rule: Rule = USUAL) -> dict[str, int]:
    """Return how often each word occurs in the normalised sentences, without the space that begins it."""
    lines = normalizer(rule).normalize([sentence for sentence in sentences if RESERVED not in sentence])
    return dict(Counter("".join(lines).split(SPACE)[1:]))


def write_counts(path: Path, parts: Iterable[dict[str, int]]) -> None:
    """Write a line for each word. One that is frequent may have several, whose counts add up."""
    with naming(path), path.open("w", encoding="utf-8", newline="") as file:
        found: Counter[str] = Counter()
        for part in parts:
            found.update(part)
            if len(found) > MANY:
                file.writelines(_lines(found))
                found.clear()
        file.writelines(_lines(found))


def _lines(counts: dict[str, int]) -> Iterator[str]:
    return (f"{SPACE}{word}\t{count}\n" for word, count in counts.items())


@dataclass(frozen=True)
class TrainingTask:
    """A file of `write_counts`, and the size and kind of the vocabulary.

    `rule`: by which the words were normalised. `hard`: no other size will do. `options`: more for SentencePiece.
    """

    words: Path
    vocab_size: int
    kind: str
    rule: Rule = USUAL
    hard: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def train_on_counts(task: TrainingTask) -> bytes:
    """Train on the words of a file and return the model; otherwise as `train_tokenizer`.

    Unless the size is hard, the nearest one takes its place that the text supports.
    """
    with task.words.open(encoding="utf-8", newline="\n") as lines:
        try:
            return _trained(lines, task.vocab_size, task.kind, task.rule, **task.options).model
        except RuntimeError as error:
            if task.hard:
                raise UserError(_size_problem(task.vocab_size, str(error))) from None
            least = _told(_LEAST, str(error)) or task.vocab_size
        lines.seek(0)
        return _trained(lines, least, task.kind, task.rule, hard_vocab_limit=False, **task.options).model


def train_tokenizer(sentences: Iterable[str], vocab_size: int, kind: str = "bpe", rule: Rule = USUAL) -> Tokenizer:
    """Train a tokenizer on raw text, covering every character.

    `kind`: `bpe`, byte-pair encoding (Sennrich et al. 2016) with `vocab_size` pieces; `char`, the `vocab_size` most
    frequent characters, or all if they are fewer.

    Raises UserError if the text does not support `vocab_size`.
    """
    try:
        return _trained(_lines(count_words(list(sentences), rule)), vocab_size, kind, rule)
    except RuntimeError as error:
        raise UserError(_size_problem(vocab_size, str(error))) from None


def told_size(asked: int, found: Iterable[int], *, hard: bool) -> str | None:
    """Return a line on vocabularies that do not have the size that was asked for; None where all have.

    Raises UserError if the size is hard: another run may have prepared the text with one that was not.
    """
    others = [size for size in dict.fromkeys(found) if size != asked]
    if not others:
        return None
    pieces = " and ".join(f"{size:,}" for size in others)
    if hard:
        raise UserError(
            f"data.vocab_size={asked}: the text was prepared with {pieces} pieces, the nearest size that it supports; "
            f"allowed: {' or '.join(map(str, others))}, or data.hard_vocab_limit=false"
        )
    return f"a vocabulary of {pieces} pieces in place of {asked:,}, which the text does not support"


def _trained(lines: Iterable[str], vocab_size: int, kind: str, rule: Rule, **options: Any) -> Tokenizer:
    """RuntimeError if the text does not support the size."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    # The words are normalised already; the model is told what it would have been told of sentences.
    as_counted = {"input_format": "tsv", "normalization_rule_name": "identity", **options}
    model = _model(lines, vocab_size, kind, **as_counted, add_dummy_prefix=False, remove_extra_whitespaces=False)
    content = proto.ModelProto()
    content.ParseFromString(model)
    content.trainer_spec.ClearField("input_format")
    content.normalizer_spec.CopyFrom(spec_of(rule))
    return Tokenizer(content.SerializeToString())


def _model(lines: Iterable[str], vocab_size: int, kind: str, **options: Any) -> bytes:
    import sentencepiece

    written = io.BytesIO()
    # Said only where it differs: the model records what it was told.
    limit: dict[str, Any] = {"hard_vocab_limit": False} if kind == "char" else {}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=vocab_size,
        model_type=kind,
        **{**limit, "character_coverage": 1.0, **options},
        num_threads=1,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        # Longer sentences would be skipped silently, so the limit is beyond any sentence.
        max_sentence_length=1 << 24,
        minloglevel=3,
    )
    return written.getvalue()


_LEAST, _MOST = re.compile(r"required_chars\. \d+ vs (\d+)"), re.compile(r"value <= (\d+)")
"""Where SentencePiece's messages name the least or the most pieces; the options that they propose are its own."""


def _told(size: re.Pattern[str], message: str) -> int | None:
    found = size.search(message)
    return None if found is None else int(found[1])


def _size_problem(vocab_size: int, message: str) -> str:
    """Return the error message for a `vocab_size` that SentencePiece refused: it knows the limits after it has read."""
    if (least := _told(_LEAST, message)) is not None:
        why = f"needs {least} pieces for its characters alone; allowed: {least} or more, or data.tokenizer=char"
    elif (most := _told(_MOST, message)) is not None:
        why = f"gives {most} pieces at most; allowed: up to {most}"
    else:
        why = f"does not support it ({' '.join(message.rpartition('] ')[2].split())})"
    return f"data.vocab_size={vocab_size}: the text {why}"
