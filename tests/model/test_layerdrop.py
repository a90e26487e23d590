from itertools import combinations, pairwise

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ablab.transformer.model.layerdrop import (
    RATES,
    LayerDrop,
    LearnedLayerDrop,
    bounded_softmax,
    learned_rates,
    linear_rates,
    uniform_rates,
)
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.models import start_from
from tests.model.arms import NO_DROPOUT, VARIANTS, build, source, target


def model_with(encoder: float, decoder: float, norm: str = "pre") -> Transformer:
    rates = {"layerdrop_encoder": encoder, "layerdrop_decoder": decoder}
    return build(norm, {**NO_DROPOUT, **rates, "model.encoder_layers": 4, "model.decoder_layers": 4}).train()


def masks(layerdrop: LayerDrop, steps: int) -> Tensor:
    """[steps, layers]: which ran."""
    rows = torch.zeros(steps, len(layerdrop.drop_probs), dtype=torch.bool)
    for step in range(steps):
        layerdrop.reseed(step)
        rows[step, layerdrop()] = True
    return rows


def layers_run(model: Transformer, src: Tensor, tgt: Tensor) -> tuple[list[int], list[int]]:
    """Encoder and decoder layers whose forward is called, and with the whole batch."""
    run: tuple[list[int], list[int]] = ([], [])
    handles = []
    for stack, seen in zip((model.encoder, model.decoder), run, strict=True):
        for index, layer in enumerate(stack.layers):

            def note(module: nn.Module, inputs: tuple[Tensor, ...], index: int = index, seen: list[int] = seen) -> None:
                assert inputs[0].size(0) == src.size(0)
                seen.append(index)

            handles.append(layer.register_forward_pre_hook(note))
    model(src, tgt)
    for handle in handles:
        handle.remove()
    return run


def test_empirical_rates_are_the_rates_and_layers_fall_independently():
    rates, steps = [0.1, 0.5, 0.9, 0.5], 3000
    dropped = ~masks(LayerDrop(rates), steps)
    for layer, p in enumerate(rates):
        sigma = (p * (1 - p) / steps) ** 0.5
        assert dropped[:, layer].double().mean().item() == pytest.approx(p, abs=5 * sigma)
    for a, b in combinations(range(len(rates)), 2):
        p = rates[a] * rates[b]
        sigma = (p * (1 - p) / steps) ** 0.5
        assert (dropped[:, a] & dropped[:, b]).double().mean().item() == pytest.approx(p, abs=5 * sigma)


def test_rates_0_and_1_are_certain():
    ran = masks(LayerDrop([0.0, 1.0, 0.0]), 200)
    assert torch.equal(ran, torch.tensor([True, False, True]).expand(200, 3))


def test_evaluation_runs_every_layer_in_order():
    assert LayerDrop([1.0, 0.5, 1.0]).eval()() == [0, 1, 2]


@pytest.mark.parametrize("norm", VARIANTS)
def test_when_all_layers_fall_the_embeddings_go_straight_to_the_final_norm(norm):
    model = model_with(1.0, 1.0, norm)
    src, tgt = source(5, 2), target(4, 6)
    assert layers_run(model, src, tgt) == ([], [])
    embedded = model.source_input(model.words.source(src)), model.target_input(model.words.target(tgt))
    assert torch.equal(model.encode(src)[0], model.encoder.final_norm(embedded[0]))
    hidden = model(src, tgt)
    assert torch.equal(hidden, model.decoder.final_norm(embedded[1]))
    model.logits(hidden).pow(2).sum().backward()
    assert all(p.grad is None for stack in (model.encoder, model.decoder) for p in stack.layers.parameters())
    assert model.words.tables["shared"].weight.grad.isfinite().all()


