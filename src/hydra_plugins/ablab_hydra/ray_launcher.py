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
        from ablab.study.on_ray import Resources

        self.address, self.jobs = address, jobs
        self.resources = Resources.of(cpus, gpus, memory_gb, retries, jobs)

    def make(self, on_end: Callable[[Any], None], on_look: Callable[[], None], *, alone: bool = False) -> Any:
        """As many tasks as there is room for, or one at a time."""
        from ablab.study.on_ray import RayTasks

        return RayTasks(self.address, self.resources, 1 if alone else self.jobs, on_end, on_look)


ConfigStore.instance().store(group="hydra/launcher", name="ray", node=RayConfig, provider="ablab")
