"""The settings of every task that trains a Transformer: what training reads, and the rules on its combinations."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ablab.config.kinds import asks_for
from ablab.config.options import PartGroup
from ablab.config.schema import Config
from ablab.fields import Count, DropProbability, Formerly, Group, Positive, ReadIf, as_typed
from ablab.transformer.config.options import (
    PARTS,
    AttentionNormOption,
    DropHeadOption,
    EmbeddingOption,
    FeedForwardOption,
    ImportancePruning,
    InitOption,
    LossOption,
    NormOption,
    OptimOption,
    PlacementOption,
    PositionOption,
    Pruning,
    RulePruning,
    ScheduleOption,
    removes_heads,
)

BY_SCORE = ("averaged", "best_or_averaged", "best")
_AVERAGES = ("averaged", "averaged_last", "best_or_averaged")
"""Methods of selecting weights: those that depend on validation scores, and those that average."""

BEST_OF_SEVERAL = {"best": "the best of {} validations", "best_or_averaged": "the best of {} validations or their mean"}
"""Those that compare the very scores that they select, in words."""


SMOKE_STEPS = 8

SMALL: dict[str, dict[str, Any]] = {
    "data": {
        "train_pairs": 400,
        "valid_pairs": 16,
        "test_pairs": 16,
        "vocab_size": 300,
        # A text of many characters needs more pieces, a small one gives fewer.
        "hard_vocab_limit": False,
        # For the built-in corpus, which would otherwise be generated whole.
        "train_size": 400,
        "valid_size": 16,
        "test_size": 16,
        "train_documents": 400,
        "valid_documents": 16,
        "test_documents": 16,
    },
    "optim": {"batch_tokens": 512},
    "training": {
        "max_steps": SMOKE_STEPS,
        "valid_every": SMOKE_STEPS // 2,
        "average_every": SMOKE_STEPS // 2,
        "average_last": 2,
    },
}


def _at_most(given: Any, limit: int) -> Any:
    """Return the smaller one. What is no number stays as it is: validation refuses it."""
    return min(given, limit) if isinstance(given, int | float) else given


class Training(Group):
    """The end of training and the selection of weights."""

    max_steps: Count | None
    max_epochs: Count | None
    max_minutes: Positive | None
    patience: Count | None
    valid_every: Count
    select: Literal["averaged", "averaged_last", "best_or_averaged", "best", "last"]
    average_last: Annotated[
        Count, ReadIf(("select",), lambda select: select in _AVERAGES, f"training.select={', '.join(_AVERAGES)}")
    ]
    average_every: Annotated[
        Count | None,
        Formerly(None),
        ReadIf(("select",), lambda select: select == "averaged_last", "training.select=averaged_last"),
    ]
    precision: Literal["fp32", "bf16"]
    label_smoothing: DropProbability


class Dimensions(Group):
    """Dimensions of a model. A task adds the layers of each stack, and rates of dropout."""

    d_model: Annotated[int, Field(ge=2, multiple_of=2)]
    d_ff: Count
    num_heads: Count

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that parts may ask for, by name; a stack that a model lacks has no layers."""
        names = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
        return {**{name: getattr(self, name, 0) for name in names}, "d_head": self.d_model // self.num_heads}


class PartsOfModel(Group):
    """The parts that every model is composed of."""

    norm: NormOption
    placement: PlacementOption
    embedding: EmbeddingOption
    attention_norm: AttentionNormOption
    feed_forward: FeedForwardOption
    position: PositionOption
    drophead: DropHeadOption


class TransformerConfig(PartsOfModel, Config):
    """All settings that decide a training, whatever is trained. A task derives from it and adds its model and data.

    `monitors`: the validation scores by which a rate may decay. `smallest`: the most that a smoke run has of each
    setting, by group. `architecture`: the fields that loading weights needs.
    """

    parts: ClassVar[Mapping[str, PartGroup]] = {**Config.parts, **PARTS}
    monitors: ClassVar[tuple[str, ...]] = ("loss",)
    smallest: ClassVar[Mapping[str, Mapping[str, Any]]] = SMALL
    architecture: ClassVar[type[Group]]

    init_from: Annotated[str, Field(min_length=1)] | None
    model: Any
    layerdrop_rates: Any
    init: Annotated[InitOption, ReadIf(("init_from",), lambda init_from: init_from is None, "init_from=null")]
    optim: OptimOption
    schedule: ScheduleOption
    loss: Annotated[LossOption, Formerly({"kind": "label_smoothing"})]
    training: Training
    pruning: Pruning

    @classmethod
    def shrink(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with few pairs and few steps; values that are already smaller stay."""
        small = super().shrink(values)
        for group, limits in cls.smallest.items():
            small[group] = {**values[group]}
            for key, limit in limits.items():
                if key not in values[group]:
                    continue
                given = values[group][key]
                small[group][key] = limit if given is None else _at_most(given, limit)
        warmup = _at_most(values["schedule"].get("warmup_steps", SMOKE_STEPS), SMOKE_STEPS // 2)
        small["optim"] |= {"lr": values["optim"]["lr"] or 1e-3}
        for group, limits in (
            ("schedule", {"warmup_steps": warmup}),
            ("drophead", {"warmup_steps": warmup, "total_steps": SMOKE_STEPS}),
        ):
            small[group] = {**values[group], **{key: limit for key, limit in limits.items() if key in values[group]}}
        return small

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that parts may ask for, by name."""
        sizes: dict[str, int] = self.model.sizes
        return sizes

    @property
    def layers(self) -> dict[str, int]:
        """The number of layers of each stack."""
        return {
            stack: self.sizes[f"{stack}_layers"] for stack in ("encoder", "decoder") if self.sizes[f"{stack}_layers"]
        }

    @property
    def attentions(self) -> int:
        """The number of attentions, each of which has `model.num_heads` heads."""
        encoder, decoder = self.sizes["encoder_layers"], self.sizes["decoder_layers"]
        return encoder + 2 * decoder if encoder else decoder

    @property
    def monitor(self) -> str:
        """The validation score that selects weights and decides on patience."""
        return "loss"

    def violations(self) -> Iterator[str]:
        yield from _pruning(self)
        yield from _heads(self)
        yield from _end_of_training(self)
        yield from _drophead(self)
        yield from _schedule(self)
        yield from super().violations()

    @property
    def peak_rate(self) -> float:
        """The largest learning rate; unless given, (d_model * warmup)^-0.5 (Vaswani et al. 2017, eq. 3 at warm-up)."""
        if self.optim.lr is not None:
            return self.optim.lr
        # The rules require a warm-up here.
        return float((self.sizes["d_model"] * self.schedule.own["warmup_steps"]) ** -0.5)


def _heads(config: TransformerConfig) -> Iterator[str]:
    d_model, heads = config.sizes["d_model"], config.sizes["num_heads"]
    if d_model % heads:
        yield f"model.num_heads={heads}: d_model must be divisible by num_heads, got d_model={d_model}"
    elif config.position.kind == "rope" and d_model // heads % 2:
        width = d_model // heads
        yield f"position=rope: turns the features of a head in pairs, so d_model / num_heads must be even, got {width}"


def _end_of_training(config: TransformerConfig) -> Iterator[str]:
    training = config.training
    ends = (training.max_steps, training.max_epochs, training.max_minutes, training.patience)
    if all(end is None for end in ends):
        yield (
            "training.max_steps=null: training must end; set one of training.max_steps, training.max_epochs, "
            "training.max_minutes, training.patience"
        )


def _drophead(config: TransformerConfig) -> Iterator[str]:
    own = config.drophead.own
    warmup, total = own.get("warmup_steps"), own.get("total_steps")
    if warmup is not None and total is not None and warmup >= total:
        yield (
            f"drophead.warmup_steps={warmup}: must be below drophead.total_steps={total} "
            "(by default training.max_steps)"
        )


def _schedule(config: TransformerConfig) -> Iterator[str]:
    schedule, total = config.schedule, config.training.max_steps
    warmup, floor = schedule.own.get("warmup_steps"), schedule.own.get("min_lr")
    monitor = schedule.own.get("decay_monitor", "loss")
    if monitor not in config.monitors:
        yield f"schedule.decay_monitor={monitor}: no score of validation; allowed: {', '.join(config.monitors)}"
    if config.optim.lr is None and warmup is None:
        yield (
            f"optim.lr=null: only a warm-up gives a usual rate, and schedule={schedule.kind} has none; "
            "allowed: a number"
        )
        return
    if asks_for(schedule, "total"):
        if total is None:
            yield (
                f"schedule={schedule.kind}: the rate depends on the last step, so it needs training.max_steps, got null"
            )
        elif warmup is not None and warmup >= total:
            yield (
                f"schedule.warmup_steps={warmup}: must be below training.max_steps={total}, where {schedule.kind} ends"
            )
    if floor is not None and floor > config.peak_rate:
        yield f"schedule.min_lr={floor:g}: must be at most the peak, {config.peak_rate:g}, from which the rate falls"


def _pruning(config: TransformerConfig) -> Iterator[str]:
    pruning, layers = config.pruning, config.layers
    if removes_heads(pruning):
        yield from _removed_heads(config)
        return
    if isinstance(pruning, ImportancePruning):
        yield (
            "pruning.what=layers: pruning=importance removes heads; allowed: pruning.what=heads, or "
            "pruning=every_other and others that remove layers"
        )
    if not isinstance(pruning, RulePruning):
        return
    if not {*pruning.curves} & ({*layers, "both"} if len(layers) > 1 else {*layers}):
        yield f"pruning.curves={as_typed(pruning.curves)}: the model has one stack; allowed: {as_typed([*layers])}"
        return
    most = {**layers, "both": max(layers.values())}
    for curve in (curve for curve in pruning.curves if curve in most):
        if pruning.depths is not None and max(pruning.depths, default=1) > most[curve]:
            yield (
                f"pruning.depths={pruning.depths}: of {most[curve]} layers ({curve}) so many cannot remain; "
                f"allowed: 1 to {most[curve]}"
            )
    if pruning.kind == "data_driven":
        yield from _learned_rates(config, pruning)


def _removed_heads(config: TransformerConfig) -> Iterator[str]:
    heads, wanted, attentions = config.sizes["num_heads"], config.pruning.own["heads"], config.attentions
    most = attentions * heads
    if heads == 1:
        yield (
            "pruning.what=heads: one head stays in each attention, so model.num_heads=1 leaves none to remove; "
            "allowed: pruning.what=layers, or more heads"
        )
    elif wanted is not None and not attentions <= min(wanted, default=0) <= max(wanted, default=0) <= most:
        yield (
            f"pruning.heads={as_typed(wanted)}: of {most} heads so many cannot remain, one in each attention at least; "
            f"allowed: {attentions} to {most}"
        )


def _learned_rates(config: TransformerConfig, pruning: RulePruning) -> Iterator[str]:
    for stack in config.layers:
        kind, rate = config.layerdrop_rates, getattr(config, f"layerdrop_{stack}")
        if (stack in pruning.curves or "both" in pruning.curves) and not (kind == "learned" and 0 < rate < 1):
            yield (
                "pruning=data_driven: keeps the layers that training has learned to drop least, so it needs "
                f"training with layerdrop_rates=learned and layerdrop{f'_{stack}' if len(config.layers) > 1 else ''} "
                f"between 0 and 1, got {kind} and {rate:g}"
            )
