"""Hydra sweepers: `study` expands a sweep or an experiment and launches missing runs; `optuna` searches."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.ablab_hydra.launchers import StudyLauncher

if TYPE_CHECKING:
    from ablab.config import Config
    from ablab.study.ledger import LedgerEntry
    from ablab.study.study import Cell
    from ablab.sweep.hydra import RunLauncher, TypedLine
    from ablab.sweep.progress import Board
    from ablab.sweep.sweep import Launch
    from ablab.sweep.watch import OnEnd
    from ablab.tracking.console import Console


class StudySweeper(Sweeper):
    """Carries out the line that Hydra was given as its job, an `ablab.sweep.hydra.TypedLine`."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Create the launcher chosen on the command line."""
        self.line: TypedLine = task_function  # type: ignore[assignment]  # what our entry point gives it
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        self.run_launcher: RunLauncher = launcher if isinstance(launcher, StudyLauncher) else _OfHydra(launcher, config)

    def sweep(self, arguments: list[str]) -> int:
        """Carry it out and return the exit code."""
        return self.line.sweep(self.run_launcher)


class OptunaSweeper(StudySweeper):
    """Carries out a line that is a search. Its settings are those of ablab.search.settings."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def sweep(self, arguments: list[str]) -> int:
        """Carry it out and return the exit code."""
        from ablab.search.settings import of_hydra
        from ablab.tasks.registry import task_in_words

        return self.line.sweep(self.run_launcher, of_hydra(self.settings, task_in_words(self.line.words)))


class _OfHydra:
    """A launcher that is not ours. The outcomes of its runs are read from the store."""

    is_here = True
    """As far as anybody knows."""

    def __init__(self, launcher: Launcher, config: DictConfig) -> None:
        self.launcher = launcher
        numbers = [config.hydra.launcher.get(key) for key in ("n_jobs", "array_parallelism")]
        self.at_a_time = next((number for number in numbers if isinstance(number, int) and number > 0), 1)

    def check(self, configs: "Iterable[Config]") -> None:
        """Check nothing: it does not say what it can make."""

    def launching(self, fail_fast: bool, jobs: int | None = None) -> "Launch":
        def launch(
            board: "Board", cells: "Iterable[Cell]", alone: bool, console: "Console", on_end: "OnEnd | None" = None
        ) -> bool:
            size = 1 if alone else len(cells) if isinstance(cells, Sequence) else jobs or 1
            waiting = iter(cells)
            while batch := list(islice(waiting, size)):
                words = [board.study.words_of(cell) for cell in batch]
                for cell, result in zip(batch, self.launcher.launch(words, initial_job_idx=0), strict=True):
                    _note(board.of(cell.key), result)
                    if on_end is not None and (line := on_end(board.of(cell.key), _code_of(result))) is not None:
                        console.say(line)
            return True

        return launch


def _code_of(result: JobReturn) -> int | None:
    code = result._return_value if result.status is JobStatus.COMPLETED else None
    return code if isinstance(code, int) else None


def _note(entry: "LedgerEntry", result: JobReturn) -> None:
    """Record a failure that is not in the store, since the run failed before it could write."""
    from ablab.errors import BUSY, DONE, INTERRUPTED, STOPPED
    from ablab.study.ledger import State
    from ablab.sweep.launchers.base import note_failure

    raised = result.status is not JobStatus.COMPLETED
    if entry.state is State.FAILED or (not raised and result.return_value in (DONE, BUSY, INTERRUPTED, STOPPED)):
        return
    # The property would raise the job's exception; the attribute holds it.
    message = " ".join(str(result._return_value).split()) if raised else "see the launcher's log"
    note_failure(entry.cell.planned.folder, "error", message, None)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="study",
    node={"_target_": f"{__name__}.{StudySweeper.__name__}"},
    provider="ablab",
)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="optuna",
    node={
        "_target_": f"{__name__}.{OptunaSweeper.__name__}",
        "trials": 20,
        "sampler": "tpe",
        "stopping": "none",
        "objectives": None,
        "seed": 1,
        "training_seed": 1,
        "storage": None,
    },
    provider="ablab",
)
