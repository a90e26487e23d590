"""What a search may look for, how good a finished run is by it, and which of several trials are worth having."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ablab.store.records import Evaluation, Record, Selected

Name = Literal["valid_bleu", "valid_loss", "parameters", "decoding_speed"]


@dataclass(frozen=True)
class Objective:
    """`label`: for an axis, with its unit. `digits`: after the point, for people."""

    direction: Literal["minimize", "maximize"]
    label: str
    digits: int
    value: Callable[[Record, Evaluation | None], float | None]

    def written(self, value: float) -> str:
        """For people."""
        return f"{value:,.{self.digits}f}"

    def better(self, value: float, other: float) -> bool:
        """Strictly."""
        return value > other if self.direction == "maximize" else value < other


def _selected(read: Callable[[Selected], float]) -> Callable[[Record, Evaluation | None], float | None]:
    return lambda record, _: None if record.selected is None else read(record.selected)


OBJECTIVES: dict[str, Objective] = {
    "valid_bleu": Objective("maximize", "validation BLEU (greedy)", 2, _selected(lambda selected: selected.bleu)),
    "valid_loss": Objective(
        "minimize", "validation loss (nats per target token)", 3, _selected(lambda selected: selected.loss)
    ),
    "parameters": Objective("minimize", "parameters", 0, lambda record, _: float(record.cost.parameters)),
    "decoding_speed": Objective(
        "maximize",
        "decoding speed (sentences per second)",
        0,
        lambda _, evaluation: None if evaluation is None else evaluation.sentences_per_second,
    ),
}
"""The scores are those of the selected weights on validation. Of the test set only the time it takes is looked at."""

VALIDATED = {"valid_bleu": "bleu", "valid_loss": "loss"}
"""Those that each validation says something of: by them a trial can be stopped."""


def front(points: Sequence[Sequence[float]], objectives: Sequence[Objective]) -> list[int]:
    """Indices of the points that no other dominates: as good in everything, and better in something."""

    def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
        pairs = list(zip(objectives, one, other, strict=True))
        return not any(o.better(b, a) for o, a, b in pairs) and any(o.better(a, b) for o, a, b in pairs)

    return [i for i, point in enumerate(points) if not any(dominates(other, point) for other in points)]
