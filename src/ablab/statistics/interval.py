"""Confidence intervals, never without level and method, and the error for data that cannot be tested."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A closed interval from `low` to `high`, in the units of the measurement. `level` in (0, 1); `method` for the
    caption.
    """

    low: float
    high: float
    level: float
    method: str

    def within(self, margin: float) -> bool:
        """Return whether the interval lies strictly between -margin and +margin."""
        return -margin < self.low and self.high < margin

    def excludes(self, value: float) -> bool:
        """Return whether the value lies outside the interval."""
        return not self.low <= value <= self.high


def check_level(level: float) -> float:
    """Return the level. Raises ValueError unless it lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies strictly between 0 and 1, got {level=}.")
    return level


class NotTestable(ValueError):  # noqa: N818 - the word of the verdict
    """Too few data, or data without variation, for a test. The message says what is missing, for a person to read."""
