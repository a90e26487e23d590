"""Hydra launchers local, ray, submitit_local and submitit_slurm: adapters of ablab.sweep.launchers."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from ablab.config import Config
    from ablab.study.study import Cell
    from ablab.sweep.launchers.base import Ending
    from ablab.sweep.launchers.base import Launcher as RunLauncher
    from ablab.sweep.launchers.local import Places
    from ablab.sweep.progress import Board
    from ablab.sweep.sweep import Launch
    from ablab.sweep.watch import OnEnd
    from ablab.tracking.console import Console


class StudyLauncher(Launcher):
    """Executes runs through a launcher of ablab. The constructor checks the settings; UserError for bad ones."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep nothing of Hydra: runs are composed where they are executed."""

    jobs: int | None
    """Runs at a time; None: as many as there is room for."""

    @property
    def at_a_time(self) -> int:
        """The number of trials of a search that run at a time: it learns only from those that have ended."""
        return self.jobs or 1

    @property
    def gpus(self) -> str | None:
        """The word that gives each run a GPU, as it was typed; None if runs get none."""
        return None

    @property
    def is_here(self) -> bool:
        """Whether runs are made on this machine, so that it can try them out."""
        return True

    def check(self, configs: Iterable["Config"]) -> None:
        """Raise UserError if all of these runs would reserve GPUs and leave them idle. Of a program nobody knows."""
        from ablab.errors import UserError

        on_cpu = (config.trainer.accelerator == "cpu" and config.task.kind != "command" for config in configs)
        if self.gpus is not None and all(on_cpu):
            raise UserError(f"{self.gpus}: the runs train on the CPU; allowed: beside trainer=gpu")

    def settle(self, board: "Board", say: Callable[[str], None]) -> None:
        """Choose what nobody has typed for the runs of a study, and say what was chosen."""

    @abstractmethod
    def make(self, jobs: int | None) -> "RunLauncher":
        """Return the launcher, for so many runs at a time."""

    def launching(self, fail_fast: bool, jobs: int | None = None) -> "Launch":
        """Return a function that launches runs for the study sweeper, with a live board.

        `jobs`: maximum number of runs at a time.
        """
        from ablab.sweep.watch import launch_watched

        def launch(
            board: "Board",
            cells: "Iterable[Cell]",
            alone: bool,
            console: "Console",
            on_end: "OnEnd | None" = None,
        ) -> bool:
            if jobs is None:
                self.settle(board, console.say)
            at_a_time = min(filter(None, (self.jobs, 1 if alone else jobs)), default=None)
            return launch_watched(board, cells, self.make(at_a_time), console, fail_fast=fail_fast, on_end=on_end)

        return launch

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Launch runs for any other sweeper."""
        from ablab.config import compose
        from ablab.sweep.launchers.base import Job
        from ablab.tasks.plan import plan

        planned = [plan(compose(words)) for words in job_overrides]
        jobs = [Job(p.folder, p.run_id, words) for p, words in zip(planned, job_overrides, strict=True)]
        launcher = self.make(self.jobs)
        endings = {tuple(ending.job.words): ending for ending in launcher.run(jobs)}
        return [_returned(words, endings.get(tuple(words))) for words in job_overrides]


def _returned(words: Sequence[str], ending: "Ending | None") -> JobReturn:
    from ablab.errors import LostError

    done = ending is not None and ending.code == 0
    returned = JobReturn(overrides=list(words), status=JobStatus.COMPLETED if done else JobStatus.FAILED)
    returned.return_value = None if done else LostError(f"{' '.join(words)}: see log.txt in its folder")
    return returned


@dataclass
class LocalConfig:
    """Settings of the local launcher.

    `jobs`: runs at a time; null: as many as the GPUs have places; without GPUs by cores and memory, but trials,
    proposals to a loop and programs in turn. `threads`: of each; null: cores / jobs. `gpus`: their indices; each takes
    `per_gpu` runs.
    """

    _target_: str = f"{__name__}.LocalLauncher"
    jobs: int | None = None
    threads: int | None = None
    gpus: list[int] = field(default_factory=list)
    per_gpu: int = 1


class LocalLauncher(StudyLauncher):
    """Executes runs as processes of this machine."""

    def __init__(self, jobs: int | None, threads: int | None, gpus: Sequence[int], per_gpu: int) -> None:
        from ablab.sweep.launchers.local import Places

        self.jobs, self.threads = jobs, threads
        self.places = Places.of(jobs, threads, list(gpus), per_gpu)
        self._is_typed = bool(jobs or gpus)
        self._said = ""

    @property
    def at_a_time(self) -> int:
        return self.places.jobs

    def settle(self, board: "Board", say: Callable[[str], None]) -> None:
        """Choose how many runs of a typed study are made at a time, where the line says nothing of that.

        Runs of a loop are none: those of its next proposals, of which this one does not know, must be made like them.
        """
        if self._is_typed or not board.study.typed:
            return
        self.places, line = self._chosen(board)
        if line != self._said:
            say(line)
        self._said = line

    def _chosen(self, board: "Board") -> "tuple[Places, str]":
        from ablab.sweep.launchers.local import OTHERS, Places

        one = Places.of(None, self.threads, [], 1)
        if board.study.is_of_machine:
            return one, "One run at a time: a claim is about a speed or memory, which others at work would change"
        if (asked := board.study.demand) is None:
            return one, f"One run at a time: what memory one needs is unknown {OTHERS}"
        places = Places.for_runs(asked.runs, asked.memory, self.threads or asked.threads, before=board.threads)
        return places, places.said(asked.memory)

    @property
    def gpus(self) -> str | None:
        listed = ",".join(map(str, self.places.gpus))
        return f"hydra.launcher.gpus=[{listed}]" if listed else None

    def check(self, configs: Iterable["Config"]) -> None:
        """Raise UserError also if a run would divide its steps among GPUs: every place has one."""
        from ablab.errors import UserError

        if self.gpus is None:
            return
        configs = list(configs)
        super().check(configs)
        for trainer in (config.trainer for config in configs):
            if trainer.accelerator == "gpu" and trainer.devices > 1:
                raise UserError(
                    f"{self.gpus}: each run gets one GPU, and trainer.devices={trainer.devices}; "
                    "allowed: trainer.devices=1, or no hydra.launcher.gpus and one run at a time"
                )

    def make(self, jobs: int | None) -> "RunLauncher":
        from ablab.sweep.launchers.local import LocalProcesses

        return LocalProcesses(replace(self.places, jobs=jobs or self.places.jobs))


ConfigStore.instance().store(group="hydra/launcher", name="local", node=LocalConfig, provider="ablab")


@dataclass
class RayConfig:
    """Settings of the Ray launcher.

    `address`: of a cluster, auto for the one that this machine belongs to; null: this machine alone, for the duration
    of the sweep. `cpus`, `gpus`: of each run; with less than one GPU, runs share it. `memory_gb`: what Ray reserves for
    each. `jobs`: runs at a time; null: as many as the cluster has room for. `retries`: how often a run is restarted
    elsewhere after its node or its process was lost. `runtime_env`: of Ray's processes, under Ray's names.
    """

    _target_: str = f"{__name__}.RayLauncher"
    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    memory_gb: float | None = None
    jobs: int | None = None
    retries: int = 3
    runtime_env: dict[str, Any] = field(default_factory=dict)


class RayLauncher(StudyLauncher):
    """Executes runs as tasks of a Ray cluster."""

    def __init__(
        self,
        address: str | None,
        cpus: float,
        gpus: float,
        memory_gb: float | None,
        jobs: int | None,
        retries: int,
        runtime_env: Any = None,
    ) -> None:
        from ablab.sweep.launchers.ray import Resources, checked

        self.address, self.jobs = address, jobs
        self.resources = Resources.of(cpus, gpus, memory_gb, retries, jobs)
        self.runtime_env = checked(_plain(runtime_env or {}))

    @property
    def is_here(self) -> bool:
        return self.address is None

    @property
    def gpus(self) -> str | None:
        return f"hydra.launcher.gpus={self.resources.gpus:g}" if self.resources.gpus else None

    def make(self, jobs: int | None) -> "RunLauncher":
        from ablab.sweep.launchers.ray import RayTasks

        return RayTasks(self.address, self.resources, jobs, self.runtime_env)


ConfigStore.instance().store(group="hydra/launcher", name="ray", node=RayConfig, provider="ablab")


@dataclass
class LocalQueueConfig:
    """Settings of the local queue.

    `timeout_min`: minutes after which a job is ended and another continues the run. `jobs`: at a time; null: all.
    `cpus_per_task`: a run's number of threads. `name`: of the jobs; null: the study's.
    """

    _target_: str = f"{__name__}.SubmititLauncher"
    cluster: str = "local"
    timeout_min: int = 240
    cpus_per_task: int = 1
    gpus_per_node: int | None = None
    mem_gb: float | None = None
    jobs: int | None = None
    name: str | None = None


@dataclass
class SlurmQueueConfig(LocalQueueConfig):
    """Settings of the Slurm queue, under sbatch's names.

    `signal_delay_s`: seconds before the limit at which a run is made to write a checkpoint. `additional_parameters`:
    options of sbatch that have no field here. `setup`, `teardown`: lines before and after each run. `python`: the
    command that starts Python, such as one within a container; null: this Python. `srun_args`: of the srun around it.
    """

    cluster: str = "slurm"
    partition: str | None = None
    qos: str | None = None
    account: str | None = None
    constraint: str | None = None
    exclude: str | None = None
    gres: str | None = None
    comment: str | None = None
    mem_per_cpu: str | None = None
    mem_per_gpu: str | None = None
    cpus_per_gpu: int | None = None
    signal_delay_s: int = 120
    array_parallelism: int = 256
    setup: list[str] | None = None
    teardown: list[str] | None = None
    python: str | None = None
    srun_args: list[str] | None = None
    additional_parameters: dict[str, Any] = field(default_factory=dict)


class SubmititLauncher(StudyLauncher):
    """Executes runs as jobs of a queue."""

    def __init__(self, cluster: Any, cpus_per_task: int, jobs: int | None, **parameters: Any) -> None:
        from ablab.sweep.launchers.slurm import Queue

        given = {key: _plain(value) for key, value in parameters.items() if value is not None}
        self.queue, self.jobs = Queue(cluster, cpus_per_task, jobs, given), jobs

    @property
    def is_here(self) -> bool:
        return bool(self.queue.cluster == "local")

    @property
    def gpus(self) -> str | None:
        number = self.queue.parameters.get("gpus_per_node")
        return None if number is None else f"hydra.launcher.gpus_per_node={number}"

    def make(self, jobs: int | None) -> "RunLauncher":
        from ablab.sweep.launchers.slurm import SubmititJobs

        return SubmititJobs(replace(self.queue, jobs=jobs))


def _plain(value: Any) -> Any:
    """Return lists and mappings as Python's own, to which submitit adds its own."""
    return OmegaConf.to_object(value) if OmegaConf.is_config(value) else value


ConfigStore.instance().store(group="hydra/launcher", name="submitit_local", node=LocalQueueConfig, provider="ablab")
ConfigStore.instance().store(group="hydra/launcher", name="submitit_slurm", node=SlurmQueueConfig, provider="ablab")
