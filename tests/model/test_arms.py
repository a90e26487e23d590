"""The laws that every arm keeps: all norms x LayerDrop x DropHead, positions, ties."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from ablab.transformer.model.dropout import DropHead, Dropout, WordDropout
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.model.positions import SinusoidalPositions
from ablab.transformer.model.streams import SeededModule, reseed
from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import (
    ALL_DROPOUT,
    ALL_RATES,
    ARMS,
    EVALUATED_ARMS,
    NO_DROPOUT,
    OTHER_ARMS,
    VARIANTS,
    Arm,
    build,
    source,
    stir,
    target,
    words,
)

CLOSE = {"rtol": 0, "atol": 1e-12}
every_norm = pytest.mark.parametrize("norm", VARIANTS)
every_arm = pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
every_evaluated_arm = pytest.mark.parametrize("arm", EVALUATED_ARMS, ids=lambda arm: arm.name)


class AllLayers(nn.Module):
    """A stack without LayerDrop."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth

    def forward(self) -> list[int]:
        return list(range(self.depth))

    def passed(self, index: int, before: Tensor, after: Tensor) -> Tensor:
        return after


def baseline(model: Transformer) -> Transformer:
    """The same model with the regularisers' modules taken out, ordinary dropout apart."""
    plain = deepcopy(model)
    for module in list(plain.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LayerDrop):
                setattr(module, name, AllLayers(len(child.drop_probs)))
            elif isinstance(child, DropHead | WordDropout):
                setattr(module, name, nn.Identity())
    assert all(isinstance(module, Dropout) for module in plain.modules() if isinstance(module, SeededModule))
    return plain


def hidden_and_gradients(model: Transformer, *, step: int = 0) -> list[Tensor]:
    """What a training step computes."""
    model.train()
    reseed(model, 7, step=step, micro_batch=0)
    hidden = model(source(5, 2, 6), target(3, 7, 4))
    return [hidden, *torch.autograd.grad(hidden.pow(3).sum(), list(model.parameters()), allow_unused=True)]


