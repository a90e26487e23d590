import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.model.positions import LearnedPositions, SinusoidalPositions, sinusoid
from tests.model.arms import NO_DROPOUT, build, source, target

CLOSE = {"rtol": 0, "atol": 1e-12}


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


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_word_order_matters(kind):
    model = build(changes={"position.kind": kind}).eval()
    src = source(6)
    swapped = src[:, [1, 0, 2, 3, 4, 5]]
    memory, other = (model.encode(tokens)[0] for tokens in (src, swapped))
    assert (memory[:, 5] - other[:, 5]).abs().max() > 1e-6
