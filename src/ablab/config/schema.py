"""The schema: every field that a user can set, with its type, its range and its role.

There are no defaults here; the YAML files under conf/ hold them, each in one place.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, InstanceOf, PlainValidator

from ablab.config.folder import named_values
from ablab.corpora.base import Corpus
from ablab.errors import choices
from ablab.fields import EVALUATION, RUNTIME, Count, DropProbability, Group, Probability, Role

Positive = Annotated[float, Field(gt=0)]


OF_A_SWEEP = ("rerun", "retry_failed", "fail_fast")
"""Fields that say how a sweep goes: no run of it must see them."""


def _named(group: str, field: str) -> AfterValidator:
    def check(value: str) -> str:
        allowed = named_values(group, field)
        if value not in allowed:
            raise ValueError(choices(value, allowed))
        return value

    validate: Callable[[str], str] = check
    return AfterValidator(validate)


def _yes_no_or_stale(value: object) -> object:
    if value is True or value is False or value == "stale":
        return value
    raise ValueError("allowed: true, false, stale")


class Model(Group):
    """The architecture's numbers."""

    d_model: Annotated[int, Field(ge=2, multiple_of=2)]
    d_ff: Count
    num_heads: Count
    encoder_layers: Count
    decoder_layers: Count
    dropout: DropProbability
    embedding_dropout: DropProbability
    attention_dropout: DropProbability
    activation_dropout: DropProbability
    word_dropout: Probability
    attention_bias: Literal["all", "no_key", "none"]
    tie: Literal["all", "source_target", "target_output", "none"]


class Norm(Group):
    """Which norm, where, and whether word vectors are normalised too."""

    placement: Annotated[str, _named("norm", "placement")]
    kind: Annotated[str, _named("norm", "kind")]
    learn_g: bool
    fixnorm: bool


class Init(Group):
    """The scheme of initial weights."""

    kind: Annotated[str, _named("init", "kind")]


class Position(Group):
    """How a token knows its place. `max_length` is the size of a learned table."""

    kind: Annotated[str, _named("position", "kind")]
    max_length: Count


class DropHead(Group):
    """Rate, sites and schedule of DropHead."""

    schedule: Annotated[str, _named("drophead", "schedule")]
    p: DropProbability
    sites: list[Literal["encoder", "decoder", "cross"]]
    warmup_steps: Annotated[int, Field(ge=0)]
    total_steps: Count | None


class Optim(Group):
    """Adam and its learning rate. `batch_tokens`: padded tokens of a step, the larger side."""

    schedule: Annotated[str, _named("optim", "schedule")]
    lr: Positive | None
    warmup_steps: Annotated[int, Field(ge=0)]
    decay: Annotated[float, Field(gt=0, lt=1)]
    decay_patience: Annotated[int, Field(ge=0)]
    min_lr: Annotated[float, Field(ge=0)]
    beta1: Annotated[float, Field(ge=0, lt=1)]
    beta2: Annotated[float, Field(ge=0, lt=1)]
    eps: Positive
    clip: Positive | None
    batch_tokens: Count


class Training(Group):
    """When training ends, and which weights count."""

    max_steps: Count | None
    max_epochs: Count | None
    max_minutes: Positive | None
    patience: Count | None
    valid_every: Count
    monitor: Literal["bleu", "loss"]
    select: Literal["averaged", "best", "last"]
    average_last: Count
    precision: Literal["fp32", "bf16"]
    label_smoothing: DropProbability


class Decoding(Group):
    """How test sentences are translated."""

    role: ClassVar[Role] = EVALUATION
    beam_size: Count
    length_penalty: Annotated[float, Field(ge=0)]
    n_best: Count
    max_extra_tokens: Annotated[int, Field(ge=0)]


class Trainer(Group):
    """Devices only: where the same numbers are computed. `threads`: of the whole run. `compile`: the layers."""

    role: ClassVar[Role] = RUNTIME
    accelerator: Literal["cpu", "gpu"]
    devices: Count
    threads: Count | None
    micro_batches: Count
    compile: bool
    progress: bool


class Logger(Group):
    """Where a run is mirrored to. The record on disk is the truth."""

    role: ClassVar[Role] = RUNTIME
    kind: Annotated[str, _named("logger", "kind")]
    mode: Literal["offline", "online"]
    project: str
    entity: str | None
    group: str | None
    arm: str | None


class Pruning(Group):
    """Which depth-quality curves are made of the trained model, and how their layers are chosen."""

    role: ClassVar[Role] = EVALUATION
    strategy: Annotated[str, _named("pruning", "strategy")]
    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1)]
    depths: list[Count] | None
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    exhaustive: Annotated[int, Field(ge=0)]
    beam: Count
    budget: Count
    finalists: Count
    together: bool


class Architecture(Group):
    """What a model is made of: all that is needed to put weights back into it."""

    layerdrop_encoder: Probability
    layerdrop_decoder: Probability
    layerdrop_rates: Literal["uniform", "linear", "learned"]
    model: Model
    norm: Norm
    position: Position
    drophead: DropHead


class Config(Architecture):
    """All that decides a run, how it is judged, and where it is computed."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]
    layerdrop: Probability
    init_from: Annotated[str, Field(min_length=1)] | None
    data: InstanceOf[Corpus]
    init: Init
    optim: Optim
    training: Training
    decoding: Decoding
    pruning: Pruning
    trainer: Trainer
    logger: Logger
    outputs: Annotated[str, Field(min_length=1), RUNTIME]
    smoke: Annotated[bool, RUNTIME]
    experiment: Annotated[str | None, RUNTIME]
    rerun: Annotated[bool | Literal["stale"], PlainValidator(_yes_no_or_stale), RUNTIME]
    retry_failed: Annotated[bool, RUNTIME]
    fail_fast: Annotated[bool, RUNTIME]
    search_trial: Annotated[str | None, RUNTIME]

    @property
    def peak_rate(self) -> float:
        """The largest learning rate; unless given, (d_model * warmup)^-0.5 (Vaswani et al. 2017, eq. 3 at warm-up)."""
        if self.optim.lr is not None:
            return self.optim.lr
        return float((self.model.d_model * self.optim.warmup_steps) ** -0.5)
