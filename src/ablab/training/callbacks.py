"""Those who watch a training: what they are told, and who may end it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ablab.analysis import cross_attention, draw_attention
from ablab.console import Console, TrainingBar
from ablab.data.batches import collate
from ablab.data.prepared import Prepared
from ablab.model.transformer import Transformer
from ablab.store.artefacts import Axis, MatrixArtefact, Slice, write_artefact
from ablab.store.heartbeat import Heartbeat
from ablab.store.metrics import MetricsFile
from ablab.tracking.tracker import Tracker
from ablab.training.state import TrainingState
from ablab.training.validation import Validation


@dataclass(frozen=True)
class Measurements:
    """What a look at training shows. `loss`: nats per target token, label smoothing apart; it, and `padding`, the
    share of positions that are padding, are of this step's batch.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    drophead: float
    tokens_per_second: float
    seconds: float
    padding: float


class Callback(Protocol):
    """Somebody who wants to know how training goes. Nothing that a listener does may change the training."""

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """After every step; must be cheap."""

    def on_look(self, measurements: Measurements) -> None:
        """Every few steps."""

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """After each validation."""


class EarlyStop(Protocol):
    """Somebody who may end a training after a validation, as a poor trial of a search."""

    def __call__(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        """Why training is to end now, if it is. It can be continued later."""


SAMPLES = 8
"""Translations shown per validation."""


class MetricsCallback:
    """Every row into metrics.csv."""

    def __init__(self, metrics: MetricsFile) -> None:
        self.metrics = metrics

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Nothing: a row per step would be too many."""

    def on_look(self, measurements: Measurements) -> None:
        """A row of training."""
        self.metrics.write(asdict(measurements))

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """A row of validation."""
        scores = validation.as_dict()
        step = scores.pop("step")
        self.metrics.write({"step": step, **{f"valid_{key}": value for key, value in scores.items()}})


class ConsoleCallback:
    """The bar, and a line per validation."""

    def __init__(self, console: Console, bar: TrainingBar) -> None:
        self.console, self.bar = console, bar

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Move the bar."""
        self.bar.show(state.step, total_steps)

    def on_look(self, measurements: Measurements) -> None:
        """Loss and speed beside the bar."""
        self.bar.describe(f"loss {measurements.loss:.3f}   {measurements.tokens_per_second:,.0f} tokens/s")

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """One line."""
        self.console.say(
            f"step {validation.step:>6,}   validation loss {validation.loss:.3f}   "
            f"perplexity {validation.perplexity:8.2f}   BLEU {validation.bleu:5.2f}{'   best' if is_best else ''}"
        )


class HeartbeatCallback:
    """Where training is, for whoever watches from another process."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.heartbeat = heartbeat

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Remember; it is written in the background."""
        self.heartbeat.tell(step=state.step, total_steps=total_steps)

    def on_look(self, measurements: Measurements) -> None:
        """Loss and speed. A step's seconds have their share of validation."""
        self.heartbeat.tell(
            loss=measurements.loss,
            tokens_per_second=measurements.tokens_per_second,
            seconds_per_step=measurements.seconds / measurements.step,
        )

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """The last score."""
        self.heartbeat.tell(score=validation.bleu)


class TrackerCallback:
    """Curves, and a table of sample translations."""

    def __init__(self, tracker: Tracker, sources: Sequence[str], references: Sequence[str]) -> None:
        self.tracker = tracker
        self.sources, self.references = sources, references

    def replay(self, rows: Iterable[Mapping[str, float]]) -> None:
        """Rows of the metrics file, when a run goes on: a mirror may have lost what it was told just before a kill."""
        for row in rows:
            step = int(row["step"])
            trained = {f"train/{key}": row[key] for key in row if key != "step" and not key.startswith("valid_")}
            validated = {f"valid/{key.removeprefix('valid_')}": row[key] for key in row if key.startswith("valid_")}
            for values in (trained, validated):
                if values:
                    self.tracker.log(step, values)

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Nothing."""

    def on_look(self, measurements: Measurements) -> None:
        """Points of the training curves."""
        values = asdict(measurements)
        step = values.pop("step")
        self.tracker.log(step, {f"train/{key}": value for key, value in values.items()})

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """Points of the validation curves, and what the model says."""
        scores = validation.as_dict()
        step = scores.pop("step")
        self.tracker.log(step, {f"valid/{key}": value for key, value in scores.items()})
        rows = list(zip(self.sources, self.references, translations, strict=True))[:SAMPLES]
        self.tracker.table(step, "valid/samples", ("source", "reference", "translation"), rows)


class AttentionMapCallback:
    """One cross-attention map per validation, always of the same sentence pair, so that maps can be compared."""

    MOST_TOKENS = 24

    def __init__(self, model: Transformer, prepared: Prepared, folder: Path, tracker: Tracker) -> None:
        self.model, self.folder, self.tracker = model, folder, tracker
        src, tgt = prepared.valid
        lengths = np.maximum(src.lengths, tgt.lengths)
        fitting = np.flatnonzero(lengths <= self.MOST_TOKENS)
        # The longest that can still be read, and the first of those.
        row = int(fitting[np.argmax(lengths[fitting])]) if len(fitting) else int(np.argmin(lengths))
        self.batch = collate(src, tgt, np.array([row]))
        source, target = prepared.tokenizers
        self.columns = [*source.pieces(self.batch.src[0].tolist()[:-1]), "</s>"]
        self.rows = [*target.pieces(self.batch.labels[0].tolist()[:-1]), "</s>"]

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Nothing."""

    def on_look(self, measurements: Measurements) -> None:
        """Nothing."""

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """Last layer, mean over its heads, for the reference translation."""
        device = next(self.model.parameters()).device
        maps = cross_attention(self.model, self.batch.src.to(device), self.batch.tgt.to(device))
        title = f"Cross-attention, last layer, mean of heads, step {validation.step:,}"
        path = self.folder / "cross_attention.png"
        weights = maps[-1].mean(dim=0)
        draw_attention(weights, self.rows, self.columns, path, title)
        matrix = MatrixArtefact(
            title=title,
            x=Axis(title="source", labels=self.columns),
            y=Axis(title="target", labels=self.rows),
            value="attention weight",
            slices=[Slice(label="", values=[[round(value, 4) for value in row] for row in weights.tolist()])],
        )
        write_artefact(self.folder / "cross_attention.json", matrix)
        self.tracker.picture(validation.step, "valid/cross_attention", path, title)
