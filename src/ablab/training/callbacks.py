"""Callbacks of a run: the console, the metrics file, the tracker, the heartbeat, a picture of attention."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ablab.analysis import cross_attention, draw_attention
from ablab.console import Console
from ablab.data.batches import collate
from ablab.data.prepared import Prepared
from ablab.model.transformer import Transformer
from ablab.pruning.curve_files import mirror_curve
from ablab.store.artefacts import Axis, MatrixArtefact, Slice, write_artefact
from ablab.store.heartbeat import Heartbeat
from ablab.store.metrics import MetricsFile, read_metrics
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import RunFolder
from ablab.tracking.tracker import Tracker
from ablab.training.state import TrainingState
from ablab.training.validation import Validation, Validator


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


class Callback:
    """Hears how a run goes; here every method does nothing. Nothing that a callback does may change a number."""

    def on_stage(self, stage: str) -> None:
        """A stage begins: training, evaluating, pruning."""

    def on_message(self, line: str) -> None:
        """A line for whoever watches."""

    def counting(self, title: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        """While so many like things are done; the function is called with how many more are. None: total unknown."""
        return nullcontext(lambda count: None)

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        """Training begins, or goes on at `state.step`."""

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """After every step; must be cheap."""

    def on_log(self, measurements: Measurements) -> None:
        """Every few steps."""

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """After each validation."""

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        """After each validation: why training is to end now, if it is. It can be continued later."""
        return None

    def on_fit_end(self) -> None:
        """Training has ended, however it did."""

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        """Figures that stand for the whole run."""

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """The run is on record, and scored on the test set unless it diverged."""

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        """A depth-quality curve was measured and drawn."""

    def on_picture(self, step: int, key: str, path: Path, caption: str) -> None:
        """A picture was drawn."""


class Callbacks(Callback):
    """Several, told one after the other."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)

    def on_stage(self, stage: str) -> None:
        for callback in self.callbacks:
            callback.on_stage(stage)

    def on_message(self, line: str) -> None:
        for callback in self.callbacks:
            callback.on_message(line)

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        with ExitStack() as stack:
            counters = [stack.enter_context(callback.counting(title, total)) for callback in self.callbacks]

            def advance(count: int) -> None:
                for counter in counters:
                    counter(count)

            yield advance

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        for callback in self.callbacks:
            callback.on_fit_start(state, validator)

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        for callback in self.callbacks:
            callback.on_step(state, total_steps)

    def on_log(self, measurements: Measurements) -> None:
        for callback in self.callbacks:
            callback.on_log(measurements)

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        for callback in self.callbacks:
            callback.on_validation(validation, translations, is_best)

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        reasons = [callback.stops(validations, total_steps) for callback in self.callbacks]
        return next((reason for reason in reasons if reason is not None), None)

    def on_fit_end(self) -> None:
        for callback in self.callbacks:
            callback.on_fit_end()

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.on_summary(figures)

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        for callback in self.callbacks:
            callback.on_result(record, evaluation)

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        for callback in self.callbacks:
            callback.on_curve(step, curve, picture)

    def on_picture(self, step: int, key: str, path: Path, caption: str) -> None:
        for callback in self.callbacks:
            callback.on_picture(step, key, path, caption)


SAMPLES = 8
"""Translations shown per validation."""


class MetricsCallback(Callback):
    """Every row into metrics.csv."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        self.metrics = MetricsFile(self.path, from_step=state.step)

    def on_log(self, measurements: Measurements) -> None:
        self.metrics.write(asdict(measurements))

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        scores = validation.as_dict()
        step = scores.pop("step")
        self.metrics.write({"step": step, **{f"valid_{key}": value for key, value in scores.items()}})

    def on_fit_end(self) -> None:
        self.metrics.close()


class ConsoleCallback(Callback):
    """Bars, and a line per validation."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._open = ExitStack()

    def on_message(self, line: str) -> None:
        self.console.say(line)

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        with self.console.counting_bar(title, total) as bar:
            yield bar.advance

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        self.bar = self._open.enter_context(self.console.training_bar())

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        self.bar.show(state.step, total_steps)

    def on_log(self, measurements: Measurements) -> None:
        self.bar.describe(f"loss {measurements.loss:.3f}   {measurements.tokens_per_second:,.0f} tokens/s")

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        self.console.say(
            f"step {validation.step:>6,}   validation loss {validation.loss:.3f}   "
            f"perplexity {validation.perplexity:8.2f}   BLEU {validation.bleu:5.2f}{'   best' if is_best else ''}"
        )

    def on_fit_end(self) -> None:
        self._open.close()


