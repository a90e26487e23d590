"""Text that is prepared for training: tokenised once, shared by all runs, read on demand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from math import log
from operator import ne
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ablab.fields import Role
from ablab.files import json_digest, read_json
from ablab.text import Say, how_many
from ablab.transformer.data.blocks import Counting, unseen
from ablab.transformer.data.corpus import Corpus, is_file
from ablab.transformer.data.documents import preparation
from ablab.transformer.data.documents.encoding import given_back, hashes
from ablab.transformer.data.documents.preparation import KEYS, overlap
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.text_corpus import TextCorpus
from ablab.transformer.data.documents.texts import text_of
from ablab.transformer.data.documents.tokenizers import TextTokenizer, load_tokenizer
from ablab.transformer.data.whole import MANIFEST, temporary, unless_whole

PREPARATION = 1
"""Version of the preparation; raise it when the same text would come out differently, so that it is prepared anew."""

SPELT_OUT = log(0x110000 - 0x800)
"""Nats of an unknown character beside those of its token: one of all that Unicode can have, each as likely."""

LIBRARIES = {".json": "tokenizers", ".tiktoken": "tiktoken"}


@dataclass(frozen=True)
class PreparedText:
    """The folder of a prepared text. Its name determines its content."""

    folder: Path

    def __getstate__(self) -> dict[str, Path]:
        """Give another process the folder alone, by a path that does not depend on where it runs."""
        return {"folder": self.folder.resolve()}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Numbers of documents, tokens and bytes, the unigram loss in nats per validation token, and checksums."""
        content: dict[str, Any] = read_json(self.folder / MANIFEST)
        return content

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """The tokenizer of the text."""
        return load_tokenizer(self.folder)

    @cached_property
    def train(self) -> Shard:
        """The training documents."""
        return Shard.load(self.folder, "train")

    @cached_property
    def valid(self) -> Shard:
        """The validation documents."""
        return Shard.load(self.folder, "valid")

    def overlap_with(self, documents: Iterable[str]) -> dict[str, int]:
        """Return how many of these documents are trained on too: the `same`, or one that is `near`."""
        return overlap(hashes(documents), np.load(self.folder / KEYS, mmap_mode="r"))

    def remarks(self) -> Iterator[str]:
        """Yield a line about each thing that keeps scores from meaning what they seem to."""
        if (told := told_overlap(self.manifest["overlap"], "validation")) is not None:
            yield f"{told} (data.overlap=drop leaves such documents out of training)"
        for split in ("train", "valid"):
            facts = self.manifest[split]
            documents = how_many(facts["documents"], f"{split} document")
            if facts["unknown"]:
                yield f"{split}: {facts['unknown']:,} unknown characters, each counted with {SPELT_OUT:.1f} nats more"
            elif facts["inexact"]:
                yield f"the tokenizer does not give back {facts['inexact']:,} of {documents}: bits per byte are too few"
        if dropped := self.manifest["train"].get("dropped_overlap"):
            yield f"data.overlap=drop leaves out {how_many(dropped, 'training document')}"


def told_overlap(found: Mapping[str, int], held: str) -> str | None:
    """Return a line on what held-out documents of this name share with training; None if they share nothing."""
    more, documents = found["near"] - found["same"], how_many(found["of"], f"{held} document")
    nearly = "in case, punctuation or spaces alone"
    if found["same"]:
        also = f"; {more:,} more differ from one {nearly}" if more else ""
        return f"{found['same']:,} of {documents} are training documents too{also}"
    return f"{more:,} of {documents} differ from training documents {nearly}" if more else None


def prepare(data: Corpus | TextCorpus, store: Path, say: Say, counting: Counting = unseen) -> PreparedText:
    """Return the text's folder below `store`; prepare it if missing or damaged. Safe in concurrent processes."""
    folder = store / text_id(data)
    with unless_whole(folder) as made:
        if made is not None:
            say(f"preparing the text of {data.kind} ...")
            preparation.make(data, made, counting)
    return PreparedText(folder)


def check_vocabulary(data: Corpus | TextCorpus, store: Path, counting: Counting = unseen) -> None:
    """Raise UserError if the text does not support its `vocab_size`; reads all of it and trains a tokenizer."""
    with temporary(store / f"vocabulary-{text_id(data)}") as made:
        preparation.check_vocabulary(data, made, counting)


def text_id(data: Corpus | TextCorpus) -> str:
    """Return 16 hex digits of the digest of everything that decides the prepared text."""
    library = LIBRARIES[Path(data.tokenizer).suffix] if is_file(data.tokenizer) else "sentencepiece"
    content = {
        "text preparation": PREPARATION,
        library: version(library),
        **({"left out": "all that is held out"} if data.overlap == "drop" else {}),
        "options": data.effective().part(Role.RECIPE),
        **text_of(data).digests(),
    }
    return json_digest(content, 16)


def read_tests(data: Corpus | TextCorpus) -> list[tuple[str, list[str]]]:
    """Return the name of each test set, and its documents, when they are to be scored."""
    return [(name, list(documents)) for name, documents in text_of(data).tests()]


def overlaps(text: PreparedText, documents: Sequence[str]) -> dict[Literal["train", "valid"], dict[str, int]] | None:
    """Return how many of these documents are in training and in validation, as `overlap_with`; None if that is gone."""
    valid = text.folder / "valid.keys.npy"
    if not ((text.folder / KEYS).is_file() and valid.is_file()):
        return None
    return {"train": text.overlap_with(documents), "valid": overlap(hashes(documents), np.load(valid))}


def lost(tokenizer: TextTokenizer, documents: Sequence[str]) -> str | None:
    """Say what text a tokenizer makes of the documents that it does not give back; None where it gives back all.

    What it loses, no model has to predict: only arms that lose the same are compared.
    """
    left = given_back(tokenizer, documents)
    changed = sum(map(ne, left, documents))
    if not changed:
        return None
    of = how_many(len(left), "document")
    return f"as its tokenizer gives it back, {changed:,} of {of} changed, digest {json_digest(left, 12)}"
