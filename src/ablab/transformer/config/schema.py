"""The schema of a translation run: its fields beside those of every task, and the rules on their combinations."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ablab.config.options import PartGroup
from ablab.config.schema import Config
from ablab.fields import (
    EVALUATION,
    Count,
    DropProbability,
    Formerly,
    Group,
    ReadIf,
    Role,
    WholeNumber,
)
from ablab.tasks.plan import PlannedRun
from ablab.transformer.config.former import GONE, MEANT, WORDS, of_schema_1
from ablab.transformer.config.options import PARTS, FeedForwardOption, removes_heads
from ablab.transformer.config.training import BY_SCORE, Dimensions, PartsOfModel, Training, TransformerConfig
from ablab.transformer.data.corpus import EXTRA_TOKENS, Parallel, extra_tokens


class Model(Dimensions):
    """Dimensions and dropout rates of the architecture."""

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


class TranslationTraining(Training):
    """The end of training and the selection of weights, by either score of validation."""

    monitor: Annotated[
        Literal["bleu", "loss"],
        ReadIf(
            ("select", "patience"),
            lambda select, patience: select in BY_SCORE or patience is not None,
            f"training.select={', '.join(BY_SCORE)}, or training.patience",
        ),
    ]
    max_extra_tokens: Annotated[WholeNumber | None, Formerly(EXTRA_TOKENS)]


class Decoding(Group):
    """The translation of test sentences."""

    role: ClassVar[Role] = EVALUATION
    beam_size: Count
    length_penalty: Annotated[
        float, Field(ge=0, le=10), ReadIf(("beam_size",), lambda beam_size: beam_size > 1, "decoding.beam_size above 1")
    ]
    n_best: Count
    max_extra_tokens: WholeNumber | None
    engine: Annotated[Literal["own", "ctranslate2"], Formerly("own")]
    precision: Annotated[
        Literal["fp32", "bf16"],
        Formerly("fp32"),
        ReadIf(("engine",), lambda engine: engine == "own", "decoding.engine=own"),
    ]
    quantization: Annotated[
        Literal["float32", "int8"],
        Formerly("float32"),
        ReadIf(("engine",), lambda engine: engine == "ctranslate2", "decoding.engine=ctranslate2"),
    ]


class Architecture(PartsOfModel):
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
    feed_forward: Annotated[FeedForwardOption, Formerly({"kind": "relu"})]


class TranslationConfig(Architecture, TransformerConfig):
    """All settings that decide a translation run."""

    parts: ClassVar[Mapping[str, PartGroup]] = {**Config.parts, **PARTS}
    grouped: ClassVar[tuple[str, ...]] = ("layerdrop", "seed")
    words: ClassVar[Mapping[str, str]] = WORDS
    gone: ClassVar[Mapping[str, str]] = GONE
    meant: ClassVar[Mapping[tuple[str, str], str]] = MEANT
    monitors: ClassVar[tuple[str, ...]] = ("loss", "bleu")
    architecture: ClassVar[type[Group]] = Architecture

    layerdrop: DropProbability
    data: Parallel
    training: TranslationTraining
    decoding: Decoding

    def violations(self) -> Iterator[str]:
        yield from _vocabulary(self)
        yield from _decoding(self)
        yield from super().violations()

    @classmethod
    def of_schema_1(cls, recorded: Mapping[str, Any]) -> dict[str, Any]:
        return of_schema_1(recorded)

    @property
    def monitor(self) -> str:
        return self.training.monitor

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


PlannedTranslation = PlannedRun[TranslationConfig]
"""The plan of a translation run."""


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
    if decoding.engine != "own" and removes_heads(config.pruning):
        yield (
            f"decoding.engine={decoding.engine}: takes no model that lacks heads; allowed with pruning.what=heads or "
            "pruning=importance: own"
        )
