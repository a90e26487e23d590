import pytest
import torch

from ablab.transformer.model.dropout import WordDropout
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK
from tests.model.arms import source, target, words


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_words_become_unknown_at_the_rate(p):
    tokens = words(200, 100)
    dropped = WordDropout(p)(tokens)
    changed = dropped != tokens
    assert (dropped[changed] == UNK).all()
    sigma = (p * (1 - p) / tokens.numel()) ** 0.5
    assert changed.double().mean().item() == pytest.approx(p, abs=5 * sigma)


@pytest.mark.parametrize("tokens", [source(3, 9, 5), target(3, 9, 5)])
def test_begin_end_and_padding_stay_even_at_rate_1(tokens):
    dropped = WordDropout(1.0)(tokens)
    special = (tokens == PAD) | (tokens == BOS) | (tokens == EOS)
    assert torch.equal(dropped[special], tokens[special])
    assert (dropped[~special] == UNK).all()


def test_the_input_is_not_written_to():
    tokens = words(5, 9)
    before = tokens.clone()
    WordDropout(0.9)(tokens)
    assert torch.equal(tokens, before)


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.9, False)])
def test_identity_at_rate_0_and_in_evaluation(p, training):
    tokens = words(5, 9)
    assert torch.equal(WordDropout(p).train(training)(tokens), tokens)