def equal(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    return all((a is None and b is None) or torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@every_norm
def test_rate_0_is_the_baseline_bit_for_bit(norm):
    model = build(norm, ALL_DROPOUT)
    ours = hidden_and_gradients(model)
    assert equal(ours, hidden_and_gradients(baseline(model)))
    assert not equal(ours, hidden_and_gradients(model, step=1))


@every_norm
def test_a_step_in_which_every_layer_runs_is_the_baseline_bit_for_bit(norm):
    model = build(norm, {**ALL_DROPOUT, "layerdrop_encoder": 0.3, "layerdrop_decoder": 0.3}).train()
    complete = []
    for step in range(20):
        reseed(model, 7, step=step, micro_batch=0)
        complete.append(model.encoder.layerdrop() == [0, 1] and model.decoder.layerdrop() == [0, 1, 2])
    assert set(complete) == {True, False}
    for step in (complete.index(True), complete.index(False)):
        ours, plain = (hidden_and_gradients(each, step=step) for each in (model, baseline(model)))
        assert equal(ours, plain) == complete[step]


@every_norm
def test_evaluation_ignores_every_rate_bit_for_bit(norm):
    calm, wild = build(norm, NO_DROPOUT), build(norm, ALL_RATES, drophead=0.9)
    src, tgt = source(5, 2, 6), target(3, 7, 4)
    expected = calm.eval()(src, tgt)
    assert not torch.equal(wild.train()(src, tgt), expected)
    assert torch.equal(wild.eval()(src, tgt), expected)
    steps = [model.start(src, beams=1, max_len=3) for model in (calm, wild)]
    assert torch.equal(calm.step(tgt[:, :1], steps[0]), wild.step(tgt[:, :1], steps[1]))


@pytest.mark.shapes
@every_evaluated_arm
def test_padding_changes_nothing(arm):
    model = arm.build().eval()
    src_lengths, tgt_lengths = (5, 2, 8), (3, 9, 4)
    src, tgt = source(*src_lengths), target(*tgt_lengths)
    together = model.logits(model(src, tgt))
    for row, (src_length, tgt_length) in enumerate(zip(src_lengths, tgt_lengths, strict=True)):
        own_src, own_tgt = src[row : row + 1, :src_length], tgt[row : row + 1, :tgt_length]
        alone = model.logits(model(own_src, own_tgt))
        assert_close(together[row : row + 1, :tgt_length], alone, **CLOSE)


@every_evaluated_arm
def test_the_future_changes_nothing(arm):
    model = arm.build().eval()
    src, tgt = source(5, 2), target(6, 6)
    before = model(src, tgt)
    for t in range(1, 6):
        other = tgt.clone()
        other[:, t:] = words(2, 6 - t, seed=t)
        other[:, t] = tgt[:, t] - 1
        after = model(src, other)
        assert torch.equal(after[:, :t], before[:, :t])
        assert ((after[:, t:] - before[:, t:]).abs().amax(-1) > 1e-9).all()


@every_norm
def test_the_source_and_the_past_matter(norm):
    model = build(norm).eval()
    src, tgt = source(5), target(4)
    before = model(src, tgt)
    other_src, other_tgt = src.clone(), tgt.clone()
    other_src[0, 2] -= 1
    other_tgt[0, 1] -= 1
    assert ((model(other_src, tgt) - before).abs().amax(-1) > 1e-9).all()
    assert ((model(src, other_tgt) - before).abs().amax(-1)[0, 1:] > 1e-9).all()


@pytest.mark.parametrize("arm", [*(Arm(norm) for norm in VARIANTS), *OTHER_ARMS], ids=lambda arm: arm.name)
def test_gradients_reach_every_parameter(arm):
    model = arm.build(changes=NO_DROPOUT).train()
    stir(model)  # while biases are 0, PostNorm with ScaleNorm has g's whose scale the next norm takes away
    tgt = target(3, 7, 4)
    logits = model.logits(model(source(5, 2, 6), tgt))[:, :-1]
    F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 1e-12, name


@pytest.mark.shapes
@every_arm
def test_a_training_step_with_rates_is_finite(arm):
    hidden, *gradients = hidden_and_gradients(arm.build(changes={"model.word_dropout": 0.2}))
    assert hidden.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)


def full(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    """Logits [batch, beams, length, vocab] of target prefixes [batch, beams, length], all at once."""
    _, beams, _ = tgt.shape
    logits = model.logits(model(src.repeat_interleave(beams, 0), tgt.flatten(0, 1)))
    return logits.unflatten(0, (-1, beams))


@pytest.mark.shapes
@every_evaluated_arm
def test_decoding_step_by_step_is_the_full_pass(arm):
    """With one hypothesis a sentence; the next law has three."""
    model = arm.build().eval()
    src, tgt = source(5, 2, 7), target(6, 6, 6)[:, None]
    expected = full(model, src, tgt)
    state = model.start(src, beams=1, max_len=6)
    for t in range(6):
        assert_close(model.step(tgt[:, :, t], state), expected[:, :, t], **CLOSE)


@pytest.mark.parametrize(
    ("arm", "lengths"),
    [*((arm, (5, 2, 7)) for arm in EVALUATED_ARMS), (EVALUATED_ARMS[0], (5, 5, 5))],
    ids=lambda value: value.name if isinstance(value, Arm) else str(value[1]),
)
@torch.no_grad()
def test_reordered_hypotheses_and_kept_sentences_decode_on(arm, lengths):
    """One hypothesis a sentence becomes three, they continue one another, a sentence ends, they change again."""
    model = arm.build().eval()
    beams = 3
    src, tgt = source(*lengths), target(*[7] * 3 * beams).unflatten(0, (3, beams))
    state = model.start(src, beams=beams, max_len=7)

    def run(start: int, end: int) -> None:
        expected = full(model, src, tgt)
        for t in range(start, end):
            assert_close(model.step(tgt[:, :, t], state), expected[:, :, t], **CLOSE)

    def follow(origin: list[list[int]], end: int) -> None:
        state.follow(torch.tensor(origin))
        tgt[:, :, :end] = tgt.gather(1, torch.tensor(origin)[:, :, None].expand(-1, -1, 7))[:, :, :end]

    tgt[:, :, 0] = tgt[:, :1, 0]
    assert_close(model.step(tgt[:, :1, 0], state), full(model, src, tgt)[:, :1, 0], **CLOSE)
    follow([[0, 0, 0]] * 3, 1)
    run(1, 2)
    follow([[1, 1, 0], [0, 2, 1], [2, 2, 2]], 2)
    run(2, 4)
    state.keep(torch.tensor([2, 0]))
    src, tgt = src[[2, 0]], tgt[[2, 0]]
    run(4, 5)
    follow([[2, 0, 1], [1, 1, 0]], 5)
    run(5, 7)


def test_decoding_goes_past_the_table_of_positions(monkeypatch):
    monkeypatch.setattr(SinusoidalPositions, "FIRST", 4)
    for kind in ("sinusoidal", "learned"):
        table = {"position.max_length": 4} if kind == "learned" else {}
        model = build(changes={"position.kind": kind, **table}).float().eval()
        src, tgt = source(3, 2), target(9, 9)[:, None]
        expected = full(model, src, tgt)
        state = model.start(src, beams=1, max_len=9)
        for t in range(9):
            assert_close(model.step(tgt[:, :, t], state), expected[:, :, t], rtol=0, atol=1e-5)
