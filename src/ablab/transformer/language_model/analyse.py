"""What a language model attends to, expects next, and loses without a head."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ablab.store.artefacts import Artefact, Axis
from ablab.store.records import Record
from ablab.text import Say, how_many
from ablab.transformer.analysis import attention_maps
from ablab.transformer.analysis.inspect import NAMES, mean_heads, single_heads
from ablab.transformer.analysis.next_token import TOP, predictions, table, uncertainty
from ablab.transformer.data.documents.prepared import prepare
from ablab.transformer.data.documents.tokenizers import TextTokenizer, load_tokenizer
from ablab.transformer.language_model.build import load_language_model
from ablab.transformer.language_model.schema import NAME, STACK, PlannedLanguageModel
from ablab.transformer.language_model.scoring import predicted
from ablab.transformer.model.language_model import LanguageModel
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.asked import Wanted
from ablab.transformer.stages.inside import Looked, Maker, Progress, add, masked_heads, positions, scales, similarity
from ablab.transformer.stages.models import set_threads
from ablab.transformer.training.callbacks import Callback

READS = (
    "How much the position that predicts each token (down) attends to each token that the model has read (across), the "
    "end of a former document first. It reads the text, so that all arms say the same."
)


@dataclass
class OpenedText(Looked):
    """A finished run, with its model, its tokenizer and its validation documents on demand."""

    planned: PlannedLanguageModel

    @cached_property
    def _loaded(self) -> tuple[LanguageModel, TextTokenizer]:
        saved = of_run(self.planned.folder, self.record, NAME)
        return load_language_model(saved, set_threads(self.planned.config.trainer))

    @property
    def model(self) -> LanguageModel:
        return self._loaded[0]

    @property
    def tokenizer(self) -> TextTokenizer:
        """That of the run."""
        return self._loaded[1]

    def ids(self, settings: Mapping[str, Any]) -> list[int]:
        """Return the tokens of the text, as many as the model reads at once."""
        return self.tokenizer.encode(settings["text"]).tolist()[: self.planned.config.model.context]

    def read(self, ids: Sequence[int]) -> Tensor:
        """Return what the model reads to predict these tokens, [1, len(ids)]."""
        return torch.tensor([self._before(ids)], device=next(self.model.parameters()).device)

    def axes(self, ids: Sequence[int]) -> dict[str, Axis]:
        """Return the axes of their attention: the tokens read across, those predicted down."""
        shown = self.tokenizer.shown
        return {"x": Axis(title="read", labels=shown(self._before(ids))), "y": Axis(title="text", labels=shown(ids))}

    def _before(self, ids: Sequence[int]) -> list[int]:
        return [self.tokenizer.end, *ids[:-1]]

    def loss(self, count: int) -> Callable[[], float]:
        config = self.planned.config
        shard = prepare(config.data, self.planned.outputs / "corpora", self.say).valid.first(count)
        return lambda: predicted(self.model, shard, config.model.context).scores["loss"]


def add_artefacts(
    planned: PlannedLanguageModel, record: Record, lacking: Sequence[Wanted], callbacks: Callback
) -> None:
    """Compute each missing artefact, draw it, pass its picture to the callbacks, and write it."""
    add(OpenedText(planned, record, callbacks.on_message), MAKERS, lacking, callbacks)


def say_what_is_cut(planned: PlannedLanguageModel, record: Record, lacking: Sequence[Wanted], say: Say) -> None:
    """Say of each text what the model does not read: what is beyond its context, and what its tokenizer lacks."""
    texts = dict.fromkeys(str(one.settings["text"]) for one in lacking if "text" in one.settings)
    if not texts:
        return
    context, tokenizer = planned.config.model.context, load_tokenizer(of_run(planned.folder, record, NAME).tokenizers)
    for text in texts:
        ids, called = tokenizer.encode(text), f"text={' '.join(text[:24].split())}..."
        if ids.size > context:
            say(f"{called}: {ids.size} tokens, of which the model reads the first {context}")
        if unknown := tokenizer.unknown_in(ids):
            say(f"{called}: {how_many(unknown, 'token')} unknown to the tokenizer, and read as one sign")


def _maps(opened: OpenedText, settings: Mapping[str, Any]) -> tuple[list[Tensor], dict[str, Axis]]:
    ids = opened.ids(settings)
    return attention_maps(opened.model, STACK, opened.read(ids)), opened.axes(ids)


def _attention(opened: OpenedText, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    maps, axes = _maps(opened, settings)
    progress(1)
    return mean_heads(maps, settings["text"], NAMES[STACK], READS, **axes)


def _single_heads(opened: OpenedText, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    maps, axes = _maps(opened, settings)
    progress(1)
    return single_heads(STACK, maps, settings["text"], **axes, reads=READS)


def _next_token(opened: OpenedText, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    ids = opened.ids(settings)
    logs = predictions(opened.model, opened.read(ids))
    progress(1)
    about = (
        f"Of the {logs.size(-1):,} types of the vocabulary, the {TOP} most probable at each position, and all others "
        "together. The model has read the text up to the position. Entropy: of the whole distribution."
    )
    return table(logs, ids, opened.tokenizer.shown, title=settings["text"], about=about)


def _uncertainty(opened: OpenedText, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    ids = opened.ids(settings)
    logs = predictions(opened.model, opened.read(ids))
    progress(1)
    return uncertainty(logs, ids, opened.tokenizer.shown, of="the text")


def _heads(opened: OpenedText, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    count = settings["documents"]
    return masked_heads(opened, settings, count, f"per token, on {count:,} documents", progress)


MAKERS: dict[str, Maker] = {
    "scalenorm_g": scales,
    "positions": positions,
    "similarity": similarity,
    "attention": _attention,
    "single_heads": _single_heads,
    "next_token": _next_token,
    "uncertainty": _uncertainty,
    "heads": _heads,
}
"""Makers by the name of the analysis."""
