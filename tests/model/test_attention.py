import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.transformer.model.attention import CrossAttention, SelfAttention
from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.kv_cache import KeysValues
from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import padding_mask
from tests.model.arms import causal_mask, source


@pytest.mark.parametrize("kind", [SelfAttention, CrossAttention])
def test_heads_must_divide_the_width(kind):
    with pytest.raises(ValueError, match=r"d_model=10, num_heads=4"):
        kind(10, 4, bias="all", dropout=Dropout(0.0), drophead=nn.Identity())


def test_weights_for_looking_at_are_those_that_mix_the_values():
    attention = CrossAttention(8, 2, bias="all", dropout=Dropout(0.0), drophead=nn.Identity()).double()
    src = source(3, 5)
    mask = padding_mask(src)
    x, memory = torch.randn(2, 4, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    seen = attention.project_memory(memory)
    weights = attention.weights(x, seen, mask)
    assert_close(weights.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))
    assert (weights.permute(0, 3, 1, 2)[src == PAD] == 0).all()
    mixed = attention.output((weights @ seen.values).transpose(1, 2).flatten(2))
    assert_close(mixed, attention(x, seen, mask), rtol=0, atol=1e-12)


def test_causal_is_the_causal_mask():
    attention = SelfAttention(8, 2, bias="all", dropout=Dropout(0.0), drophead=nn.Identity()).double()
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    queries, keys, values = attention.split(attention.qkv(x), 3)
    masked = attention.mix(queries, KeysValues(keys, values), causal_mask(5))
    assert_close(attention(x, causal=True), masked, rtol=0, atol=1e-12)


def test_attention_dropout_acts_in_training_only():
    attention = SelfAttention(8, 2, bias="all", dropout=Dropout(0.5), drophead=nn.Identity())
    x = torch.randn(1, 5, 8)
    assert not torch.equal(attention(x), attention(x))
    attention.eval()
    assert torch.equal(attention(x), attention(x))


@pytest.mark.shapes
def test_a_wrong_shape_fails_while_tests_run():
    attention = SelfAttention(8, 2, bias="all", dropout=Dropout(0.0), drophead=nn.Identity())
    with pytest.raises(Exception, match="Type-check error"):
        attention(torch.randn(5, 8))
    with pytest.raises(Exception, match="Type-check error"):
        attention(torch.randn(2, 5, 8), torch.ones(2, 1, 1, 4, dtype=torch.bool))
