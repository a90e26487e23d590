"""A confidence interval, never without its level and its method; or a refusal, when numbers cannot answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Closed, from `low` to `high`, in the units of what was measured. `level` in (0, 1); `method` for the caption."""

    low: float
    high: float
    level: float
    method: str

    @property
    def half_width(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2

    def within(self, margin: float) -> bool:
        """Whether it lies strictly between -margin and +margin."""
        return -margin < self.low and self.high < margin

    def excludes(self, value: float) -> bool:
        """Whether the value lies outside."""
        return not self.low <= value <= self.high


def check_level(level: float) -> float:
    """The level itself; ValueError if it is no probability strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies strictly between 0 and 1, got {level=}.")
    return level


class NotTestable(ValueError):  # noqa: N818 - the word of the verdict
    """Too little, or nothing that varies, to judge by. The message says what is missing, for a person to read."""
