"""Optimisers against their papers' formulas in float64, and what every one of them must keep."""

import io
import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ablab.build import build_model, build_objective
from ablab.config import compose
from ablab.model.streams import reseed
from ablab.model.transformer import Transformer
from ablab.training.optimisers import OPTIMISERS, Muon, orthogonal
from ablab.training.state import TrainingState
from tests.model.arms import SIZE, VOCAB, source, target

CLOSE = {"rtol": 0, "atol": 1e-10}
BETA1, BETA2, EPS, DECAY, MOMENTUM, RATE = 0.8, 0.95, 1e-4, 0.3, 0.9, 0.02
OWN = {
    "adam": {"beta1": BETA1, "beta2": BETA2, "eps": EPS},
    "adamw": {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "weight_decay": DECAY},
    "muon": {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "weight_decay": DECAY, "momentum": MOMENTUM},
}
every_optimiser = pytest.mark.parametrize("kind", OPTIMISERS)


def model_with(*words: str) -> Transformer:
    config = compose([*SIZE, "layerdrop=0.5", *words]).config
    return build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double().train()


def optimiser(kind: str, model: nn.Module) -> torch.optim.Optimizer:
    found = OPTIMISERS[kind](model, **OWN[kind])
    for group in found.param_groups:
        group["lr"] = RATE
    return found


def gradients(model: Transformer, step: int) -> None:
    """Put the gradient of a step into the model; layers that fall have none."""
    reseed(model, 1, step=step, micro_batch=0)
    hidden = model(source(5, 2, 6, seed=step), target(3, 7, 4, seed=50 + step))
    for parameter in model.parameters():
        parameter.grad = None
    hidden.pow(3).sum().backward()


def values(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def newton_schulz(matrix: Tensor) -> Tensor:
    """Of one matrix, by the polynomial of its singular values: they change, its singular vectors do not."""
    left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
    sizes = sizes / sizes.square().sum().sqrt()
    for _ in range(5):
        sizes = 3.4445 * sizes - 4.7750 * sizes**3 + 2.0315 * sizes**5
    return left @ torch.diag(sizes) @ right


class Written:
    """The papers' formulas, for one parameter."""

    def __init__(self, kind: str, name: str, value: Tensor) -> None:
        self.value, self.steps = value, 0
        self.first, self.second = torch.zeros_like(value), torch.zeros_like(value)
        is_hidden = value.dim() == 2 and "tables" not in name
        self.joined = {"qkv": 3, "key_value": 2}.get(name.split(".")[-2], 1)
        self.by_muon = kind == "muon" and is_hidden
        self.decay = DECAY if kind != "adam" and value.dim() == 2 else 0.0

    def step(self, gradient: Tensor) -> None:
        self.value = self.value - RATE * self.decay * self.value - RATE * self.direction(gradient)

    def direction(self, gradient: Tensor) -> Tensor:
        self.steps += 1
        if self.by_muon:
            self.first = MOMENTUM * self.first + (1 - MOMENTUM) * gradient
            ahead = (1 - MOMENTUM) * gradient + MOMENTUM * self.first
            parts = [newton_schulz(part) for part in ahead.chunk(self.joined)]
            return torch.cat([0.2 * math.sqrt(max(part.shape)) * part for part in parts])
        self.first = BETA1 * self.first + (1 - BETA1) * gradient
        self.second = BETA2 * self.second + (1 - BETA2) * gradient**2
        first, second = self.first / (1 - BETA1**self.steps), self.second / (1 - BETA2**self.steps)
        return first / (second.sqrt() + EPS)


@every_optimiser
def test_steps_are_the_papers_formulas_and_what_has_no_gradient_stays(kind):
    model = model_with()
    ours = optimiser(kind, model)
    theirs = {name: Written(kind, name, value) for name, value in values(model).items()}
    fell = 0
    for step in range(1, 7):
        gradients(model, step)
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                fell += 1
            else:
                theirs[name].step(parameter.grad)
        ours.step()
        for name, value in values(model).items():
            assert_close(value, theirs[name].value, **CLOSE)
    assert fell > 0


@every_optimiser
def test_a_resumed_optimiser_goes_on_bit_for_bit(kind):
    """From a file that is read without running code, as checkpoints are."""
    straight, stopped = model_with(), model_with()
    optimisers = [optimiser(kind, model) for model in (straight, stopped)]
    file = io.BytesIO()
    for step in range(1, 7):
        if step == 4:
            torch.save({"model": stopped.state_dict(), "optimizer": optimisers[1].state_dict()}, file)
            file.seek(0)
            saved = torch.load(file, weights_only=True)
            stopped = model_with("seed=2")
            stopped.load_state_dict(saved["model"])
            optimisers[1] = OPTIMISERS[kind](stopped, **OWN[kind])
            optimisers[1].load_state_dict(saved["optimizer"])
        for model, each in zip((straight, stopped), optimisers, strict=True):
            for group in each.param_groups:
                group["lr"] = RATE * step
            gradients(model, step)
            each.step()
            each.zero_grad(set_to_none=True)
            assert all(parameter.grad is None for parameter in model.parameters())
    ours, theirs = values(straight), values(stopped)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@every_optimiser
def test_every_parameter_is_in_one_group(kind):
    model = model_with("norm=scalenorm_fixnorm", "position=learned", "layerdrop_rates=learned", "attention_norm=qk")
    grouped = [parameter for group in optimiser(kind, model).param_groups for parameter in group["params"]]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == set(model.parameters())


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 12, 5), (2, 5, 12)])
def test_newton_schulz_moves_singular_values_near_1_and_keeps_the_vectors(shape):
    matrices = torch.randn(*shape, dtype=torch.float64)
    found = orthogonal(matrices)
    assert_close(found, torch.stack([newton_schulz(matrix) for matrix in matrices]), **CLOSE)
    sizes = torch.linalg.svdvals(found)
    assert sizes.max() < 1.3
    assert sizes[:, :-1].min() > 0.3  # all but the smallest, which five iterations may leave


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24)])
def test_muon_of_one_matrix_is_pytorchs_but_for_its_bfloat16(shape):
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, shape[0] * shape[1]).view(shape)) for _ in range(2))
    mine = Muon({ours: 1}, momentum=MOMENTUM, weight_decay=DECAY)
    mine.param_groups[0]["lr"] = RATE
    options = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY, "adjust_lr_fn": "match_rms_adamw"}
    other = torch.optim.Muon([theirs], **options)
    for _ in range(4):
        gradient = torch.randn(shape)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    assert_close(ours, theirs, rtol=0, atol=0.02 * 4 * RATE * 0.2 * max(shape) ** 0.5)


def test_a_step_under_autocast_is_rounded_no_more():
    matrices = torch.randn(2, 8, 8)
    plain = orthogonal(matrices)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(orthogonal(matrices), plain)


@every_optimiser
def test_the_configuration_makes_it_with_its_fields(kind):
    config = compose([*SIZE, f"optim={kind}", "optim.beta1=0.7", "optim.clip=null", "optim.batch_tokens=99"]).config
    objective = build_objective(config, TrainingState())
    made = objective.make_optimizer(build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB))
    betas = {group["betas"] for group in made.param_groups if "betas" in group}
    assert betas == {(0.7, config.optim.beta2)}
    assert all(group["lr"] == 0 for group in made.param_groups)
