"""The callbacks that runs have: metrics file, heartbeat, tracker, attention maps, a search's early stop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ablab.store.artefacts import Axis, MatrixArtefact, Slice, write_artefact
from ablab.store.heartbeat import Heartbeat
from ablab.store.metrics import MetricsFile, read_metrics
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import SELECTED, TOKENIZERS, RunFolder
from ablab.tasks.task import ScoredValidation, Stops
from ablab.tracking.console import Console
from ablab.tracking.open import open_tracker
from ablab.tracking.tracker import Tracker
from ablab.transformer.analysis import cross_attention, draw_attention
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.batches import collate
from ablab.transformer.data.prepared import PerCharacter, Prepared
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.curve_files import columns, rows, stem
from ablab.transformer.pruning.plot import HEADS, lines_of, remaining
from ablab.transformer.stages.console_callback import ConsoleCallback
from ablab.transformer.training.callbacks import Callback, Callbacks, Measurements
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Validation, Validator

SAMPLES = 8
"""Translations shown per validation."""


COLUMNS = (
    *("step", "seconds", "loss", "learning_rate", "grad_norm", "drophead", "tokens_per_second", "padding"),
    *("valid_loss", "valid_perplexity", "valid_bleu"),
)
"""Columns of metrics.csv."""


class MetricsCallback(Callback):
    """Writes training and validation metrics to metrics.csv."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path, self.say = path, say
        self._open = ExitStack()

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        validated = [_row(validation) for validation in state.validations]
        self.metrics = MetricsFile(self.path, COLUMNS, state.step, validated)
        if self.metrics.lost:
            self.say(f"{self.path} was damaged: it has the validations again, and may lack losses between them")
        self._open.callback(self.metrics.close)

    def on_log(self, measurements: Measurements) -> None:
        self.metrics.write(asdict(measurements))

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        self.metrics.write(_row(validation))

    def on_fit_end(self) -> None:
        self._open.close()


def _row(validation: Validation) -> dict[str, Any]:
    scores = validation.as_dict()
    return {"step": scores.pop("step"), **{f"valid_{key}": value for key, value in scores.items()}}


