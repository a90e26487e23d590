"""LayerDrop: whole layers fall out in training."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.model.streams import SeededModule


class LayerDrop(SeededModule):
    """Which layers of a stack run in this pass (Fan et al. 2020, section 3.1).

    In training layer l is left out with probability `drop_probs[l]`: one draw for the whole batch (and for all
    micro-batches and ranks of a step), nothing is rescaled, and all layers may fall: the stack is then the
    identity up to its final norm. In evaluation every layer runs.
    """

    per_step = True

    def __init__(self, drop_probs: Sequence[float]) -> None:
        super().__init__()
        self.drop_probs = list(drop_probs)

    def forward(self) -> list[int]:
        """Indices of the layers to run, in order."""
        if not self.training:
            return list(range(len(self.drop_probs)))
        rates = self.rates()
        draws = torch.rand(len(rates), generator=self.generator).tolist()
        return [i for i, (draw, p) in enumerate(zip(draws, rates, strict=True)) if draw >= p]

    def rates(self) -> list[float]:
        """The probability that each layer is left out."""
        return self.drop_probs

    def passed(
        self, index: int, before: Float[Tensor, "batch length d_model"], after: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """The output of a layer that ran, given what went into it."""
        return after

    def of_layers(self, kept: Sequence[int]) -> "LayerDrop":
        """The same for some of the layers."""
        return LayerDrop([self.drop_probs[index] for index in kept])


class LearnedLayerDrop(LayerDrop):
    """LayerDrop whose rates are learned while their mean stays p (our reading of Fan et al. 2020, section 3.2).

    The paper learns a rate per layer under an average of p, and left the rest unpublished. Here every layer has a
    score s_l, from 0, and

        p_l = sigmoid(s_l + c),   c such that mean(p_l) = p,

    a softmax whose weights cannot exceed 1. A layer that runs tells its score what leaving it out would have
    cost: with q = 1 - p, x its input and f(x) its output, dL/dq_l is taken as <dL/df(x), f(x) - x> / q_l, the
    first order of L(with) - L(without), divided by how often the layer runs. So nothing is computed for a layer
    that falls, and the values of the pass are those of LayerDrop.
    """

    LEAST_SHARE = 0.1  # bounds the division by q_l, and with it the noise

    def __init__(self, depth: int, p: float) -> None:
        super().__init__([p] * depth)  # where they start
        self.p = p
        self.scores = nn.Parameter(torch.zeros(depth))

    def forward(self) -> list[int]:
        if self.training:
            self._keep = 1 - bounded_softmax(self.scores, self.p)
        return super().forward()

    def rates(self) -> list[float]:
        """As learned so far."""
        return bounded_softmax(self.scores.detach(), self.p).tolist()

    def passed(
        self, index: int, before: Float[Tensor, "batch length d_model"], after: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """The layer's output; adds nothing to it but a way for the gradient."""
        if not (self.training and torch.is_grad_enabled()):
            return after
        keep = self._keep[index]
        share = keep / keep.detach().clamp(min=self.LEAST_SHARE)
        return after + (after.detach() - before.detach()) * (share - share.detach())

    def of_layers(self, kept: Sequence[int]) -> "LayerDrop":
        """With the rates as they are, no longer learned."""
        rates = self.rates()
        return LayerDrop([rates[index] for index in kept])


def bounded_softmax(scores: Float[Tensor, "layers"], mean: float) -> Float[Tensor, "layers"]:
    """sigmoid(scores + c) with the one c that makes their mean `mean`, 0 < mean < 1; differentiable in the scores.

    c follows the scores by dc/ds_l = -w_l / sum(w), with w the sigmoid's slope at each layer.
    """
    fixed = scores.detach().tolist()
    centre = math.log(mean / (1 - mean))
    # At low the mean is too small, at high too large; 60 halvings reach the end of float64.
    low, high = centre - max(fixed), centre - min(fixed)
    for _ in range(60):
        shift = (low + high) / 2
        if sum(_sigmoid(score + shift) for score in fixed) > mean * len(fixed):
            high = shift
        else:
            low = shift
    values = torch.sigmoid(scores.detach() + shift)
    slope = values * (1 - values)
    moving = shift - ((scores - scores.detach()) * (slope / slope.sum())).sum()
    return torch.sigmoid(scores + moving)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def uniform_rates(depth: int, p: float) -> LayerDrop:
    """The same rate for every layer, as in LayerDrop."""
    return LayerDrop([p] * depth)


def linear_rates(depth: int, p: float) -> LayerDrop:
    """p * l / L for layer l of 1..L: rising with depth (Huang et al. 2016, eq. 4), without test-time scaling."""
    return LayerDrop([p * (layer / depth) for layer in range(1, depth + 1)])


def learned_rates(depth: int, p: float) -> LayerDrop:
    """From p on, learned under a mean of p; at 0 and 1 there is nothing to learn."""
    return LearnedLayerDrop(depth, p) if 0 < p < 1 else LayerDrop([p] * depth)


RATES = {"uniform": uniform_rates, "linear": linear_rates, "learned": learned_rates}
