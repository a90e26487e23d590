"""Hydra's face of ablab.launching.launcher; each launcher is a small class beside this one."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class StudyLauncher(Launcher):
    """Makes runs through a launcher of ablab's. The constructor checks its settings: bad ones are a UserError."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Nothing is kept of Hydra: the runs are composed where they run."""

    @property
    @abstractmethod
    def at_a_time(self) -> int:
        """How many trials of a search go on at a time."""

    @property
    def gpus(self) -> str | None:
        """The word that gives each run a GPU, as it was typed; None where they get none."""
        return None

    def check(self, configs: Iterable[Any]) -> None:
        """UserError where these runs would hold GPUs and leave them idle."""
        from ablab.errors import UserError

        if self.gpus is not None and all(config.trainer.accelerator == "cpu" for config in configs):
            raise UserError(f"{self.gpus}: the runs train on the CPU; allowed: beside trainer=gpu")

    @abstractmethod
    def make(self, on_end: Callable[[Any], None], on_look: Callable[[], None], *, at_most: int | None = None) -> Any:
        """The launcher, for at most so many runs at a time."""

    def launching(self, fail_fast: bool, jobs: int | None = None) -> Any:
        """How the study sweeper uses it: with a board on the screen; `jobs`: at most so many runs at a time."""
        from functools import partial

        from ablab.study.watched import launch_watched

        def launch(board: Any, cells: Iterable[Any], alone: bool, screen: Any, on_end: Any = None) -> bool:
            make = partial(self.make, at_most=1 if alone else jobs)
            return launch_watched(board, cells, make, screen, fail_fast=fail_fast, on_end=on_end)

        return launch

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """For any other sweeper."""
        from ablab.config import compose
        from ablab.launching.launcher import Job
        from ablab.plan import plan

        planned = [plan(compose(words)) for words in job_overrides]
        jobs = [Job(p.folder, p.run_id, words) for p, words in zip(planned, job_overrides, strict=True)]
        launcher = self.make(lambda _: None, lambda: None)
        endings = {tuple(ending.job.words): ending for ending in launcher.run(jobs)}
        return [_returned(words, endings.get(tuple(words))) for words in job_overrides]


def _returned(words: Sequence[str], ending: Any) -> JobReturn:
    done = ending is not None and ending.code == 0
    returned = JobReturn(overrides=list(words), status=JobStatus.COMPLETED if done else JobStatus.FAILED)
    returned.return_value = None if done else RuntimeError(f"{' '.join(words)}: see log.txt in its folder")
    return returned
