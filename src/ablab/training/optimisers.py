"""Optimisers, each made from a model and the fields of its option.

The learning rate of every parameter group is set before each step: the schedule's rate, times the group's `lr_scale` if
it has one. A parameter without a gradient, such as those of a layer that LayerDrop left out, must stay as it is.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ablab.model.projection import Projection

MakeOptimizer = Callable[[nn.Module], Optimizer]


def adam(model: nn.Module, *, beta1: float, beta2: float, eps: float) -> Optimizer:
    """Make Adam (Kingma and Ba 2015, algorithm 1)."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)


def adamw(model: nn.Module, *, beta1: float, beta2: float, eps: float, weight_decay: float) -> Optimizer:
    """Make Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    A step takes lr * weight_decay times the parameter away, apart from Adam's own step; lr follows the schedule. Only
    matrices decay: projections, word tables and learned positions. Biases, the parameters of norms and single scales
    do not.
    """
    return _adamw(list(model.parameters()), beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)


def _adamw(
    parameters: Sequence[nn.Parameter], *, beta1: float, beta2: float, eps: float, weight_decay: float
) -> Optimizer:
    matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
    others = [parameter for parameter in parameters if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)


def muon(
    model: nn.Module, *, momentum: float, weight_decay: float, beta1: float, beta2: float, eps: float
) -> Optimizer:
    """Make Muon for the matrices of the layers, and AdamW for all else: word tables, positions, norms and biases."""
    matrices = {
        module.weight: len(module.has_bias) if isinstance(module, Projection) else 1
        for module in model.modules()
        if isinstance(module, nn.Linear)
    }
    others = [parameter for parameter in model.parameters() if parameter not in matrices]
    return Together(
        [
            Muon(matrices, momentum=momentum, weight_decay=weight_decay),
            _adamw(others, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay),
        ]
    )


class Muon(Optimizer):
    """Momentum whose step is made orthogonal, for matrices W (Jordan et al. 2024):

        B <- mu B + (1 - mu) G
        O  = orthogonal((1 - mu) G + mu B)
        W <- (1 - lr weight_decay) W - lr 0.2 sqrt(max(rows, columns)) O

    with gradient G, momentum mu (Nesterov's) and decoupled decay. The factor 0.2 sqrt(max(rows, columns)) gives a step
    the size that Adam's usually has, so that both take the same learning rate (Liu et al. 2025, section 2.2).

    `matrices`: for each parameter, how many matrices are joined in it, one above the other. Each is made orthogonal by
    itself, since queries, keys and values are different maps. torch.optim.Muon takes a parameter as one matrix, and
    computes in bfloat16; here the weights' own precision is used.
    """

    def __init__(self, matrices: Mapping[Tensor, int], *, momentum: float, weight_decay: float) -> None:
        groups = [
            {"params": [weight for weight, parts in matrices.items() if parts == joined], "joined": joined}
            for joined in sorted(set(matrices.values()))
        ]
        super().__init__(groups, {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        outcome = _evaluated(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, weight.grad, group)
        return outcome

    def _move(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, lr, momentum = self.state[weight], group["lr"], group["momentum"]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(gradient, 1 - momentum)
        ahead = gradient.lerp(state["momentum"], momentum)
        each = ahead.unflatten(0, (group["joined"], -1))
        size = 0.2 * math.sqrt(max(each.shape[1:]))
        weight.mul_(1 - lr * group["weight_decay"])
        weight.sub_(orthogonal(each).flatten(0, 1), alpha=lr * size)


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of Jordan et al., steep at 0 so that small singular values rise within a few iterations."""


def orthogonal(matrices: Tensor, *, iterations: int = 5) -> Tensor:
    """Return matrices [number, rows, columns] with their singular values moved near 1: about U V^T for U S V^T.

    Newton-Schulz iterations X <- a X + (b A + c A A) X with A = X X^T, from X = G / |G| (Jordan et al. 2024). Singular
    values end between about 0.7 and 1.2.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    # A step in bfloat16 training runs under autocast, which would round these products.
    with torch.autocast(x.device.type, enabled=False):
        for _ in range(iterations):
            gram = x @ x.mT
            x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.mT if tall else x


class Together(Optimizer):
    """Several optimisers as one, each of parameters of its own."""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = list(parts)
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Let each optimiser take its step."""
        outcome = _evaluated(closure)
        for part in self.parts:
            part.step()
        return outcome

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each optimiser, in order."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; the optimisers' groups are new ones then."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def _evaluated(closure: Callable[[], Any] | None) -> Any:
    """Return what the closure returns; Lightning passes one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


OPTIMISERS: dict[str, Callable[..., Optimizer]] = {"adam": adam, "adamw": adamw, "muon": muon}
