"""hydra/launcher=local: one fresh process per run on this machine, so many at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class LocalConfig:
    """`jobs`: runs at a time; null: one, or as many as the GPUs have places. `threads`: of each; null: cores / jobs.

    `gpus`: their indices; each takes `per_gpu` runs.
    """

    _target_: str = f"{__name__}.LocalLauncher"
    jobs: int | None = None
    threads: int | None = None
    gpus: list[int] = field(default_factory=list)
    per_gpu: int = 1


class LocalLauncher(Launcher):
    """Hydra's face of ablab.study.launch."""

    def __init__(self, jobs: int | None, threads: int | None, gpus: Sequence[int], per_gpu: int) -> None:
        from ablab.study.launch import Places

        self.places = Places.of(jobs, threads, list(gpus), per_gpu)

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Nothing is kept of Hydra: the runs are composed in their own processes."""

    def launching(self, fail_fast: bool) -> Any:
        """How the study sweeper uses it: with a board on the screen."""
        from ablab.study.local import launch_locally

        def launch(board: Any, cells: Sequence[Any], alone: bool, screen: Any) -> bool:
            places = replace(self.places, jobs=1) if alone else self.places
            return launch_locally(board, cells, places, screen, fail_fast=fail_fast)

        return launch

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """For any other sweeper."""
        from ablab.config import compose
        from ablab.plan import plan
        from ablab.study.launch import Job
        from ablab.study.launch import Launcher as Processes

        planned = [plan(compose(words)) for words in job_overrides]
        jobs = [Job(p.folder, p.run_id, words) for p, words in zip(planned, job_overrides, strict=True)]
        endings = {tuple(ending.job.words): ending for ending in Processes(self.places).run(jobs)}
        return [_returned(words, endings.get(tuple(words))) for words in job_overrides]


def _returned(words: Sequence[str], ending: Any) -> JobReturn:
    done = ending is not None and ending.code == 0
    returned = JobReturn(overrides=list(words), status=JobStatus.COMPLETED if done else JobStatus.FAILED)
    returned.return_value = None if done else RuntimeError(f"{' '.join(words)}: see log.txt in its folder")
    return returned


ConfigStore.instance().store(group="hydra/launcher", name="local", node=LocalConfig, provider="ablab")
