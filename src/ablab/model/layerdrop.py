"""LayerDrop: whole layers fall out in training."""

from collections.abc import Sequence

import torch

from ablab.model.streams import Stochastic


class LayerDrop(Stochastic):
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
        draws = torch.rand(len(self.drop_probs), generator=self.generator).tolist()
        return [i for i, (draw, p) in enumerate(zip(draws, self.drop_probs, strict=True)) if draw >= p]


def uniform_rates(depth: int, p: float) -> list[float]:
    """The same rate for every layer, as in LayerDrop."""
    return [p] * depth


def linear_rates(depth: int, p: float) -> list[float]:
    """p * l / L for layer l of 1..L: rising with depth (Huang et al. 2016, eq. 4), without test-time scaling."""
    return [p * (layer / depth) for layer in range(1, depth + 1)]


RATES = {"uniform": uniform_rates, "linear": linear_rates}
