"""Training in bfloat16: what is computed in it, what is not, and that the gradient points the same way."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ablab.transformer.data.batches import Batch
from ablab.transformer.model.attention import _plainly, attend
from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.modes import as_products_take_it
from ablab.transformer.training.loss import projected_cross_entropy, token_loss
from tests.model.arms import NO_DROPOUT, VARIANTS, build, source, target
from tests.shipped import shipped

KINDS = shipped("norm")

LENGTHS = (4, 7, 2, 6)
BATCH = Batch.of(source(5, 3, 8, 6), target(*LENGTHS, seed=50), target(*LENGTHS))


def autocast(*, enabled=True):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled)


def gradient(model, *, bf16):
    model.zero_grad()
    with autocast(enabled=bf16):
        loss = token_loss(model, BATCH, 0.1)
    loss.total.backward()
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return loss, torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("arm", VARIANTS)
def test_the_gradient_is_that_of_single_precision_but_for_rounding(arm):
    model = build(arm, NO_DROPOUT).float().train()
    exact, wanted = gradient(model, bf16=False)
    loss, got = gradient(model, bf16=True)
    assert float(loss.true) == pytest.approx(float(exact.true), rel=0.01)
    assert float(F.cosine_similarity(got, wanted, dim=0)) > 0.995
    assert got.dtype == loss.true.dtype == torch.float32


@pytest.mark.parametrize("arm", VARIANTS)
def test_vectors_stay_in_the_precision_of_the_products(arm):
    """Otherwise something is cast at every layer."""
    model = build(arm, NO_DROPOUT).float()
    seen = {}
    for name, module in model.named_modules():
        if isinstance(module, (*KINDS.values(), torch.nn.Linear)):
            module.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out.dtype}))
    with autocast():
        hidden = model(BATCH.src, BATCH.tgt)
    assert set(seen.values()) == {hidden.dtype} == {torch.bfloat16}


@pytest.mark.parametrize("kind", KINDS)
def test_norms_give_back_what_they_are_given(kind):
    norm = KINDS[kind](16)
    x = torch.randn(3, 5, 16)
    exact = norm(x)
    rounded = norm(x.bfloat16())
    assert (exact.dtype, rounded.dtype) == (torch.float32, torch.bfloat16)
    assert_close(rounded.float(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_give_back_what_they_are_given_where_autocast_computes_them_in_float32(kind, monkeypatch):
    """As CUDA's autocast does with both of PyTorch's own norms, and the CPU's does not."""

    def in_float32(own):
        def computed(x, shape, *rest):
            return own(x.float(), shape, *(each.float() if torch.is_tensor(each) else each for each in rest))

        return computed

    for name in ("layer_norm", "rms_norm"):
        monkeypatch.setattr(F, name, in_float32(getattr(F, name)))
    assert KINDS[kind](16)(torch.randn(3, 5, 16).bfloat16()).dtype == torch.bfloat16


def test_without_autocast_nothing_is_cast():
    x = torch.randn(3, dtype=torch.float64)
    assert as_products_take_it(x) is x


@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
def test_both_ways_to_attend_are_one(causal, masked):
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)[:, None, None] if masked else None
    fused = attend(queries, keys, values, mask, causal=causal, dropout=Dropout(0.0))
    plain = _plainly(queries, keys, values, mask, causal=causal, dropout=Dropout(0.0))
    assert_close(plain, fused, rtol=0, atol=1e-12)
    wanted = torch.autograd.grad(fused.square().sum(), (queries, keys, values))
    assert_close(torch.autograd.grad(plain.square().sum(), (queries, keys, values)), wanted, rtol=0, atol=1e-11)


def test_the_plain_way_drops_weights_at_their_rate():
    shape = (8, 4, 50, 50)
    values = torch.eye(50).expand(shape)
    queries = torch.zeros(shape)
    mixed = attend(queries, queries, values, None, causal=False, dropout=Dropout(0.3))
    assert float((mixed == 0).double().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(mixed.mean()) == pytest.approx(1 / 50, rel=0.01)


def test_a_loss_of_logits_far_apart_is_finite():
    """Where exp of the label's logit is 0 in single precision, and its log would be minus infinity."""
    hidden = torch.tensor([[300.0]], requires_grad=True)
    matrix = torch.tensor([[1.0], [-1.0], [0.5]], requires_grad=True)
    smoothed, true = projected_cross_entropy(hidden, matrix, torch.tensor([1]), 0.0)
    assert true.item() == smoothed.item() == 600.0
    smoothed.backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_tokens_that_the_model_is_sure_of_is_no_coarser_than_its_precision(smoothing):
    """Their p is within a step of bfloat16 of the label's share, so that one rounded before the other is subtracted
    would leave nothing right of the difference."""
    torch.manual_seed(0)
    labels = torch.arange(64)
    matrix = F.normalize(torch.randn(64, 256), dim=-1)
    hidden = matrix * (9.0 if smoothing == 0 else 6.0)
    exact = [each.bfloat16().double().requires_grad_() for each in (hidden, matrix)]
    wanted = F.cross_entropy((exact[0] @ exact[1].T), labels, label_smoothing=smoothing, reduction="sum")
    wanted.backward()
    rounded = [hidden.bfloat16().requires_grad_(), matrix.bfloat16().float().requires_grad_()]
    total, _ = projected_cross_entropy(*rounded, labels, smoothing)
    total.backward()
    assert total.item() == pytest.approx(wanted.item(), rel=0.05)
    for each, reference in zip(rounded, exact, strict=True):
        error = (each.grad.double() - reference.grad).norm() / reference.grad.norm()
        assert float(error) < 0.02, float(error)