class HeartbeatCallback(Callback):
    """Updates the heartbeat, which shows other processes the run's progress; it is written in the background."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.heartbeat = heartbeat

    def on_stage(self, stage: str) -> None:
        self.heartbeat.tell(stage=stage)

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        self.heartbeat.tell(step=state.step, total_steps=total_steps)

    def on_log(self, measurements: Measurements) -> None:
        """Update loss and speed. Seconds per step include validation."""
        self.heartbeat.tell(
            loss=measurements.loss,
            tokens_per_second=measurements.tokens_per_second,
            seconds_per_step=measurements.seconds / measurements.step,
        )

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        self.heartbeat.tell(score=validation.bleu)


class TrackerCallback(Callback):
    """Sends curves, tables, images and figures to the tracker. `metrics`: path of the run's metrics.csv."""

    def __init__(self, tracker: Tracker, metrics: Path) -> None:
        self.tracker, self.metrics = tracker, metrics

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        """Send all earlier rows again: a tracker may have lost the last ones before a kill."""
        self.sources, self.references = validator.sources, validator.references
        for row in read_metrics(self.metrics) if state.step else []:
            step = int(row["step"])
            trained = {f"train/{key}": row[key] for key in row if key != "step" and not key.startswith("valid_")}
            validated = {f"valid/{key.removeprefix('valid_')}": row[key] for key in row if key.startswith("valid_")}
            for values in (trained, validated):
                if values:
                    self.tracker.log(step, values)

    def on_log(self, measurements: Measurements) -> None:
        values = asdict(measurements)
        step = values.pop("step")
        self.tracker.log(step, {f"train/{key}": value for key, value in values.items()})

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """Send the validation scores and some translations."""
        scores = validation.as_dict()
        step = scores.pop("step")
        self.tracker.log(step, {f"valid/{key}": value for key, value in scores.items()})
        samples = list(zip(self.sources, self.references, translations, strict=True))[:SAMPLES]
        self.tracker.table(step, "valid/samples", ("source", "reference", "translation"), samples)

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        self.tracker.summary(figures)

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """Send the figures by which a dashboard compares runs."""
        figures: dict[str, Any] = {"state": record.state, "reason": record.reason, "padding": record.data["padding"]}
        figures |= {key: getattr(record.cost, key) for key in ("steps", "tokens_per_second", "parameters")}
        if record.mixed is not None:
            figures["mixed"] = record.mixed
        if record.selected is not None:
            figures |= {f"selected/{key}": value for key, value in record.selected.scores.items()}
        if evaluation is not None:
            figures |= {"test/name": evaluation.test_name}
            figures |= {f"test/{key}": value for key, value in evaluation.scores.items()}
            figures |= {f"test/{metric}_signature": text for metric, text in evaluation.signatures.items()}
        self.tracker.summary(figures)
        if record.selected is not None and record.selected.sha256 is not None:
            checkpoints = RunFolder(self.metrics.parent).checkpoints
            files = [checkpoints / name for name in (SELECTED, *TOKENIZERS)]
            self.tracker.model("selected", "selected", files, record.selected.sha256)

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        """Send the table, the picture, and a line per curve on its own axis, so that dashboards can compare runs.

        The lines are those of the first curve of a label: points of another test set would mix with them.
        """
        table = rows([curve])
        key, by = (f"pruning/{HEADS}/{curve.label}", HEADS) if curve.of_heads else (f"pruning/{curve.label}", "depth")
        self.tracker.table(step, key, list(columns(curve)), [list(row.values()) for row in table], of=curve.curve_id)
        caption = f"test BLEU and decoding speed by {by}"
        self.tracker.picture(step, f"pruning/{stem(curve)}", picture, caption, of=curve.curve_id)
        for line in lines_of([curve]):
            for point in line.points:
                quality = {"test_bleu": point.scores["bleu"], "valid_loss": point.valid["loss"]}
                figures = {**quality, "speed_ratio": point.speed_ratio}
                self.tracker.along(
                    "heads_kept" if curve.of_heads else f"{line.curve}_layers",
                    remaining(point),
                    {f"pruning/{line.curve}/{line.label}/{key}": value for key, value in figures.items()},
                )

    def on_picture(self, step: int, key: str, draw: Callable[[], Path], caption: str, of: str = "") -> None:
        if self.tracker.shows_pictures:
            self.tracker.picture(step, key, draw(), caption, of=of)


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

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        title = self._write(validation.step)
        self.callbacks.on_picture(validation.step, "valid/cross_attention", self._draw, title)

    def complete(self, state: TrainingState) -> None:
        """Write and draw the last map again: a kill after the last checkpoint left none, or that of an earlier end."""
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


class SearchCallback(Callback):
    """Asks the search after each validation whether to continue the trial."""

    def __init__(self, ask: Stops, per_character: PerCharacter) -> None:
        self.ask, self.per_character = ask, per_character

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        return self.ask([self._scored(validation) for validation in validations], total_steps)

    def _scored(self, found: Validation) -> ScoredValidation:
        scores = {"loss": found.loss, "bleu": found.bleu, "loss_per_character": self.per_character(found.loss)}
        return ScoredValidation(found.step, scores)


def run_callbacks(folder: RunFolder, console: Console, heartbeat: Heartbeat, tracker: Tracker) -> Callbacks:
    """Return the callbacks that every run has; the metrics file comes first, as the tracker reads it."""
    return Callbacks(
        [
            MetricsCallback(folder.metrics, console.say),
            ConsoleCallback(console),
            HeartbeatCallback(heartbeat),
            TrackerCallback(tracker, folder.metrics),
        ]
    )


@contextmanager
def callbacks_after_training(planned: PlannedTranslation, console: Console) -> Iterator[Callbacks]:
    """Open the tracker of a finished run that is pruned or analysed; yield the callbacks for it and the console."""
    with open_tracker(planned, console.say) as tracker:
        yield Callbacks([ConsoleCallback(console), TrackerCallback(tracker, planned.folder.metrics)])
