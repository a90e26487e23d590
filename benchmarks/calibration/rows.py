"""Rates of error, and the table of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One rate. `promised`: the range it must lie in, or None where it is only reported."""

    method: str
    scenario: str
    n: int
    what: str
    rate: float
    repetitions: int
    promised: tuple[float, float] | None

    @property
    def error(self) -> float:
        """Standard error of the rate."""
        return (max(self.rate * (1 - self.rate), 1 / self.repetitions) / self.repetitions) ** 0.5

    @property
    def kept(self) -> bool:
        """Whether the range holds, but for simulation error."""
        slack = 2.6 * self.error
        return self.promised is None or self.promised[0] - slack <= self.rate <= self.promised[1] + slack


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each scenario and method, a column for each number of seeds."""
    numbers = sorted({row.n for row in rows})
    lines = [
        f"| {' | '.join(['what', 'method', 'scenario', *(f'n={n}' for n in numbers), 'promised'])} |",
        f"| {' | '.join(['---'] * (4 + len(numbers)))} |",
    ]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.what, row.method, row.scenario), []).append(row)
    for key, found in groups.items():
        cells = {row.n: f"{row.rate:.3f}" + ("" if row.kept else " **!**") for row in found}
        promised = next((f"{row.promised[0]:.2f} to {row.promised[1]:.2f}" for row in found if row.promised), "")
        lines.append(f"| {' | '.join([*key, *(cells.get(n, '') for n in numbers), promised])} |")
    return "\n".join(lines)
