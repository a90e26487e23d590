"""The schema of a translation run: its fields beside those of every task, and the rules on their combinations."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from ablab.config.kinds import asks_for
from ablab.config.options import PartGroup
from ablab.config.schema import DEFAULT, Config
from ablab.errors import UserError
from ablab.fields import (
    EVALUATION,
    Count,
    DropProbability,
    Formerly,
    Group,
    Positive,
    ReadIf,
    Role,
    WholeNumber,
    as_typed,
)
from ablab.tasks.plan import PlannedRun
from ablab.transformer.config.former import GONE, MEANT, WORDS, of_schema_1
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
from ablab.transformer.config.smoke import shrink
from ablab.transformer.data.corpus import EXTRA_TOKENS, Parallel, extra_tokens


class Model(Group):
    """Dimensions and dropout rates of the architecture."""

    d_model: Annotated[int, Field(ge=2, multiple_of=2)]
    d_ff: Count
    num_heads: Count
    encoder_layers: Count
    decoder_layers: Count
    dropout: DropProbability
    embedding_dropout: DropProbability
    attention_dropout: DropProbability
    activation_dropout: DropProbability
    word_dropout: DropProbability
    attention_bias: Annotated[Literal["all", "no_key", "none"], Formerly("all")]
    output_bias: Annotated[bool, Formerly(False)]
    tie: Literal["all", "source_target", "target_output", "none"]

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that parts may ask for, by name."""
        names = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
        return {**{name: getattr(self, name) for name in names}, "d_head": self.d_model // self.num_heads}


_BY_SCORE = ("averaged", "best_or_averaged", "best")
_AVERAGES = ("averaged", "averaged_last", "best_or_averaged")
"""Methods of selecting weights: those that depend on validation scores, and those that average."""


class Training(Group):
    """The end of training and the selection of weights."""

    max_steps: Count | None
    max_epochs: Count | None
    max_minutes: Positive | None
    patience: Count | None
    valid_every: Count
    monitor: Annotated[
        Literal["bleu", "loss"],
        ReadIf(
            ("select", "patience"),
            lambda select, patience: select in _BY_SCORE or patience is not None,
            f"training.select={', '.join(_BY_SCORE)}, or training.patience",
        ),
    ]
    select: Literal["averaged", "averaged_last", "best_or_averaged", "best", "last"]
    average_last: Annotated[
        Count, ReadIf(("select",), lambda select: select in _AVERAGES, f"training.select={', '.join(_AVERAGES)}")
    ]
    average_every: Annotated[
        Count | None,
        Formerly(None),
        ReadIf(("select",), lambda select: select == "averaged_last", "training.select=averaged_last"),
    ]
    max_extra_tokens: Annotated[WholeNumber | None, Formerly(EXTRA_TOKENS)]
    precision: Literal["fp32", "bf16"]
    label_smoothing: DropProbability


class Decoding(Group):
    """The translation of test sentences."""

    role: ClassVar[Role] = EVALUATION
    beam_size: Count
    length_penalty: Annotated[
        float, Field(ge=0), ReadIf(("beam_size",), lambda beam_size: beam_size > 1, "decoding.beam_size above 1")
    ]
    n_best: Count
    max_extra_tokens: WholeNumber | None


class Architecture(Group):
    """The composition of a model: everything needed to load weights into it."""

    layerdrop_encoder: DropProbability
    layerdrop_decoder: DropProbability
    layerdrop_rates: Annotated[
        Literal["uniform", "linear", "learned"],
        ReadIf(
            ("layerdrop_encoder", "layerdrop_decoder"),
            lambda encoder, decoder: encoder > 0 or decoder > 0,
            "layerdrop above 0",
        ),
    ]
    model: Model
    norm: NormOption
    placement: PlacementOption
    embedding: EmbeddingOption
    attention_norm: AttentionNormOption
    feed_forward: Annotated[FeedForwardOption, Formerly({"kind": "relu"})]
    position: PositionOption
    drophead: DropHeadOption


class TranslationConfig(Architecture, Config):
    """All settings that decide a translation run."""

    parts: ClassVar[Mapping[str, PartGroup]] = {**Config.parts, **PARTS}
    grouped: ClassVar[tuple[str, ...]] = ("layerdrop", "seed")
    words: ClassVar[Mapping[str, str]] = WORDS
    gone: ClassVar[Mapping[str, str]] = GONE
    meant: ClassVar[Mapping[tuple[str, str], str]] = MEANT

    layerdrop: DropProbability
    init_from: Annotated[str, Field(min_length=1)] | None
    data: Parallel
    init: Annotated[InitOption, ReadIf(("init_from",), lambda init_from: init_from is None, "init_from=null")]
    optim: OptimOption
    schedule: ScheduleOption
    loss: Annotated[LossOption, Formerly({"kind": "label_smoothing"})]
    training: Training
    decoding: Decoding
    pruning: Pruning

    def violations(self) -> Iterator[str]:
        yield from _violations(self)
        yield from super().violations()

    @classmethod
    def shrink(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return shrink(super().shrink(values))

    @classmethod
    def of_schema_1(cls, recorded: Mapping[str, Any]) -> dict[str, Any]:
        return of_schema_1(recorded)

    @property
    def valid_extra_tokens(self) -> int:
        """The tokens by which a translation of a validation source may exceed it."""
        return self._extra_tokens(self.training.max_extra_tokens)

    @property
    def test_extra_tokens(self) -> int:
        """The tokens by which a translation of a test source may exceed it."""
        return self._extra_tokens(self.decoding.max_extra_tokens)

    def _extra_tokens(self, given: int | None) -> int:
        return extra_tokens(self.data.tokenizer, self.data.max_tokens) if given is None else given

    @property
    def peak_rate(self) -> float:
        """The largest learning rate; unless given, (d_model * warmup)^-0.5 (Vaswani et al. 2017, eq. 3 at warm-up)."""
        if self.optim.lr is not None:
            return self.optim.lr
        # The rules require a warm-up here.
        return float((self.model.d_model * self.schedule.own["warmup_steps"]) ** -0.5)


PlannedTranslation = PlannedRun[TranslationConfig]
"""The plan of a translation run."""


def settings_of_translation(config: Config) -> TranslationConfig:
    """Return settings as those of a translation run; UserError for those of another task."""
    if not isinstance(config, TranslationConfig):
        raise UserError(f"task={config.task.kind}: no run in translation; allowed: task={DEFAULT}")
    return config


def plan_of_translation(planned: PlannedRun[Config]) -> PlannedTranslation:
    """Return a plan as that of a translation run; UserError for one of another task."""
    settings_of_translation(planned.config)
    return cast(PlannedTranslation, planned)


def _violations(config: TranslationConfig) -> Iterator[str]:
    """Yield every rule that the configuration breaks, as `key=value: requirement`."""
    yield from _heads(config)
    yield from _end_of_training(config)
    yield from _drophead(config)
    yield from _vocabulary(config)
    yield from _decoding(config)
    yield from _schedule(config)
    yield from _pruning(config)


def _heads(config: TranslationConfig) -> Iterator[str]:
    d_model, heads = config.model.d_model, config.model.num_heads
    if d_model % heads:
        yield f"model.num_heads={heads}: d_model must be divisible by num_heads, got d_model={d_model}"
    elif config.position.kind == "rope" and d_model // heads % 2:
        width = d_model // heads
        yield f"position=rope: turns the features of a head in pairs, so d_model / num_heads must be even, got {width}"


def _end_of_training(config: TranslationConfig) -> Iterator[str]:
    training = config.training
    ends = (training.max_steps, training.max_epochs, training.max_minutes, training.patience)
    if all(end is None for end in ends):
        yield (
            "training.max_steps=null: training must end; set one of training.max_steps, training.max_epochs, "
            "training.max_minutes, training.patience"
        )


def _drophead(config: TranslationConfig) -> Iterator[str]:
    own = config.drophead.own
    warmup, total = own.get("warmup_steps"), own.get("total_steps")
    if warmup is not None and total is not None and warmup >= total:
        yield (
            f"drophead.warmup_steps={warmup}: must be below drophead.total_steps={total} "
            "(by default training.max_steps)"
        )


def _vocabulary(config: TranslationConfig) -> Iterator[str]:
    tie, joint = config.model.tie, config.data.joint_vocab
    if not joint and tie in ("all", "source_target"):
        yield (
            f"model.tie={tie}: source and target can share a table only with data.joint_vocab=true; "
            "allowed with two vocabularies: target_output, none"
        )


def _decoding(config: TranslationConfig) -> Iterator[str]:
    decoding = config.decoding
    if decoding.n_best > decoding.beam_size:
        yield (f"decoding.n_best={decoding.n_best}: must be at most decoding.beam_size={decoding.beam_size}")


def _schedule(config: TranslationConfig) -> Iterator[str]:
    schedule, total = config.schedule, config.training.max_steps
    warmup, floor = schedule.own.get("warmup_steps"), schedule.own.get("min_lr")
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


def _pruning(config: TranslationConfig) -> Iterator[str]:
    pruning = config.pruning
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
    layers = {"encoder": config.model.encoder_layers, "decoder": config.model.decoder_layers}
    layers["both"] = max(layers.values())
    for curve in pruning.curves:
        if pruning.depths is not None and max(pruning.depths, default=1) > layers[curve]:
            yield (
                f"pruning.depths={pruning.depths}: of {layers[curve]} layers ({curve}) so many cannot remain; "
                f"allowed: 1 to {layers[curve]}"
            )
    if pruning.kind == "data_driven":
        yield from _learned_rates(config, pruning)


def _removed_heads(config: TranslationConfig) -> Iterator[str]:
    model, wanted = config.model, config.pruning.own["heads"]
    attentions = model.encoder_layers + 2 * model.decoder_layers
    most = attentions * model.num_heads
    if model.num_heads == 1:
        yield (
            "pruning.what=heads: one head stays in each attention, so model.num_heads=1 leaves none to remove; "
            "allowed: pruning.what=layers, or more heads"
        )
    elif wanted is not None and not attentions <= min(wanted, default=0) <= max(wanted, default=0) <= most:
        yield (
            f"pruning.heads={as_typed(wanted)}: of {most} heads so many cannot remain, one in each attention at least; "
            f"allowed: {attentions} to {most}"
        )


def _learned_rates(config: TranslationConfig, pruning: RulePruning) -> Iterator[str]:
    rates = {"encoder": config.layerdrop_encoder, "decoder": config.layerdrop_decoder}
    for stack, rate in rates.items():
        shrinks = stack in pruning.curves or "both" in pruning.curves
        if shrinks and not (config.layerdrop_rates == "learned" and 0 < rate < 1):
            yield (
                "pruning=data_driven: keeps the layers that training has learned to drop least, so it needs "
                f"training with layerdrop_rates=learned and layerdrop_{stack} between 0 and 1, "
                f"got {config.layerdrop_rates} and {rate:g}"
            )
