"""Trackers: Weights & Biases, or none. The record on disk is authoritative, and a failing tracker ends no run."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ablab.tracking.wandb_offline import AXIS, STEP, row_of, rows_on_disk


@dataclass(frozen=True)
class RunCard:
    """The facts about a run that a tracker needs to show it beside others."""

    run_id: str
    name: str
    config: Mapping[str, Any]
    tags: Sequence[str]
    folder: Path
    group: str | None = None
    job_type: str | None = None


class Tracker:
    """Base class of trackers, whose methods do nothing: no tracker. `step` is always our optimiser step."""

    shows_pictures = False

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log points of curves."""

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        """Log points of curves on an axis of their own."""

    def table(self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Log a table."""

    def picture(self, step: int, key: str, path: Path, caption: str) -> None:
        """Log a picture from a file."""

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        """Log an interactive chart in Plotly's format: data and layout."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Set values that describe the whole run."""

    def finish(self, *, failed: bool) -> None:
        """Close the run, also after a failure."""


def imported_by(kind: str, mode: str | None) -> tuple[str, ...]:
    """Return modules that a tracker of this kind and mode imports and that can be imported once for many runs."""
    return ("ablab.tracking.wandb_preload",) if (kind, mode) == ("wandb", "offline") else ()


class WandbTracker(Tracker):
    """Weights & Biases. Offline it needs no account and no network: the run lies in `<run>/wandb` until it is synced.

    The W&B run id is the run id. Every row carries our step, and W&B's own counter is left alone: after a resume it
    would drop rows as out of order.
    """

    shows_pictures = True
    FLUSH_SECONDS = 0.5  # wandb's default loses up to 15 s of curves when the process is killed
    INIT_SECONDS = 15.0

    def __init__(self, card: RunCard, *, mode: Literal["offline", "online"], project: str, entity: str | None) -> None:
        if mode == "offline":
            # Otherwise wandb may send error reports, even offline.
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        self._wandb = wandb
        card.folder.mkdir(parents=True, exist_ok=True)
        self._known = rows_on_disk(card.folder / "wandb")

        def begin(mode: Literal["offline", "online"]) -> Any:
            return wandb.init(
                id=card.run_id,
                name=card.name,
                project=project,
                entity=entity,
                mode=mode,
                dir=str(card.folder),
                config=dict(card.config),
                tags=list(card.tags),
                group=card.group,
                job_type=card.job_type,
                resume="allow",
                settings=wandb.Settings(
                    x_transaction_log_flush_interval=self.FLUSH_SECONDS,
                    init_timeout=self.INIT_SECONDS,
                    console="off",
                    silent=True,
                    save_code=False,
                    disable_git=True,
                ),
            )

        self.offline_because: str | None = None
        try:
            self._run = begin(mode)
        except wandb.errors.CommError as error:
            # Without this the second attempt finds the id "in use".
            wandb.teardown()
            self.offline_because = str(error).splitlines()[0]
            self._run = begin("offline")
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log a row of curves."""
        self._log({STEP: step, **values})

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        """Log a row with an x of its own. Each key is defined alone: a pattern would not take precedence over `*`."""
        self._run.define_metric(f"{AXIS}{axis}", hidden=True)
        for key in values:
            self._run.define_metric(key, step_metric=f"{AXIS}{axis}")
        self._log({f"{AXIS}{axis}": x, **values})

    def table(self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Log a W&B table."""
        table = self._wandb.Table(columns=list(columns), data=[list(row) for row in rows])
        self._log({STEP: step, key: table})

    def picture(self, step: int, key: str, path: Path, caption: str) -> None:
        """Log a W&B image."""
        self._log({STEP: step, key: self._wandb.Image(str(path), caption=caption)})

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        """Log a W&B panel with a Plotly chart."""
        from plotly.graph_objects import Figure

        self._log({STEP: step, key: self._wandb.Plotly(Figure(figure))})

    def _log(self, row: Mapping[str, Any]) -> None:
        """Log the row unless an earlier process of this run has: after a kill some steps are trained again."""
        if row_of(row) not in self._known:
            self._run.log(dict(row))

    def summary(self, values: Mapping[str, Any]) -> None:
        self._run.summary.update(dict(values))

    def finish(self, *, failed: bool) -> None:
        """Flush and close. Errors are suppressed: a tracker that cannot be closed must not fail a finished run."""
        with suppress(self._wandb.errors.Error):
            self._run.finish(exit_code=int(failed))


@contextmanager
def closing(tracker: Tracker) -> Iterator[Tracker]:
    """Close the tracker when the block ends, and pass on whether it failed."""
    with ExitStack() as stack:
        stack.push(lambda kind, *_: tracker.finish(failed=kind is not None))
        yield tracker
