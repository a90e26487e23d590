"""hydra/launcher=local: one fresh process per run on this machine, so many at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hydra.core.config_store import ConfigStore

from hydra_plugins.ablab_hydra.launching import StudyLauncher


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


class LocalLauncher(StudyLauncher):
    """Processes of this machine."""

    def __init__(self, jobs: int | None, threads: int | None, gpus: Sequence[int], per_gpu: int) -> None:
        from ablab.launching.processes import Places

        self.places = Places.of(jobs, threads, list(gpus), per_gpu)

    @property
    def at_a_time(self) -> int:
        """As many as there are places."""
        return self.places.jobs

    @property
    def gpus(self) -> str | None:
        """Those of this machine."""
        said = ",".join(map(str, self.places.gpus))
        return f"hydra.launcher.gpus=[{said}]" if said else None

    def make(self, on_end: Callable[[Any], None], on_look: Callable[[], None], *, at_most: int | None = None) -> Any:
        """With all places, or with fewer."""
        from ablab.launching.processes import Processes

        jobs = min(self.places.jobs, at_most or self.places.jobs)
        return Processes(replace(self.places, jobs=jobs), on_end, on_look)


ConfigStore.instance().store(group="hydra/launcher", name="local", node=LocalConfig, provider="ablab")
