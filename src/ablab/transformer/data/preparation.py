"""Making of a prepared corpus: subsample, tokenizers and ids, in little memory and by all cores."""

import math
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ablab.errors import UserError
from ablab.files import sha256, write_json, write_lines
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.blocks import Block, Counting, advancing, subsample, with_rows, write_blocks
from ablab.transformer.data.ceiling import ceiling
from ablab.transformer.data.corpus import Corpus, Pair, is_file
from ablab.transformer.data.encoding import EncodingTask, encode_block
from ablab.transformer.data.growing import GrowingArray, GrowingSentences
from ablab.transformer.data.keys import has_both_sides
from ablab.transformer.data.overlap import Overlap, TrainingPairs, hashes
from ablab.transformer.data.processes import Processes
from ablab.transformer.data.scoring import Scoring
from ablab.transformer.data.tokenizer import Tokenizer, given_tokenizer, load_tokenizers, save_tokenizers
from ablab.transformer.data.vocabulary import CountingTask, TrainingTask, count_block, train_on_counts, write_counts
from ablab.transformer.data.whole import MANIFEST
from ablab.transformer.model.tokens import UNK

SIDES = ("src", "tgt")

KEYS = "train.keys.npy"
"""Hashes of the training pairs, by which other text is compared with them."""

CHUNK = 1 << 20
"""Tokens that are counted at a time."""


def make(corpus: Corpus, folder: Path, counting: Counting) -> None:
    """Write the prepared corpus into an empty folder, and its manifest last."""
    text, words = folder / "pairs", folder / "words"
    with counting("reading pairs", corpus.pairs_in("train")) as advance:
        training = TrainingPairs(corpus)
        blocks = write_blocks(text, training, corpus.as_read, advance)
    total = sum(block.pairs for block in blocks)
    valid_pairs = corpus.as_read(corpus.valid_split().pairs[: corpus.valid_pairs])
    valid_spoken = [pair for pair in valid_pairs if has_both_sides(pair)]
    if not valid_spoken:
        raise UserError(f"data={corpus.kind}: the validation set has no pair with both sides")
    rows = subsample(total, corpus.train_pairs)
    blocks = list(with_rows(blocks, rows))
    with Processes(len(blocks)) as processes:
        names = save_tokenizers(folder, tokenizers_of(corpus, blocks, words, processes, counting))
        left = _encode(corpus, folder, blocks, processes, counting)
        text.unlink()
        words.unlink(missing_ok=True)
        if not left.kept:
            raise UserError(
                f"data.max_tokens={corpus.max_tokens}: no training pair is left: "
                f"{left.empty} have an empty side, {left.overlong} are longer"
            )
        tokenizers = load_tokenizers(folder)
        valid = _encoded(valid_spoken, tokenizers)
        names = [*left.files, *_save(folder, "valid", valid), *names]
        for side, lines in zip(SIDES, zip(*valid_spoken, strict=True), strict=True):
            write_lines(folder / f"valid.{side}.txt", lines)
            names.append(f"valid.{side}.txt")
        sums = dict(zip(names, processes.map(sha256, [folder / name for name in names]), strict=True))
    dropped = {"dropped_overlap": training.dropped} if corpus.overlap == "drop" else {}
    facts = {
        "kind": corpus.kind,
        "vocab": [len(tokenizer) for tokenizer in tokenizers],
        "train": {**_numbers(folder, total + training.dropped, int(rows.sum()), left), **dropped},
        "valid": {"pairs": len(valid_pairs), "dropped_empty": len(valid_pairs) - len(valid_spoken)},
        "overlap": vars(Overlap.between(hashes(valid_spoken), np.load(folder / KEYS, mmap_mode="r"))),
        "unigram_loss": unigram_loss(Sentences.load(folder, "train.tgt"), valid[1]),
        "ceiling": ceiling([pair[1] for pair in valid_spoken], tokenizers[1], Scoring(**corpus.scoring)),
        "unknown": {side: _unknown(Sentences.load(folder, f"train.{side}")) for side in SIDES},
    }
    scoring = {"scoring": corpus.scoring} if corpus.scoring else {}
    write_json(folder / MANIFEST, {**facts, **scoring, "sha256": sums})


def check_vocabulary(corpus: Corpus, folder: Path, counting: Counting) -> None:
    """Raise UserError if the corpus does not support its `vocab_size`; reads all of it and trains a tokenizer.

    The folder is one for temporary files.
    """
    with counting("reading pairs", corpus.pairs_in("train")) as advance:
        blocks = write_blocks(folder / "pairs", TrainingPairs(corpus), corpus.as_read, advance)
    rows = subsample(sum(block.pairs for block in blocks), corpus.train_pairs)
    with Processes(len(blocks)) as processes:
        tokenizers_of(corpus, list(with_rows(blocks, rows)), folder / "words", processes, counting)


