"""The settings of every task that trains a Transformer: what training reads, and the rules on its combinations."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from ablab.config.kinds import asks_for
from ablab.config.options import PartGroup
from ablab.config.schema import Config
from ablab.fields import Count, DropProbability, Formerly, Group, Positive, ReadIf
from ablab.transformer.config.options import (
    PARTS,
    DropHeadOption,
    InitOption,
    LossOption,
    OptimOption,
    PositionOption,
    ScheduleOption,
)

BY_SCORE = ("averaged", "best_or_averaged", "best")
_AVERAGES = ("averaged", "averaged_last", "best_or_averaged")
"""Methods of selecting weights: those that depend on validation scores, and those that average."""


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


def shrink(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with few pairs and few steps; values that are already smaller stay."""
    small = dict(values)
    for group, limits in SMALL.items():
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


class TransformerConfig(Config):
    """All settings that decide a training, whatever is trained. A task derives from it and adds its model and data.

    `monitors`: the validation scores by which a rate may decay.
    """

    parts: ClassVar[Mapping[str, PartGroup]] = {**Config.parts, **PARTS}
    monitors: ClassVar[tuple[str, ...]] = ("loss",)

    model: Any
    position: PositionOption
    init: InitOption
    drophead: DropHeadOption
    optim: OptimOption
    schedule: ScheduleOption
    loss: Annotated[LossOption, Formerly({"kind": "label_smoothing"})]
    training: Training

    @classmethod
    def shrink(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return shrink(super().shrink(values))

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that parts may ask for, by name."""
        sizes: dict[str, int] = self.model.sizes
        return sizes

    @property
    def monitor(self) -> str:
        """The validation score that selects weights and decides on patience."""
        return "loss"

    def violations(self) -> Iterator[str]:
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
