"""Sampling: the distribution that tokens are drawn from, and continuations."""

import pytest
import torch
from torch.testing import assert_close

from ablab.transformer.decoding.sampling import continuations, distribution
from tests.language_model.models import CONTEXT, stirred

LOGITS = torch.tensor([[0.0, 2.0, 1.0, -1.0]])
END = 0


def test_temperature_1_is_the_models_distribution_and_0_the_likeliest_token():
    assert_close(distribution(LOGITS, 1.0, 1.0), LOGITS.softmax(-1))
    assert_close(distribution(LOGITS, 0.5, 1.0), (2 * LOGITS).softmax(-1))
    assert distribution(LOGITS, 0.0, 1.0).tolist() == [[0, 1, 0, 0]]


@pytest.mark.parametrize(("top_p", "kept"), [(0.6, 1), (0.65, 2), (0.88, 2), (0.9, 3), (0.98, 4), (1.0, 4), (1e-6, 1)])
def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_it(top_p, kept):
    """Of 0.64, 0.24, 0.09 and 0.03."""
    p = distribution(LOGITS, 1.0, top_p)
    assert (p > 0).sum() == kept
    assert_close(p.sum(), torch.tensor(1.0))
    whole = LOGITS.softmax(-1) * (p > 0)
    assert_close(p, whole / whole.sum())


def generate(model, prompt=(END, 5, 3), **settings):
    return continuations(model, prompt, None, CONTEXT, **{"samples": 3, "max_tokens": 6, **settings})


def test_a_seed_decides_the_text_and_each_sample_has_draws_of_its_own():
    model = stirred("position=rope")
    first = generate(model, temperature=1.0, seed=1)
    assert first == generate(model, temperature=1.0, seed=1)
    assert first != generate(model, temperature=1.0, seed=2)
    assert len({tuple(each) for each in first}) == 3
    assert first[:2] == generate(model, temperature=1.0, seed=1, samples=2)


def test_temperature_0_takes_the_likeliest_token_of_the_whole_pass():
    model = stirred()
    (found,) = generate(model, samples=1)
    text = [END, 5, 3]
    for token in found:
        assert token == int(model.logits(model(torch.tensor([text])))[0, -1].argmax())
        text.append(token)


def test_text_goes_on_beyond_the_context_from_its_last_half():
    model = stirred("position=learned", f"position.max_length={CONTEXT}", f"model.context={CONTEXT}")
    (found,) = generate(model, samples=1, max_tokens=3 * CONTEXT)
    assert len(found) == 3 * CONTEXT
    text = [END, 5, 3, *found]
    window = text[: CONTEXT + 1][-(CONTEXT // 2) :]
    assert text[CONTEXT + 1] == int(model.logits(model(torch.tensor([window])))[0, -1].argmax())


def test_a_document_ends_at_its_end():
    model = stirred()
    (whole,) = generate(model, samples=1, max_tokens=20)
    end = whole[3]
    (found,) = continuations(model, (END, 5, 3), end, CONTEXT, samples=1, max_tokens=20)
    assert found == whole[: whole.index(end)]
