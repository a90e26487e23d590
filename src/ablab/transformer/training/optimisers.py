"""Optimisers: each gets the model's parameters by name, and its fields; the learning rate is set before every step.

A parameter without a gradient, such as one of a layer that LayerDrop left out, is not stepped: neither it nor its
moments change.
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim.adamw import adamw as adamw_step

from ablab.fields import NonNegative, Positive
from ablab.transformer.model.products import product

Named = Sequence[tuple[str, nn.Parameter]]
"""The parameters of a model, each with its name."""

Decay = Annotated[float, Field(ge=0, lt=1)]
"""The decay rate of a moving average."""

JOINED = {"qkv": 3, "key_value": 2}
"""How many square matrices the weight of a joined projection holds, one above the other, by the projection's name."""


def adam(parameters: Named, *, beta1: Decay, beta2: Decay, eps: Positive) -> torch.optim.Optimizer:
    """Return Adam (Kingma and Ba 2015, algorithm 1)."""
    return torch.optim.Adam([each for _, each in parameters], lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)


def adamw(
    parameters: Named, *, beta1: Decay, beta2: Decay, eps: Positive, weight_decay: NonNegative
) -> torch.optim.Optimizer:
    """Return Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), of matrices alone.

    Matrices, the tables of words among them, shrink by lr * weight_decay at each step; norms and biases do not.
    """
    groups = [
        {"params": [each for _, each in parameters if each.ndim >= 2], "weight_decay": weight_decay},
        {"params": [each for _, each in parameters if each.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)


class Muon(torch.optim.Optimizer):
    """Momentum orthogonalised for matrices (Muon; Jordan et al. 2024), AdamW for all else.

    For a matrix W of m x n with gradient G: M <- mu M + (1 - mu) G, and W <- W - lr (0.2 sqrt(max(m, n)) O + decay W)
    with O the orthogonalised (1 - mu) G + mu M (Nesterov's). The factor gives the update the size of Adam's, so that
    one learning rate serves both (Liu et al. 2025, Muon is scalable for LLM training, section 2.2). Matrices inside
    the layers are stepped so, each of a joined projection by itself; embeddings, norms, biases and whatever stands
    outside the layers by AdamW, decayed as in `adamw`.
    """

    def __init__(
        self,
        parameters: Named,
        *,
        momentum: Decay,
        beta1: Decay,
        beta2: Decay,
        eps: Positive,
        weight_decay: NonNegative,
    ) -> None:
        matrices = [(name, each) for name, each in parameters if each.ndim == 2 and ".layers." in name]
        inside = {name for name, _ in matrices}
        others = [each for name, each in parameters if name not in inside]
        own = {"momentum": momentum, "weight_decay": weight_decay}
        # Loading takes the counter of steps to the weight's device only where a group says that its step is fused.
        adams = {"betas": (beta1, beta2), "eps": eps, "fused": True}
        counts = sorted({_count(name) for name, _ in matrices})
        groups: list[dict[str, Any]] = [
            {"params": [each for name, each in matrices if _count(name) == count], "count": count, **own}
            for count in counts
        ]
        groups += [
            {"params": [each for each in others if each.ndim >= 2], "count": 0, "weight_decay": weight_decay, **adams},
            {"params": [each for each in others if each.ndim < 2], "count": 0, "weight_decay": 0.0, **adams},
        ]
        super().__init__([group for group in groups if group["params"]], {"lr": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step every parameter that has a gradient; return what the closure does."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            with_gradient = [each for each in group["params"] if each.grad is not None]
            if group["count"]:
                for each in with_gradient:
                    self._step_matrix(each, group)
            else:
                self._step_others(with_gradient, group)
        return loss

    def _step_matrix(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        gradient, state, mu = weight.grad, self.state[weight], group["momentum"]
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(gradient, 1 - mu)
        looked_ahead = gradient.lerp(state["momentum"], mu)
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        for part, update in zip(weight.chunk(group["count"]), looked_ahead.chunk(group["count"]), strict=True):
            size = 0.2 * math.sqrt(max(part.shape))
            part.sub_(orthogonalised(update).to(part.dtype), alpha=group["lr"] * size)

    def _step_others(self, weights: list[nn.Parameter], group: dict[str, Any]) -> None:
        for weight in weights:
            if not self.state[weight]:
                zeros = {name: torch.zeros_like(weight) for name in ("mean", "square")}
                self.state[weight].update(step=torch.zeros((), device=weight.device), **zeros)
        states = [self.state[weight] for weight in weights]
        adamw_step(
            list(weights),
            [weight.grad for weight in weights if weight.grad is not None],
            [state["mean"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _count(name: str) -> int:
    """Return how many square matrices a weight holds, and 1 for any single matrix."""
    return JOINED.get(name.split(".")[-2], 1)


COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return U S' V^T for matrix = U S V^T, with S' from about 0.7 to 1.2 (Jordan et al. 2024).

    Five Newton-Schulz iterations X <- a X + (b A + c A^2) X, with A = X X^T, of the matrix divided by its norm, in
    float32 at least, under autocast too: the published code computes them in bfloat16, which rounds otherwise on every
    device.
    """
    with torch.autocast(matrix.device.type, enabled=False):
        return _iterated(matrix)


def _iterated(matrix: Tensor) -> Tensor:
    a, b, c = COEFFICIENTS
    x = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
    is_tall = x.size(0) > x.size(1)
    x = x.T if is_tall else x
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = product(x, x.T)
        x = a * x + product(b * gram + product(c * gram, gram), x)
    return x.T if is_tall else x