class HeartbeatCallback(Callback):
    """Where the run is, for whoever watches from another process; it is written in the background."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.heartbeat = heartbeat

    def on_stage(self, stage: str) -> None:
        self.heartbeat.tell(stage=stage)

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        self.heartbeat.tell(step=state.step, total_steps=total_steps)

    def on_log(self, measurements: Measurements) -> None:
        """Loss and speed. A step's seconds have their share of validation."""
        self.heartbeat.tell(
            loss=measurements.loss,
            tokens_per_second=measurements.tokens_per_second,
            seconds_per_step=measurements.seconds / measurements.step,
        )

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        self.heartbeat.tell(score=validation.bleu)


class TrackerCallback(Callback):
    """Curves, tables, pictures and figures to the tracker. `metrics`: the run's file of them."""

    def __init__(self, tracker: Tracker, metrics: Path) -> None:
        self.tracker, self.metrics = tracker, metrics

    def on_fit_start(self, state: TrainingState, validator: Validator) -> None:
        """What went before is told again: a tracker may have lost what it was told just before a kill."""
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
        """Points of the validation curves, and some translations."""
        scores = validation.as_dict()
        step = scores.pop("step")
        self.tracker.log(step, {f"valid/{key}": value for key, value in scores.items()})
        rows = list(zip(self.sources, self.references, translations, strict=True))[:SAMPLES]
        self.tracker.table(step, "valid/samples", ("source", "reference", "translation"), rows)

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        self.tracker.summary(figures)

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """The figures by which a dashboard compares runs."""
        figures: dict[str, Any] = {"state": record.state, "reason": record.reason, "padding": record.data["padding"]}
        figures |= {key: getattr(record.cost, key) for key in ("steps", "tokens_per_second", "parameters")}
        if record.mixed is not None:
            figures["mixed"] = record.mixed
        if record.selected is not None:
            figures |= {f"selected/{key}": getattr(record.selected, key) for key in ("loss", "perplexity", "bleu")}
        if evaluation is not None:
            figures |= {"test/name": evaluation.test_name, "test/bleu": evaluation.bleu, "test/chrf": evaluation.chrf}
            figures |= {f"test/{metric}_signature": text for metric, text in evaluation.signatures.items()}
        self.tracker.summary(figures)

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        mirror_curve(self.tracker, step, curve, picture)

    def on_picture(self, step: int, key: str, path: Path, caption: str) -> None:
        self.tracker.picture(step, key, path, caption)


def run_callbacks(folder: RunFolder, console: Console, heartbeat: Heartbeat, tracker: Tracker) -> Callbacks:
    """Those that every run has. The file comes first: the tracker tells again what stands in it."""
    return Callbacks(
        [
            MetricsCallback(folder.metrics),
            ConsoleCallback(console),
            HeartbeatCallback(heartbeat),
            TrackerCallback(tracker, folder.metrics),
        ]
    )


class AttentionMapCallback(Callback):
    """One cross-attention map per validation, always of the same sentence pair, so that maps can be compared."""

    MOST_TOKENS = 24

    def __init__(self, model: Transformer, prepared: Prepared, folder: Path, told: Callback) -> None:
        self.model, self.folder, self.told = model, folder, told
        src, tgt = prepared.valid
        lengths = np.maximum(src.lengths, tgt.lengths)
        fitting = np.flatnonzero(lengths <= self.MOST_TOKENS)
        # The longest that can still be read, and the first of those.
        row = int(fitting[np.argmax(lengths[fitting])]) if len(fitting) else int(np.argmin(lengths))
        self.batch = collate(src, tgt, np.array([row]))
        source, target = prepared.tokenizers
        self.columns = [*source.pieces(self.batch.src[0].tolist()[:-1]), "</s>"]
        self.rows = [*target.pieces(self.batch.labels[0].tolist()[:-1]), "</s>"]

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
        self.told.on_picture(validation.step, "valid/cross_attention", path, title)
