"""Walk from runs to the bytes they rest on, and compute their scores again, as far as that needs no model.

Stamps that others hold tell whether the register once ended as they say, and what of a study it had by then.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain as joined
from pathlib import Path
from typing import Any

from pydantic import Field

from ablab.errors import UserError
from ablab.fields import flatten
from ablab.judge.custody import links
from ablab.judge.flaws import NO_REGISTER, broken, is_history
from ablab.judge.selection import SelectedArms
from ablab.store.chain import Chain
from ablab.store.finished import FinishedRun
from ablab.store.pack import has_no_texts
from ablab.store.records import Evaluation, Point, Strict
from ablab.store.run_folder import RunFolder
from ablab.store.stamps import HeldStamp
from ablab.tasks.registry import task_of
from ablab.text import how_many
from ablab.tracking.console import Console


class RunVerified(Strict):
    """A run: the number of its links, the first broken one, and the evaluations that were scored again.

    `mismatches`: where an evaluation is not what its texts give.
    """

    run: str
    links: int
    broken: str | None
    evaluations: int = 0
    mismatches: list[str] = Field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.broken is None and not self.mismatches


def all_hold(runs: Iterable[RunVerified]) -> bool:
    """Return whether nothing is broken of any run."""
    return all(run.holds for run in runs)


def ended_of(selection: SelectedArms) -> list[FinishedRun]:
    """Return the runs of a selection that have ended, each once, and those of tuning."""
    runs = {run.folder.path: run for run in selection.rests_on}.values()
    return [FinishedRun(run.folder, run.record) for run in runs if run.record is not None]


def faults_of(selection: SelectedArms, console: Console) -> list[str]:
    """Print and return what is wrong of a selection with its flaws: registers, files of the study, and what is gone.

    What a store only knows to have been made again is no fault: `departures` says it.
    """
    damage = dict.fromkeys(line for run in selection.rests_on for line in run.damage)
    own = selection.outputs.resolve()
    others = dict.fromkeys(run.folder.outputs.resolve() for run in selection.rests_on)
    flaws = [flaw for flaw in selection.flaws if flaw != NO_REGISTER and not is_history(flaw)]
    found = [
        *damage,
        *(f"{own}: {flaw}" for flaw in flaws),
        *(f"{store}: {fault}" for store in others if store != own for fault in broken(Chain.of(store), [])),
    ]
    for fault in found:
        console.say(fault)
    return found


def verify_runs(runs: Sequence[FinishedRun], console: Console) -> list[RunVerified]:
    """Print the first broken link of each run, each mismatch of scores, and their numbers; return them for each run."""
    verified = _links(runs, console)
    with_text = [run for run in runs if not (has_no_texts(run.folder) and _is_of_texts(run.folder))]
    if len(with_text) < len(runs):
        of = f"of {len(runs) - len(with_text)} of {len(runs)} runs " if with_text else ""
        console.say(f"There are no translations {of}to score again: they were not packed")
    if not with_text:
        return verified
    again = dict(zip([run.run_id for run in with_text], _scored_again(with_text, console), strict=True))
    return [one.model_copy(update=again.get(one.run, {})) for one in verified]


def _is_of_texts(folder: RunFolder) -> bool:
    """Return whether a run was scored on texts, as far as can be read: a command gives its scores alone."""
    try:
        return any(one.references for one in folder.evaluations())
    except UserError:
        return True


def _links(runs: Sequence[FinishedRun], console: Console) -> list[RunVerified]:
    chains = {store: Chain.of(store) for store in {run.folder.outputs for run in runs}}
    for store in (store for store, chain in chains.items() if not chain.digests):
        where = "The store" if len(chains) == 1 else str(store)
        console.say(f"{where} has no register: what was entered there cannot be compared")
    verified = []
    with console.counting("checking digests", len(runs)) as advance:
        for run in runs:
            found = list(links(run.folder, chains[store := run.folder.outputs]))
            if any(link.fault is not None for link in found):  # what has ended since the register was read is in it
                chains[store] = Chain.of(store)
                found = list(links(run.folder, chains[store]))
            fault = next((f"{link.file} {link.fault}" for link in found if link.fault is not None), None)
            if fault is not None:
                console.say(f"{run.run_id}: {fault}")
            verified.append(RunVerified(run=run.run_id, links=len(found), broken=fault))
            advance(1)
    count, broken = sum(one.links for one in verified), sum(one.broken is not None for one in verified)
    state = {0: "none is broken", 1: "1 run has a broken one"}.get(broken, f"{broken} runs have a broken one")
    console.say(f"{count:,} links of {how_many(len(runs), 'run')} checked: {state}")
    return verified


def _scored_again(runs: Sequence[FinishedRun], console: Console) -> list[dict[str, Any]]:
    """Score all evaluations again, those of pruned models too; return their number and mismatches for each run."""
    wrong = checked = 0
    told = []
    with console.counting("scoring again", len(runs)) as advance:
        for run in runs:
            each = [list(found) for found in _of_run(run.folder)]
            mismatches = [line for lines in each for line in lines]
            for line in mismatches:
                console.say(f"{run.run_id}: {line}")
            checked += len(each)
            wrong += sum(map(bool, each))
            told.append({"evaluations": len(each), "mismatches": mismatches})
            advance(1)
    if not checked:
        console.say("No evaluation can be scored again: the scores are those that the programs gave")
        return told
    differ = {0: "none differ", 1: "1 differs"}.get(wrong, f"{wrong} differ")
    source = "hypotheses" if any(_is_of_texts(run.folder) for run in runs) else "items"
    console.say(f"{how_many(checked, 'evaluation')} scored again from their {source}: {differ}")
    return told


def _of_run(folder: RunFolder) -> Iterator[Iterator[str]]:
    """Yield the mismatches of each evaluation, of the whole model and along the curves."""
    try:
        evaluations, curves = {found.evaluation_id: found for found in folder.evaluations()}, folder.curves()
    except UserError as error:
        yield iter((str(error).replace(f"{folder.outputs}/", ""),))
        return
    points: dict[str, list[Point]] = {evaluation_id: [] for evaluation_id in evaluations}
    for point in (point for curve in curves for point in curve.points):
        points.setdefault(point.evaluation_id, []).append(point)
    for evaluation_id, of_one in points.items():
        evaluation = evaluations.get(evaluation_id)
        if evaluation is None:
            yield iter((f"the evaluation {evaluation_id} of its pruning curve is gone",))
        else:
            again = task_of(flatten(folder.recipe())).scored_again(evaluation, folder)
            if again is not None or of_one:
                yield joined(_unlike(of_one, evaluation), again or ())


def _unlike(points: Sequence[Point], evaluation: Evaluation) -> Iterator[str]:
    for point in points:
        there = {name: evaluation.scores.get(name) for name in point.scores}
        if point.scores != there:
            stored, stands = (
                " and ".join(f"{key} {value}" for key, value in found.items()) for found in (point.scores, there)
            )
            yield f"{stored} in its pruning curve, {stands} in the evaluation {evaluation.evaluation_id}"


class StampVerified(Strict):
    """A stamp, and the number of the register's line that it is of; None: this register never ended so.

    `later`: the number of lines since.
    """

    stamp: str
    line: int | None
    later: int | None = None

    @property
    def holds(self) -> bool:
        return self.line is not None


@dataclass(frozen=True)
class Reported:
    """A register, and what is reported: studies by their folders, and ids of runs."""

    chain: Chain
    studies: Sequence[Path]
    runs: Set[str]


def verify_stamps(stamps: Sequence[HeldStamp], of: Reported, console: Console) -> list[StampVerified]:
    """Print and return what each stamp shows of a register."""
    chain, found = of.chain, []
    for one in stamps:
        line = one.line_in(chain)
        if line is None:
            console.say(f"{one.said}: this register never had it: it was cut, replaced or written anew since")
            found.append(StampVerified(stamp=one.said, line=None))
            continue
        then, later = chain.up_to(line), len(chain.digests) - line
        state = "broken before that line" if then.broken or then.unreadable else "as it was then"
        console.say(f"{one.said}: the register up to line {line} is {state}; {how_many(later, 'line')} came after")
        for words in _by_then(then, of):
            console.say(f"  {words}")
        if one.unchecked:
            console.say(f"  not checked: who gave it, and when; {one.unchecked}")
        found.append(StampVerified(stamp=one.said, line=line, later=later))
    return found


def _by_then(then: Chain, of: Reported) -> Iterator[str]:
    """Yield what a stamp is good for: that claims came before results is shown by one that lies between them."""
    ended = f"{len(then.ended & of.runs)} of {how_many(len(of.runs), 'run')} had ended"
    for study in of.studies:
        entries, in_all = (len(chain.of_study(study.name, "registered")) for chain in (then, of.chain))
        times = f" ({entries} of {in_all} times)" if 0 < entries < in_all else ""
        yield f"by then {study.name} was {'registered' if entries else 'not registered'}{times}, and {ended}"
    if not of.studies:
        yield f"by then {ended}"


class Verified(Strict):
    """What was verified. `faults`: of registers and a study's files, and what cannot be read; `runs` have their own.

    `notes`: in what a study is not as it was registered. `stamp`: of the register as it is;
    `held`: those from outside.
    """

    holds: bool = True
    runs: list[RunVerified] = Field(default_factory=list)
    faults: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    held: list[StampVerified] = Field(default_factory=list)
    stamp: str | None = None
