"""Groups whose options have fields of their own: what the options of each have in common.

The fields of a part stand in its signature, and kinds.py adds them. There are no defaults here; the YAML files hold
them, each in one place, or the signature does.
"""

import os
import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from ablab.fields import EVALUATION, RUNTIME, Count, Formerly, Group, Positive, ReadIf, Role


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


class Norm(Option):
    """The normalisation of one vector per token. The placement group decides where it is applied."""

    of_group = "norm"


class Placement(Option):
    """The position of the norm around a sublayer."""

    of_group = "placement"


class Embedding(Option):
    """The scaling of word vectors, at the input and at the output."""

    of_group = "embedding"


class AttentionNorm(Option):
    """Normalisation inside attention, such as that of queries and keys."""

    of_group = "attention_norm"


class FeedForward(Option):
    """The feed-forward network of a layer. Every kind has about the parameters of `relu` with `model.d_ff`."""

    of_group = "feed_forward"


class Init(Option):
    """The scheme of initial weights."""

    of_group = "init"


class Position(Option):
    """The encoding of a token's position."""

    of_group = "position"


Site = Literal["encoder", "decoder", "cross"]
SITES = get_args(Site)


class DropHead(Option):
    """Rate, sites and schedule of DropHead; this kind never drops."""

    of_group = "drophead"


class ScheduledDropHead(DropHead):
    """A rate that follows the step. `sites`: the kinds of attention whose heads are dropped."""

    sites: Annotated[list[Site], AfterValidator(lambda sites: [site for site in SITES if site in sites])]

    def effective(self) -> Group:
        """Return DropHead `none` at rate 0 or without a site."""
        return self if self.sites and self.own.get("p") != 0 else DropHead(kind="none")


class Schedule(Option):
    """The learning rate as a function of the step, or of validation."""

    of_group = "schedule"


class Loss(Option):
    """What training minimises. Validation measures plain cross-entropy under each."""

    of_group = "loss"


class Optim(Option):
    """The optimiser and the batch size. `lr`: peak learning rate. `batch_tokens`: padded tokens of the longer side."""

    of_group = "optim"
    lr: Positive | None
    clip: Positive | None
    batch_tokens: Count


class Pruning(Option):
    """The choice of layers or heads for pruning curves; this kind makes no curve."""

    of_group = "pruning"
    role: ClassVar[Role] = EVALUATION


class RulePruning(Pruning):
    """The curves to make. `depths`: numbers of remaining layers; None: every number."""

    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1)]
    depths: list[Count] | None


What = Literal["layers", "heads"]

OF_LAYERS = ReadIf(("what",), lambda what: what == "layers", "pruning.what=layers")
OF_HEADS = ReadIf(("what",), lambda what: what == "heads", "pruning.what=heads")

HeadCounts = Annotated[list[Count] | None, Formerly(None), OF_HEADS]
"""Numbers of remaining heads of the whole model; None: eighths of all."""


class ImportancePruning(Pruning):
    """Removal of heads by their importance on validation."""

    what: Annotated[What, Formerly("layers")]
    heads: HeadCounts


class EitherPruning(RulePruning):
    """Curves of layers or of heads."""

    what: Annotated[What, Formerly("layers")]
    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1), OF_LAYERS]
    depths: Annotated[list[Count] | None, OF_LAYERS]
    heads: HeadCounts


class RandomPruning(EitherPruning):
    """Random choice of layers or heads. `seed` decides the draws."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]


class GreedyPruning(EitherPruning):
    """`together`: shrink both stacks at once; otherwise each while the other stays whole.

    `budget`: most sets of heads that may be scored; layers are few enough to score all.
    """

    together: Annotated[
        bool,
        ReadIf(
            ("curves", "what"),
            lambda curves, what: what == "layers" and "both" in curves,
            "pruning.what=layers and both in pruning.curves",
        ),
    ]
    budget: Annotated[Count, Formerly(200), OF_HEADS]


class SearchPruning(GreedyPruning):
    """The size of the search over sets of layers or heads."""

    exhaustive: Annotated[int, Field(ge=0), OF_LAYERS]
    beam: Count
    budget: Count
    finalists: Count


def removes_heads(pruning: Pruning) -> bool:
    """Return whether curves count the heads that remain, not the layers."""
    return getattr(pruning, "what", None) == "heads"


class Logger(Option):
    """The tracker of a run, if any; the record on disk is authoritative. A sweep sets `study`, `arm` and `name`.

    `variables`: prefix of the tracker's own environment variables. `portable`: fields that go on to hold for a run that
    came from others; where and whether something is sent is for the reader's own configuration to say.
    """

    of_group = "logger"
    role: ClassVar[Role] = RUNTIME
    variables: ClassVar[str | None] = None
    portable: ClassVar[tuple[str, ...]] = ("name", "group", "study", "arm")
    name: Annotated[str | None, Formerly(None)]
    group: Annotated[str | None, Formerly(None)]
    study: Annotated[str | None, Formerly(None)]
    arm: Annotated[str | None, Formerly(None)]

    def heard(self, what: str) -> str | None:
        """Return what the tracker's own variable says, such as WANDB_NAME, or None."""
        return None if self.variables is None else os.environ.get(f"{self.variables}_{what}") or None

    def about(self) -> dict[str, Any]:
        """Return what the settings say of a run to the tracker."""
        return {}

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

    portable: ClassVar[tuple[str, ...]] = (*Logger.portable, "tags", "notes", "artifacts")
    tags: Annotated[list[Annotated[str, AfterValidator(tag)]] | None, Formerly(None)]
    notes: Annotated[str | None, Formerly(None)]
    artifacts: Annotated[Artifacts, Formerly("none")]

    def about(self) -> dict[str, Any]:
        return {"tags": self.tags, "notes": self.notes, "artifacts": self.artifacts}


class WandbLogger(TrackerLogger):
    """Weights & Biases."""

    variables: ClassVar[str | None] = "WANDB"
    portable: ClassVar[tuple[str, ...]] = (*TrackerLogger.portable, "project", "entity")
    mode: Literal["offline", "online"]
    project: Annotated[str, AfterValidator(_project)]
    entity: Annotated[str, AfterValidator(_entity)] | None

    def about(self) -> dict[str, Any]:
        return {**super().about(), "project": self.project, "entity": self.entity}


OPTIONS: dict[str, dict[str, type[Option]]] = {
    "task": {"": TaskOption},
    "norm": {"": Norm},
    "placement": {"": Placement},
    "embedding": {"": Embedding},
    "attention_norm": {"": AttentionNorm},
    "feed_forward": {"": FeedForward},
    "init": {"": Init},
    "position": {"": Position},
    "drophead": {"": ScheduledDropHead, "none": DropHead},
    "schedule": {"": Schedule},
    "optim": {"": Optim},
    "loss": {"": Loss},
    "pruning": {
        "": RulePruning,
        "none": Pruning,
        "importance": ImportancePruning,
        "random": RandomPruning,
        "greedy": GreedyPruning,
        "search": SearchPruning,
    },
    "logger": {"": TrackerLogger, "none": Logger, "wandb": WandbLogger},
}
"""For each group whose options have fields of their own, what its kinds have in common; "" stands for all others."""
