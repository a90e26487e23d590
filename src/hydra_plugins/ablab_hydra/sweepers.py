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
    from ablab.console import Console
    from ablab.study.ledger import LedgerEntry
    from ablab.study.search import SearchStudy
    from ablab.study.study import Cell, Study
    from ablab.sweep.progress import Board
    from ablab.sweep.sweep import Launch, OnEnd, Policy


class StudySweeper(Sweeper):
    """The Hydra sweeper for ablab.sweep.sweep."""

    def __init__(self) -> None:
        self.launcher: Launcher | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Create the launcher chosen on the command line."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run the sweep; unless it succeeds, exit the process with its exit code."""
        from ablab.console import Console
        from ablab.errors import FAILED
        from ablab.sweep import hydra as study_hydra
        from ablab.sweep.sweep import policy_of

        words = tuple(arguments) if study_hydra.typed is None else study_hydra.typed
        try:
            code = self._work(words, policy_of(words), Console())
        except Exception as error:
            study_hydra.raised = error
            raise SystemExit(FAILED) from None
        if code:
            raise SystemExit(code)

    def _work(self, arguments: tuple[str, ...], policy: "Policy", console: "Console") -> int:
        """Run the search or the tuning of arms that an experiment needs first, then the study itself."""
        from ablab.study.definition import define
        from ablab.study.search_definition import define_search
        from ablab.sweep.sweep import sweep

        assert self.launcher is not None
        launch = _launch_by(self.launcher, policy.fail_fast)
        search = define_search(arguments)
        if search is not None:
            code = self._search(search, policy, console)
            if code:
                return code
        study = define(arguments)
        _check(self.launcher, [cell.planned.config for cell in study.cells])

        def further(study: "Study") -> "Study | None":
            from ablab.judge.extending import add_seeds

            if not add_seeds(study, console.say):
                return None
            define.cache_clear()
            return define(arguments)

        code = sweep(study, launch, policy, console, further)
        if study.is_tuning and not code:
            define.cache_clear()
            code = sweep(define(arguments), launch, policy, console, further)
        return code

    def _search(self, search: "SearchStudy", policy: "Policy", console: "Console") -> int:
        from ablab.sweep.search_sweep import search_trials

        assert self.launcher is not None
        assert self.config is not None
        _check(self.launcher, [search.base.config])
        jobs = _jobs_of(self.launcher, self.config)
        return search_trials(search, _launch_by(self.launcher, policy.fail_fast, jobs), policy, console, jobs=jobs)


def _check(launcher: Launcher, configs: "Iterable[Config]") -> None:
    """Check the launcher before anything is written; launchers other than ours cannot be checked."""
    if isinstance(launcher, StudyLauncher):
        launcher.check(configs)


def _jobs_of(launcher: Launcher, config: DictConfig) -> int:
    """Return the number of trials at a time: a search learns only from those that have ended."""
    if isinstance(launcher, StudyLauncher):
        return launcher.at_a_time
    numbers = [config.hydra.launcher.get(key) for key in ("n_jobs", "array_parallelism")]
    return next((number for number in numbers if isinstance(number, int) and number > 0), 1)


def _launch_by(launcher: Launcher, fail_fast: bool, jobs: int | None = None) -> "Launch":
    """Return a function that launches runs. `jobs`: maximum number of runs at a time."""
    if isinstance(launcher, StudyLauncher):
        return launcher.launching(fail_fast, jobs)

    def launch(
        board: "Board",
        cells: "Iterable[Cell]",
        alone: bool,
        console: "Console",
        on_end: "OnEnd | None" = None,
    ) -> bool:
        """Launch runs by any Hydra launcher; their outcomes are read from the store."""
        size = 1 if alone else len(cells) if isinstance(cells, Sequence) else jobs or 1
        waiting = iter(cells)
        while batch := list(islice(waiting, size)):
            returned = launcher.launch([board.study.words_of(cell) for cell in batch], initial_job_idx=0)
            for cell, result in zip(batch, returned, strict=True):
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
    from ablab.launchers.base import note_failure
    from ablab.study.ledger import State

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


class OptunaSweeper(StudySweeper):
    """The Hydra sweeper for ablab.sweep.search_sweep. Its settings are those of ablab.search.settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def _work(self, arguments: tuple[str, ...], policy: Any, console: Any) -> int:
        from ablab.search.settings import of_hydra
        from ablab.study.search_definition import define_search

        search = define_search(arguments, of_hydra(self.settings))
        assert search is not None
        return self._search(search, policy, console)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="optuna",
    node={
        "_target_": f"{__name__}.{OptunaSweeper.__name__}",
        "trials": 20,
        "sampler": "tpe",
        "stopping": "none",
        "objectives": ["valid_loss"],
        "seed": 1,
        "training_seed": 1,
        "storage": None,
    },
    provider="ablab",
)
