import math
from functools import cache
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from ablab.transformer.model.attention import Attention
from ablab.transformer.model.embedding import FixNormEmbedding
from ablab.transformer.model.feed_forward import FeedForward
from ablab.transformer.model.initialisation import GPT2Init
from ablab.transformer.model.place import Place
from ablab.transformer.model.positions import LearnedPositions
from tests.model.arms import VARIANTS, build
from tests.shipped import shipped

D, D_FF = 64, 96
WIDE = {"model.d_model": D, "model.d_ff": D_FF, "model.encoder_layers": 1, "model.decoder_layers": 1}
ATTENTION_STD = {"small": math.sqrt(2 / (5 * D)), "xavier": math.sqrt(2 / (2 * D))}
FEED_FORWARD_STD = math.sqrt(2 / (D + D_FF))
ARMS = {
    **{norm: (norm, {}) for norm in VARIANTS if norm != "deepnorm"},  # whose matrices are scaled
    "layerdrop": ("pre", {"layerdrop_encoder": 0.2, "layerdrop_decoder": 0.2}),
    "drophead nowhere": ("pre", {"drophead.sites": []}),
    "deeper": ("pre", {"model.encoder_layers": 4, "model.decoder_layers": 4}),
    "learned positions": ("pre", {"position.kind": "learned"}),
    "more dropout": ("pre", {"model.dropout": 0.5, "model.word_dropout": 0.1}),
}


def is_normal(weight: Tensor, std: float) -> bool:
    """Mean 0 and this standard deviation, within five standard errors; about two thirds within one."""
    n = weight.numel()
    inside = (weight.abs() < std).double().mean().item()
    return (
        abs(weight.mean().item()) < 5 * std / n**0.5
        and abs(weight.std().item() / std - 1) < 5 / (2 * n) ** 0.5
        and abs(inside - 0.6827) < 5 * 0.5 / n**0.5
    )


@cache
def weights(name: str, **changes: int) -> dict[str, Tensor]:
    norm, own = ARMS[name]
    return dict(build(norm, {**own, **changes}).named_parameters())


@pytest.mark.parametrize("init", ATTENTION_STD)
def test_matrices_have_the_schemes_standard_deviation_and_biases_are_0(init):
    model = build("pre", {**WIDE, "init.kind": init})
    found = 0
    for module in model.modules():
        if isinstance(module, Attention | FeedForward):
            for linear in (child for child in module.children() if isinstance(child, nn.Linear)):
                std = ATTENTION_STD[init] if isinstance(module, Attention) else FEED_FORWARD_STD
                for part in linear.weight.split(D) if isinstance(module, Attention) else [linear.weight]:
                    assert is_normal(part, std)
                    found += 1
                assert (linear.bias == 0).all()
    assert found == (4 + 2) + (4 + 4 + 2)


def test_deepnorm_is_xavier_with_the_papers_gains():
    """Of feed-forward, values and outputs; queries and keys have none (Wang et al. 2022, figure 2)."""
    xavier, deep = (dict(build("post", {"init.kind": kind}).named_parameters()) for kind in ("xavier", "deepnorm"))
    n, m = 2, 3
    betas = {"encoder": 0.87 * (n**4 * m) ** (-1 / 16), "decoder": (12 * m) ** (-1 / 4)}
    scaled = {"qkv.weight": (0, 0, 1), "key_value.weight": (0, 1), "query.weight": (0,), "output.weight": (1,)}
    found = 0
    for name, weight in xavier.items():
        stack, end = name.partition(".")[0], ".".join(name.split(".")[-2:])
        flags = (1,) if "feed_forward" in name and weight.dim() == 2 and "norm" not in name else scaled.get(end, (0,))
        for ours, theirs, flag in zip(deep[name].chunk(len(flags)), weight.chunk(len(flags)), flags, strict=True):
            torch.testing.assert_close(ours, theirs * (betas[stack] if flag else 1), rtol=1e-6, atol=0)
            found += flag
    assert found == n * 4 + m * 6
    assert set(shipped("init")) == {*ATTENTION_STD, "deepnorm", "gpt2"}


def test_gpt2s_matrices_are_equal_in_scale_but_where_a_branch_ends():
    """There they are smaller by the root of the branches (Radford et al. 2019, section 2.3); tables are as ever."""
    usual, ours = (dict(build("pre", {**WIDE, "init.kind": kind}).named_parameters()) for kind in ("xavier", "gpt2"))
    branches, ends = {"encoder": 2, "decoder": 3}, 0
    for name, weight in ours.items():
        if name.endswith(("qkv.weight", "query.weight", "key_value.weight", "inner.weight")):
            assert is_normal(weight, 0.02)
        elif name.endswith((".output.weight", "outer.weight")):
            assert is_normal(weight, 0.02 / branches[name.partition(".")[0]] ** 0.5)
            ends += 1
        else:
            torch.testing.assert_close(weight, usual[name], rtol=0, atol=0)
    assert ends == 2 + 3


