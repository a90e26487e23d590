"""hydra/sweeper=study: expands a sweep or a declared experiment, and launches what the store does not hold yet."""

import sys
from collections.abc import Sequence
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.ablab_hydra.launching import StudyLauncher


class StudySweeper(Sweeper):
    """Hydra's face of ablab.study.sweep."""

    def __init__(self) -> None:
        self.launcher: Launcher | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take the launcher that the command line has chosen."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Ends the process with a code that tells, unless all is well."""
        from ablab.errors import UserError
        from ablab.exits import BAD_INPUT
        from ablab.screen import Screen
        from ablab.study.definition import define
        from ablab.study.sweep import policy_of, sweep

        assert self.launcher is not None
        policy = policy_of(arguments)
        launch = _launch_by(self.launcher, policy.fail_fast)
        try:
            study = define(tuple(arguments))
            code = sweep(study, launch, policy, Screen())
            if study.is_tuning and not code:
                define.cache_clear()
                code = sweep(define(tuple(arguments)), launch, policy, Screen())
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
            raise SystemExit(BAD_INPUT) from None
        if code:
            raise SystemExit(code)


def _launch_by(launcher: Launcher, fail_fast: bool) -> Any:
    if isinstance(launcher, StudyLauncher):
        return launcher.launching(fail_fast)

    def launch(board: Any, cells: Sequence[Any], alone: bool, screen: Any) -> bool:
        """By any launcher of Hydra's: what became of the runs is read from the store."""
        for batch in [[cell] for cell in cells] if alone else [list(cells)]:
            returned = launcher.launch([board.study.words_of(cell) for cell in batch], initial_job_idx=0)
            for cell, result in zip(batch, returned, strict=True):
                _note(board.of(cell.key), result)
        return True

    return launch


def _note(entry: Any, result: JobReturn) -> None:
    """What became of a run is in the store, unless it failed before it could write."""
    from ablab.exits import BUSY, DONE, INTERRUPTED
    from ablab.study.launch import note_failure
    from ablab.study.ledger import State

    raised = result.status is not JobStatus.COMPLETED
    if entry.state is State.FAILED or (not raised and result.return_value in (DONE, BUSY, INTERRUPTED)):
        return
    # The property raises what the job has raised; this is what it holds.
    said = " ".join(str(result._return_value).split()) if raised else "see the launcher's log"
    note_failure(entry.cell.planned.folder, "error", said, None)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="study",
    node={"_target_": f"{__name__}.{StudySweeper.__name__}"},
    provider="ablab",
)
