"""The callback that only translation runs have: attention maps during training."""

from pathlib import Path

import numpy as np
from torch import Tensor

from ablab.store.artefacts import Axis, MatrixArtefact, Slice, write_artefact
from ablab.transformer.analysis import cross_attention, draw_attention
from ablab.transformer.data.batches import collate
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Samples, Validation


class AttentionMapCallback(Callback):
    """A cross-attention map per validation, always of the same sentence pair, so that maps can be compared.

    Drawing takes half a second: each map is drawn only if a callback asks for it, the last one when training ends.
    """

    MOST_TOKENS = 24

    def __init__(self, model: Transformer, prepared: Prepared, folder: Path, callbacks: Callback) -> None:
        self.model, self.folder, self.callbacks = model, folder, callbacks
        self._undrawn: tuple[Tensor, str] | None = None
        src, tgt = prepared.valid
        lengths = np.maximum(src.lengths, tgt.lengths)
        fitting = np.flatnonzero(lengths <= self.MOST_TOKENS)
        # The first of the longest pairs that are still legible in a figure.
        row = int(fitting[np.argmax(lengths[fitting])]) if len(fitting) else int(np.argmin(lengths))
        self.batch = collate(src, tgt, np.array([row]))
        source, target = prepared.tokenizers
        self.columns = [*source.pieces(self.batch.src[0].tolist()[:-1]), "</s>"]
        self.rows = [*target.pieces(self.batch.labels[0].tolist()[:-1]), "</s>"]

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        title = self._write(validation.step)
        self.callbacks.on_picture(validation.step, "valid/cross_attention", self._draw, title)

    def on_over(self, state: TrainingState) -> None:
        """Write and draw the last map again: a kill left none, or that of an earlier end."""
        if state.validations and state.validations[-1].step == state.step:
            self._write(state.step)
            self._draw()

    def _write(self, step: int) -> str:
        """Write the mean over the heads of the last layer, for the reference translation; return its title."""
        device = next(self.model.parameters()).device
        maps = cross_attention(self.model, self.batch.src.to(device), self.batch.tgt.to(device))
        title = f"Cross-attention, last layer, mean of heads, step {step:,}"
        weights = maps[-1].mean(dim=0)
        matrix = MatrixArtefact(
            title=title,
            x=Axis(title="source", labels=self.columns),
            y=Axis(title="target", labels=self.rows),
            value="attention weight",
            slices=[Slice(label="", values=[[round(value, 4) for value in row] for row in weights.tolist()])],
        )
        write_artefact(self.folder / "cross_attention.json", matrix)
        self._undrawn = (weights, title)
        return title

    def on_fit_end(self) -> None:
        self._draw()

    def _draw(self) -> Path:
        path = self.folder / "cross_attention.png"
        if self._undrawn is not None:
            weights, title = self._undrawn
            draw_attention(weights, self.rows, self.columns, path, title)
            self._undrawn = None
        return path
