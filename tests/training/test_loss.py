"""The loss: equal to PyTorch's, summed over tokens alone, and indifferent to how a step is cut."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ablab.transformer.data.batches import Batch
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.tokens import PAD
from ablab.transformer.training import loss as loss_module
from ablab.transformer.training.loss import LOGITS_ON_GPU, loss_rows, projected_cross_entropy, token_loss
from tests.model.arms import NO_DROPOUT, build, source, stir, target


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("rows", [1, 4, 900])
def test_it_equals_cross_entropy_with_its_gradients(smoothing, rows, monkeypatch):
    monkeypatch.setattr(loss_module, "loss_rows", lambda *_: rows)
    hidden = torch.randn(17, 6, dtype=torch.float64, requires_grad=True)
    matrix = torch.randn(11, 6, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(11, (17,))

    expected = F.cross_entropy(hidden @ matrix.T, labels, label_smoothing=smoothing, reduction="sum")
    wanted = torch.autograd.grad(expected * 0.3, (hidden, matrix))
    smoothed, true = projected_cross_entropy(hidden, matrix, labels, smoothing)
    got = torch.autograd.grad(smoothed * 0.3, (hidden, matrix))

    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(true, F.cross_entropy(hidden @ matrix.T, labels, reduction="sum"))
    torch.testing.assert_close(got, wanted)


def test_the_matrix_may_be_a_function_of_the_weights():
    """As in FixNorm, where the rows that the loss sees are normalised ones."""
    weight = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    hidden, labels = torch.randn(4, 5, dtype=torch.float64), torch.randint(9, (4,))

    def ours(table):
        return projected_cross_entropy(hidden, F.normalize(table, dim=-1), labels, 0.1)[0]

    assert torch.autograd.gradcheck(ours, (weight,))


def test_a_bias_of_the_output_is_one_of_the_logits():
    """The loss of its own column is that of the logits in decoding, and its gradient is too."""
    model = build("pre", {**NO_DROPOUT, "model.output_bias": True}).eval()
    stir(model)
    batch = _batch()
    labels = batch.labels.flatten()[batch.real]
    logits = model.logits(model(batch.src, batch.tgt)).flatten(0, 1)[batch.real]
    expected = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    found = token_loss(model, batch, 0.1)
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.true, F.cross_entropy(logits, labels, reduction="sum"))
    (wanted,), (got,) = (torch.autograd.grad(loss, [model.output_bias]) for loss in (expected, found.total))
    torch.testing.assert_close(got, wanted)
    assert wanted.abs().max() > 0.1


def _batch():
    src, labels = source(5, 3, 8, 6), target(4, 7, 2, 6)
    tgt = target(4, 7, 2, 6, seed=50)
    return Batch.of(src, tgt, labels)


def test_padding_has_no_part_in_it():
    model = build("pre", NO_DROPOUT).eval()
    batch = _batch()
    whole = token_loss(model, batch, 0.1)
    assert whole.tokens == int((batch.labels != PAD).sum()) == batch.tokens
    wider = Batch.of(
        F.pad(batch.src, (0, 3), value=PAD), F.pad(batch.tgt, (0, 5), value=PAD), F.pad(batch.labels, (0, 5), value=PAD)
    )
    torch.testing.assert_close(token_loss(model, wider, 0.1).total, whole.total, rtol=1e-12, atol=0)


def _gradients(model: nn.Module, parts: list[Batch], *, layerdrop: bool = False) -> list[torch.Tensor]:
    model.zero_grad()
    tokens = sum(part.tokens for part in parts)
    for micro_batch, part in enumerate(parts):
        if layerdrop:
            reseed(model, 1, step=4, micro_batch=micro_batch)
        (token_loss(model, part, 0.1).total / tokens).backward()
    return [torch.zeros(()) if p.grad is None else p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_accumulating_two_equals_one(rate):
    """Unequal parts, so that weighting them equally would show; LayerDrop draws once for the step."""
    changes = {**NO_DROPOUT, "model.attention_dropout": 0.0, "model.activation_dropout": 0.0}
    model = build("pre", {**changes, "layerdrop_encoder": rate, "layerdrop_decoder": rate}).train()
    batch = _batch()
    whole = _gradients(model, [batch], layerdrop=True)
    cut = _gradients(
        model,
        [Batch.of(*(side[:3] for side in batch[:3])), Batch.of(*(side[3:] for side in batch[:3]))],
        layerdrop=True,
    )
    torch.testing.assert_close(cut, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("vocab", [1, 1_000, 8_000, 32_000, 250_000, 1 << 30])
def test_logits_are_bounded_whatever_the_vocabulary(kind, vocab):
    """At 128 MB in single precision on a CPU, 512 on a GPU, or a row of them."""
    rows = loss_rows(vocab, torch.device(kind))
    assert rows == 1 or 1 < rows <= (LOGITS_ON_GPU if kind == "cuda" else 1 << 25) / vocab


def test_nothing_is_held_for_a_backward_that_will_not_come():
    model = build("pre").eval()
    with torch.inference_mode():
        assert float(token_loss(model, _batch(), 0.0).true) > 0
