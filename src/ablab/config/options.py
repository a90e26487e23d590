"""Options with fields of their own: one class per kind, which declares the types and ranges of the fields it reads.

There are no defaults here; the YAML files under conf/ hold them, each in one place.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError

from ablab.config.groups import groups, named_values, option_values
from ablab.data.corpora import CORPORA
from ablab.errors import UserError, choices, first_error
from ablab.fields import EVALUATION, RUNTIME, Count, DropProbability, Formerly, Group, ReadIf, Role

Positive = Annotated[float, Field(gt=0)]


class Option(Group):
    """One choice within a group. `kind` names it; a kind with fields of its own has a class of its own."""

    kind: str

    @property
    def own(self) -> dict[str, Any]:
        """The fields that this kind reads, without `kind`: the arguments with which the part is built."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}


class Norm(Option):
    """The normalisation of one vector per token. The placement group decides where it is applied."""


class ScaleNorm(Norm):
    """ScaleNorm with its gain g. `learn_g`: false keeps g at sqrt(d_model)."""

    learn_g: bool


class DyT(Norm):
    """Dynamic Tanh in the place of a norm. `alpha`: its initial value."""

    alpha: Positive


class Placement(Option):
    """The position of the norm around a sublayer."""


class Embedding(Option):
    """The scaling of word vectors, at the input and at the output."""


class AttentionNorm(Option):
    """Normalisation inside attention, such as that of queries and keys."""


class QKNorm(AttentionNorm):
    """Queries and keys of norm 1. `length`: tokens of a long sentence, which set the first scale of the scores."""

    length: Annotated[int, Field(ge=2)]


class FeedForward(Option):
    """The feed-forward network of a layer. Every kind has about the parameters of `relu` with `model.d_ff`."""


class Init(Option):
    """The scheme of initial weights."""


class Position(Option):
    """The encoding of a token's position."""


class LearnedPosition(Position):
    """A learned table of position vectors. `max_length`: its size; later positions share its last vector."""

    max_length: Count


class RotaryPosition(Position):
    """Queries and keys turned by their positions. `base`: base^(-2i / d_head) is the angle of features 2i, 2i + 1."""

    base: Positive


Site = Literal["encoder", "decoder", "cross"]
SITES = get_args(Site)


class DropHead(Option):
    """Rate, sites and schedule of DropHead; this kind never drops."""


class ConstantDropHead(DropHead):
    """`p`: probability that an attention head is dropped for a sentence."""

    p: DropProbability
    sites: Annotated[list[Site], AfterValidator(lambda sites: [site for site in SITES if site in sites])]

    def effective(self) -> Group:
        """Return DropHead `none` at rate 0 or without a site."""
        return self if self.p > 0 and self.sites else DropHead(kind="none")


class RampDropHead(ConstantDropHead):
    """A rate that changes until step `total_steps`."""

    total_steps: Count | None


class VShapeDropHead(RampDropHead):
    """A rate that falls until step `warmup_steps` and then rises."""

    warmup_steps: Annotated[int, Field(ge=0)]


class Schedule(Option):
    """The learning rate as a function of the step, or of validation."""


class Noam(Schedule):
    """The schedule with warm-up of Vaswani et al. 2017. `warmup_steps`: steps until the peak; 1 for no warm-up."""

    warmup_steps: Count


class Cosine(Noam):
    """A cosine schedule after a warm-up. `min_lr`: the rate of the last step."""

    min_lr: Annotated[float, Field(ge=0)]


class WSD(Noam):
    """Warm-up, a constant rate, and a decay at the end. `decay_share`: of all steps. `min_lr`: the last step's rate."""

    decay_share: Annotated[float, Field(gt=0, lt=1)]
    min_lr: Annotated[float, Field(ge=0)]


class Plateau(Schedule):
    """A rate that falls when validation stops improving.

    `decay` multiplies the rate after `decay_patience` validations without a better one; below `min_lr` training ends.
    """

    decay: Annotated[float, Field(gt=0, lt=1)]
    decay_patience: Count
    decay_monitor: Annotated[Literal["loss", "bleu"], Formerly("loss")]
    min_lr: Annotated[float, Field(ge=0)]


class Optim(Option):
    """The optimiser and the batch size. `lr`: peak learning rate. `batch_tokens`: padded tokens of the longer side."""

    lr: Positive | None
    clip: Positive | None
    batch_tokens: Count


