"""A study that adds seeds until its claims are settled: where these stand, and the next seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ablab.judge.claims import judge
from ablab.judge.lines import ClaimLine, LookLine, interval_text
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_of_study import of_study
from ablab.study.claims import Settled
from ablab.study.experiment import Added
from ablab.study.extending import Extension, extensions
from ablab.study.study import Study
from ablab.text import aligned, duration, percent, signed

HOUR = 3600.0


@dataclass(frozen=True)
class NextSeeds:
    """What a look at the claims asks for. `known`: the extensions before it; `now`, `wanted`: seeds by arm.

    `ended`: why no seed is added any more; None while some are.
    """

    lines: Sequence[ClaimLine]
    known: Sequence[Extension]
    now: Mapping[str, int]
    wanted: Mapping[str, int]
    ended: str | None


def next_seeds(study: Study) -> NextSeeds | None:
    """Look at the claims of a study whose runs have all ended; None where it adds no seeds, or ended so before."""
    if study.looks is None:
        return None
    known = extensions(study.folder)
    selection = of_study(study)
    lines = judge(selection)
    now = {arm.name: len(study.cells_of(arm.name)) for arm in study.arms}
    wanted = _wanted(study, lines, now)
    ended = "no claim is open" if wanted == now else _spent(study, selection)
    if ended is not None and [(one.seeds, one.ended) for one in known[-1:]] == [(now, ended)]:
        return None
    return NextSeeds(lines, known, now, now if ended else wanted, ended)


def _spent(study: Study, selection: SelectedArms) -> str | None:
    """Return a sentence where the runs have taken the study's hours."""
    seeds = study.experiment.seeds if study.experiment is not None else None
    runs = {run.folder.run_id: run.record for run in selection.where(lambda run: run.record is not None)}
    spent = sum(record.cost.seconds for record in runs.values() if record is not None) / HOUR
    if not isinstance(seeds, Added) or seeds.hours is None or spent < seeds.hours:
        return None
    return f"its runs took {spent:.1f} hours, of {seeds.hours:g}"


def standing(study: Study) -> Iterator[str]:
    """Yield a row on each claim, and a line on what the study may still cost, if what is open stays so to the end."""
    selection = of_study(study)
    lines = judge(selection)
    yield from claims_table(lines)
    if selection.ended is not None:
        yield f"No seed is added any more: {selection.ended}"
        return
    assert study.looks is not None
    now = {arm.name: len(study.cells_of(arm.name)) for arm in study.arms}
    arms = {name for claim in _open(study, lines) for name in now if name in claim.weights}
    # Arms that differ by pruning alone share their runs.
    trained = {study.cells_of(name)[0].planned.folder.path: now[name] for name in sorted(arms, key=now.__getitem__)}
    more = sum(study.looks.last - seeds for seeds in trained.values())
    more += sum(not run.has_ended for run in selection.where(lambda run: True))
    if more:
        records = [run.record for run in selection.where(lambda run: run.record is not None) if run.record]
        each = sum(record.cost.seconds for record in records) / max(1, len(records))
        hours = f", about {duration(more * each)} for one at a time" if records else ""
        yield f"At most {more} more runs{hours}"


def _open(study: Study, lines: Sequence[ClaimLine]) -> list[Settled]:
    """Return the study's claims that a further seed could settle."""
    return [
        claim
        for claim, line in zip(study.claims, lines, strict=False)  # claims that were withdrawn come after these
        if line.followed is not None and line.followed.state == "open"
    ]


def _wanted(study: Study, lines: list[ClaimLine], now: dict[str, int]) -> dict[str, int]:
    """Return the number of seeds of each arm after the next look: one more for those of open claims."""
    assert study.looks is not None
    wanted = dict(now)
    for claim in _open(study, lines):
        names = [arm.name for arm in study.arms if arm.name in claim.weights]
        seeds = min(min(now[name] for name in names) + 1, study.looks.last)
        wanted |= {name: max(wanted[name], seeds) for name in names}
    return wanted


COLUMNS = ["claim", "verdict", "path", "seeds", "difference", "interval", "verdict later"]

STEPS = "\N{LOWER ONE EIGHTH BLOCK}\N{LOWER ONE QUARTER BLOCK}\N{LOWER THREE EIGHTHS BLOCK}\N{LOWER HALF BLOCK}" + (
    "\N{LOWER FIVE EIGHTHS BLOCK}\N{LOWER THREE QUARTERS BLOCK}\N{LOWER SEVEN EIGHTHS BLOCK}"
)
SETTLED = "\N{FULL BLOCK}"


def claims_table(lines: Sequence[ClaimLine]) -> Iterator[str]:
    """Yield a row on each claim, and what the blocks of its path mean."""
    yield from aligned([COLUMNS, *map(_row, lines)], left=3)
    yield f"(path: how near each look came to a boundary; {SETTLED} settled the claim)"


def _row(line: ClaimLine) -> list[str]:
    about = line.followed
    assert about is not None
    claim = f"{line.arm} against {line.baseline} in {line.title}"
    if not about.looks:
        return [claim, line.outcome if line.reason is None else line.reason, "", "", "", "", ""]
    last = about.looks[-1]
    interval = last.interval if line.interval is None else line.interval
    states = {"settled": line.outcome, "spent": "not settled", "hopeless": "no point in going on"}
    return [
        claim,
        states.get(about.state, about.state),
        path(line),
        f"{last.n} of {about.last}",
        f"{signed(last.difference, line.digits)} {line.unit}".rstrip(),
        f"{interval_text(interval, line.digits)} at {100 * interval.level:.4g} %",
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
