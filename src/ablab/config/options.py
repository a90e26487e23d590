"""Groups of parts: what the options of each have in common. Here are those that runs of every task have.

The fields of a part stand in its signature, and kinds.py adds them. There are no defaults here; the YAML files hold
them, each in one place, or the signature does.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from ablab.fields import RUNTIME, Formerly, Group, Role, WholeNumber


@dataclass(frozen=True)
class PartGroup:
    """A group whose options name parts.

    `bases`: for each kind, what it has in common with others of the group; "" stands for all kinds that are not named.
    `supplied`: the parameters that are no fields, since what builds the part fills them in. `handed`: fields of other
    groups that have an effect only where the part asks for them. `is_declared`: a part is a class that declares its
    fields itself, and derives from the base.
    """

    bases: Mapping[str, type[Group]]
    supplied: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    is_declared: bool = False

    def base(self, kind: str) -> type[Group]:
        """Return what the options of a kind have in common with others."""
        return self.bases.get(kind, self.bases[""])


class Option(Group):
    """One choice within a group. `kind` names its part; `code` is the digest of one that is not ablab's."""

    of_group: ClassVar[str]
    kind: str

    @property
    def own(self) -> dict[str, Any]:
        """The fields that the kind reads, without its name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in ("kind", "code")}


class TaskOption(Option):
    """What a run is. A task of one's own reads its own fields and those that every run has."""

    of_group = "task"


class Logger(Option):
    """The tracker of a run, if any; the record on disk is authoritative. A sweep sets `study`, `arm`,
    `label` and `name`.

    `variables`: prefix of the tracker's own environment variables. `portable`: fields that go on to hold for a run that
    came from others; where and whether something is sent is for the reader's own configuration to say.
    """

    of_group = "logger"
    role: ClassVar[Role] = RUNTIME
    variables: ClassVar[str | None] = None
    portable: ClassVar[tuple[str, ...]] = ("name", "group", "study", "arm", "label")
    name: Annotated[str | None, Formerly(None)]
    group: Annotated[str | None, Formerly(None)]
    study: Annotated[str | None, Formerly(None)]
    arm: Annotated[str | None, Formerly(None)]
    label: Annotated[str | None, Formerly(None)]

    def heard(self, what: str) -> str | None:
        """Return what the tracker's own variable says, such as WANDB_NAME, or None."""
        return None if self.variables is None else os.environ.get(f"{self.variables}_{what}") or None

    def about(self) -> dict[str, Any]:
        """Return what the settings say of a run to the tracker."""
        return {}

    @property
    def most_samples(self) -> int:
        """The most items of the test set that the tracker is to show in a table."""
        return 0

    def stores(self, kind: str) -> bool:
        """Return whether the tracker is to store models of a kind, `selected` or `pruned`."""
        return kind in models_of(self.about().get("artifacts", "none"))


Artifacts = Literal["none", "selected", "pruned", "all"]


def models_of(artifacts: str) -> tuple[str, ...]:
    """Return the kinds of models that `logger.artifacts` asks for."""
    return {"none": (), "all": ("selected", "pruned")}.get(artifacts, (artifacts,))


def _project(name: str) -> str:
    """Return a name that W&B takes for a project."""
    if not 0 < len(name) <= LONGEST_PROJECT or set(name) & set(NOT_IN_PROJECT) or not name.isprintable():
        raise ValueError(f"allowed: 1 to {LONGEST_PROJECT} characters, none of {' '.join(NOT_IN_PROJECT)}")
    return name


def _entity(name: str) -> str:
    """Return a name that W&B takes for a user or a team."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ValueError("allowed: the name of a user or team: letters, digits, - and _")
    return name


def tag(text: str) -> str:
    """Return a tag that W&B takes."""
    if not 0 < len(text) <= LONGEST_TAG or not text.strip() or not text.isprintable():
        raise ValueError(f"allowed: 1 to {LONGEST_TAG} characters on one line")
    return text


LONGEST_PROJECT, NOT_IN_PROJECT, LONGEST_TAG = 128, "/\\#?%:", 64


class TrackerLogger(Logger):
    """What every tracker is told of a run: the user's words on it, and the models to store."""

    portable: ClassVar[tuple[str, ...]] = (*Logger.portable, "tags", "notes", "artifacts", "samples")
    tags: Annotated[list[Annotated[str, AfterValidator(tag)]] | None, Formerly(None)]
    notes: Annotated[str | None, Formerly(None)]
    artifacts: Annotated[Artifacts, Formerly("none")]
    samples: Annotated[WholeNumber, Formerly(0)]

    @property
    def most_samples(self) -> int:
        return self.samples

    def about(self) -> dict[str, Any]:
        return {"tags": self.tags, "notes": self.notes, "artifacts": self.artifacts}


class WandbLogger(TrackerLogger):
    """Weights & Biases."""

    variables: ClassVar[str | None] = "WANDB"
    portable: ClassVar[tuple[str, ...]] = (*TrackerLogger.portable, "project", "entity")
    mode: Literal["offline", "online"]
    offline: Annotated[Literal["events", "wandb"], Formerly("events")]
    project: Annotated[str, AfterValidator(_project)]
    entity: Annotated[str, AfterValidator(_entity)] | None

    def about(self) -> dict[str, Any]:
        return {**super().about(), "project": self.project, "entity": self.entity}


PARTS: Mapping[str, PartGroup] = {
    "task": PartGroup({"": TaskOption}),
    "logger": PartGroup({"": TrackerLogger, "none": Logger, "wandb": WandbLogger}, ("card", "folder", "say")),
}
"""The groups of parts that runs of every task have."""
