"""What the platform calls of a task that trains a Transformer; a task derives from it. Loads torch when it trains."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ablab.store.heartbeat import Heartbeat
from ablab.store.records import Record
from ablab.tasks.task import Stops, Task
from ablab.tracking.console import Console
from ablab.tracking.tracker import Tracker
from ablab.transformer.config.training import TransformerConfig

if TYPE_CHECKING:
    from ablab.transformer.stages.train import Work
    from ablab.transformer.training.callbacks import Callbacks


class TransformerTask(Task):
    """A task that trains a Transformer: it needs `prepared`, which calls `prepare_training`, and its evaluation."""

    modules: ClassVar[Sequence[str]] = ("ablab.transformer.stages.train",)

    def first_and_last_step(self, config: TransformerConfig) -> tuple[int | None, int | None]:
        return config.training.valid_every, config.training.max_steps

    def callbacks(self, planned: Any, console: Console, beating: Heartbeat, tracker: Tracker) -> "Callbacks":
        from ablab.transformer.stages.callbacks import run_callbacks  # torch from here on

        return run_callbacks(planned.folder, console, beating, tracker, self.watched.key)

    def train(self, work: "Work", callbacks: "Callbacks", stops: Stops | None = None) -> Record | None:
        from ablab.transformer.stages.train import train

        return train(work, callbacks, stops)

    def lead(self, work: Callable[[], int]) -> int:
        from ablab.transformer.training.workers import as_first  # no more: a process that is refused ends at once

        return as_first(work)

    def follow(self) -> None:
        from ablab.transformer.stages.train import run_worker

        run_worker()
