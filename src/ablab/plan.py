"""What a run is before it begins: its configuration, its name, its place; no torch."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab import identity
from ablab.config import Composed, Config
from ablab.config.folder import default_choices
from ablab.errors import UserError
from ablab.record import RunFolder


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


def _check_writable(outputs: Path) -> None:
    existing = next(path for path in (outputs, *outputs.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"outputs={outputs}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"outputs={outputs}: no permission to write in {existing}")
