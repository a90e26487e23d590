"""Removed heads are heads that say nothing; importance is the gradient of a mask."""

from contextlib import ExitStack

import pytest
import torch

from ablab.transformer.analysis.inspect import attentions, masked
from ablab.transformer.data.batches import Sentences, collate
from ablab.transformer.model.heads import sharing_tensors
from ablab.transformer.pruning.heads import Head, Heads, Removal, at_random, by_importance, head_counts
from ablab.transformer.pruning.search import HeadSearch
from ablab.transformer.pruning.surgery import prune, prune_head_weights
from ablab.transformer.stages.pruning_curve import whole_heads
from ablab.transformer.training.head_importance import head_importance
from ablab.transformer.training.loss import token_loss
from ablab.transformer.translation.validation import batches_of_pairs
from tests.model.arms import EVALUATED_ARMS, Arm, source, target
from tests.pruning.test_surgery import LEARNED, assert_same, outputs, stirred

FULL = Heads.all_of(2, 3, 4)
SOME = Heads(((0, 2), (3,)), ((0, 1, 2, 3), (1, 2, 3), (0,)), ((1,), (0, 1, 2, 3), (0, 3)))
HEADS = [head for head in FULL.each if head not in set(SOME.each)]


def silenced(model, gone):
    """The full model with some heads masked, for as long as the stack is open."""
    stack = ExitStack()
    for site, layer, head in gone:
        stack.enter_context(masked(attentions(model, site)[layer], head))
    return stack


@pytest.mark.parametrize("arm", [*EVALUATED_ARMS, LEARNED], ids=lambda arm: arm.name)
def test_removed_is_masked(arm):
    """To rounding in float64, and token for token in a search."""
    model = stirred(arm)
    small = prune(model, SOME)
    found = outputs(small)
    with silenced(model, HEADS):
        expected = outputs(model)
    for one, other in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    ids = [[[ids for ids, _ in beams] for beams in said[2]] for said in (found, expected)]
    assert ids[0] == ids[1]
    assert not torch.allclose(outputs(model)[1], expected[1]), "the heads matter"


@pytest.mark.parametrize("arm", EVALUATED_ARMS, ids=lambda arm: arm.name)
def test_with_all_heads_it_is_the_full_model_bit_for_bit(arm):
    model = stirred(arm)
    assert_same(outputs(prune(model, FULL)), outputs(model))


@pytest.mark.parametrize("bias", ["all", "no_key", "none"])
def test_the_weights_of_removed_heads_are_gone(bias):
    model = Arm("pre", changes={"model.attention_bias": bias}).build()
    count = sum(parameter.numel() for parameter in model.parameters())
    small = prune(model, SOME)
    per_head = 4 * 16 * 4 + {"all": 3, "no_key": 2, "none": 0}[bias] * 4  # d_head * d_model in four matrices, biases
    assert sum(parameter.numel() for parameter in small.parameters()) == count - len(HEADS) * per_head
    assert whole_heads(small).total == SOME.total == FULL.total - len(HEADS)
    assert small.decoder.layers[2].self_attention.qkv.weight.shape == (3 * 4, 16)
    assert small.decoder.layers[0].cross_attention.output.weight.shape == (16, 4)


@pytest.mark.parametrize("bias", ["all", "no_key", "none"])
def test_surgery_on_the_weights_is_surgery_on_the_model(bias):
    model = stirred(Arm("pre", changes={"model.attention_bias": bias}))
    small, weights = prune(model, SOME).state_dict(), prune_head_weights(model.state_dict(), SOME, 4)
    assert small.keys() == weights.keys()
    assert all(torch.equal(small[name], weights[name]) for name in small)


def test_surgery_leaves_the_full_model_as_it_was_and_shares_the_rest():
    model = stirred(Arm("pre"))
    before = outputs(model)
    small = prune(model, SOME)
    assert_same(outputs(model), before)
    assert small.words.output_matrix().data_ptr() == model.words.output_matrix().data_ptr()
    assert small.encoder.layers[0] is not model.encoder.layers[0]
    twin = sharing_tensors(model)
    assert all(one is other for one, other in zip(twin.parameters(), model.parameters(), strict=True))


def test_a_model_of_fewer_heads_drops_heads_in_training_among_those_it_has():
    small = prune(Arm("pre", drophead=0.3).build(), SOME).train()
    assert outputs_in_training(small).isfinite().all()


def outputs_in_training(model):
    return model(source(5, 3), target(4, 6))


SENTENCES = [[5, 6, 7, 2], [8, 9, 2], [10, 11, 12, 13, 2]], [[7, 8, 2], [9, 10, 11, 2], [5, 2]]


