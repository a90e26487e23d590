"""LayerDrop: drops whole layers in training, at fixed or learned rates."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.model.streams import SeededModule


class LayerDrop(SeededModule):
    """Selects the layers of a stack that run in one pass (Fan et al. 2020, section 3.1).

    In training, layer l is dropped with probability `drop_probs[l]`. One draw per layer serves the whole batch (and all
    micro-batches and ranks of a step). Nothing is rescaled. All layers may be dropped; the stack is then the identity
    up to its final norm. In evaluation every layer runs.
    """

    per_step = True

    def __init__(self, drop_probs: Sequence[float]) -> None:
        super().__init__()
        self.drop_probs = list(drop_probs)

    def forward(self) -> list[int]:
        """Return the indices of the layers to run, in order."""
        if not self.training:
            return list(range(len(self.drop_probs)))
        rates = self.rates()
        draws = torch.rand(len(rates), generator=self.generator).tolist()
        return [i for i, (draw, p) in enumerate(zip(draws, rates, strict=True)) if draw >= p]

    def rates(self) -> list[float]:
        """Return each layer's drop probability."""
        return self.drop_probs

    def passed(
        self, index: int, before: Float[Tensor, "batch length d_model"], after: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Return the output of layer `index`, which ran; `before` and `after` are its input and output."""
        return after

    def of_layers(self, kept: Sequence[int]) -> "LayerDrop":
        """Return a LayerDrop for the layers `kept`, at the same rates."""
        return LayerDrop([self.drop_probs[index] for index in kept])


class LearnedLayerDrop(LayerDrop):
    """LayerDrop whose rates are learned while their mean stays p (our reading of Fan et al. 2020, section 3.2).

    The paper learns one rate per layer with an average of p and publishes no further details. Here every layer has a
    score s_l, initially 0, and

        p_l = sigmoid(s_l + c),   c such that mean(p_l) = p,

    a softmax whose weights cannot exceed 1. The score of a layer that runs gets a gradient that estimates the cost of
    dropping the layer: with q = 1 - p, x its input and f(x) its output, dL/dq_l is taken as
    <dL/df(x), f(x) - x> / q_l, the first-order term of L(with) - L(without), divided by how often the layer runs.
    Nothing is computed for a dropped layer, and the forward values are those of LayerDrop.
    """

    LEAST_SHARE = 0.1  # bounds the division by q_l, and with it the noise

    def __init__(self, depth: int, p: float) -> None:
        super().__init__([p] * depth)  # the initial rates
        self.p = p
        self.scores = nn.Parameter(torch.zeros(depth))

    def forward(self) -> list[int]:
        if self.training:
            self._keep = 1 - bounded_softmax(self.scores, self.p)
        return super().forward()

    def rates(self) -> list[float]:
        """Return the rates learned so far."""
        return bounded_softmax(self.scores.detach(), self.p).tolist()

    def passed(
        self, index: int, before: Float[Tensor, "batch length d_model"], after: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Return the layer's output with unchanged values and a gradient path to the scores."""
        if not (self.training and torch.is_grad_enabled()):
            return after
        keep = self._keep[index]
        share = keep / keep.detach().clamp(min=self.LEAST_SHARE)
        return after + (after.detach() - before.detach()) * (share - share.detach())

    def of_layers(self, kept: Sequence[int]) -> "LayerDrop":
        """Return a LayerDrop for the layers `kept`, with the present rates fixed."""
        rates = self.rates()
        return LayerDrop([rates[index] for index in kept])


def bounded_softmax(scores: Float[Tensor, "layers"], mean: float) -> Float[Tensor, "layers"]:
    """Return sigmoid(scores + c) with the unique c that gives it the mean `mean`, 0 < mean < 1.

    Differentiable in the scores: dc/ds_l = -w_l / sum(w), where w is the sigmoid's slope at each layer.
    """
    fixed = scores.detach().tolist()
    centre = math.log(mean / (1 - mean))
    # The mean is too small at low and too large at high; 60 halvings exhaust float64's precision.
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
    """Give every layer the rate p, as in LayerDrop."""
    return LayerDrop([p] * depth)


def linear_rates(depth: int, p: float) -> LayerDrop:
    """Give layer l of 1..L the rate p * l / L, rising with depth (Huang et al. 2016, eq. 4); no test-time scaling."""
    return LayerDrop([p * (layer / depth) for layer in range(1, depth + 1)])


def learned_rates(depth: int, p: float) -> LayerDrop:
    """Learn the rates, starting at p, with a mean of p; for p = 0 and p = 1 nothing can be learned."""
    return LearnedLayerDrop(depth, p) if 0 < p < 1 else LayerDrop([p] * depth)


RATES = {"uniform": uniform_rates, "linear": linear_rates, "learned": learned_rates}
