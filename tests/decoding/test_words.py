"""The next words are those of a softmax over the whole vocabulary, whatever shortcut finds them."""

import math

import pytest
import torch

from ablab.transformer.decoding.search import WIDTH, largest, next_words
from ablab.transformer.model.tokens import BOS, EOS, PAD


@pytest.mark.parametrize("vocab", [3, WIDTH, 5 * WIDTH, 6 * WIDTH, 6 * WIDTH + 1, 40 * WIDTH - 7, 8000])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("rows", [(1,), (7, 3)])
def test_the_largest_are_those_of_a_whole_sort(vocab, count, rows):
    """Where they lie in one group, at the ends, or among the words that fill no group."""
    values = torch.randn(*rows, vocab, generator=torch.Generator().manual_seed(vocab), dtype=torch.float64)
    values.view(-1, vocab)[0] = torch.arange(vocab).double()
    values.view(-1, vocab)[-1] = -torch.arange(vocab).double()
    best, indices = largest(values, min(count, vocab))
    wanted, places = values.sort(dim=-1, descending=True)
    assert torch.equal(best, wanted[..., : min(count, vocab)])
    assert torch.equal(indices, places[..., : min(count, vocab)])


def test_of_equal_values_each_row_takes_the_same_ones():
    values = torch.zeros(9, 20 * WIDTH)
    _, indices = largest(values, 4)
    assert (indices == indices[0]).all()
    assert len(set(indices[0].tolist())) == 4
    assert torch.equal(largest(values[:1], 4)[1], indices[:1])


@pytest.mark.parametrize("vocab", [11, 30 * WIDTH + 5])
@pytest.mark.parametrize("likely", [None, PAD, BOS, EOS, 7])
def test_probabilities_are_those_of_the_softmax_with_the_forbidden_words(vocab, likely):
    """Even where a forbidden word has nearly all of the probability."""
    logits = 3 * torch.randn(2, 3, vocab, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    if likely is not None:
        logits[..., likely] = 800.0
    wanted = logits.log_softmax(-1)
    words = next_words(logits.clone(), 5)
    torch.testing.assert_close(words.end, wanted[..., EOS])
    torch.testing.assert_close(words.log_probs, wanted.gather(-1, words.tokens))
    wanted[..., [PAD, BOS]] = -math.inf
    assert torch.equal(words.tokens, wanted.topk(5, dim=-1).indices)
