"""Optimisers: against PyTorch's and against their papers' formulas; what has no gradient stays; resume is exact."""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn

from ablab.transformer.training.optimisers import Muon, adam, adamw, orthogonalised
from tests.model.arms import build, source, target

ADAM = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-6}
MUON = {**ADAM, "momentum": 0.9, "weight_decay": 0.1}
MADE = {
    "adam": lambda parameters: adam(parameters, **ADAM),
    "adamw": lambda parameters: adamw(parameters, **ADAM, weight_decay=0.1),
    "muon": lambda parameters: Muon(parameters, **MUON),
}
RATES = (0.1, 0.03, 0.02)


def gradients(weights: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for weight in weights:
        weight.grad = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)


def run(optimiser: torch.optim.Optimizer, weights: list[nn.Parameter], rates: tuple[float, ...] = RATES) -> None:
    for step, rate in enumerate(rates):
        for group in optimiser.param_groups:
            group["lr"] = rate
        gradients(weights, step)
        optimiser.step()


def weights(*shapes: tuple[int, ...]) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(9)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64)) for shape in shapes]


def test_adamw_is_the_papers_formula_and_spares_what_is_no_matrix():
    """Loshchilov and Hutter 2019, algorithm 2, written out."""
    ours = weights((3, 4), (4,))
    theirs = [each.detach().clone() for each in ours]
    run(adamw([("matrix", ours[0]), ("bias", ours[1])], **ADAM, weight_decay=0.1), ours)
    means, squares = ([torch.zeros_like(each) for each in theirs] for _ in range(2))
    for step, rate in enumerate(RATES):
        fake = [nn.Parameter(each) for each in theirs]
        gradients(fake, step)
        for i, (weight, decay) in enumerate(zip(theirs, (0.1, 0.0), strict=True)):
            means[i] = 0.8 * means[i] + 0.2 * fake[i].grad
            squares[i] = 0.95 * squares[i] + 0.05 * fake[i].grad ** 2
            mean, square = means[i] / (1 - 0.8 ** (step + 1)), squares[i] / (1 - 0.95 ** (step + 1))
            theirs[i] = weight - rate * decay * weight - rate * mean / (square.sqrt() + 1e-6)
    for ours_now, theirs_now in zip(ours, theirs, strict=True):
        torch.testing.assert_close(ours_now.detach(), theirs_now, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 6), (8, 3), (3, 8)])
def test_a_matrix_is_orthogonalised_between_known_bounds(shape):
    """Singular vectors stay; singular values come near 1, as far as the published coefficients bring them."""
    (matrix,) = weights(shape)
    left, values, right = torch.linalg.svd(matrix.detach(), full_matrices=False)
    values = values / matrix.detach().norm()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    torch.testing.assert_close(orthogonalised(matrix.detach()), left @ values.diag() @ right, rtol=0, atol=1e-10)


def test_autocast_does_not_round_what_is_orthogonalised():
    matrix = weights((8, 3))[0].detach().float()
    with torch.autocast("cpu", torch.bfloat16):
        under = orthogonalised(matrix)
    assert torch.equal(under, orthogonalised(matrix))


@pytest.mark.parametrize("shape", [(16, 16), (32, 8), (8, 32)])
def test_muon_is_pytorchs_up_to_its_bfloat16(shape):
    ours, theirs = weights(shape), weights(shape)
    run(Muon([("encoder.layers.0.feed_forward.inner.weight", ours[0])], **MUON), ours)
    reference = torch.optim.Muon(theirs, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    run(reference, theirs)
    moved = (ours[0] - weights(shape)[0]).norm()
    assert (ours[0] - theirs[0]).norm() < 0.02 * moved


def test_muon_steps_each_matrix_of_a_joined_projection_by_itself():
    (joined,) = weights((12, 4))
    parts = [nn.Parameter(part.clone()) for part in joined.detach().chunk(3)]
    names = [f"decoder.layers.1.self_attention.{part}.weight" for part in ("query", "key", "value")]
    ours = Muon([("decoder.layers.1.self_attention.qkv.weight", joined)], **MUON)
    theirs = Muon(list(zip(names, parts, strict=True)), **MUON)
    for step, rate in enumerate(RATES):
        gradients([joined], step)
        for part, gradient in zip(parts, joined.grad.chunk(3), strict=True):
            part.grad = gradient.clone()
        for optimiser in (ours, theirs):
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
    torch.testing.assert_close(joined.detach(), torch.cat([part.detach() for part in parts]), rtol=0, atol=1e-14)


def test_muon_leaves_tables_norms_and_biases_to_adamw():
    model = build("pre", {"model.tie": "none"})
    other = deepcopy(model)
    muon, reference = Muon(list(model.named_parameters()), **MUON), MADE["adamw"](list(other.named_parameters()))
    run(muon, list(model.parameters()))
    run(reference, list(other.parameters()))
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        inside = ours.ndim == 2 and ".layers." in name
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12) == (not inside), name


def test_an_update_of_muon_has_about_the_size_of_adams():
    """0.2 is what Liu et al. 2025 measured of AdamW."""
    (weight,) = weights((64, 64))
    before = weight.detach().clone()
    run(Muon([("encoder.layers.0.x.output.weight", weight)], **{**MUON, "weight_decay": 0.0}), [weight], (1.0,))
    size = (weight.detach() - before).pow(2).mean().sqrt().item()
    assert math.isclose(size, 0.2, rel_tol=0.25)


@pytest.mark.parametrize("name", MADE)
def test_what_has_no_gradient_stays_and_its_moments_too(name):
    model = build("pre")
    named = list(model.named_parameters())
    optimiser = MADE[name](named)
    run(optimiser, list(model.parameters()))
    before = deepcopy((model.state_dict(), optimiser.state_dict()))
    optimiser.zero_grad(set_to_none=True)
    optimiser.step()
    after = (model.state_dict(), optimiser.state_dict())
    for key, tensor in before[0].items():
        assert torch.equal(tensor, after[0][key]), key
    for index, state in before[1]["state"].items():
        for key, value in state.items():
            assert torch.equal(torch.as_tensor(value), torch.as_tensor(after[1]["state"][index][key])), key


@pytest.mark.parametrize("name", MADE)
def test_a_saved_state_goes_on_bit_for_bit(name, tmp_path):
    first = build("pre")
    optimiser = MADE[name](list(first.named_parameters()))
    run(optimiser, list(first.parameters()))
    torch.save(optimiser.state_dict(), tmp_path / "state.pt")
    second = deepcopy(first)
    again = MADE[name](list(second.named_parameters()))
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for model, each in ((first, optimiser), (second, again)):
        model.zero_grad(set_to_none=True)
        model(source(5, 2), target(3, 4)).pow(2).sum().backward()
        each.step()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("name", MADE)
def test_a_saved_state_is_loaded_to_where_the_weights_are(name):
    """A checkpoint is read to the CPU, and a fused step needs its counter beside the weights."""
    model = build("pre")
    optimiser = MADE[name](list(model.named_parameters()))
    run(optimiser, list(model.parameters()))
    elsewhere = MADE[name](list(deepcopy(model).to("meta").named_parameters()))
    elsewhere.load_state_dict(optimiser.state_dict())
    for state in elsewhere.state.values():
        assert {value.device.type for value in state.values()} == {"meta"}
