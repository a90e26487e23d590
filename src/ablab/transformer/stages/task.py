"""What the platform calls of a task that trains a Transformer; a task derives from it. Loads torch when it trains."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ablab.errors import UserError
from ablab.store.finished import FinishedRun
from ablab.store.heartbeat import Heartbeat
from ablab.store.records import Curve, Record
from ablab.store.run_folder import RunFolder
from ablab.tasks.registry import task_named
from ablab.tasks.task import OfCurve, Stops, Task
from ablab.tracking.console import Console
from ablab.tracking.tracker import Tracker
from ablab.transformer.config.options import removes_heads
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.data.corpus import is_file, with_digest
from ablab.transformer.pruning.curve_files import curve_table, notes_on_curve
from ablab.transformer.pruning.measures import check_measured, of_curve
from ablab.transformer.pruning.plot import Quality, draw, lines_of
from ablab.transformer.pruning.saved_model import SavedModel, origin_of
from ablab.transformer.stages.asked import Asked, Wanted

if TYPE_CHECKING:
    from ablab.transformer.stages.train import Work
    from ablab.transformer.training.callbacks import Callbacks


def share_of_limit(record: Record) -> str:
    """Return the end of a line on the speed of training: its share of what the device reaches, where that is known."""
    share = record.share_of_limit
    return "" if share is None or share > 1 else f", {100 * share:.0f} % of a large matrix product's speed"


class TransformerTask(Task):
    """A task that trains a Transformer: it needs `prepared`, which calls `prepare_training`, and its evaluation.

    `quality`: what its pruning curves measure. `small`: words of a model that takes a second to check.
    """

    modules: ClassVar[Sequence[str]] = ("ablab.transformer.stages.train",)
    methods: ClassVar[Sequence[str]] = (
        "Seeds pair runs: shared parameters start alike, batches agree.",
        "Weights were chosen on validation.",
    )
    lean: ClassVar[tuple[str, ...]] = ("pruning=none",)
    quality: ClassVar[Quality]
    length: ClassVar[str | None] = "training.max_steps"
    small: ClassVar[tuple[str, ...]]
    layouts: ClassVar[tuple[str, ...]] = ()

    origin = staticmethod(origin_of)
    check_measured = staticmethod(check_measured)
    curve_table = staticmethod(curve_table)
    notes_on_curve = staticmethod(notes_on_curve)

    def export(self, saved: SavedModel, layout: str, folder: Path) -> None:
        """Write a model in one of `layouts`, those of other libraries."""
        raise NotImplementedError

    def laws(self, chosen: Collection[str], line: list[str]) -> Iterator[Any]:
        """Yield the laws of the parts of these groups; `line` describes a short run that is stopped and continued."""
        raise NotImplementedError

    def analyses(self, planned: Any, record: Record, asked: Asked) -> list[Wanted]:
        """Return the artefacts that an analysis of a finished run must produce; UserError for what it cannot."""
        raise NotImplementedError

    def add_artefacts(self, planned: Any, record: Record, lacking: Sequence[Wanted], callbacks: "Callbacks") -> None:
        """Compute the artefacts that a run lacks."""
        raise NotImplementedError

    def line_for(self, model: str) -> str:
        """Return a line to type that uses a model, a run or a pruned one."""
        raise NotImplementedError

    def next_lines(self, record: Record) -> Sequence[str]:
        if record.selected is None:
            return ["Next: a smaller optim.lr, a longer schedule.warmup_steps, or norm=pre"]
        again = "      the same line with seed=2, or with another norm= layerdrop= drophead="
        return [f"Next: {self.line_for(record.run_id)}", again]

    def first_and_last_step(self, config: TransformerConfig) -> tuple[int | None, int | None]:
        training = config.training
        return training.valid_every, training.max_steps if training.max_epochs is None else None

    def ends_by(self, settings: Mapping[str, Any]) -> str | None:
        limits = ("training.max_epochs", "training.max_minutes", "training.patience")
        found = [f"{key}={settings[key]:g}" for key in limits if settings.get(key) is not None]
        found += [f"schedule={settings['schedule.kind']}"] if "schedule.decay_patience" in settings else []
        return next(iter(found), None)

    def memory(self, config: TransformerConfig) -> int | None:
        trainer = config.trainer
        return memory_of(config) * trainer.devices if trainer.accelerator == "cpu" else None  # each has all weights

    def callbacks(self, planned: Any, console: Console, beating: Heartbeat, tracker: Tracker) -> "Callbacks":
        from ablab.transformer.stages.callbacks import run_callbacks  # torch from here on

        return run_callbacks(planned.folder, console, beating, tracker, self.watched.key)

    def dataset(self, planned: Any) -> tuple[str, Mapping[str, Any]] | None:
        data = planned.recipe["data"]
        return str(planned.config.data.kind), data

    def lacks_curve(self, planned: Any) -> bool:
        """Return whether a run should have a pruning curve with these pruning settings and has none.

        A curve under any search or test set counts: asking for another evaluation does not ask for another curve.
        """
        if planned.config.pruning.kind == "none":
            return False
        return all(curve.settings["pruning"] != planned.curve["pruning"] for curve in planned.folder.curves())

    def draw_curves(self, curves: Mapping[str, Curve], colours: Mapping[str, str], title: str, path: Path) -> None:
        draw([line for arm, curve in curves.items() for line in lines_of([curve], arm)], title, path, colours)

    def of_curve(self, claim: Any) -> OfCurve | None:
        return of_curve(claim, self.quality)

    def may_judge_by(self, curve: Curve, planned: Any) -> bool:
        return not removes_heads(planned.config.pruning) or curve.curve_id == planned.curve_id

    def train(self, work: "Work", callbacks: "Callbacks", stops: Stops | None = None) -> Record | None:
        from ablab.transformer.stages.train import train

        return train(work, callbacks, stops)

    def lead(self, work: Callable[[], int]) -> int:
        from ablab.transformer.training.workers import as_first  # no more: a process that is refused ends at once

        return as_first(work)

    def follow(self) -> None:
        from ablab.transformer.stages.train import run_worker

        run_worker()


def check_tokenizer(tokenizer: str, folder: RunFolder) -> None:
    """Raise UserError where `data.tokenizer` is a file that is another one than it was when the run was trained."""
    if is_file(tokenizer) and with_digest(tokenizer) != folder.recipe()["data"].get("tokenizer"):
        raise UserError(
            f"{folder.run_id}: data.tokenizer={tokenizer} is not the file that it was trained with; allowed: that file"
        )


PROCESS, NUMBERS, KEPT = 0.75e9, 11, 0.8
"""Bytes of a process that has imported everything; numbers for each parameter, with its gradient, moments, averages and
copies; the share of the activations counted below that is there at once. Fitted to benchmarks/results/sizes.json, to
whose sizes a test holds them."""

FEW_TYPES = 8000
"""Types of a vocabulary whose size is that of a file of its own."""


def memory_of(config: Any) -> int:
    """Return about how many bytes a training needs at its peak in single precision, known before anything is built."""
    model, tokens = config.model, config.optim.batch_tokens / config.trainer.micro_batches
    layers = {"encoder": getattr(model, "encoder_layers", 0), "decoder": model.decoder_layers}
    types = config.data.vocab_size if config.data.is_read("vocab_size") else FEW_TYPES
    tables = {"all": 1, "none": 3 if layers["encoder"] else 2}.get(model.tie, 2)
    parameters = tables * types * model.d_model
    kept = 0.0
    for stack, count in layers.items():
        products = 4 if stack == "encoder" or not layers["encoder"] else 8  # with those of cross-attention
        parameters += count * model.d_model * (products * model.d_model + 2 * model.d_ff)
        kept += count * tokens * ((4 + products) * model.d_model + 3 * model.d_ff)
    return int(PROCESS + 4 * (NUMBERS * parameters + KEPT * kept))


def task_of_models(run: FinishedRun) -> TransformerTask:
    """Return the task of a run; UserError where it trains no model of ours."""
    task = task_named(run.record.task)
    if isinstance(task, TransformerTask):
        return task
    raise UserError(
        f"{run.run_id} is a run of task={run.record.task}, which trains no Transformer; allowed: runs of "
        "task=translation, task=language_model"
    )
