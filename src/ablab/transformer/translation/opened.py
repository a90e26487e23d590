"""A finished run, opened for an analysis: what costs time is loaded when it is first needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ablab.store.artefacts import Axis
from ablab.store.records import Record
from ablab.text import Say
from ablab.transformer.analysis import attentions
from ablab.transformer.build import load_model, set_threads
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.prepared import nested_subsample, prepare
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.model.tokens import BOS, EOS
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.translation.validation import loss_of_pairs

BEGIN, END = "<s>", "</s>"


@dataclass
class Opened:
    """A finished run, with its model, its tokenizers and its validation set on demand."""

    planned: PlannedTranslation
    record: Record
    say: Say

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

    def passes(self, settings: Mapping[str, Any]) -> int:
        """Return the number of passes of the model, for the progress bar."""
        if settings["analysis"] != "heads":
            return 1
        return sum(attention.num_heads for attention in attentions(self.model, settings["site"]))

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
