"""The configuration schema: every field that a user can set, with its type, its range and its role.

Options with fields of their own are in options.py. There are no defaults here; the YAML files under conf/ hold them,
each in one place.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, InstanceOf, PlainValidator

from ablab.code.folders import user_confs
from ablab.config.groups import groups
from ablab.config.kinds import fields_of_options, option, texts_of_options
from ablab.config.options import (
    OPTIONS,
    AttentionNorm,
    DropHead,
    Embedding,
    FeedForward,
    Init,
    Logger,
    Loss,
    Norm,
    Optim,
    Placement,
    Position,
    Pruning,
    Schedule,
    TaskOption,
)
from ablab.fields import (
    EVALUATION,
    RUNTIME,
    Count,
    DropProbability,
    Formerly,
    Group,
    Positive,
    ReadIf,
    Role,
    Text,
    WholeNumber,
    text_type,
)
from ablab.transformer.data.corpus import EXTRA_TOKENS, Corpus, extra_tokens

OF_A_SWEEP = ("rerun", "retry_failed", "fail_fast")
"""Fields that control a sweep; its runs must not receive them."""


def _yes_no_or_stale(value: object) -> object:
    if value is True or value is False or value == "stale":
        return value
    raise ValueError("allowed: true, false, stale")


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


class Trainer(Group):
    """Hardware and execution of a run, which computes the same numbers under any of them.

    `threads`: of the whole run. `compile`: the layers. `checkpoint_every`: minutes.
    """

    role: ClassVar[Role] = RUNTIME
    accelerator: Literal["cpu", "gpu"]
    devices: Count
    threads: Count | None
    micro_batches: Count
    checkpoint_every: Positive | None
    compile: bool
    progress: bool


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
    norm: Norm
    placement: Placement
    embedding: Embedding
    attention_norm: AttentionNorm
    feed_forward: Annotated[FeedForward, Formerly({"kind": "relu"})]
    position: Position
    drophead: DropHead


class Config(Architecture):
    """All settings that decide a run, its evaluation, and where it is computed."""

    task: Annotated[TaskOption, Formerly({"kind": "translation"})]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    layerdrop: DropProbability
    init_from: Annotated[str, Field(min_length=1)] | None
    data: InstanceOf[Corpus]
    init: Annotated[Init, ReadIf(("init_from",), lambda init_from: init_from is None, "init_from=null")]
    optim: Optim
    schedule: Schedule
    loss: Annotated[Loss, Formerly({"kind": "label_smoothing"})]
    training: Training
    decoding: Decoding
    pruning: Pruning
    trainer: Trainer
    logger: Logger
    outputs: Annotated[str, Field(min_length=1), RUNTIME]
    smoke: Annotated[bool, RUNTIME]
    experiment: Annotated[str | None, RUNTIME]
    mixed: Annotated[bool, RUNTIME]
    wait: Annotated[bool, RUNTIME]
    rerun: Annotated[bool | Literal["stale"], PlainValidator(_yes_no_or_stale), RUNTIME]
    retry_failed: Annotated[bool, RUNTIME]
    fail_fast: Annotated[bool, RUNTIME]
    search_trial: Annotated[str | None, RUNTIME]

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
        # config.rules requires a warm-up here.
        return float((self.model.d_model * self.schedule.own["warmup_steps"]) ** -0.5)


OF_EVERY_TASK = (
    *("task", "trainer", "logger", "seed", "outputs", "smoke", "experiment", "mixed", "wait", "search_trial"),
    *OF_A_SWEEP,
)
"""Groups and fields that runs of every task have; the others are those of translation."""


def all_fields(corpus: type[Corpus] | None = None) -> Mapping[str, Role]:
    """Return dotted name and role of every field that some configuration has; with `corpus`, some configuration of it.

    A field of two corpora may be part of the recipe in only one of them: paths are, where nothing else identifies the
    text.
    """
    return _all_fields(corpus, user_confs())


@cache
def _all_fields(corpus: type[Corpus] | None, confs: Sequence[Path]) -> Mapping[str, Role]:
    fields = {name: role for name, role in Config.walk() if not name.startswith("data.")} | dict(fields_of_options())
    if corpus is None:
        return fields
    own = dict(corpus.walk("data."))
    return {name: role for name, role in fields.items() if not name.startswith("data.")} | own


def text_fields() -> Mapping[str, Text]:
    """Return the dotted name of every field whose values are text, and which text."""
    return _text_fields(user_confs())


@cache
def _text_fields(confs: Sequence[Path]) -> Mapping[str, Text]:
    own = {name: found for name, kind in Config.types() if (found := text_type(kind)) is not None}
    return {**own, **texts_of_options(confs)}


def text_of(key: str) -> Text | None:
    """Return what kind of text the values of a key are; None where they are none."""
    return Text.ONE if key in groups() else text_fields().get(key)


def with_options(kind: type[Architecture], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each option's plain values by an instance of its kind's class; UserError for a bad kind or field."""
    filled = dict(values)
    for group in (*OPTIONS, "data"):
        if group not in kind.model_fields:
            continue
        formerly = kind.marks()[group].formerly
        if group not in filled and formerly is not None:
            filled[group] = formerly.value
        if isinstance(filled.get(group), Mapping):
            filled[group] = option(group, filled[group])
    return filled
