"""Runs of the same recipes that a report leaves out: the seeds that it shows may be the best of many."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ablab.errors import UserError
from ablab.judge.estimates import by_both
from ablab.judge.evidence import observed, pairs
from ablab.judge.lines import Span, interval_text
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.verdict import Failures
from ablab.store.chain import RECORD, Chain
from ablab.store.pack import unpacked
from ablab.store.run_folder import RunFolder, all_runs
from ablab.tasks.identity import run_id
from ablab.text import counted, how_many, p_words, signed

MOST_COMPARED = 3
"""Arms of which a note gives the difference over all runs."""

SEEDS_TRIED = 1000
"""Seeds, from 0, under which a run that is gone is looked for: the register has its id, and no recipe."""


def left_out(selection: SelectedArms, chain: Chain) -> Iterator[str]:
    """Yield a note on runs of the selection's recipes that ended in its store and are no part of it, if there are some.

    It says how many, their seeds, what left them out, and the differences over all runs.
    """
    rows = {run.record.condition_id: row for row in selection.rows for run in row.runs if run.record is not None}
    own = {run.folder.run_id.partition("-")[0] for run in selection.rests_on}  # also of one that was set aside
    others = list(_others(selection, rows, own))
    gone = _gone(selection.outputs, rows, chain.ended - own)
    if not others and not gone:
        return
    seeds = sorted({*gone.values(), *(one.seed for one in others)})
    index = unpacked(selection.outputs)
    away = "not in the store" if index is None or set(gone) & set(index.runs) else "not packed"
    lost = f"; {away}: {len(gone)}" if gone else ""
    runs = f"{how_many(len(others) + len(gone), 'more run')} of these recipes had ended (seeds {counted(seeds)}{lost})"
    chosen = f"{selection.chosen_by} leaves them out, so the figures are exploratory"
    said = "they are no part of the study" if _fixed(selection) else chosen

    def whole(row: ArmRuns) -> ArmRuns:
        return _with(row, [one for one in others if one.row is row])

    yield "; ".join([runs, said, *_compared(selection, whole, _is_more)])


def added_seeds(selection: SelectedArms) -> Iterator[str]:
    """Yield a note on seeds that came after the registration, with the differences over all seeds."""
    registered = selection.registered
    if registered is None or len(registered.seeds) < MINIMUM_SEEDS:
        return
    added = selection.where(lambda run: run.seed not in registered.seeds)
    if added:
        seeds = counted(sorted({run.seed for run in added}))
        said = f"seeds {seeds} were added after the first launch, and decide no registered claim"
        has_ended = any(run.has_ended for run in added)
        yield "; ".join([said, *(_compared(selection, lambda row: row) if has_ended else ())])


def _fixed(selection: SelectedArms) -> bool:
    """Return whether the runs were named before any of them had ended."""
    registered = selection.registered
    return registered is not None and not registered.runs_already_done and selection.departed is None


class _Other(NamedTuple):
    """A run that ended and is left out, and the row of whose recipe it is."""

    row: ArmRuns
    folder: RunFolder
    seed: int


def _others(selection: SelectedArms, rows: Mapping[str, ArmRuns], own: AbstractSet[str]) -> Iterator[_Other]:
    """Yield each other run of the store that has ended and is of one of these recipes; no trial of the study's search,
    whose place is said.
    """
    for folder in all_runs(selection.outputs):
        path = folder.path / RECORD
        content = path.read_bytes() if folder.run_id not in own and path.exists() else b""
        # Most runs of a large store are of other recipes: only what is compared is read as records are.
        if any(condition.encode() in content for condition in rows):
            with suppress(ValueError, LookupError, TypeError):
                record = json.loads(content)
                searched, _, _ = (record["config"].get("search_trial") or "").rpartition(":")
                if searched and selection.study is not None and Path(searched).name == selection.study.name:
                    continue
                yield _Other(rows[record["condition_id"]], folder, record["config"]["seed"])


def _gone(outputs: Path, rows: Mapping[str, ArmRuns], ended: AbstractSet[str]) -> dict[str, int]:
    """Return the seeds of runs of these recipes that had ended and lie in runs/ no more, by the id of the run."""
    lost = {run for run in ended if not (outputs / "runs" / run / RECORD).exists()}
    found: dict[str, int] = {}
    for row in rows.values() if lost else ():
        recipe = next(run.folder.recipe() for run in row.runs if run.record is not None)
        ids = {run_id({**recipe, "seed": seed}): seed for seed in range(SEEDS_TRIED)}
        found |= {run: ids[run] for run in lost & set(ids)}
    return found


def _is_more(before: Sequence[ArmRuns], after: Sequence[ArmRuns]) -> bool:
    """Return whether an arm and its baseline have more seeds in common than before, or more runs that diverged."""
    gained = len(pairs(*after).arm) - len(pairs(*before).arm)
    return gained > 0 or sum(len(arm.diverged) for arm in after) > sum(len(arm.diverged) for arm in before)


def _with(row: ArmRuns, others: Sequence[_Other]) -> ArmRuns:
    """Return a row with the others of its runs, evaluated as its own are."""
    way = next((run.evaluation.evaluation_id for run in row.runs if run.evaluation is not None), "")
    runs = {run.seed: run for run in row.runs}
    for one in others:
        with suppress(UserError):  # what cannot be read is left out once more
            if (run := ArmRun.read(one.folder, way)) is not None:
                runs.setdefault(one.seed, run)
    return ArmRuns(row.name, [runs[seed] for seed in sorted(runs)])


def _compared(
    selection: SelectedArms,
    whole: Callable[[ArmRuns], ArmRuns],
    is_told: Callable[[Sequence[ArmRuns], Sequence[ArmRuns]], bool] = lambda _before, _after: True,
) -> Iterator[str]:
    """Yield the differences of the first arms from their baselines; `whole`: a row with all runs that count."""
    for row in [row for row in selection.rows if row is not selection.baseline_of(row)][:MOST_COMPARED]:
        arms = row, selection.baseline_of(row)
        if is_told(arms, everything := tuple(map(whole, arms))):
            yield _difference(selection, *everything)


def _difference(selection: SelectedArms, arm: ArmRuns, baseline: ArmRuns) -> str:
    measure, pair = selection.measure, f"{arm.name} less {baseline.name}"
    found = observed(arm, baseline, measure)
    try:
        if isinstance(found, NotTestable):
            raise found
        if isinstance(found, Failures):
            shares = (f"{len(one.diverged)} of {len(one.runs)} runs of {one.name}" for one in (arm, baseline))
            return f"with them, {' and '.join(shares)} diverged"
        over = by_both(selection, (arm, baseline), (1.0, -1.0), measure, found).decisive
    except NotTestable as reason:
        return f"with them, {pair} cannot be told: {reason}"
    figure = f"{signed(over.difference, measure.digits)} {measure.unit}".rstrip()
    interval = interval_text(Span.of(over.at(0.95)), measure.digits)
    return f"with them, {pair} is {figure} {interval}, {p_words(over.p)}, over {over.n} seeds"
