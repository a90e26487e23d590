"""The spine: identify, prepare, build, fit, select, record, evaluate."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ablab import identity
from ablab.config import Composed, Config
from ablab.config.folder import default_choices
from ablab.errors import UserError
from ablab.provenance import code_digest
from ablab.record import Record, RunFolder
from ablab.screen import Screen


@dataclass(frozen=True)
class Planned:
    """A run before anything heavy is imported: what it is, what it is called, where it lies."""

    composed: Composed
    recipe: dict[str, Any]
    evaluation: dict[str, Any]

    @property
    def config(self) -> Config:
        """The typed configuration."""
        return self.composed.config

    @property
    def run_id(self) -> str:
        """The name that its recipe gives it."""
        return identity.run_id(self.recipe)

    @property
    def name(self) -> str:
        """The name that people read."""
        return identity.display_name(self.composed, default_choices())

    @property
    def evaluation_id(self) -> str:
        """The name that the evaluation's settings give it."""
        return identity.evaluation_id(self.evaluation)

    @property
    def outputs(self) -> Path:
        """The store."""
        return Path(self.config.outputs)

    @property
    def folder(self) -> RunFolder:
        """Where the run lies."""
        return RunFolder(self.outputs / "runs" / self.run_id)


def plan(composed: Composed) -> Planned:
    """Check what can be checked without reading the corpus, and give the run its name."""
    config = composed.config
    config.data.check()
    _check_writable(Path(config.outputs))
    return Planned(composed, identity.recipe(config), identity.evaluation(config))


def run(planned: Planned, screen: Screen) -> Record | None:
    """Whatever of the run is missing, and nothing twice; None when it was interrupted."""
    with _alone(planned.folder):
        if planned.config.rerun and (aside := planned.folder.set_aside()):
            screen.say(f"The earlier run was moved to {aside}")
        record = planned.folder.record()
        if record is None:
            from ablab.train import train

            record = train(planned, screen)
        else:
            _report_reuse(record, screen)
        if record is None:
            return None
        evaluation = planned.folder.evaluation(planned.evaluation_id)
        if evaluation is None and record.selected is not None:
            from ablab.evaluate import evaluate

            evaluation = evaluate(planned, record, screen)
    screen.result(planned.folder, record, evaluation, smoke=planned.config.smoke)
    return record


def _report_reuse(record: Record, screen: Screen) -> None:
    screen.say(f"{record.run_id} {record.state} on {record.ended[:10]}: nothing is trained again")
    trained_with = record.provenance["code"]
    if trained_with != code_digest():
        screen.say(f"It comes from other code ({trained_with}, now {code_digest()}); rerun=true trains anew")


@contextmanager
def _alone(folder: RunFolder) -> Iterator[None]:
    """Nobody else works on this run meanwhile; the lock ends with the process, however it ends."""
    folder.lock.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"{folder.run_id} is being worked on by another process; wait for it, or stop it") from None
    try:
        yield
    finally:
        lock.release()


def _check_writable(outputs: Path) -> None:
    import os

    existing = next(path for path in (outputs, *outputs.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"outputs={outputs}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"outputs={outputs}: no permission to write in {existing}")