def test_a_decoder_alone_has_two_branches_a_layer():
    """As in transformers' GPT-2, whose c_proj have std 0.02 / sqrt(2 n_layer)."""
    scheme, attention = GPT2Init(encoder_layers=0, decoder_layers=6), Attention.__new__(Attention)
    place = Place("decoder", 1, "self_attention")
    assert scheme.gains(place, attention, "output") == pytest.approx((1 / math.sqrt(2 * 6),))
    assert scheme.gains(place, attention, "qkv") == (1.0,)


def test_the_two_schemes_differ_in_the_scale_of_attention_only():
    small, xavier = (dict(build("pre", {"init.kind": kind}).named_parameters()) for kind in ("small", "xavier"))
    for name, weight in small.items():
        is_projection = "attention" in name and name.endswith("weight") and "norm" not in name
        factor = math.sqrt(5 / 2) if is_projection else 1.0
        torch.testing.assert_close(xavier[name], factor * weight, rtol=1e-6, atol=0)


@pytest.mark.parametrize("tie", ["all", "none"])
@pytest.mark.parametrize("norm", ["pre", "scalenorm", "fixnorm", "scalenorm_fixnorm"])
def test_word_vectors(norm, tie):
    for table in build(norm, {**WIDE, "model.tie": tie}).words.tables.values():
        if "fixnorm" in norm:
            assert isinstance(table, FixNormEmbedding)
            assert table.weight.abs().max() <= 0.01
            n = table.weight.numel()
            assert abs(table.weight.std().item() - 0.01 / math.sqrt(3)) < 0.02 * 5 / n**0.5
        else:
            assert is_normal(table.weight, D**-0.5)


@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_table_of_fixnorm_may_start_as_one_without_it(tie):
    """The same draws, so that an arm tells FixNorm from its small initial rows."""
    plain, fixed = (
        build(norm, {"model.tie": tie, **own}).words.tables
        for norm, own in (("pre", {}), ("fixnorm", {"embedding.initial": "normal"}))
    )
    for name, table in plain.items():
        assert torch.equal(table.weight, fixed[name].weight)


def test_learned_positions_start_like_word_vectors():
    positions = build(changes={**WIDE, "position.kind": "learned"}).source_input.positions
    assert isinstance(positions, LearnedPositions)
    assert is_normal(positions.weight, D**-0.5)


@pytest.mark.parametrize("norm", VARIANTS)
def test_norms_start_neutral(norm):
    for module in build(norm).modules():
        if isinstance(module, tuple(shipped("norm").values())):
            for name, value in module.state_dict().items():
                expected = {"g": math.sqrt(16), "weight": 1.0, "bias": 0.0, "alpha": 0.5}[name]
                assert (value == expected).all()


@pytest.mark.parametrize(("one", "other"), list(combinations(ARMS, 2)))
def test_arms_under_one_seed_start_from_equal_shared_weights(one, other):
    """All that have one name and shape; word vectors apart where one arm's are drawn as FixNorm's."""
    ours, theirs = weights(one), weights(other)
    tables = ("fixnorm" in one) == ("fixnorm" in other)
    shared = [
        name
        for name in ours
        if name in theirs and ours[name].shape == theirs[name].shape and (tables or "tables" not in name)
    ]
    # Weight and bias of every linear: 4 in an encoder layer, 6 in a decoder layer; SwiGLU's are of another width.
    of_width = 5 * 3 if ("swiglu" in one) != ("swiglu" in other) else 0
    assert sum("norm" not in name and "tables" not in name for name in shared) >= 2 * (2 * 4 + 3 * 6) - of_width
    assert sum("tables" in name for name in shared) == tables
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)


def test_no_two_matrices_of_a_model_start_equal():
    matrices = [weight for weight in weights("pre").values() if weight.dim() == 2]
    assert not any(torch.equal(a, b) for a, b in combinations(matrices, 2) if a.shape == b.shape)


def test_another_seed_is_another_start():
    ours, theirs = weights("learned positions"), weights("learned positions", seed=2)
    assert all(torch.equal(ours[name], theirs[name]) == (ours[name].dim() < 2) for name in ours)


def test_nothing_else_decides_the_start():
    torch.manual_seed(1)
    ours = build("scalenorm_fixnorm").state_dict()
    torch.manual_seed(2)
    theirs = build("scalenorm_fixnorm").state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
