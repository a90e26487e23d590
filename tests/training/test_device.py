"""Nothing in a step waits for its device. The meta device has shapes and no values: to ask for one is an error."""

import numpy as np
import pytest
import torch

from ablab.transformer.data.batches import Batch, Sentences, collate
from ablab.transformer.training.loss import token_loss
from tests.model.arms import ALL_RATES, VARIANTS, build


def batch():
    rng = np.random.default_rng(0)
    src, tgt = (
        Sentences.of([rng.integers(8, 20, length).tolist() for length in lengths]) for lengths in ((5, 3), (4, 7))
    )
    return collate(src, tgt, np.arange(2))


def test_asking_is_an_error_there():
    """Or these tests could not fail."""
    with pytest.raises((RuntimeError, NotImplementedError)):
        bool(batch().src.to("meta").any())


@pytest.mark.parametrize("norm", VARIANTS)
@pytest.mark.parametrize("changes", [{}, {"position.kind": "learned"}], ids=["sinusoidal", "learned"])
def test_forward_backward_and_clipping_ask_for_nothing(norm, changes, monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # it has never heard of that device
    model = build(norm, {**ALL_RATES, **changes}, drophead=0.3).float().to("meta").train()
    there = Batch(*(side.to("meta") for side in batch()))
    loss = token_loss(model, there, 0.1)
    (loss.total / there.tokens).backward()
    gradient = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert {loss.true.device.type, gradient.device.type} == {"meta"}