class Adam(Optim):
    """Adam (Kingma and Ba 2015)."""

    beta1: Annotated[float, Field(ge=0, lt=1)]
    beta2: Annotated[float, Field(ge=0, lt=1)]
    eps: Positive


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). `weight_decay`: of matrices, times the rate."""

    weight_decay: Annotated[float, Field(ge=0)]


class Muon(AdamW):
    """Muon for the matrices of the layers, with its `momentum` (Jordan et al. 2024), and AdamW for all else."""

    momentum: Annotated[float, Field(ge=0, lt=1)]


class Logger(Option):
    """The tracker of a run, if any; the record on disk is authoritative. A sweep sets `group` and `arm`."""

    role: ClassVar[Role] = RUNTIME
    group: str | None
    arm: str | None


class WandbLogger(Logger):
    """Weights & Biases."""

    mode: Literal["offline", "online"]
    project: str
    entity: str | None


class Pruning(Option):
    """The choice of layers for pruning curves; this kind makes no curve."""

    role: ClassVar[Role] = EVALUATION


class RulePruning(Pruning):
    """The curves to make. `depths`: numbers of remaining layers; None: every number."""

    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1)]
    depths: list[Count] | None


class RandomPruning(RulePruning):
    """Random choice of layers. `seed` decides the draws."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]


class GreedyPruning(RulePruning):
    """`together`: shrink both stacks at once; otherwise each while the other stays whole."""

    together: Annotated[bool, ReadIf(("curves",), lambda curves: "both" in curves, "both in pruning.curves")]


class SearchPruning(GreedyPruning):
    """The size of the search over sets of layers."""

    exhaustive: Annotated[int, Field(ge=0)]
    beam: Count
    budget: Count
    finalists: Count


OPTIONS: dict[str, dict[str, type[Option]]] = {
    "norm": {"": Norm, "scalenorm": ScaleNorm, "dyt": DyT},
    "placement": {"": Placement},
    "embedding": {"": Embedding},
    "attention_norm": {"": AttentionNorm, "qk": QKNorm},
    "feed_forward": {"": FeedForward},
    "init": {"": Init},
    "position": {"": Position, "learned": LearnedPosition, "rope": RotaryPosition},
    "drophead": {
        "": DropHead,
        "constant": ConstantDropHead,
        "rising": RampDropHead,
        "falling": RampDropHead,
        "vshape": VShapeDropHead,
    },
    "schedule": {"": Schedule, "noam": Noam, "cosine": Cosine, "wsd": WSD, "plateau": Plateau},
    "optim": {"": Optim, "adam": Adam, "adamw": AdamW, "muon": Muon},
    "pruning": {
        "": RulePruning,
        "none": Pruning,
        "random": RandomPruning,
        "greedy": GreedyPruning,
        "search": SearchPruning,
    },
    "logger": {"": Logger, "wandb": WandbLogger},
}
"""For each group whose options have fields of their own, the class of each kind; "" stands for all other kinds."""


def class_of(group: str, kind: object) -> type[Group] | None:
    """Return the class that validates an option of this kind; None if there is no such kind."""
    if group == "data":
        return CORPORA.get(str(kind))
    if kind not in named_values(group, "kind"):
        return None
    return OPTIONS[group].get(str(kind), OPTIONS[group][""])


def option(group: str, values: Mapping[str, Any]) -> Group:
    """Return plain values as the option that their `kind` names; UserError for a bad kind or field."""
    kind = values.get("kind")
    found = class_of(group, kind)
    if found is None:
        raise UserError(f"{group}.kind={kind}: unknown; {choices(kind, named_values(group, 'kind'))}")
    try:
        return found.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(first_error(error, values, f"{group}.")) from None


def fields_of(group: str, option: str) -> Collection[str] | None:
    """Return the names of the fields that an option reads; None for groups whose options all read the same."""
    if group not in OPTIONS:
        return None
    found = class_of(group, option_values(group, option).get("kind"))
    return None if found is None else found.model_fields


@cache
def fields_of_options() -> Mapping[str, Role]:
    """Return dotted name and role of every field of every kind."""
    return {
        name: role
        for group in (*OPTIONS, "data")
        for kind in sorted(named_values(group, "kind"))
        if (found := class_of(group, kind)) is not None
        for name, role in found.walk(f"{group}.")
    }


@cache
def readers(key: str) -> tuple[str, ...]:
    """Return the options of the group in `group.field` that read the field."""
    group, _, field = key.partition(".")
    return tuple(_reading(group, field))


def _reading(group: str, field: str) -> Iterator[str]:
    for name in groups()[group]:
        found = class_of(group, option_values(group, name).get("kind"))
        if found is not None and field in found.model_fields:
            yield name