@pytest.mark.parametrize(("encoder", "decoder"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_each_stack_has_its_own_rate(encoder, decoder):
    run = layers_run(model_with(encoder, decoder), source(5, 2), target(4, 6))
    assert run == tuple([] if p else [0, 1, 2, 3] for p in (encoder, decoder))


def test_each_stack_draws_its_own_layers():
    model = model_with(0.5, 0.5)
    pairs = []
    for step in range(20):
        reseed(model, 1, step=step, micro_batch=0)
        pairs.append((model.encoder.layerdrop(), model.decoder.layerdrop()))
    assert any(encoder != decoder for encoder, decoder in pairs)


def test_a_dropped_layer_is_the_identity_and_is_not_computed():
    model = model_with(0.0, 0.0)
    src, tgt = source(5, 2), target(4, 6)
    for stack in (model.encoder, model.decoder):
        stack.layerdrop.drop_probs = [0.0, 1.0, 0.0, 1.0]
    assert layers_run(model, src, tgt) == ([0, 2], [0, 2])
    hidden = model(src, tgt)
    hidden.pow(3).sum().backward()
    for stack in (model.encoder, model.decoder):
        for index, layer in enumerate(stack.layers):
            assert all((p.grad is None) == (index in (1, 3)) for p in layer.parameters())
        stack.layers = nn.ModuleList([stack.layers[0], stack.layers[2]])  # nothing is rescaled either
        stack.layerdrop.drop_probs = [0.0, 0.0]
    assert torch.equal(model(src, tgt), hidden)


def test_one_draw_for_all_micro_batches_of_a_step_and_another_for_the_next():
    model = model_with(0.5, 0.5)
    drawn = []
    for step in range(12):
        runs = []
        for micro_batch in range(3):
            reseed(model, 1, step=step, micro_batch=micro_batch)
            runs.append(layers_run(model, source(3 + micro_batch), target(4)))
        assert runs[0] == runs[1] == runs[2]
        drawn.append(runs[0])
    assert any(a != b for a, b in pairwise(drawn))


def test_adam_leaves_a_dropped_layer_alone_for_that_step():
    model = model_with(0.0, 0.0)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    src, tgt = source(5, 2), target(4, 6)

    def step() -> None:
        adam.zero_grad()
        model(src, tgt).pow(3).sum().backward()
        adam.step()

    step()  # now every parameter has a momentum
    model.decoder.layerdrop.drop_probs = [0.0, 1.0, 0.0, 0.0]
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("decoder.layers.1."), name


@pytest.mark.parametrize("depth", [1, 2, 6])
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_rates_per_layer(depth, p):
    assert uniform_rates(depth, p).rates() == [p] * depth
    assert learned_rates(depth, p).rates() == pytest.approx([p] * depth)
    rates = linear_rates(depth, p).rates()
    assert rates == pytest.approx([layer / depth * p for layer in range(1, depth + 1)])
    assert rates[-1] == p
    survival = 1 - p  # Huang et al. count the chance to survive: p_1 = 1 - (1 - p_L) / L
    assert 1 - rates[0] == pytest.approx(1 - (1 - survival) / depth)


@pytest.mark.parametrize("kind", RATES)
def test_the_configured_rates_reach_the_stacks(kind):
    changes = {"layerdrop_encoder": 0.2, "layerdrop_decoder": 0.6, "layerdrop_rates": kind}
    model = build(changes=changes)
    assert model.encoder.layerdrop.rates() == pytest.approx(RATES[kind](2, 0.2).rates())
    assert model.decoder.layerdrop.rates() == pytest.approx(RATES[kind](3, 0.6).rates())


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.95])
@pytest.mark.parametrize(
    "scores", [[0.0], [0.0, 0.0, 0.0], [3.0, -1.0, 0.5, 0.0], [40.0, -40.0, 0.0], [-9.0] * 5 + [9.0]]
)
def test_learned_rates_keep_their_mean_and_their_order(scores, p):
    scores = torch.tensor(scores, dtype=torch.float64)
    rates = bounded_softmax(scores, p)
    assert rates.mean().item() == pytest.approx(p, abs=1e-12)
    assert bool(((rates >= 0) & (rates <= 1)).all())
    assert rates[scores.argsort()].diff().ge(0).all()
    torch.testing.assert_close(bounded_softmax(scores + 7, p), rates)  # only differences count


