"""hydra/launcher=ray: each run is a task of a Ray cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore

from hydra_plugins.ablab_hydra.launching import StudyLauncher


@dataclass
class RayConfig:
    """`address`: of a cluster, auto for the one that this machine is part of; null: this machine, for the sweep.

    `cpus`, `gpus`: of each run; less than one GPU lets runs share it. `memory_gb`: what Ray reserves for each.
    `jobs`: runs at a time; null: as many as the cluster has room for. `retries`: how often a run is begun again
    elsewhere after its node or its process was lost.
    """

    _target_: str = f"{__name__}.RayLauncher"
    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    memory_gb: float | None = None
    jobs: int | None = None
    retries: int = 3


class RayLauncher(StudyLauncher):
    """Tasks of a Ray cluster."""

    def __init__(
        self,
        address: str | None,
        cpus: float,
        gpus: float,
        memory_gb: float | None,
        jobs: int | None,
        retries: int,
    ) -> None:
        from ablab.launching.on_ray import Resources

        self.address, self.jobs = address, jobs
        self.resources = Resources.of(cpus, gpus, memory_gb, retries, jobs)

    @property
    def at_a_time(self) -> int:
        """As many as were asked for."""
        return self.jobs or 1

    @property
    def gpus(self) -> str | None:
        """Of the cluster."""
        return f"hydra.launcher.gpus={self.resources.gpus:g}" if self.resources.gpus else None

    def make(self, on_end: Callable[[Any], None], on_look: Callable[[], None], *, at_most: int | None = None) -> Any:
        """As many tasks as the cluster has room for, or at most so many."""
        from ablab.launching.on_ray import RayTasks

        return RayTasks(
            self.address, self.resources, min(filter(None, (self.jobs, at_most)), default=None), on_end, on_look
        )


ConfigStore.instance().store(group="hydra/launcher", name="ray", node=RayConfig, provider="ablab")
