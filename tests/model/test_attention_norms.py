import math

import pytest
import torch
from torch.testing import assert_close

from ablab.config import compose
from ablab.errors import UserError
from ablab.transformer.model.norms import QKNorm
from tests.model.arms import build

CLOSE = {"rtol": 0, "atol": 1e-12}


def heads(*shape: int) -> torch.Tensor:
    return 3 * torch.randn(*shape, dtype=torch.float64)


def test_scores_are_g_times_the_cosine():
    norm = QKNorm(length=30).double()
    queries, keys = heads(2, 3, 5, 4), heads(2, 3, 7, 4)
    scores = norm.queries(queries) @ norm.keys(keys).mT / math.sqrt(4)
    cosine = torch.nn.functional.cosine_similarity(queries[..., :, None, :], keys[..., None, :, :], dim=-1, eps=0)
    assert_close(scores, norm.g.detach() * cosine, **CLOSE)


@pytest.mark.parametrize(("length", "g"), [(2, 1.0), (72, 12.31967), (75, 12.43827)])
def test_g_starts_at_the_papers_value(length, g):
    assert QKNorm(length=length).g.item() == pytest.approx(g, abs=1e-4)


def test_a_length_without_a_logarithm_is_refused():
    with pytest.raises(UserError, match=r"attention_norm.length=1: allowed: greater than or equal to 2"):
        compose(["norm=qk", "attention_norm.length=1"])


def test_a_zero_query_or_key_stays_zero_with_a_finite_gradient():
    norm = QKNorm(length=30)
    x = torch.zeros(1, 1, 2, 4, requires_grad=True)
    out = norm.queries(x) + norm.keys(x)
    assert torch.equal(out, torch.zeros_like(out))
    out.sum().backward()
    assert x.grad.isfinite().all()


def test_every_attention_has_a_g_of_its_own():
    model = build("qk", {"attention_norm.length": 30})
    found = [name for name, module in model.named_modules() if isinstance(module, QKNorm)]
    assert len(found) == 2 + 2 * 3  # encoder layers, and two attentions in each decoder layer
    assert not any(isinstance(module, QKNorm) for module in build("pre").modules())
