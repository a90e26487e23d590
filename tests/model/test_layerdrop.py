from itertools import combinations, pairwise

import pytest
import torch
from torch import Tensor, nn

from ablab.model.layerdrop import RATES, LayerDrop, linear_rates, uniform_rates
from ablab.model.streams import reseed
from ablab.model.transformer import Transformer
from tests.model.arms import NO_DROPOUT, NORMS, build, source, target


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


@pytest.mark.parametrize("norm", NORMS)
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
    assert uniform_rates(depth, p) == [p] * depth
    rates = linear_rates(depth, p)
    assert rates == pytest.approx([layer / depth * p for layer in range(1, depth + 1)])
    assert rates[-1] == p
    survival = 1 - p  # Huang et al. count the chance to survive: p_1 = 1 - (1 - p_L) / L
    assert 1 - rates[0] == pytest.approx(1 - (1 - survival) / depth)


@pytest.mark.parametrize("kind", RATES)
def test_the_configured_rates_reach_the_stacks(kind):
    changes = {"layerdrop_encoder": 0.2, "layerdrop_decoder": 0.6, "layerdrop_rates": kind}
    model = build(changes=changes)
    assert model.encoder.layerdrop.drop_probs == RATES[kind](2, 0.2)
    assert model.decoder.layerdrop.drop_probs == RATES[kind](3, 0.6)
