"""Laws of the decoder-only Transformer: the future, documents in one row, decoding with a cache, rates of 0."""

import pytest
import torch
from torch.testing import assert_close

from ablab.config.groups import groups
from ablab.transformer.model.language_model import PackedDocuments
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.model.positions import AttentionPosition
from ablab.transformer.model.streams import reseed
from tests.language_model.models import CONTEXT, VOCAB, build, stirred, tokens

EXACT = {"rtol": 0, "atol": 1e-11}
ARMS = {
    **{f"norm={norm}": (f"norm={norm}",) for norm in groups()["norm"]},
    **{f"position={position}": (f"position={position}",) for position in groups()["position"]},
    **{f"feed_forward={kind}": (f"feed_forward={kind}",) for kind in groups()["feed_forward"]},
    "placement=sandwich": ("placement=sandwich",),
    "untied, all biases": ("model.tie=none", "model.output_bias=true", "model.attention_bias=all"),
    "plain": ("embedding=plain", "model.attention_bias=none"),
}
ROW = [0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3]
"""PackedDocuments of 3, 1, 5 and 3 tokens."""


@pytest.fixture(params=ARMS)
def model(request):
    return stirred(*ARMS[request.param])


@pytest.mark.shapes
def test_the_future_changes_nothing(model):
    text = tokens(2, CONTEXT)
    before = model(text)
    for position in range(1, CONTEXT, 3):
        other = text.clone()
        other[:, position:] = (text[:, position:] + 1) % VOCAB
        assert_close(model(other)[:, :position], before[:, :position], **EXACT)


@pytest.mark.shapes
def test_a_document_among_others_is_as_one_by_itself(model):
    """So attention never crosses a document, and positions begin anew in each."""
    text, numbers = tokens(2, CONTEXT), torch.tensor([ROW, ROW[::-1]])
    packed = model(text, numbers)
    for row, begin, end in PackedDocuments.of(numbers).spans:
        assert_close(packed[row, begin:end], model(text[row : row + 1, begin:end])[0], **EXACT)


def test_no_gradient_crosses_a_document(model):
    text, numbers = tokens(1, CONTEXT), torch.tensor([ROW])
    seen = []
    table = model.words.target

    def kept(ids):
        embedded = table(ids).detach().requires_grad_()
        seen.append(embedded)
        return embedded

    model.words.target = kept
    model(text, numbers)[0, 4:9].pow(2).sum().backward()
    touched = seen[0].grad[0].abs().sum(-1) > 0
    assert touched.nonzero().flatten().tolist() == list(range(4, 9))


def test_rows_of_one_document_are_computed_without_a_mask(model):
    text = tokens(2, CONTEXT)
    assert torch.equal(model(text, torch.zeros(2, CONTEXT, dtype=torch.long)), model(text))


@pytest.mark.shapes
@pytest.mark.parametrize("read", [1, 5])
def test_decoding_with_a_cache_equals_the_whole_pass(model, read):
    text = tokens(2, CONTEXT)
    whole = model.logits(model(text))
    logits, state = model.start(text[:, :read], max_len=CONTEXT - read)
    assert_close(logits, whole[:, read - 1], **EXACT)
    for position in range(read, CONTEXT):
        assert_close(model.step(text[:, position], state), whole[:, position], **EXACT)


class Steps(AttentionPosition):
    """A part of a user's, whose keys and scores tell the first position of a row from later ones."""

    def rotate(self, x, start):
        return x * torch.arange(start + 1, start + x.size(2) + 1, dtype=x.dtype)[:, None].sqrt()

    def bias(self, start, length, seen):
        places = torch.arange(seen, dtype=torch.float64)
        return (0.1 * places.sqrt()).expand(4, length, seen)


def test_positions_of_a_users_part_begin_anew_in_each_document():
    model = stirred("position=none")
    for layer in model.decoder.layers:
        layer.self_attention.position = Steps()
    test_a_document_among_others_is_as_one_by_itself(model)
    test_decoding_with_a_cache_equals_the_whole_pass(model, 5)


@pytest.mark.parametrize("words", [(), ("layerdrop=0.2",), ("layerdrop=0.2", "layerdrop_rates=learned")])
def test_evaluation_and_rate_0_are_the_baseline(words):
    """The weights, names and outputs of every arm under one seed are those without LayerDrop."""
    text = tokens(2, CONTEXT)
    baseline, arm = build("model.dropout=0"), build("model.dropout=0", *words)
    expected = baseline.train()(text)
    assert torch.equal(arm.eval()(text), expected)
    shared = baseline.state_dict()
    assert all(torch.equal(tensor, shared[name]) for name, tensor in arm.state_dict().items() if name in shared)
    if not words:
        assert torch.equal(arm.train()(text), expected)


def test_layerdrop_leaves_layers_out_and_a_stack_of_the_others_computes_the_same():
    model, text = stirred("layerdrop=0.5", "model.dropout=0"), tokens(2, CONTEXT)
    drop = model.decoder.layerdrop
    assert isinstance(drop, LayerDrop)
    ran = set()
    for step in range(20):
        reseed(model.train(), 1, step=step, micro_batch=0)
        kept = tuple(drop())
        ran.add(kept)
        reseed(model, 1, step=step, micro_batch=0)
        found = model(text)
        assert torch.equal(
            found, model.decoder.of_layers(kept).eval()(model.target_input(model.words.target(text)), None)
        )
    assert len(ran) > 4


def test_drophead_drops_heads_of_the_stack():
    model, text = build("drophead=constant", "model.dropout=0"), tokens(2, CONTEXT)
    for layer in model.decoder.layers:
        layer.self_attention.drophead.drop_prob = 0.9
    assert not torch.equal(model.train()(text), model.eval()(text))


def test_deepnorm_without_an_encoder_has_the_constants_of_one_stack():
    """alpha = (2 M)^(1/4) and beta = (8 M)^(-1/4) (Wang et al. 2022, figure 2), here with M = 3."""
    deep, plain = build("norm=deepnorm"), build("norm=post", "init=xavier")
    assert deep.decoder.layers[0].around_feed_forward.alpha.item() == pytest.approx(6**0.25)
    beta = 24**-0.25
    ours, theirs = (model.decoder.layers[1].feed_forward.inner.weight for model in (deep, plain))
    assert_close(ours, beta * theirs)


def test_a_seed_decides_the_initial_weights():
    one, same, other = (build(f"seed={seed}").state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["words.tables.shared.weight"], other["words.tables.shared.weight"])