def tokenizers_of(
    corpus: Corpus, blocks: Sequence[Block], words: Path, processes: Processes, counting: Counting
) -> tuple[Tokenizer, Tokenizer]:
    """Return those of source and target, the same object when the vocabulary is joint; `words` is a file to write."""
    if is_file(corpus.tokenizer):
        given = given_tokenizer(Path(corpus.tokenizer).expanduser())
        return given, given
    train = partial(_trained, corpus, blocks, words, processes, counting)
    if corpus.joint_vocab:
        joint = train((0, 1))
        return joint, joint
    return train((0,)), train((1,))


def _trained(
    corpus: Corpus, blocks: Sequence[Block], words: Path, processes: Processes, counting: Counting, sides: Sequence[int]
) -> Tokenizer:
    """Train one tokenizer on these sides of the pairs."""
    with counting("counting words", sum(block.chosen for block in blocks)) as advance:
        tasks = (CountingTask(block, sides, corpus.rule) for block in blocks)
        write_counts(words, advancing(processes.map(count_block, tasks), blocks, advance))
    task = TrainingTask(words, corpus.vocab_size, corpus.tokenizer, corpus.rule, corpus.hard_vocab_limit)
    with counting("training the tokenizer", None):
        return Tokenizer(processes.call(train_on_counts, task))


class _Left(NamedTuple):
    """The files of the training ids, and the numbers of pairs that are there and that were left out."""

    files: list[str]
    kept: int
    empty: int
    overlong: int


def _numbers(folder: Path, pairs: int, chosen: int, left: _Left) -> dict[str, int]:
    """Return what the manifest says of the training pairs."""
    src, tgt = (Sentences.load(folder, f"train.{side}") for side in SIDES)
    return {
        "pairs": pairs,
        "chosen": chosen,
        "dropped_empty": left.empty,
        "dropped_overlong": left.overlong,
        "kept": left.kept,
        "src_tokens": len(src.tokens),
        "tgt_tokens": len(tgt.tokens),
    }


def _encode(corpus: Corpus, folder: Path, blocks: Sequence[Block], processes: Processes, counting: Counting) -> _Left:
    """Encode the chosen pairs of all blocks, and write the arrays as they come."""
    kept = empty = overlong = 0
    by_words = not is_file(corpus.tokenizer)
    tasks = (EncodingTask(block, folder, by_words, corpus.max_tokens) for block in blocks)
    with (
        counting("encoding pairs", sum(block.chosen for block in blocks)) as advance,
        GrowingSentences(folder, "train.src") as src,
        GrowingSentences(folder, "train.tgt") as tgt,
        closing(GrowingArray(folder / KEYS, np.uint64)) as keys,
    ):
        for encoded in advancing(processes.map(encode_block, tasks), blocks, advance):
            for side, (tokens, lengths) in zip((src, tgt), encoded.sides, strict=True):
                side.append(tokens, lengths)
            keys.append(encoded.keys)
            kept += len(lengths)
            empty += encoded.empty
            overlong += encoded.overlong
    return _Left([*src.files, *tgt.files, KEYS], kept, empty, overlong)


def _encoded(pairs: Sequence[Pair], tokenizers: tuple[Tokenizer, Tokenizer]) -> tuple[Sentences, Sentences]:
    src, tgt = (Sentences.of(tokenizers[side].encode([pair[side] for pair in pairs])) for side in (0, 1))
    return src, tgt


def _save(folder: Path, name: str, sides: tuple[Sentences, Sentences]) -> list[str]:
    named = zip(SIDES, sides, strict=True)
    return [file for side, sentences in named for file in sentences.save(folder, f"{name}.{side}")]


def _unknown(sentences: Sentences) -> int:
    """Return the number of unknown tokens."""
    parts = range(0, len(sentences.tokens), CHUNK)
    return sum(int(np.count_nonzero(sentences.tokens[begin : begin + CHUNK] == UNK)) for begin in parts)


def unigram_loss(train: Sentences, valid: Sentences) -> float:
    """Return nats per validation token of a model that knows only the token frequencies of training.

    One is added to the count of every token that occurs, so that the loss of a token new in validation is finite.
    """
    counts = np.zeros(int(max(train.tokens.max(), valid.tokens.max())) + 1, dtype=np.int64)
    for begin in range(0, len(train.tokens), CHUNK):
        counts += np.bincount(train.tokens[begin : begin + CHUNK], minlength=len(counts))
    tokens: list[int] = valid.tokens.tolist()
    seen = np.flatnonzero(counts).tolist()
    total = len(train.tokens) + len(seen) + len(set(tokens).difference(seen))
    return -sum(math.log((int(counts[token]) + 1) / total) for token in tokens) / len(tokens)
