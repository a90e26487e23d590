"""Those who watch a training: what they are told, and who may end it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ablab.training.course import Course
from ablab.training.validation import Validation


@dataclass(frozen=True)
class Measurements:
    """What a look at training shows. `loss`: nats per target token, label smoothing apart; it, and `padding`, the
    share of positions that are padding, are of this step's batch.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    drophead: float
    tokens_per_second: float
    seconds: float
    padding: float


class Listener(Protocol):
    """Somebody who wants to know how training goes. Nothing that a listener does may change the training."""

    def on_step(self, course: Course, total_steps: int | None) -> None:
        """After every step; must be cheap."""

    def on_look(self, measurements: Measurements) -> None:
        """Every few steps."""

    def on_validation(self, validation: Validation, translations: Sequence[str], is_best: bool) -> None:
        """After each validation."""


class Referee(Protocol):
    """Somebody who may end a training after a validation, as a poor trial of a search."""

    def __call__(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        """Why training is to end now, if it is. It can be continued later."""
