"""Making of a prepared text: its tokenizer, and the tokens of training and validation."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ablab.errors import UserError
from ablab.files import sha256, write_json
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.blocks import Counting
from ablab.transformer.data.corpus import Corpus, is_file
from ablab.transformer.data.documents.encoding import (
    PART,
    EncodedPart,
    EncodingPart,
    count_characters,
    count_words,
    encode_part,
    parts_of,
)
from ablab.transformer.data.documents.shards import GrowingShard, Shard
from ablab.transformer.data.documents.text_corpus import TextCorpus
from ablab.transformer.data.documents.texts import in_full, text_of, wanted
from ablab.transformer.data.documents.tokenizers import (
    Bytes,
    Characters,
    Subwords,
    TextTokenizer,
    given_tokenizer,
    save_tokenizer,
)
from ablab.transformer.data.growing import GrowingArray
from ablab.transformer.data.keys import near_key
from ablab.transformer.data.normalization import IDENTITY
from ablab.transformer.data.preparation import unigram_loss
from ablab.transformer.data.processes import Processes
from ablab.transformer.data.vocabulary import TrainingTask, train_on_counts, write_counts
from ablab.transformer.data.whole import MANIFEST

KEYS = "train.keys.npy"
"""Hashes of the keys and near keys of the training documents, by which other text is compared with them."""

COVERAGE = 0.9995
"""Share of the characters that have pieces of their own, SentencePiece's default; rare others are cut into bytes."""

KINDS = 2
"""Keys of a document: alike, and nearly alike."""


class TrainingDocuments:
    """The training documents; with `overlap=drop`, without those that are held out, or nearly. `dropped`: how many."""

    def __init__(self, data: Corpus | TextCorpus) -> None:
        self.data, self.dropped = data, 0

    def __iter__(self) -> Iterator[str]:
        texts = text_of(self.data)
        if self.data.overlap == "keep":
            yield from texts.documents("train")
            return
        self.dropped, left = 0, False
        whole = text_of(in_full(self.data))  # an evaluation of fewer documents is one of the same run
        splits = [whole.documents("valid"), *(documents for _, documents in whole.tests())]
        held = {near_key(document) for documents in splits for document in documents}
        for document in texts.documents("train"):
            if near_key(document) in held:
                self.dropped += 1
            else:
                yield document
                left = True
        if not left:
            raise UserError(
                "data.overlap=drop: each training document is in validation or test; allowed: other files, or "
                "data.overlap=keep"
            )


