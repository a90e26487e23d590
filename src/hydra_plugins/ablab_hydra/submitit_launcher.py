"""hydra/launcher=submitit_slurm: each run is a job of Slurm; submitit_local: the same on this machine, for trials."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hydra.core.config_store import ConfigStore

from hydra_plugins.ablab_hydra.launching import StudyLauncher


@dataclass
class LocalQueueConfig:
    """`timeout_min`: after so many minutes a job is ended, and another continues the run. `jobs`: at a time; null: all.

    `cpus_per_task` is a run's number of threads.
    """

    _target_: str = f"{__name__}.SubmititLauncher"
    cluster: str = "local"
    timeout_min: int = 240
    cpus_per_task: int = 1
    gpus_per_node: int | None = None
    mem_gb: float | None = None
    jobs: int | None = None
    name: str = "ablab"


@dataclass
class SlurmQueueConfig(LocalQueueConfig):
    """The options of sbatch, under their names. `signal_delay_s`: how long before the limit a run is told to write a
    checkpoint. `additional_parameters`: options of sbatch that have no field here. `setup`: lines before each run.
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
    additional_parameters: dict[str, Any] = field(default_factory=dict)


class SubmititLauncher(StudyLauncher):
    """Jobs of a queue."""

    def __init__(self, cluster: Any, cpus_per_task: int, jobs: int | None, **parameters: Any) -> None:
        from ablab.launching.on_submitit import Queue

        given = {key: value for key, value in parameters.items() if value is not None}
        self.queue = Queue(cluster, cpus_per_task, jobs, given)

    @property
    def at_a_time(self) -> int:
        """As many as were asked for."""
        return self.queue.jobs or 1

    @property
    def gpus(self) -> str | None:
        """Of a node."""
        number = self.queue.parameters.get("gpus_per_node")
        return None if number is None else f"hydra.launcher.gpus_per_node={number}"

    def make(self, on_end: Callable[[Any], None], on_look: Callable[[], None], *, at_most: int | None = None) -> Any:
        """All in the queue, or at most so many."""
        from ablab.launching.on_submitit import SubmititJobs

        jobs = min(filter(None, (self.queue.jobs, at_most)), default=None)
        return SubmititJobs(replace(self.queue, jobs=jobs), on_end, on_look)


ConfigStore.instance().store(group="hydra/launcher", name="submitit_local", node=LocalQueueConfig, provider="ablab")
ConfigStore.instance().store(group="hydra/launcher", name="submitit_slurm", node=SlurmQueueConfig, provider="ablab")
