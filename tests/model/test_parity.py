"""The stacks against torch.nn's, weights copied, in float64."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ablab.transformer.model.attention import BIASES
from ablab.transformer.model.layers import DecoderLayer, EncoderLayer
from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import Decoder, Encoder, Transformer, padding_mask
from tests.model.arms import NO_DROPOUT, build, causal_mask, source, stir, target
from tests.model.handed import hand_attention, hand_linear

CLOSE = {"rtol": 0, "atol": 1e-10}
PLACEMENTS = ("pre", "post")
LENGTHS = [(5, 2, 7), (4, 4, 4)]
WIDTHS = {"d_model": 16, "nhead": 4, "dim_feedforward": 24, "dropout": 0.0}


def hand_layer(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    hand_attention(ours.self_attention, theirs.self_attn)
    norms = [ours.around_self_attention.norm, ours.around_feed_forward.norm]
    if isinstance(ours, DecoderLayer):
        hand_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, ours.around_cross_attention.norm)
    hand_linear(ours.feed_forward.inner, theirs.linear1)
    hand_linear(ours.feed_forward.outer, theirs.linear2)
    for i, norm in enumerate(norms, 1):
        hand_linear(norm, getattr(theirs, f"norm{i}"))


def reference(stack: Encoder | Decoder, placement: str) -> nn.Module:
    """torch.nn's stack with the same weights."""
    options = {**WIDTHS, "batch_first": True, "norm_first": placement == "pre"}
    final = nn.LayerNorm(16) if placement == "pre" else None
    depth = len(stack.layers)
    if isinstance(stack, Encoder):
        layer = nn.TransformerEncoderLayer(**options)
        theirs = nn.TransformerEncoder(layer, depth, norm=final, enable_nested_tensor=False)
    else:
        theirs = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), depth, norm=final)
    theirs = theirs.double()
    for ours, layer in zip(stack.layers, theirs.layers, strict=True):
        hand_layer(ours, layer)
    if final is not None:
        hand_linear(stack.final_norm, theirs.norm)
    return theirs


def decode(theirs: nn.Module, x: Tensor, memory: Tensor, src: Tensor, tgt: Tensor) -> Tensor:
    """torch.nn's masks: True = may not attend."""
    return theirs(
        x,
        memory,
        tgt_mask=~causal_mask(x.size(1)),
        tgt_key_padding_mask=tgt == PAD,
        memory_key_padding_mask=src == PAD,
    )


def stirred(placement: str, bias: str = "no_key") -> Transformer:
    model = build(placement, {**NO_DROPOUT, "model.attention_bias": bias})
    stir(model)
    return model


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_encoder_equals_torch(placement, lengths):
    encoder = stirred(placement).encoder
    src = source(*lengths)
    x = torch.randn(*src.shape, 16, dtype=torch.float64)
    expected = reference(encoder, placement)(x, src_key_padding_mask=src == PAD)
    assert_close(encoder(x, padding_mask(src)), expected, **CLOSE)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_decoder_equals_torch(placement, lengths):
    decoder = stirred(placement).decoder
    src, tgt = source(*lengths), target(*(length + 1 for length in lengths))
    x = torch.randn(*tgt.shape, 16, dtype=torch.float64)
    memory = torch.randn(*src.shape, 16, dtype=torch.float64)
    expected = decode(reference(decoder, placement), x, memory, src, tgt)
    tokens = tgt != PAD
    assert_close(decoder(x, memory, padding_mask(src))[tokens], expected[tokens], **CLOSE)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("bias", BIASES)
def test_transformer_equals_torch_and_so_does_its_gradient(bias, placement, lengths):
    model = stirred(placement, bias)
    src, tgt = source(*lengths), target(*(length + 1 for length in lengths))
    encoder, decoder = reference(model.encoder, placement), reference(model.decoder, placement)

    def whole_reference() -> Tensor:
        memory = encoder(model.source_input(model.words.source(src)), src_key_padding_mask=src == PAD)
        return decode(decoder, model.target_input(model.words.target(tgt)), memory, src, tgt)

    tokens = tgt != PAD
    ours, theirs = model(src, tgt)[tokens], whole_reference()[tokens]
    assert_close(ours, theirs, **CLOSE)

    direction = torch.randn_like(ours)
    table = model.words.tables["shared"].weight
    gradients = [torch.autograd.grad((hidden * direction).sum(), table)[0] for hidden in (ours, theirs)]
    assert gradients[0].abs().max() > 1e-3
    assert_close(*gradients, **CLOSE)


def test_the_two_placements_are_different_functions():
    src, tgt = source(4), target(5)
    outputs = []
    for placement in PLACEMENTS:
        torch.manual_seed(0)
        outputs.append(build(placement, NO_DROPOUT)(src, tgt))
    assert all((a - b).abs().max() > 1e-3 for a, b in pairwise(outputs))
