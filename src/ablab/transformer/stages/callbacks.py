"""The callbacks that runs of every task have: metrics file, heartbeat, tracker, a search's early stop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ablab.store.heartbeat import Heartbeat
from ablab.store.metrics import MetricsFile, read_metrics
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import SELECTED, RunFolder, model_files
from ablab.store.spent import Spent
from ablab.tasks.plan import PlannedRun
from ablab.tasks.task import ScoredValidation, Stops
from ablab.tracking.console import Console
from ablab.tracking.open import open_tracker
from ablab.tracking.tracker import Tracker
from ablab.transformer.pruning.curve_files import rows, stem
from ablab.transformer.pruning.plot import HEADS, lines_of, quality_at, remaining
from ablab.transformer.stages.console_callback import ConsoleCallback
from ablab.transformer.training.callbacks import Callback, Callbacks, Measurements
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Samples, Validation

COLUMNS = ("step", "seconds", "loss", "learning_rate", "grad_norm", "drophead", "tokens_per_second", "padding")
"""Columns of metrics.csv, before those of validation."""


def columns_of(kind: type[Validation]) -> tuple[str, ...]:
    """Return the columns of metrics.csv under a kind of validation."""
    return (*COLUMNS, *(f"valid_{name}" for name in kind.columns))


class MetricsCallback(Callback):
    """Writes training and validation metrics to metrics.csv."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path, self.say = path, say
        self._open = ExitStack()

    def on_fit_start(self, state: TrainingState) -> None:
        validated = [_row(validation) for validation in state.validations]
        self.metrics = MetricsFile(self.path, columns_of(state.kind), state.step, validated)
        if self.metrics.lost:
            self.say(f"{self.path} was damaged: it has the validations again, and may lack losses between them")
        self._open.callback(self.metrics.close)

    def on_log(self, measurements: Measurements) -> None:
        self.metrics.write(asdict(measurements))

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        self.metrics.write(_row(validation))

    def on_save(self) -> None:
        self.metrics.sync()

    def on_over(self, state: TrainingState) -> None:
        """Mend the file, which the record seals."""
        self.on_fit_start(state)
        self.on_fit_end()

    def on_fit_end(self) -> None:
        self._open.close()


def _row(validation: Validation) -> dict[str, Any]:
    return {"step": validation.step, **{f"valid_{name}": value for name, value in validation.scores.items()}}


class HeartbeatCallback(Callback):
    """Updates the heartbeat, which shows other processes the run's progress; it is written in the background.

    `watched`: the validation score that progress shows.
    """

    def __init__(self, heartbeat: Heartbeat, watched: str) -> None:
        self.heartbeat, self.watched = heartbeat, watched

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

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        self.heartbeat.tell(score=validation.scores[self.watched])


class TimeCallback(Callback):
    """Tells what of a training is steps, validation, and saving; the first of the callbacks, so that theirs is no
    validation.
    """

    def __init__(self, spent: Spent) -> None:
        self.spent = spent
        self._other = self._booked = 0.0  # one that is continued may be told to stop before it starts

    def on_fit_start(self, state: TrainingState) -> None:
        self._state, self._other, self._booked = state, state.seconds - state.train_seconds, 0.0

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Book the step. What of the training's time no step took, and no validation, a checkpoint between two did."""
        self.spent.book("train")
        other = state.seconds - state.train_seconds
        self.spent.move(max(0.0, other - self._other - self._booked), "train", "save")
        self._other, self._booked = other, 0.0

    def on_log(self, measurements: Measurements) -> None:
        self.spent.book("train")

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        self._booked += self.spent.book("validate")

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        self._booked += self.spent.book("save")
        self.spent.keep()
        return None

    def on_over(self, state: TrainingState) -> None:
        self.spent.begin("save")

    def on_fit_end(self) -> None:
        self.on_step(self._state, None)
        self.spent.begin("save")


class TrackerCallback(Callback):
    """Sends scores, tables, images, figures and pruning curves to the tracker. `metrics`: the run's metrics.csv."""

    def __init__(self, tracker: Tracker, metrics: Path) -> None:
        self.tracker, self.metrics = tracker, metrics

    def on_fit_start(self, state: TrainingState) -> None:
        """Send all earlier rows again: a tracker may have lost the last ones before a kill."""
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

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        """Send the validation scores, and texts if there are some."""
        self.tracker.log(validation.step, {f"valid/{name}": value for name, value in validation.scores.items()})
        if samples.columns:
            self.tracker.table(validation.step, "valid/samples", samples.columns, samples.rows)

    def on_save(self) -> None:
        self.tracker.keep()

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        self.tracker.summary(figures)

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """Send the figures by which a dashboard compares runs."""
        figures: dict[str, Any] = {"state": record.state, "reason": record.reason, "padding": record.data["padding"]}
        figures |= {"ended": record.ended, "minutes": round(record.cost.seconds / 60, 2)}
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
            self.tracker.model("selected", "selected", model_files(checkpoints, SELECTED), record.selected.sha256)

    def on_picture(self, step: int, key: str, draw: Callable[[], Path], caption: str, of: str = "") -> None:
        if self.tracker.shows_pictures:
            self.tracker.picture(step, key, draw(), caption, of=of)

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        """Send the table, the picture, and a line per curve on its own axis, so that dashboards can compare runs.

        The lines are those of the first curve of a label: points of another test set would mix with them.
        """
        points = rows([curve])
        key, by = (f"pruning/{HEADS}/{curve.label}", HEADS) if curve.of_heads else (f"pruning/{curve.label}", "depth")
        self.tracker.table(step, key, list(points[0]), [list(row.values()) for row in points], of=curve.curve_id)
        quality = quality_at(curve.points[0])
        caption = f"{quality.title} and decoding speed by {by}"
        self.tracker.picture(step, f"pruning/{stem(curve)}", picture, caption, of=curve.curve_id)
        for line in lines_of([curve]):
            for point in line.points:
                scores = {f"test_{quality.key}": point.scores[quality.key], "valid_loss": point.valid["loss"]}
                figures = {**scores, "speed_ratio": point.speed_ratio}
                self.tracker.along(
                    "heads_kept" if curve.of_heads else f"{line.curve}_layers",
                    remaining(point),
                    {f"pruning/{line.curve}/{line.label}/{key}": value for key, value in figures.items()},
                )


class SearchCallback(Callback):
    """Asks the search after each validation whether to continue the trial; `recorded`: its scores as it reads them."""

    def __init__(self, ask: Stops, recorded: Callable[[Validation], Mapping[str, float]]) -> None:
        self.ask, self.recorded = ask, recorded

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        return self.ask([ScoredValidation(each.step, self.recorded(each)) for each in validations], total_steps)


def run_callbacks(
    folder: RunFolder, console: Console, heartbeat: Heartbeat, tracker: Tracker, watched: str
) -> Callbacks:
    """Return the callbacks that every run has; the metrics file comes before the tracker, which reads it.

    `watched`: the validation score that progress shows.
    """
    return Callbacks(
        [
            TimeCallback(heartbeat.spent),
            MetricsCallback(folder.metrics, console.say),
            ConsoleCallback(console),
            HeartbeatCallback(heartbeat, watched),
            TrackerCallback(tracker, folder.metrics),
        ]
    )


@contextmanager
def callbacks_after_training(planned: PlannedRun[Any], console: Console) -> Iterator[Callbacks]:
    """Open the tracker of a finished run that is pruned or analysed; yield the callbacks for it and the console."""
    with open_tracker(planned, console.say) as tracker:
        yield Callbacks([ConsoleCallback(console), TrackerCallback(tracker, planned.folder.metrics)])
