"""Trackers: Weights & Biases, or none. The record on disk is authoritative, and a failing tracker ends no run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict


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
    project: str
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

    `of`: the id of what is logged after training, where one step and key may have several, such as curves.
    """

    shows_pictures = False

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

    def finish(self, *, failed: bool) -> None:
        """Close the run, also after a failure."""


@contextmanager
def closing(tracker: Tracker) -> Iterator[Tracker]:
    """Close the tracker when the block ends, and pass on whether it failed."""
    with ExitStack() as stack:
        stack.push(lambda kind, *_: tracker.finish(failed=kind is not None))
        yield tracker
