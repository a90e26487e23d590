"""What a validation during training gives: scores by name, what orders them, and texts to show."""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar, NamedTuple

from ablab.transformer.model.transformer import TokenModel


@dataclass(frozen=True)
class Validation:
    """The scores of one validation. A task's own class adds fields, numbers all of them, which checkpoints store.

    `loss`: nats per predicted token, without label smoothing. `columns`: the names of the scores, properties among
    them, in the order of tables. `higher_is_better`: those of which more is better.
    """

    columns: ClassVar[tuple[str, ...]] = ("loss", "perplexity")
    higher_is_better: ClassVar[tuple[str, ...]] = ()

    step: int
    loss: float

    @property
    def perplexity(self) -> float:
        """exp(loss), per token."""
        return math.exp(min(self.loss, 700.0))

    @property
    def scores(self) -> dict[str, float]:
        """The scores by name."""
        return {name: getattr(self, name) for name in self.columns}

    @property
    def noted(self) -> dict[str, Any]:
        """What a record holds of the selected weights beside their scores."""
        return {}

    @property
    def line(self) -> str:
        """The scores in words, for the console."""
        return f"validation loss {self.loss:.3f}   perplexity {self.perplexity:8.2f}"

    def order(self, monitor: str) -> tuple[float, ...]:
        """Return what orders validations by the monitored score, the larger the better.

        What is equal in another score is ordered by the loss, which goes on telling good weights from bad ones where
        that score is constant: BLEU is 0 as long as no four tokens in a row are right, or for ever where references are
        shorter.
        """
        if monitor == "loss":
            return (-self.loss,)
        score: float = getattr(self, monitor)
        return (score if monitor in self.higher_is_better else -score, -self.loss)

    def better_than(self, other: "Validation | None", monitor: str) -> bool:
        """Compare by `order`. Equals and NaN are not better, so the first of equals stays best."""
        return other is None or self.order(monitor) > other.order(monitor)

    @property
    def numbers(self) -> list[float]:
        """The fields, None as NaN; `of_numbers` reads them."""
        return [math.nan if value is None else float(value) for value in astuple(self)]

    @classmethod
    def of_numbers(cls, numbers: Sequence[float]) -> "Validation":
        """Return the validation whose fields the first of these numbers are."""
        step, *others = (None if math.isnan(value) else value for value, _ in zip(numbers, fields(cls), strict=False))
        return cls(int(step or 0), *others)  # type: ignore[arg-type]


def best(validations: Sequence[Validation], monitor: str) -> Validation:
    """Return the best validation by its `order`, the first of equals."""
    leader: Validation | None = None
    for validation in validations:
        if validation.better_than(leader, monitor):
            leader = validation
    assert leader is not None, "no validation yet"
    return leader


class Samples(NamedTuple):
    """Texts that a validation shows, as a table; without columns there are none."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


Validate = Callable[[TokenModel, int], tuple[Validation, Samples]]
"""Validates a model after a step, without random draws or side effects."""
