"""Biases of attention's projections: all, all but the keys' (the same function), or none."""

from collections.abc import Mapping
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ablab.transformer.model.attention import BIASES, Attention, CrossAttention, SelfAttention
from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import Transformer, padding_mask
from tests.model.arms import NO_DROPOUT, VARIANTS, build, causal_mask, source, stir, target
from tests.model.handed import hand_attention

CLOSE = {"rtol": 0, "atol": 1e-10}
KEYS_CHANGED = {"qk", "rope"}
"""Variants that change keys after their projection; softmax does not cancel a bias there."""

BATCH = source(5, 2, 7), target(4, 6, 3)
D = 16
SHAPES = {
    "all": {"qkv.bias": 3 * D, "query.bias": D, "key_value.bias": 2 * D, "output.bias": D},
    "no_key": {"qkv.bias": 2 * D, "query.bias": D, "key_value.bias": D, "output.bias": D},
    "none": {},
}
MATRICES = {"qkv.weight", "query.weight", "key_value.weight", "output.weight"}


def model_with(bias: str, norm: str = "pre") -> Transformer:
    return build(norm, {**NO_DROPOUT, "model.attention_bias": bias})


def attention_with(kind: type[Attention], bias: str) -> Attention:
    attention = kind(D, 4, bias=bias, dropout=Dropout(0.0), drophead=nn.Identity()).double()
    stir(attention)
    return attention


def without_keys(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By the names of a model with all biases: those that it has in common with one whose keys have none."""
    left = {}
    for name, tensor in tensors.items():
        left[name] = tensor
        if name.endswith("qkv.bias"):
            left[name] = torch.cat([tensor[:D], tensor[2 * D :]])
        if name.endswith("key_value.bias"):
            left[name] = tensor[D:]
    return left


def logits_and_gradients(model: Transformer) -> tuple[Tensor, dict[str, Tensor]]:
    logits = model.logits(model(*BATCH))
    direction = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    (logits * direction).sum().backward()
    return logits, {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("norm", [norm for norm in VARIANTS if norm not in KEYS_CHANGED])
def test_a_bias_of_the_keys_changes_nothing_and_learns_nothing(norm):
    with_all, without = model_with("all", norm), model_with("no_key", norm)
    stir(with_all)
    without.load_state_dict(without_keys(with_all.state_dict()))
    expected, gradients = logits_and_gradients(with_all)
    found, left = logits_and_gradients(without)
    assert_close(found, expected, **CLOSE)
    shared = without_keys(gradients)
    assert left.keys() == shared.keys()
    for name, gradient in left.items():
        assert_close(gradient, shared[name], **CLOSE)
    for name, part in (("qkv.bias", 1), ("key_value.bias", 0)):
        keys = [gradient.split(D)[part] for at, gradient in gradients.items() if at.endswith(name)]
        assert len(keys) == (2 + 3 if name == "qkv.bias" else 3)
        assert all(gradient.abs().max() < 1e-12 for gradient in keys)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_all_other_biases_have_a_gradient(norm):
    model = model_with("no_key", norm)
    stir(model)
    for name, gradient in logits_and_gradients(model)[1].items():
        if "attention" in name and name.endswith("bias"):
            assert (gradient.unflatten(0, (-1, D)).abs().amax(1) > 1e-6).all(), name


@pytest.mark.parametrize("bias", BIASES)
def test_self_attention_is_torchs(bias):
    ours = attention_with(SelfAttention, bias)
    theirs = nn.MultiheadAttention(D, 4, bias=bias != "none", batch_first=True, dtype=torch.float64)
    hand_attention(ours, theirs)
    x = torch.randn(3, 6, D, dtype=torch.float64)
    expected, _ = theirs(x, x, x, attn_mask=~causal_mask(6), need_weights=False)
    assert_close(ours(x, causal=True), expected, **CLOSE)


@pytest.mark.parametrize("bias", BIASES)
def test_cross_attention_is_torchs(bias):
    ours = attention_with(CrossAttention, bias)
    theirs = nn.MultiheadAttention(D, 4, bias=bias != "none", batch_first=True, dtype=torch.float64)
    hand_attention(ours, theirs)
    src = source(5, 2, 7)
    x, memory = (torch.randn(*shape, D, dtype=torch.float64) for shape in ((3, 4), src.shape))
    expected, _ = theirs(x, memory, memory, key_padding_mask=src == PAD, need_weights=False)
    assert_close(ours(x, ours.project_memory(memory), padding_mask(src)), expected, **CLOSE)


@pytest.mark.parametrize("bias", BIASES)
def test_there_are_no_other_parameters_than_these(bias):
    """What is no parameter is nothing to an optimiser, to a norm of gradients, or to who counts weights."""
    found: dict[str, int] = {}
    for module in model_with(bias).modules():
        if isinstance(module, Attention):
            found |= {name: len(parameter) for name, parameter in module.named_parameters()}
            assert module.state_dict().keys() == dict(module.named_parameters()).keys()
    assert found.keys() - MATRICES == SHAPES[bias].keys()
    assert all(found[name] == size for name, size in SHAPES[bias].items())
    assert found.keys() >= MATRICES


@pytest.mark.parametrize("bias", BIASES)
def test_the_feed_forward_and_the_norms_keep_theirs(bias):
    biases = {name for name, _ in model_with(bias).named_parameters() if name.endswith("bias")}
    others = {name for name in biases if ".around_" in name or ".feed_forward." in name or ".final_norm." in name}
    assert len(others) == 2 * (2 + 3) + (2 * 2 + 3 * 3) + 2  # feed-forward, norms of sublayers, final norms
    assert all("attention." in name for name in biases - others)


@pytest.mark.parametrize(("one", "other"), list(combinations(BIASES, 2)))
def test_what_they_share_starts_equal(one, other):
    ours, theirs = (dict(model_with(bias).named_parameters()) for bias in (one, other))
    shared = [name for name in ours.keys() & theirs.keys() if ours[name].shape == theirs[name].shape]
    assert {name for name in ours if not name.endswith("bias")} <= set(shared)
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)
    assert all((ours[name] == 0).all() for name in ours if name.endswith("bias"))


def test_another_word_is_refused():
    with pytest.raises(ValueError, match=r"bias='some'.*all, no_key, none"):
        SelfAttention(D, 4, bias="some", dropout=Dropout(0.0), drophead=nn.Identity())
