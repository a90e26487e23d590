"""A task of one's own: a line through points, fitted by gradient descent, without torch and without text."""

import random
from typing import ClassVar

from ablab.fields import Count, Positive
from ablab.tasks.own import DivergedError, Loop, OwnTask, Tested
from ablab.tasks.score import Score


def points(seed, count):
    """Points about the line y = 3 x."""
    draw = random.Random(seed)
    return [(x, 3 * x + draw.gauss(0, 0.5)) for x in (draw.uniform(-1, 1) for _ in range(count))]


def error(slope, found):
    """The mean squared error."""
    return sum((slope * x - y) ** 2 for x, y in found) / len(found)


class Toy(OwnTask):
    """Fits the slope. `rate`: of learning; above 10, it diverges."""

    name = "toy"
    scores: ClassVar = {
        "test_error": Score("test error", "", 4, False, "test", "error", converged="valid_error"),
        "test_near": Score(
            *("near points", "%", 1, True, "test", "near"),
            converged="valid_error",
            of_sums=lambda sums: 100 * sums[..., 0] / sums[..., 1],
        ),
        "valid_error": Score("validation error", "", 4, False, "validation", "error", enough=0.05),
    }
    primary, loss = "test_error", "valid_error"
    listed, beside = ("test_error", "test_near"), ("test_near", "valid_error")

    def __init__(self, rate: Positive = 0.3, steps: Count = 60):
        self.rate, self.steps = rate, steps

    def train_on(self, loop: Loop):
        slope = random.Random(loop.seed).gauss(0, 1) if loop.state is None else loop.state
        for step in loop.steps(self.steps):
            batch = points(f"{loop.seed} {step}", 8)
            slope -= self.rate * sum(2 * x * (slope * x - y) for x, y in batch) / len(batch)
            if abs(slope) > 1e6:
                raise DivergedError(f"the slope is above 1,000,000 at step {step + 1}")
            if (step + 1) % 5 == 0 or step + 1 == self.steps:
                loop.validate(step + 1, {"error": error(slope, points("valid", 64))}, slope)

    def test(self, state, seed):
        found = points("test", 200)
        near = [[int(abs(state * x - y) < 0.5), 1] for x, y in found]
        return Tested({"error": error(state, found), "near": sum(one for one, _ in near) / 2}, {"near": near})
