import math
from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.config import compose
from ablab.transformer.analysis import attentions, masked
from ablab.transformer.model.attention import _plainly, attend, weights
from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.heads import with_heads
from ablab.transformer.model.positions import (
    AttentionPosition,
    LearnedPositions,
    RotaryPosition,
    SinusoidalPositions,
    sinusoid,
)
from ablab.transformer.pruning.heads import Heads
from ablab.transformer.stages.models import build_model
from tests.model.arms import NO_DROPOUT, SIZE, VOCAB, build, source, target
from tests.parts.conftest import study

__all__ = ["study"]

CLOSE = {"rtol": 0, "atol": 1e-12}


def heads(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture
def small_table(monkeypatch):
    """Sinusoids for four positions to begin with."""
    monkeypatch.setattr(SinusoidalPositions, "FIRST", 4)


def test_sinusoid_is_the_papers_formula():
    d_model = 6
    table = sinusoid(50, d_model)
    for position in (0, 1, 7, 49):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize("shift", [1, 5, 30])
def test_a_later_sinusoid_is_a_linear_function_of_an_earlier_one(shift):
    """PE(pos + k) = R_k PE(pos) for one R_k and all positions (Vaswani et al. 2017, section 3.5)."""
    table = sinusoid(80, 8)
    rotation = torch.linalg.lstsq(table[:16], table[shift : 16 + shift]).solution
    assert_close(table[:-shift] @ rotation, table[shift:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("inference", [True, False])
def test_the_table_grows_with_the_input_and_stays_the_same_table(inference, small_table):
    positions, long = SinusoidalPositions(8), sinusoid(64, 8).float()
    assert len(positions.table) == 4
    with torch.inference_mode(inference):
        grown = positions(2, 30)
    assert torch.equal(grown, long[2:32])
    assert torch.equal(positions(0, 3), long[:3])
    assert not positions.state_dict()  # a checkpoint does not depend on the longest input seen


def test_the_table_has_the_precision_of_the_model():
    """Double precision is not single precision with zeros behind; single is the same bits wherever it comes from."""
    module, expected = SinusoidalPositions(16), sinusoid(2000, 16)
    single = module(0, 500).clone()
    assert torch.equal(single, expected[:500].float())
    module.double()
    assert torch.equal(module(0, 500), expected[:500])
    assert torch.equal(module(0, 1000), expected[:1000])  # grown
    assert torch.equal(module.double()(990, 1000), expected[990:1990])
    assert torch.equal(module.float()(0, 500), single)
    half = SinusoidalPositions(16).to(torch.bfloat16)
    assert torch.equal(half(0, 500), single.to(torch.bfloat16))


def test_training_goes_on_after_decoding_a_long_sentence(small_table):
    model = build(changes=NO_DROPOUT)
    with torch.inference_mode():
        model(source(9), target(9))
    model(source(9), target(9)).sum().backward()
    assert model.words.tables["shared"].weight.grad.isfinite().all()


def test_learned_positions_beyond_the_table_share_the_last():
    positions = LearnedPositions(8, 5)
    nn.init.normal_(positions.weight)
    assert torch.equal(positions(0, 4), positions.weight[:4])
    assert torch.equal(positions(3, 4), positions.weight[[3, 4, 4, 4]])
    assert torch.equal(positions(9, 2), positions.weight[[4, 4]])


@pytest.mark.parametrize(
    "changes", [{}, {"position.kind": "learned", "position.max_length": 4}], ids=["sinusoidal", "learned"]
)
def test_a_sentence_longer_than_the_table_passes(changes, small_table):
    model = build(changes=changes).eval()
    assert model(source(9), target(9)).isfinite().all()


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rope"])
def test_word_order_matters(kind):
    model = build(changes={"position.kind": kind}).eval()
    src = source(6)
    swapped = src[:, [1, 0, 2, 3, 4, 5]]
    memory, other = (model.encode(tokens)[0] for tokens in (src, swapped))
    assert (memory[:, 5] - other[:, 5]).abs().max() > 1e-6


def test_without_positions_the_encoder_sees_a_bag_of_words_and_the_decoder_an_order():
    model = build("unplaced").eval()
    src, order = source(6), [1, 0, 4, 2, 3, 5]
    memory, other = (model.encode(tokens)[0] for tokens in (src, src[:, order]))
    assert_close(other, memory[:, order], **CLOSE)
    tgt = target(6)
    hidden, swapped = model(src, tgt), model(src, tgt[:, [0, 2, 1, 3, 4, 5]])
    assert (hidden[:, 2] - swapped[:, 2]).abs().max() > 1e-6  # the same words in its past, one of them its own


@pytest.mark.parametrize("variant", ["rope", "unplaced"])
def test_where_attention_knows_positions_nothing_is_added_at_the_input(variant):
    model = build(variant).eval()
    embedded = torch.randn(2, 3, 16, dtype=torch.float64)
    assert torch.equal(model.source_input(embedded, start=4), embedded)
    names = {name for name, module in model.named_modules() if isinstance(module, AttentionPosition)}
    layers = [f"encoder.layers.{i}" for i in range(2)] + [f"decoder.layers.{i}" for i in range(3)]
    assert names == {f"{layer}.self_attention.position" for layer in layers}


@pytest.mark.parametrize(("base", "start"), [(10_000.0, 0), (10_000.0, 700), (50.0, 3)])
def test_rope_turns_each_pair_by_the_papers_angle(base, start):
    rope, x = RotaryPosition(d_head=6, base=base), heads(2, 3, 4, 6)
    found = rope.rotate(x, start)
    for m in range(4):
        for i in range(3):
            angle = (start + m) * base ** (-2 * i / 6)
            cos, sin = math.cos(angle), math.sin(angle)
            turn = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
            expected = torch.einsum("pq,bhq->bhp", turn, x[:, :, m, 2 * i : 2 * i + 2])
            assert_close(found[:, :, m, 2 * i : 2 * i + 2], expected, rtol=0, atol=1e-10)
    assert_close(found.norm(dim=-1), x.norm(dim=-1), **CLOSE)
    assert_close(rope.rotate(x[:, :, 2:], start + 2), found[:, :, 2:], **CLOSE)


def test_ropes_scores_depend_on_the_distance_alone():
    rope, queries, keys = RotaryPosition(d_head=8), heads(1, 1, 5, 8), heads(1, 1, 5, 8)
    here, there = (rope.rotate(queries, start) @ rope.rotate(keys, start).mT for start in (0, 123))
    assert_close(here, there, rtol=0, atol=1e-10)


def test_rope_refuses_a_head_of_odd_width():
    with pytest.raises(ValueError, match="even"):
        RotaryPosition(d_head=5)


NEARER = '''
import torch
from torch import nn
from ablab.transformer.model.positions import AttentionPosition

class Nearer(AttentionPosition):
    """As ALiBi: each head takes a multiple of the distance from the scores; what it is multiplied by is learned."""

    def __init__(self, num_heads: int, stack: str) -> None:
        super().__init__()
        self.stack = stack
        self.slopes = nn.Parameter(2.0 ** -torch.arange(num_heads).float())

    def bias(self, start: int, length: int, seen: int) -> torch.Tensor:
        queries = torch.arange(start, start + length)[:, None]
        return -self.slopes[:, None, None] * (queries - torch.arange(seen)).abs()
'''


@pytest.fixture
def nearer(study):
    """A model whose positions are a bias of the scores."""
    study(NEARER, {"position/nearer": "_target_: parts.Nearer\n"})
    calm = [f"{key}={value}" for key, value in NO_DROPOUT.items()]
    config = compose(["position=nearer", *SIZE, *calm]).config
    return build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double().eval()


@pytest.mark.parametrize("dropped", [0.0, 0.1])
@pytest.mark.parametrize("bf16", [False, True])
def test_a_bias_in_double_precision_trains(dropped, bf16, study):
    """A buffer of float64 is cast by no run."""
    precise = NEARER.replace("nn.Parameter", "nn.Buffer").replace(".float()", ".double()")
    study(precise, {"position/nearer": "_target_: parts.Nearer\n"})
    config = compose(["position=nearer", *SIZE, f"model.attention_dropout={dropped}"]).config
    model = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        hidden = model(source(5, 2), target(4, 6))
        layer = model.encoder.layers[0].self_attention
        assert layer.weights(torch.randn(1, 3, layer.d_model)).dtype == torch.float32
    assert hidden.dtype == (torch.bfloat16 if bf16 else torch.float32)
    hidden.float().square().sum().backward()


def test_a_position_class_gets_what_its_constructor_asks_for(nearer):
    stacks = {name: module.stack for name, module in nearer.named_modules() if hasattr(module, "slopes")}
    assert len(stacks) == 5
    assert all(name.startswith(stack) for name, stack in stacks.items())


def test_a_bias_of_scores_keeps_the_future_and_padding_hidden(nearer):
    src, tgt = source(5, 2, 7), target(4, 6, 3)
    together = nearer(src, tgt)
    for row, (src_length, tgt_length) in enumerate(zip((5, 2, 7), (4, 6, 3), strict=True)):
        alone = nearer(src[row : row + 1, :src_length], tgt[row : row + 1, :tgt_length])
        assert_close(together[row : row + 1, :tgt_length], alone, **CLOSE)
    later = tgt.clone()
    later[:, 2:] = 5
    assert torch.equal(nearer(src, later)[:, :2], together[:, :2])
    swapped = src[:1, [1, 0, 2, 3, 4]]
    assert (nearer.encode(swapped)[0][:, 4] - nearer.encode(src[:1, :5])[0][:, 4]).abs().max() > 1e-6


def test_decoding_steps_with_a_bias_are_the_whole_pass(nearer):
    src, tgt = source(5, 2), target(6, 6)
    expected = nearer.logits(nearer(src, tgt))
    state = nearer.start(src, beams=1, max_len=6)
    for t in range(6):
        assert_close(nearer.step(tgt[:, t : t + 1], state)[:, 0], expected[:, t], **CLOSE)


def test_a_bias_learns(nearer):
    nearer.train()
    nearer(source(5, 2), target(6, 6)).pow(3).sum().backward()
    slopes = [module.slopes.grad for module in nearer.modules() if hasattr(module, "slopes")]
    assert all(gradient.abs().max() > 1e-9 for gradient in slopes)


@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True), (True, True)])
def test_all_ways_to_attend_add_the_bias(causal, masked):
    queries, keys, values = (heads(2, 3, 5, 4).requires_grad_() for _ in range(3))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)[:, None, None] if masked else None
    bias = heads(3, 5, 5).requires_grad_()
    given = {"causal": causal, "bias": bias}
    fused = attend(queries, keys, values, mask, **given, dropout=Dropout(0.0))
    plain = _plainly(queries, keys, values, mask, **given, dropout=Dropout(0.0))
    allowed = torch.ones(2, 1, 5, 5, dtype=torch.bool) if mask is None else mask.expand(2, 1, 5, 5)
    allowed = allowed.tril() if causal else allowed
    scores = (torch.einsum("bhqd,bhkd->bhqk", queries, keys) / 2 + bias).masked_fill(~allowed, -math.inf)
    shown = weights(queries, keys, mask, **given)
    assert_close(shown, scores.exp() / scores.exp().sum(-1, keepdim=True), **CLOSE)
    for found in (fused, plain):
        assert_close(found, shown @ values, **CLOSE)
    sides = [torch.autograd.grad(out.pow(2).sum(), (queries, keys, values, bias)) for out in (fused, plain)]
    assert_close(*sides, rtol=0, atol=1e-10)