def test_the_gradient_of_the_bounded_softmax_is_that_of_its_values():
    scores = torch.tensor([0.3, -1.2, 2.0, 0.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: bounded_softmax(s, 0.3), (scores,))
    total = torch.autograd.functional.jacobian(lambda s: bounded_softmax(s, 0.3), scores).sum(dim=0)
    torch.testing.assert_close(total, torch.zeros_like(total))  # the mean stands still


def learned(p: float = 0.5) -> Transformer:
    changes = {**NO_DROPOUT, "layerdrop_encoder": p, "layerdrop_decoder": p, "layerdrop_rates": "learned"}
    return build("pre", {**changes, "model.encoder_layers": 4, "model.decoder_layers": 4}).train()


def test_at_the_start_learned_rates_draw_and_compute_what_uniform_ones_do():
    uniform, model = model_with(0.5, 0.5), learned()
    src, tgt = source(5, 2), target(4, 6)
    for step in range(8):
        outputs = []
        for each in (uniform, model):
            each.zero_grad()
            reseed(each, 1, step=step, micro_batch=0)
            outputs.append(each(src, tgt))
            outputs[-1].pow(3).sum().backward()
        assert torch.equal(*outputs)
        gradients = dict(model.named_parameters())
        for name, parameter in uniform.named_parameters():
            grad = gradients[name].grad
            assert (parameter.grad is None) == (grad is None)
            assert grad is None or torch.equal(parameter.grad, grad)


def test_a_score_learns_the_first_order_cost_of_leaving_its_layer_out():
    """The gradient of a gate m in x + m (f(x) - x) at m = 1, for the layers that ran, over how often they run."""
    model = learned(p=0.25)
    src, tgt = source(5, 2), target(4, 6)
    layerdrop = model.decoder.layerdrop
    reseed(model, 3, step=0, micro_batch=0)
    ran = layerdrop()
    assert 0 < len(ran) < 4
    gates = torch.ones(4, dtype=torch.float64, requires_grad=True)
    reseed(model, 3, step=0, micro_batch=0)
    memory, mask = model.encode(src)
    x = embedded = model.target_input(model.words.target(tgt)).detach()
    memory = memory.detach()
    for index in ran:
        after = model.decoder.layers[index](x, memory, mask)
        x = x + gates[index] * (after - x)
    model.decoder.final_norm(x).pow(3).sum().backward()

    reseed(model, 3, step=0, micro_batch=0)
    model.decoder(embedded, memory, mask).pow(3).sum().backward()
    keep = 1 - bounded_softmax(layerdrop.scores, 0.25)
    (expected,) = torch.autograd.grad((keep * gates.grad / keep.detach()).sum(), layerdrop.scores)
    torch.testing.assert_close(layerdrop.scores.grad, expected)


@pytest.mark.parametrize(("p", "divisor"), [(0.8, 0.2), (0.9, 0.1), (0.91, 0.1), (0.99, 0.1)])
def test_a_cost_is_divided_by_how_often_the_layer_runs_but_by_a_tenth_at_least(p, divisor):
    """Of one layer of four: <gradient, f(x) - x> over the divisor, through the slope of the rates."""
    layerdrop = LearnedLayerDrop(4, p).double().train()
    before, after = torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor([[[1.0, 2.0, 3.0]]], dtype=torch.float64)
    layerdrop.reseed(1)
    layerdrop()
    layerdrop.passed(2, before, after).sum().backward()
    slope = torch.autograd.functional.jacobian(lambda s: 1 - bounded_softmax(s, p), layerdrop.scores.detach())[2]
    torch.testing.assert_close(layerdrop.scores.grad, 6.0 / divisor * slope)


def test_a_layer_that_harms_comes_to_be_dropped_more_than_the_others():
    model = learned(p=0.5)
    adam = torch.optim.Adam([model.decoder.layerdrop.scores], lr=0.05)
    src, tgt = source(5, 2), target(4, 6)
    harm = 10 * torch.randn(16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    harm -= harm.mean()

    def spoil(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + harm

    model.decoder.layers[2].register_forward_hook(spoil)
    model.eval()
    with torch.no_grad():
        model.decoder.layers[2]._forward_hooks.clear()
        goal = model(src, tgt)
    model.decoder.layers[2].register_forward_hook(spoil)
    model.train()
    for step in range(150):
        reseed(model, 1, step=step, micro_batch=0)
        adam.zero_grad()
        (model(src, tgt) - goal).pow(2).mean().backward()
        adam.step()
    rates = model.decoder.layerdrop.rates()
    assert sum(rates) / 4 == pytest.approx(0.5)
    assert max(range(4), key=rates.__getitem__) == 2
    assert rates[2] > 0.8


def test_in_evaluation_every_layer_runs_and_scores_do_not_matter():
    model = learned().eval()
    src, tgt = source(5, 2), target(4, 6)
    before = model(src, tgt)
    with torch.no_grad():
        model.decoder.layerdrop.scores.copy_(torch.tensor([9.0, -9.0, 0.0, 1.0]))
    assert torch.equal(model(src, tgt), before)


@pytest.mark.parametrize("layerdrop", [LayerDrop([0.1, 0.2, 0.3]), LearnedLayerDrop(3, 0.2)])
def test_some_layers_keep_their_rates(layerdrop):
    assert layerdrop.of_layers([0, 2]).rates() == [layerdrop.rates()[0], layerdrop.rates()[2]]


def test_a_model_that_starts_from_another_learns_its_rates_anew(tmp_path):
    """All else is the other's."""
    model, other = learned(), learned()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    expected = {
        name: model.state_dict()[name].clone() if ".layerdrop." in name else tensor
        for name, tensor in other.state_dict().items()
    }
    assert any(".layerdrop." in name for name in expected)
    save_file({name: tensor.contiguous() for name, tensor in other.state_dict().items()}, tmp_path / "w.safetensors")
    start_from(model, SavedModel("it", tmp_path / "w.safetensors", None, None))
    assert model.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())
