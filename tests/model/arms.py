"""Small models of every arm in float64, and sentences to put into them."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ablab.config import compose
from ablab.config.groups import groups, option_values
from ablab.config.kinds import option
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.tokens import BOS, EOS, PAD, SPECIAL
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.stages.models import build_model

VOCAB = 24
SIZE = (
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=4",
    "model.encoder_layers=2",
    "model.decoder_layers=3",
)
NORMS = {
    **{option: (f"norm={option}",) for option in groups()["norm"]},
    "post_scalenorm": ("norm=scalenorm", "placement=post"),
    "scalenorm_fixed_g": ("norm=scalenorm", "norm.learn_g=false"),
}
VARIANTS: dict[str, tuple[str, ...]] = {
    **NORMS,
    "sandwich": ("placement=sandwich",),
    "gelu": ("feed_forward=gelu",),
    "gelu_tanh": ("feed_forward=gelu_tanh",),
    "swiglu": ("feed_forward=swiglu",),
    "rope": ("position=rope",),
    "unplaced": ("position=none",),
}
"""By name, the words of every model whose parts or their order differ; all keep the same laws."""
NO_DROPOUT = {"model.dropout": 0.0, "model.embedding_dropout": 0.0}
ALL_DROPOUT = {f"model.{kind}dropout": 0.2 for kind in ("", "embedding_", "attention_", "activation_")}
ALL_RATES = {**ALL_DROPOUT, "model.word_dropout": 0.5, "layerdrop_encoder": 0.5, "layerdrop_decoder": 0.5}


class Arm(NamedTuple):
    """One cell of the ablation."""

    norm: str
    layerdrop: float = 0.0
    drophead: float = 0.0
    changes: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """As pytest shows it."""
        return "-".join(str(part) for part in (*self[:3], *self.changes.values()))

    def build(self, changes: Mapping[str, Any] | None = None) -> Transformer:
        """The model of this arm, in float64, with further changes."""
        rates = {"layerdrop_encoder": self.layerdrop, "layerdrop_decoder": self.layerdrop}
        return build(self.norm, {**rates, **self.changes, **(changes or {})}, drophead=self.drophead)


CROSSED = (
    "post",
    "pre",
    "fixnorm",
    "scalenorm",
    "scalenorm_fixnorm",
    "rmsnorm",
    "post_scalenorm",
    "scalenorm_fixed_g",
)
"""Tested with and without each regulariser; the others with both at once."""

OTHER_ARMS = [
    Arm("pre", changes={"position.kind": "learned"}),
    *(Arm("scalenorm_fixnorm", changes={"model.tie": tie}) for tie in ("source_target", "target_output", "none")),
    Arm("post", changes={"model.tie": "none"}),
    Arm("pre", changes={"model.output_bias": True}),
    Arm("pre", changes={"embedding.kind": "plain"}),
    *(Arm(norm, changes={"model.attention_bias": bias}) for norm in ("pre", "post") for bias in ("all", "none")),
]
ARMS = [
    *(Arm(norm, layerdrop, drophead) for norm in CROSSED for layerdrop in (0.0, 0.2) for drophead in (0.0, 0.3)),
    *(Arm(norm, 0.2, 0.3) for norm in VARIANTS if norm not in CROSSED),
    *OTHER_ARMS,
]
EVALUATED_ARMS = [*(Arm(norm, 0.2, 0.3, {"model.word_dropout": 0.1}) for norm in VARIANTS), *OTHER_ARMS]
"""Evaluation ignores rates (a law of its own), so its other laws need each norm once: with all rates on."""


@cache
def composed(*words: str) -> TranslationConfig:
    """What a user would type, of a small size."""
    return compose([*SIZE, *words]).config


def vary(config: TranslationConfig, changes: Mapping[str, Any]) -> TranslationConfig:
    """The same with some fields changed, by dotted name; much faster than composing again."""
    for key, value in changes.items():
        group, _, field = key.rpartition(".")
        if field == "kind":
            field, value = group, option(group, option_values(group, value))
        elif group:
            field, value = group, getattr(config, group).model_copy(update={field: value})
        config = config.model_copy(update={field: value})
    return config


def build(norm: str = "pre", changes: Mapping[str, Any] | None = None, *, drophead: float = 0.0) -> Transformer:
    """A small model in float64."""
    config = vary(composed(*VARIANTS[norm], *(["drophead=constant"] if drophead else [])), changes or {})
    model = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double()
    for module in model.modules():
        if isinstance(module, DropHead):
            module.drop_prob = drophead
    return model


@torch.no_grad()
def stir(model: nn.Module) -> None:
    """Move every parameter, so that no bias is 0 and no gain 1."""
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))


def words(*shape: int, seed: int = 0) -> Tensor:
    """Random ordinary words."""
    return torch.randint(len(SPECIAL), VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def source(*lengths: int, seed: int = 0) -> Tensor:
    """Sentences of so many tokens, the last of them end-of-sentence, then padding."""
    rows = [words(length, seed=seed + i) for i, length in enumerate(lengths)]
    for row in rows:
        row[-1] = EOS
    return pad_sequence(rows, batch_first=True, padding_value=PAD)


def target(*lengths: int, seed: int = 100) -> Tensor:
    """Sentences of so many tokens, the first of them begin-of-sentence, then padding."""
    rows = [words(length, seed=seed + i) for i, length in enumerate(lengths)]
    for row in rows:
        row[0] = BOS
    return pad_sequence(rows, batch_first=True, padding_value=PAD)


def causal_mask(length: int) -> Tensor:
    """Position i may attend to positions 0..i."""
    return torch.ones(length, length, dtype=torch.bool).tril()