APART = '''
import torch
from torch import nn
from ablab.transformer.model.norms import AttentionNorm
from ablab.transformer.model.positions import AttentionPosition

class Gains(AttentionNorm):
    """A gain of each head."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.gains = nn.Parameter(1.0 + torch.arange(num_heads))

    def queries(self, queries: torch.Tensor) -> torch.Tensor:
        return queries * self.gains[:, None, None]

    def keys(self, keys: torch.Tensor) -> torch.Tensor:
        return keys.sin() * self.gains[:, None, None]

class Turns(AttentionPosition):
    """A factor of each head and position."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.speeds = nn.Parameter(0.1 + torch.arange(num_heads))

    def rotate(self, x: torch.Tensor, start: int) -> torch.Tensor:
        places = torch.arange(start, start + x.size(2))
        return x * torch.cos(self.speeds[:, None] * places)[..., None]
'''


@pytest.fixture
def apart(study):
    """A model whose positions and norm of queries and keys tell heads apart."""
    study(APART, {"position/turns": "_target_: parts.Turns\n", "attention_norm/gains": "_target_: parts.Gains\n"})
    config = compose(["position=turns", "attention_norm=gains", *SIZE]).config
    return build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double().eval()


@pytest.mark.parametrize("kind", ["nearer", "apart"])
def test_removed_heads_take_what_is_theirs_along(kind, request):
    """Each head has a slope, a gain or a speed of its own: those that stay keep theirs."""
    model = request.getfixturevalue(kind)
    src, tgt = source(5, 2, 7), target(4, 6, 3)
    kept = Heads(((1, 3), (0,)), ((2,), (0, 1, 2, 3), (0, 3)), ((1, 2), (3,), (0, 1, 2, 3)))
    small = with_heads(model, kept.sites)
    with ExitStack() as stack:
        for site, layers in kept.sites.items():
            for attention, heads in zip(attentions(model, site), layers, strict=True):
                for head in set(range(4)) - set(heads):
                    stack.enter_context(masked(attention, head))
        expected = model(src, tgt)
    assert_close(small(src, tgt), expected, **CLOSE)
    state = small.start(src, beams=1, max_len=6)
    stepped = torch.cat([small.step(tgt[:, i, None], state) for i in range(6)], dim=1)
    assert_close(stepped, small.logits(expected), **CLOSE)
    assert small.state_dict().keys() == model.state_dict().keys()


def test_parts_of_ours_never_see_removed_heads():
    """They treat heads alike, so a model of fewer heads stays as fast as it can be."""
    config = compose(["position=rope", "attention_norm=qk", *SIZE]).config
    model = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB)
    small = with_heads(model, Heads.all_of(2, 3, 4)._replace(encoder=((1,), (0,))).sites)
    attention = small.encoder.layers[0].self_attention
    assert not {"rotate", "queries", "keys"} & {*vars(attention.position), *vars(attention.norm)}
