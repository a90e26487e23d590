"""Computation of the artefacts of an analysis, one at a time, so that an interruption loses at most one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ablab.store.artefacts import Artefact, Axis
from ablab.store.records import Record
from ablab.transformer.analysis import attention_maps
from ablab.transformer.analysis.inspect import NAMES, READS, mean_heads, single_heads
from ablab.transformer.analysis.next_token import TOP, distributions, table, uncertainty
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.prepared import nested_subsample, prepare
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.tokens import BOS, EOS
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.asked import Wanted, evaluated
from ablab.transformer.stages.inside import Looked, Maker, Progress, add, masked_heads, positions, scales, similarity
from ablab.transformer.stages.models import load_model, set_threads
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.translation.analyses import read_test_text
from ablab.transformer.translation.evaluate import build_search
from ablab.transformer.translation.texts import by_length
from ablab.transformer.translation.validation import loss_of_pairs

BEGIN, END = "<s>", "</s>"


@dataclass
class Opened(Looked):
    """A finished run, with its model, its tokenizers and its validation set on demand."""

    planned: PlannedTranslation

    @cached_property
    def _loaded(self) -> tuple[Transformer, tuple[Tokenizer, Tokenizer]]:
        return load_model(of_run(self.planned.folder, self.record), set_threads(self.planned.config.trainer))

    @property
    def model(self) -> Transformer:
        """The model with the selected weights."""
        return self._loaded[0]

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Those of source and target."""
        return self._loaded[1]

    def source_ids(self, text: str) -> Tensor:
        """Return the ids that the encoder reads, [1, src_len]."""
        return self._row([*self.tokenizers[0].encode([text])[0], EOS])

    def target_ids(self, text: str) -> list[int]:
        """Return the ids of a target sentence, without begin and end."""
        return self.tokenizers[1].encode([text])[0]

    def pair(self, settings: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the source, and the reference as the decoder reads it: [1, src_len] and [1, tgt_len]."""
        return self.source_ids(settings["source"]), self._row([BOS, *self.target_ids(settings["reference"])])

    def axes(self, settings: Mapping[str, Any]) -> dict[str, Axis]:
        """Return the axes of the pair's attention: source tokens, reference tokens to predict, and those read."""
        source, target = self.tokenizers
        src = source.readable(source.encode([settings["source"]])[0])
        tgt = target.readable(self.target_ids(settings["reference"]))
        return {
            "source": Axis(title="source", labels=[*src, END]),
            "reference": Axis(title="reference", labels=[*tgt, END]),
            "read": Axis(title="reference so far", labels=[BEGIN, *tgt]),
        }

    def readable_target(self, ids: Sequence[int]) -> list[str]:
        """Return the texts of target pieces, special tokens included."""
        texts = self.tokenizers[1].readable(ids)
        return [END if number == EOS else text for number, text in zip(ids, texts, strict=True)]

    def _row(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([list(ids)], device=next(self.model.parameters()).device)

    @cached_property
    def valid(self) -> tuple[Sentences, Sentences]:
        """Source and target ids of the validation set."""
        return prepare(self.planned.config.data, self.planned.outputs / "corpora", self.say).valid

    def loss(self, count: int) -> Callable[[], float]:
        """Return a function for the loss on a fixed subset of `count` validation pairs.

        The loss is in nats per target token, without label smoothing.
        """
        src, tgt = self.valid
        rows = nested_subsample(len(src), count)
        chosen = src.chosen(rows), tgt.chosen(rows)
        return lambda: loss_of_pairs(self.model, *chosen)


def add_artefacts(planned: PlannedTranslation, record: Record, lacking: Sequence[Wanted], callbacks: Callback) -> None:
    """Compute each missing artefact, draw it, pass its picture to the callbacks, and write it."""
    add(Opened(planned, record, callbacks.on_message), MAKERS, lacking, callbacks)


def _attention(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the cross-attention of each reference token, averaged over heads, for all layers and for each."""
    maps, axes = attention_maps(opened.model, "cross", *opened.pair(settings)), opened.axes(settings)
    progress(1)
    return mean_heads(maps, settings["source"], NAMES["cross"], READS["cross"], axes["source"], axes["reference"])


def _heads(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the increase in loss when one head alone is masked, with layers as rows and heads as columns."""
    on = f"{settings['sentences']:,} sentences"
    return masked_heads(
        opened, settings, settings["sentences"], f"per target token, the reference as prefix, on {on}", progress
    )


SIDES = {"encoder": ("source", "source"), "decoder": ("read", "reference"), "cross": ("source", "reference")}
"""Axes across and down, by site."""


def _single_heads(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    site, axes = settings["site"], opened.axes(settings)
    across, down = (axes[side] for side in SIDES[site])
    maps = attention_maps(opened.model, site, *opened.pair(settings))
    progress(1)
    return single_heads(site, maps, settings["source"], across, down)


def _next_token(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the distributions along the reference, or along the model's own translation where there is none."""
    src = opened.source_ids(settings["source"])
    if "reference" in settings:
        ids, along = opened.target_ids(settings["reference"]), "the reference"
    else:
        with evaluating(opened.model):
            ids = build_search(opened.planned.config).best(opened.model, src)[0]
        along = "the model's own best translation"
    logs = distributions(opened.model, src, ids)
    progress(1)
    return table(
        logs,
        [*ids, EOS],
        opened.readable_target,
        title=settings["source"],
        about=f"Of the {logs.size(-1):,} types of the target vocabulary, the {TOP} most probable at each position, and "
        f"all others together. The decoder has read {along} up to the position. Entropy: of the whole distribution.",
    )


def _uncertainty(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    ids = opened.target_ids(settings["reference"])
    logs = distributions(opened.model, opened.source_ids(settings["source"]), ids)
    progress(1)
    return uncertainty(logs, [*ids, EOS], opened.readable_target)


def _by_length(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    evaluation = evaluated(opened.planned)
    progress(1)
    hypotheses = opened.planned.folder.hypotheses(evaluation.evaluation_id)
    return by_length(settings["metric"], *read_test_text(opened.planned), hypotheses, evaluation.items)


LOOKS: dict[str, Maker] = {
    "positions": positions,
    "similarity": similarity,
    "single_heads": _single_heads,
    "next_token": _next_token,
    "uncertainty": _uncertainty,
    "by_length": _by_length,
}
"""Makers by the name of the analysis. A code digest names an entry by the dictionary that writes it out."""

MAKERS: dict[str, Maker] = {"scalenorm_g": scales, "attention": _attention, "heads": _heads, **LOOKS}
