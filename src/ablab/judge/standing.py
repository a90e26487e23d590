"""Where the claims of a study stand that adds seeds until they are settled, as a table for a terminal."""

from collections.abc import Iterator, Sequence

from ablab.console import aligned
from ablab.judge.document import ClaimLine, LookLine
from ablab.judge.format import interval_text, signed
from ablab.judge.looks import percent

COLUMNS = ["claim", "verdict", "path", "seeds", "difference", "interval", "verdict later"]

STEPS = "\N{LOWER ONE EIGHTH BLOCK}\N{LOWER ONE QUARTER BLOCK}\N{LOWER THREE EIGHTHS BLOCK}\N{LOWER HALF BLOCK}" + (
    "\N{LOWER FIVE EIGHTHS BLOCK}\N{LOWER THREE QUARTERS BLOCK}\N{LOWER SEVEN EIGHTHS BLOCK}"
)
SETTLED = "\N{FULL BLOCK}"


def claims_table(lines: Sequence[ClaimLine]) -> Iterator[str]:
    """Yield a row on each claim, and what the blocks of its path mean."""
    yield from (row.rstrip() for row in aligned([COLUMNS, *map(_row, lines)], left=3))
    yield f"(path: how near each look came to a boundary; {SETTLED} settled the claim)"


def _row(line: ClaimLine) -> list[str]:
    about = line.followed
    assert about is not None
    claim = f"{line.arm} against {line.baseline} in {line.title}"
    if not about.looks:
        return [claim, line.outcome if line.reason is None else line.reason, "", "", "", "", ""]
    last = about.looks[-1]
    states = {"settled": line.outcome, "spent": "not settled", "hopeless": "no point in going on"}
    return [
        claim,
        states.get(about.state, about.state),
        path(line),
        f"{last.n} of {about.last}",
        f"{signed(last.difference, line.digits)} {line.unit}".rstrip(),
        interval_text(last.interval if line.interval is None else line.interval, line.digits),
        "" if about.chance is None else percent(about.chance),
    ]


def path(line: ClaimLine) -> str:
    """Return a block for each look of a claim, the higher the nearer it came to a boundary."""
    assert line.followed is not None
    blocks = [STEPS[min(int(_nearness(line, look) * len(STEPS)), len(STEPS) - 1)] for look in line.followed.looks]
    return "".join([*blocks[:-1], SETTLED] if line.followed.state == "settled" else blocks)


def _nearness(line: ClaimLine, look: LookLine) -> float:
    """Return how far the estimate of a look is on its way to the boundary that would confirm or refute the claim.

    0 is the middle between boundaries, or the true value of no difference; 1 is on a boundary. A claim that two arms
    are equal is on its way to having its whole interval within the margin.
    """
    half, size = (look.interval.high - look.interval.low) / 2, abs(look.difference)
    if line.expect == "equal" and line.margin:
        return line.margin / (size + half)
    if line.expect == "not_worse":
        worst = line.margin if line.higher_is_better is False else -line.margin
        size = abs(look.difference - worst)
    return size / half
