import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ablab.transformer.model.attention import CrossAttention
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.place import Place
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import ALL_DROPOUT, NO_DROPOUT, build, source, target

SENTENCES = 20_000
CASES = [(1, 0.5), (2, 0.5), (4, 0.2), (4, 0.9), (8, 0.3), (2, 0.99), (4, 1.0)]
SITES = ("encoder", "decoder", "cross")
every_case = pytest.mark.parametrize(("heads", "p"), CASES)

PLACE = Place("encoder", 1, "self_attention")


def drophead(heads: int, p: float, seed: int = 0) -> DropHead:
    module = DropHead(heads, PLACE)
    module.drop_prob = p
    module.reseed(seed)
    return module


def agrees(samples: Tensor, expected: float) -> bool:
    """The mean over sentences [sentences, heads] lies within five standard errors, for every head."""
    samples = samples.double()
    error = samples.std(0) / len(samples) ** 0.5
    return bool(((samples.mean(0) - expected).abs() <= 5 * error + 1e-6).all())


def multipliers(model: Transformer, *, step: int = 0, micro_batch: int = 0, batch: int = 40) -> dict[str, Tensor]:
    """What each site draws in one training pass, by name."""
    drawn = {}
    reseed(model, 1, step=step, micro_batch=micro_batch)
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, DropHead):

            def note(module: DropHead, inputs: tuple[Tensor], out: Tensor, name: str = name) -> None:
                drawn[name] = (out / inputs[0]).mean((2, 3))

            handles.append(module.register_forward_hook(note))
    model.train()(source(*[3] * batch), target(*[3] * batch))
    for handle in handles:
        handle.remove()
    return drawn


@every_case
def test_multipliers_are_0_or_heads_by_kept_and_sum_to_the_heads(heads, p):
    drawn = drophead(heads, p).multipliers(SENTENCES).double()
    kept = drawn > 0
    assert kept.any(1).all()  # never all dropped
    assert_close(drawn, kept * (heads / kept.double().sum(1, keepdim=True)), rtol=1e-6, atol=0)
    assert_close(drawn.sum(1), torch.full((SENTENCES,), float(heads), dtype=torch.float64), rtol=1e-6, atol=0)


@every_case
def test_a_heads_expected_multiplier_is_1(heads, p):
    assert agrees(drophead(heads, p).multipliers(SENTENCES), 1.0)


@every_case
def test_a_head_falls_with_p_less_its_share_of_the_saved(heads, p):
    """p - p^H / H: its draw is below p, and it is not the one of H that stays where all are."""
    dropped = drophead(heads, p).multipliers(SENTENCES) == 0
    assert agrees(dropped, p - p**heads / heads)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_where_all_would_fall_one_head_stays_each_as_often(heads):
    kept = drophead(heads, 1.0).multipliers(SENTENCES) > 0
    assert (kept.sum(1) == 1).all()
    assert agrees(kept, 1 / heads)


def test_heads_fall_independently():
    dropped = (drophead(8, 0.3).multipliers(SENTENCES) == 0).double()
    joint = (dropped[:, :1] * dropped[:, 1:]).mean(0)
    assert_close(joint, torch.full_like(joint, 0.09), rtol=0, atol=5 * (0.09 * 0.91 / SENTENCES) ** 0.5)


def test_each_head_of_each_sentence_is_multiplied_as_a_whole():
    heads = torch.randn(6, 4, 5, 3, dtype=torch.float64)
    out = drophead(4, 0.5)(heads)
    assert torch.equal(out, heads * drophead(4, 0.5).multipliers(6)[:, :, None, None])
    assert len({tuple(row) for row in (out != 0).all(-1).all(-1).tolist()}) > 1


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.9, False)])
def test_identity_at_rate_0_and_in_evaluation(p, training):
    heads = torch.randn(6, 4, 5, 3)
    assert torch.equal(drophead(4, p).train(training)(heads), heads)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_no_nan_even_when_nearly_all_heads_fall(heads):
    model = build(changes={"model.num_heads": heads}, drophead=0.99).train()
    hidden = model(source(5, 2, 6), target(3, 7, 4))
    hidden.pow(3).sum().backward()
    assert hidden.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_rate_is_0_until_a_schedule_sets_it():
    assert DropHead(4, PLACE).drop_prob == 0


@pytest.mark.parametrize("sites", [[], *([site] for site in SITES), ["encoder", "cross"], list(SITES)])
def test_it_acts_at_the_sites_asked_for_and_no_other(sites):
    model = build(changes={"drophead.sites": sites}, drophead=0.5)
    found = set()
    for name in multipliers(model):
        attention = model.get_submodule(name.rpartition(".")[0])
        found.add("cross" if isinstance(attention, CrossAttention) else name.partition(".")[0])
    assert found == set(sites)
    depths = {"encoder": 2, "decoder": 3, "cross": 3}
    assert len(multipliers(model)) == sum(depths[site] for site in sites)


def test_every_site_step_and_micro_batch_draws_anew():
    model = build(changes=NO_DROPOUT, drophead=0.5)
    passes = [multipliers(model, step=step, micro_batch=micro_batch) for step, micro_batch in [(0, 0), (1, 0), (0, 1)]]
    drawn = [tuple((site > 0).flatten().tolist()) for each in passes for site in each.values()]
    assert len(drawn) == len(set(drawn)) == 3 * 8
    again = multipliers(model)
    assert all(torch.equal(again[name], passes[0][name]) for name in again)


def test_it_moves_no_other_draw():
    """LayerDrop, word dropout and the default generator draw the same with DropHead as without."""
    rates = {**ALL_DROPOUT, "layerdrop_encoder": 0.5, "layerdrop_decoder": 0.5, "model.word_dropout": 0.3}
    for step in range(6):
        seen = []
        for p in (0.0, 0.5):
            model = build(changes=rates, drophead=p).train()
            layers = []
            for layer in (*model.encoder.layers, *model.decoder.layers):
                layer.register_forward_pre_hook(lambda module, _, layers=layers, model=model: layers.append(module))
            unknown = []
            model.word_dropout.register_forward_hook(lambda _, __, out, unknown=unknown: unknown.append(out))
            reseed(model, 1, step=step, micro_batch=0)
            hidden = model(source(5, 2, 6), target(3, 7, 4))
            names = [name for ran in layers for name, module in model.named_modules() if module is ran]
            seen.append((names, unknown, torch.get_rng_state(), hidden))
        (names, unknown, state, hidden), (names2, unknown2, state2, hidden2) = seen
        assert names == names2
        assert all(torch.equal(a, b) for a, b in zip(unknown, unknown2, strict=True))
        assert torch.equal(state, state2)
        assert torch.equal(hidden, hidden2) == (not names)