def make(data: Corpus | TextCorpus, folder: Path, counting: Counting) -> None:
    """Write the prepared text into an empty folder, and its manifest last."""
    texts, training = text_of(data), TrainingDocuments(data)
    total = wanted(data, "train") or texts.count("train")
    with Processes(texts.characters // PART) as processes:
        tokenizer = tokenizer_of(data, training, folder, processes, counting, total)
        names = save_tokenizer(folder, tokenizer)
        encode = _Encoder(folder, tokenizer, processes, counting)
        train = encode("train", training, total)
        valid = encode("valid", texts.documents("valid"), wanted(data, "valid") or texts.count("valid"))
        names = [*names, *train.files, *valid.files]
        sums = dict(zip(names, processes.map(sha256, [folder / name for name in names]), strict=True))
    dropped = {"dropped_overlap": training.dropped} if data.overlap == "drop" else {}
    shards = [Shard.load(folder, split) for split in ("train", "valid")]
    facts = {
        "kind": data.kind,
        "tokenizer": data.tokenizer,
        "vocab": len(tokenizer),
        "train": {**train.facts, **dropped},
        "valid": valid.facts,
        "overlap": overlap(np.load(folder / "valid.keys.npy"), np.load(folder / KEYS, mmap_mode="r")),
        "unigram_loss": unigram_loss(*(Sentences(shard.tokens, shard.starts) for shard in shards)),
    }
    write_json(folder / MANIFEST, {**facts, "sha256": sums})


def check_vocabulary(data: Corpus | TextCorpus, folder: Path, counting: Counting) -> None:
    """Raise UserError if the text does not support its `vocab_size`; reads all of it and trains a tokenizer."""
    texts = text_of(data)
    total = wanted(data, "train") or texts.count("train")
    with Processes(texts.characters // PART) as processes:
        tokenizer_of(data, TrainingDocuments(data), folder, processes, counting, total)


def tokenizer_of(
    data: Corpus | TextCorpus,
    documents: TrainingDocuments,
    folder: Path,
    processes: Processes,
    counting: Counting,
    total: int | None,
) -> TextTokenizer:
    """Return the tokenizer that the options name, trained on these documents unless it is given."""
    if is_file(data.tokenizer):
        return given_tokenizer(Path(data.tokenizer).expanduser())
    if data.tokenizer == "byte":
        return Bytes()
    if data.tokenizer == "char":
        with counting("counting characters", total) as advance:
            counts: Counter[str] = Counter()
            for found in processes.map(count_characters, _parts(documents, advance)):
                counts.update(found)
        frequent = sorted(counts, key=lambda character: (-counts[character], character))
        return Characters("".join(frequent[: data.vocab_size]))
    words = folder / "words"
    with counting("counting words", total) as advance:
        write_counts(words, processes.map(count_words, _parts(documents, advance)))
    options = {"byte_fallback": True, "character_coverage": COVERAGE}
    task = TrainingTask(words, data.vocab_size, data.tokenizer, IDENTITY, data.hard_vocab_limit, options)
    with counting("training the tokenizer", None):
        model = processes.call(train_on_counts, task)
    words.unlink()
    return Subwords(as_it_is(model))


def as_it_is(model: bytes) -> bytes:
    """Return a SentencePiece model that reads each character as it is: no normalisation, no space added or left out."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    content = proto.ModelProto()
    content.ParseFromString(model)
    content.normalizer_spec.Clear()
    content.normalizer_spec.name = IDENTITY
    content.normalizer_spec.add_dummy_prefix = False
    content.normalizer_spec.remove_extra_whitespaces = False
    content.normalizer_spec.escape_whitespaces = True
    found: bytes = content.SerializeToString()
    return found


def _parts(documents: TrainingDocuments, advance: Callable[[int], object]) -> Iterator[list[str]]:
    for part in parts_of(documents):
        yield part
        advance(len(part))


class _Encoded:
    """The files of an encoded split, and what the manifest says of it."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.facts: dict[str, int] = dict.fromkeys(("documents", "tokens", "bytes", "unknown", "inexact"), 0)

    def count(self, part: EncodedPart) -> None:
        found = {
            "documents": len(part.lengths),
            "tokens": len(part.tokens),
            "bytes": int(part.sizes.sum()),
            "unknown": int(part.unknown.sum()),
            "inexact": part.inexact,
        }
        self.facts = {name: count + found[name] for name, count in self.facts.items()}


class _Encoder:
    """Encodes splits and writes their arrays as they come."""

    def __init__(self, folder: Path, tokenizer: TextTokenizer, processes: Processes, counting: Counting) -> None:
        self.folder, self.tokenizer, self.processes, self.counting = folder, tokenizer, processes, counting

    def __call__(self, split: str, documents: Iterable[str], total: int | None) -> _Encoded:
        done = _Encoded()
        with (
            self.counting(f"encoding {split}", total) as advance,
            GrowingShard(self.folder, split, self.tokenizer) as shard,
            closing(GrowingArray(self.folder / f"{split}.keys.npy", np.uint64)) as keys,
        ):
            tasks = (EncodingPart(self.folder, part) for part in parts_of(documents))
            for part in self.processes.map(encode_part, tasks):
                shard.append(part)
                keys.append(part.keys)
                done.count(part)
                advance(len(part.lengths))
        if not done.facts["documents"]:
            raise UserError(f"the {split} split has no document with anything to read")
        done.files = [*shard.files, f"{split}.keys.npy"]
        return done


def overlap(held: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> dict[str, int]:
    """Return how many held-out documents the other split has too: the `same`, or one that is `near`."""
    ours, theirs = held.reshape(-1, KINDS), other.reshape(-1, KINDS)
    same, near = (int(np.isin(ours[:, kind], theirs[:, kind]).sum()) for kind in range(KINDS))
    return {"of": len(ours), "same": same, "near": near}
