"""The interface of trackers, such as W&B or MLflow. The record on disk is authoritative."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ablab.config.options import Logger
from ablab.store.run_folder import RunFolder


class RunCard(BaseModel):
    """The facts about a run that a tracker needs to show it beside others.

    `artifacts`: the models that the tracker is to store: `none`, `selected`, `pruned` or `all`. `tracker_id`: its id at
    the tracker; older cards have none, and there the run id was it.
    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    name: str
    config: Mapping[str, Any]
    tags: Sequence[str]
    project: str = "ablab"
    entity: str | None = None
    group: str | None = None
    job_type: str | None = None
    tracker_id: str | None = None
    notes: str | None = None
    artifacts: str = "none"

    @property
    def id_there(self) -> str:
        """The id at the tracker."""
        return self.tracker_id or self.run_id


class Tracker:
    """Base class of trackers, whose methods do nothing: no tracker. `step` is always our optimiser step.

    An option of the group `logger` names a tracker. Its constructor may ask for `card`, `folder` (of the run or study)
    and `say`; its other parameters are settings. What `check` refuses, no run begins with; whatever its other methods
    raise ends the tracking, not the run. A run that is continued tells some steps again: they count once.

    `title`: its name for people. `of`: the id of what is logged after training, where one step and key may have
    several, such as curves.
    """

    title = ""
    shows_pictures = False
    has_dashboards = False

    @classmethod
    def check(cls, logger: Logger) -> None:
        """Raise UserError for what the tracker would refuse, before a run begins."""

    @classmethod
    def ready(cls, logger: Logger, say: Callable[[str], None]) -> None:
        """Check what a sweep needs, once for all its runs."""
        cls.check(logger)

    @classmethod
    def join(
        cls, logger: Logger, study: str, runs: Iterable[tuple[RunFolder, str]], say: Callable[[str], None]
    ) -> None:
        """Let people find finished runs in this study too, each under its arm; they were made for another, or alone."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log points of curves."""

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        """Log points of curves on an axis of their own."""

    def table(
        self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: str = ""
    ) -> None:
        """Log a table."""

    def picture(self, step: int, key: str, path: Path, caption: str, *, of: str = "") -> None:
        """Log a picture from a file."""

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        """Log an interactive chart in Plotly's format: data and layout."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Set values that describe the whole run."""

    def model(self, kind: str, name: str, files: Sequence[Path], digest: str) -> None:
        """Store a model, `selected` or `pruned`, if the user wants it. `digest`: SHA-256 of the first file."""

    def dataset(self, name: str, about: Mapping[str, Any]) -> None:
        """Name what the run is trained on. `about`: digests and settings that identify it, and nothing of its text."""

    def keep(self) -> None:
        """Return once all that was logged outlives a loss of power: training that goes on does not log it again."""

    def finish(self, *, failed: bool) -> None:
        """Close the run, also after a failure."""


@contextmanager
def closing(tracker: Tracker) -> Iterator[Tracker]:
    """Close the tracker when the block ends, and pass on whether it failed."""
    with ExitStack() as stack:
        stack.push(lambda kind, *_: tracker.finish(failed=kind is not None))
        yield tracker