@pytest.mark.parametrize("norm", ["pre", "post", "scalenorm"])
@pytest.mark.parametrize("drophead", [0.0, 0.3])
def test_importance_is_the_gradient_of_a_mask(norm, drophead):
    """Sentence by sentence, with a mask written into the output projection: no hook, no batch, no padding."""
    model = stirred(Arm(norm, drophead=drophead))
    src, tgt = map(Sentences.of, SENTENCES)
    found = head_importance(model, batches_of_pairs(src, tgt))
    for site in Heads._fields:
        for attention, importance in zip(attentions(model, site), found[site], strict=True):
            whole = attention.output.weight.detach().clone()
            sums = torch.zeros(4, dtype=torch.float64)
            for row in range(3):
                xi = torch.ones(4, dtype=torch.float64, requires_grad=True)
                scaled = whole * xi.repeat_interleave(4)
                del attention.output._parameters["weight"]
                attention.output.weight = scaled
                loss = token_loss(model, collate(src, tgt, torch.tensor([row]).numpy()), label_smoothing=0.0).total
                sums += torch.autograd.grad(loss, xi)[0].abs()
                del attention.output.weight
                attention.output.weight = torch.nn.Parameter(whole)
            expected = sums / sums.pow(2).sum().sqrt()
            torch.testing.assert_close(torch.tensor(importance, dtype=torch.float64), expected, rtol=1e-8, atol=1e-12)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_importance_is_output_times_gradient():
    """|Att_h^T dL/dAtt_h|, as equation 2 says it, for one sentence."""
    model = stirred(Arm("pre"))
    src, tgt = (Sentences.of(side[:1]) for side in SENTENCES)
    seen = []
    hook = model.decoder.layers[1].cross_attention.drophead.register_forward_hook(
        lambda module, inputs, heads: (heads.retain_grad(), seen.append(heads))[1]
    )
    token_loss(model, collate(src, tgt, torch.tensor([0]).numpy()), label_smoothing=0.0).total.backward()
    hook.remove()
    products = (seen[0] * seen[0].grad).sum(dim=(0, 2, 3)).abs()
    expected = (products / products.norm()).tolist()
    assert head_importance(model, batches_of_pairs(src, tgt))["cross"][1] == pytest.approx(expected, rel=1e-8)


IMPORTANCE = {
    site: [[((5 * head + 3 * layer + len(site)) % 7) / 7 for head in range(4)] for layer in range(layers)]
    for site, layers in zip(Heads._fields, (2, 3, 3), strict=True)
}


class Judge:
    """Losses that favour even heads; notes what it is asked."""

    def __init__(self):
        self.losses, self.bleus = {}, {}

    def loss(self, kept):
        self.losses[kept] = 5.0 - sum(0.1 * (head.head % 2 == 0) + 0.001 * head.layer for head in kept.each)
        return self.losses[kept]

    def quality(self, kept):
        self.bleus[kept] = 50 - self.loss(kept)
        return self.bleus[kept]


ORDER = by_importance(FULL, IMPORTANCE)
STRATEGIES = {
    "importance": lambda: Removal(ORDER),
    "random": lambda: Removal(at_random(FULL, 1)),
    "greedy": lambda: HeadSearch(Judge(), ORDER, beam=1, budget=100, finalists=1),
    "search": lambda: HeadSearch(Judge(), ORDER, beam=3, budget=300, finalists=2),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_choice_has_as_many_heads_as_asked_and_one_in_each_attention(name):
    counts = list(range(FULL.total, FULL.attentions - 1, -1))
    chosen = STRATEGIES[name]()(FULL, counts)
    assert chosen[0] == FULL
    assert [kept.total for kept in chosen] == counts
    for kept in chosen:
        assert set(kept.each) <= set(FULL.each)
        assert all(heads and list(heads) == sorted(set(heads)) for layers in kept for heads in layers)
    assert STRATEGIES[name]()(FULL, counts) == chosen


def test_the_least_important_go_first_unless_they_are_the_last_of_an_attention():
    assert sorted(ORDER, key=lambda head: IMPORTANCE[head.site][head.layer][head.head]) == ORDER
    (kept,) = Removal(ORDER)(FULL, [20])
    assert set(FULL.each) - set(kept.each) == set(ORDER[:12])
    (least,) = Removal(ORDER)(FULL, [8])
    for head in least.each:
        row = IMPORTANCE[head.site][head.layer]
        assert row[head.head] == max(row)


def test_random_orders_differ_by_seed():
    assert len({tuple(at_random(FULL, seed)) for seed in range(9)}) == 9
    assert sorted(at_random(FULL, 3)) == sorted(FULL.each)


def test_greedy_with_room_for_one_set_is_importance_and_scores_nothing():
    greedy = HeadSearch(Judge(), ORDER, beam=1, budget=1, finalists=1)
    assert greedy(FULL, [32, 20, 8]) == Removal(ORDER)(FULL, [32, 20, 8])
    assert not greedy.judge.losses


@pytest.mark.parametrize(("beam", "budget"), [(1, 60), (1, 200), (4, 200), (4, 60), (2, 1)])
def test_a_search_keeps_to_its_budget_and_finds_lower_losses(beam, budget):
    search = HeadSearch(Judge(), ORDER, beam=beam, budget=budget, finalists=2)
    found = search(FULL, [32, 24, 16, 8])
    assert len(search.judge.losses) <= max(budget, 24)
    judge = Judge()
    for kept, by_order in zip(found, Removal(ORDER)(FULL, [32, 24, 16, 8]), strict=True):
        assert judge.loss(kept) <= judge.loss(by_order) + 1e-12


def test_finalists_are_judged_by_bleu_where_a_point_is_asked_for():
    search = HeadSearch(Judge(), ORDER, beam=2, budget=1000, finalists=2)
    search(FULL, [30, 28])
    assert {kept.total for kept in search.judge.bleus} == {30, 28}
    assert len(search.judge.bleus) <= 4


def test_the_points_of_a_curve():
    assert head_counts(Heads.all_of(4, 4, 4), None) == [48, 42, 36, 30, 24, 18, 12]
    assert head_counts(Heads.all_of(6, 6, 8), None) == [144, 126, 108, 90, 72, 54, 36, 18]
    assert head_counts(Heads.all_of(1, 1, 2), None) == [6, 5, 4, 3]
    assert head_counts(FULL, [8, 16]) == [32, 16, 8]


def test_names():
    assert Heads.of(SOME.sites) == SOME
    assert SOME.name.startswith(f"heads-{SOME.total}-")
    assert SOME.name != FULL.name
    assert SOME.without(Head("encoder", 0, 2)).encoder == ((0,), (3,))
    assert not SOME.may_lose(Head("encoder", 1, 3))
