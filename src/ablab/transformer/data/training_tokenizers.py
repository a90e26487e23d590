"""The tokenizers of a corpus: an existing one, or those that are trained on the words of its blocks."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ablab.transformer.data.blocks import Block, Counting, advancing, subsample, with_rows, write_blocks
from ablab.transformer.data.corpus import Corpus, is_file
from ablab.transformer.data.overlap import TrainingPairs
from ablab.transformer.data.processes import Processes
from ablab.transformer.data.tokenizer import Tokenizer, given_tokenizer
from ablab.transformer.data.vocabulary import CountingTask, TrainingTask, count_block, train_on_counts, write_counts


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


def check_vocabulary(corpus: Corpus, folder: Path, counting: Counting) -> None:
    """Raise UserError if the corpus does not support its `vocab_size`; reads all of it and trains a tokenizer.

    The folder is one for temporary files.
    """
    with counting("reading pairs", corpus.pairs_in("train")) as advance:
        blocks = write_blocks(folder / "pairs", TrainingPairs(corpus), corpus.as_read, advance)
    rows = subsample(sum(block.pairs for block in blocks), corpus.train_pairs)
    with Processes(len(blocks)) as processes:
        tokenizers_of(corpus, list(with_rows(blocks, rows)), folder / "words", processes, counting)
