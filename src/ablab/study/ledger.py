"""The ledger of a study: the state of each run, read from the store, and the files that the study keeps beside its
runs.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ablab.code.differences import other_origin
from ablab.code.machine import uncollected
from ablab.errors import UserError
from ablab.fields import flatten
from ablab.files import folder_name, json_digest, read_json, write_json
from ablab.files.disk import lock_at, writing_in
from ablab.statistics.moderated import VERSION
from ablab.store.chain import Chain, complete
from ablab.store.failures import Failure, read_failure
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.locks import is_running
from ablab.store.metrics import VALID, read_metrics
from ablab.store.records import Record, now
from ablab.store.register import Register, ended_runs
from ablab.store.run_folder import RunFolder
from ablab.study.study import Cell, Study
from ablab.study.study_file import StudyFile, check_own, is_edit, keep, kept
from ablab.tasks.identity import condition_id, differing


class State(str, Enum):
    """State of a run. Trained: its weights exist, but a requested evaluation or curve is missing.

    The store does not know what is queued: whoever shows the state asks the queue.
    """

    PLANNED = "planned"
    QUEUED = "queued"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TRAINED = "trained"
    DIVERGED = "diverged"
    FINISHED = "finished"


RESULTS = (State.FINISHED, State.DIVERGED)
"""Final states: such a run never changes again."""

OPEN = (State.PLANNED, State.INTERRUPTED, State.TRAINED)
"""States of a run that lacks something, and that no process works on."""


@dataclass(frozen=True)
class LedgerEntry:
    """A run, its state, and the files it was read from. `job`: what a queue says of it, if it waits in one."""

    cell: Cell
    state: State
    record: Record | None
    pulse: Pulse | None
    failure: Failure | None
    job: str | None = None

    @property
    def other_origin(self) -> str | None:
        """The other code or library versions the run comes from; None where all are the present ones."""
        if self.record is None:
            return None
        return other_origin(self.record.provenance, self.cell.planned.recipe, self.record.stretches)

    @property
    def is_refused(self) -> bool:
        """True if other code began the run, so that it could not continue from its checkpoint."""
        return self.state is State.FAILED and self.failure is not None and self.failure.kind == "refused"


@uncollected()
def ledger(study: Study) -> dict[str, LedgerEntry]:
    """Return the entry of every run of the study, by its key."""
    return {key: entry_of(cell) for key, cell in study.runs.items()}


def entry_of(cell: Cell) -> LedgerEntry:
    """Read the entry of one run."""
    folder = cell.planned.folder
    try:
        return entry_with(cell, folder.record())
    except UserError as error:
        raise UserError(f"{error}; ablab rm run={folder.run_id} sets it aside, and it is trained anew") from None


def entry_with(cell: Cell, record: Record | None) -> LedgerEntry:
    """Return the entry of a run with this record."""
    planned, folder = cell.planned, cell.planned.folder
    complete = record is not None and not planned.lacks_evaluation(record) and not planned.lacks_curve(record)
    pulse, failure = None if complete else read_pulse(folder.pulse), read_failure(folder.failure)
    state = state_of(folder, record, lambda: pulse, lambda: failure, is_complete=complete)
    return LedgerEntry(cell, state, record, pulse, failure)


def count(entries: Sequence[LedgerEntry]) -> Counter[State]:
    """Count the entries in each state."""
    return Counter(entry.state for entry in entries)


def state_of(
    folder: RunFolder,
    record: Record | None,
    pulse: Callable[[], Pulse | None],
    failure: Callable[[], Failure | None],
    *,
    is_complete: bool,
) -> State:
    """Return the state of a run. `is_complete`: it has ended, and lacks nothing that was asked of it.

    `pulse`, `failure`: read where they matter, which of most runs of a list they do not.
    """
    if record is not None and is_complete:
        return State.DIVERGED if record.state == "diverged" else State.FINISHED
    if is_running(folder, pulse()):
        return State.RUNNING
    if failure() is not None:
        return State.FAILED
    if record is not None:
        return State.TRAINED
    return State.INTERRUPTED if folder.has_begun else State.PLANNED


def register(study: Study) -> list[str]:
    """Write down claims and seeds that are new, and how many runs had ended by then.

    Return a line on a file that was edited since, and on arms that are others by now.

    Claims made after runs have ended can be chosen by their outcome; the report must be able to detect that.
    """
    # Two launches at once would each read the register without the other's entry, and one would be lost.
    with writing_in(study.folder), lock_at(study.folder / ".registered.lock"):
        check_own(study.file, study.folder, study.outputs)
        return _register(study)


def _register(study: Study) -> list[str]:
    path = study.folder / "registered.json"
    complete(study.outputs, path)
    known: list[dict[str, Any]] = read_json(path) if path.exists() else []
    declared = _declared(study)
    found = conditions(study)
    is_new = not known or known[-1]["digest"] != declared["digest"] or _is_known_now(known, found)
    is_unseen = bool(known) and _differ(known[-1], study, found) and _none_seen(study, known)
    if is_new or is_unseen:
        planned = {cell.planned.run_id for cell in study.cells}
        entry = {
            **declared,
            **({"supersedes": True} if is_unseen else {}),
            **({} if study.file is None else study.file.registered(study.outputs)),
            "conditions": found,
            "judged": judged(study),
            **({"ways": ways} if (ways := ways_of(study)) else {}),
            "moderated_test": VERSION,
            "registered": now(),
            "runs_already_done": len(_ended_of(study, planned)),
            "runs": len(study.runs),
            "planned": sorted(planned),
            "typed": list(study.typed),
        }
        Register(study.outputs).write(path, [*known, entry], "registered", study=study.folder.name)
    if study.file is not None and (is_new or not _keeps(study.file, study.folder, known)) and not study.is_tuning:
        keep(study.file, study.folder)
    said = _list(study)
    if is_new and is_edit(study.file, known):
        said.append(f"{study.name}: its file was edited since it was registered; what is new is marked in its report")
    if not is_unseen and (what := _departed(study, known)):
        said.append(f"{study.name}: {what} differ from those of the first launch: its claims are exploratory by now")
    return said


def _keeps(file: StudyFile, folder: Path, known: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the file of the last registration is kept: a kill may have come before it was."""
    try:
        there = kept(folder)
    except UserError:  # it was edited, and is written anew
        return False
    was_registered = bool(known) and known[-1].get("content") == file.content
    return there is not None and (there.content == file.content or not was_registered)


def _list(study: Study) -> list[str]:
    """Write the study's list of runs. Return what is to be said of a damaged one in its place."""
    path, others, said = study.folder / "runs.json", list[Mapping[str, Any]](), list[str]()
    rows = [
        {
            "arm": cell.arm,
            "label": cell.label,
            "seed": cell.seed,
            "run_id": cell.planned.run_id,
            "words": list(cell.words),
        }
        for cell in study.cells
    ]
    try:
        others = _of_other_seeds(path, rows)
    except (UserError, LookupError, TypeError):
        said.append(f"{path}: damaged, and written anew; it no longer has seeds that this launch leaves out")
    write_json(path, [*rows, *others])
    return said


def _of_other_seeds(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what earlier launches listed of the same arms, in the same words, under seeds that this one leaves out.

    Raises UserError, LookupError or TypeError where the list is damaged.
    """
    words = {row["arm"]: _without_seed(row) for row in rows}
    there = {(row["arm"], row["seed"]) for row in rows}
    return [
        row
        for row in (read_json(path) if path.exists() else [])
        if words.get(row["arm"]) == _without_seed(row) and (row["arm"], row["seed"]) not in there
    ]


def _without_seed(row: Mapping[str, Any]) -> list[str]:
    return [word for word in row["words"] if not word.startswith("seed=")]


def departed(study: Study) -> str:
    """Return what differs, in words, from the recipes of the first launch; "" where none did, or no run was seen."""
    path = study.folder / "registered.json"
    known: list[dict[str, Any]] = read_json(path) if path.exists() else []
    what = _departed(study, known) if known else ""
    return what if what and not _none_seen(study, known) else ""


def _departed(study: Study, known: Sequence[Mapping[str, Any]]) -> str:
    settled: dict[str, str] = {}
    for entry in known:
        found = entry.get("conditions", {})
        # An arm that came later, as the winner of a search does, is settled from then on.
        settled = settled | found if entry.get("supersedes") else found | settled
    return changed(study, settled.items(), _planned(known))


def _planned(known: Sequence[Mapping[str, Any]]) -> set[str]:
    return {run for entry in known for run in entry.get("planned", ())}


def changed(study: Study, then: Iterable[tuple[str, str]], planned: Collection[str]) -> str:
    """Return what differs, in words, where an arm has another recipe than it was registered with; else "".

    `then`: present names of arms, with ids of recipes. `planned`: runs, of which those that are there tell settings.
    """
    now = {cell.arm: cell.planned.recipe for cell in study.cells if cell.seed == study.seeds[0]}
    left = {one: arm for arm, one in then if arm in now and condition_id(now[arm]) != one}
    if not left:
        return ""
    names: dict[str, None] = {}
    for run in sorted(planned):
        with suppress(UserError):  # it is gone, or damaged, which reports tell
            recipe = RunFolder(study.outputs / "runs" / run).recipe()
            if (arm := left.pop(condition_id(recipe), None)) is not None:
                names |= dict.fromkeys(differing(flatten(recipe), flatten(now[arm])))
        if not left:
            break
    return f"settings ({', '.join(names)})" if names else "settings"


def _is_known_now(known: Sequence[Mapping[str, Any]], found: Mapping[str, str]) -> bool:
    """Return whether an arm has a recipe that had none before: the winner of a search, once it has ended."""
    before = {arm for entry in known for arm in entry.get("conditions", found)}
    return not before >= set(found)


def _differ(entry: Mapping[str, Any], study: Study, found: Mapping[str, str]) -> bool:
    """Return whether arms that a registration has too have other recipes now, or are judged otherwise."""
    if entry.get("within", within_of(study)) != within_of(study):
        return True
    if any(found.get(arm, one) != one for arm, one in entry.get("conditions", {}).items()):
        return True
    return judged_otherwise(study, entry.get("judged", {}), entry.get("ways", {}), lambda arm: arm)


def _none_seen(study: Study, known: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether no run that was ever registered for the study has ended, nor told a score of validation.

    Older registrations do not name their runs, so that nobody knows.
    """
    if not all("planned" in entry for entry in known):
        return False
    runs = _planned(known)
    return not _ended_of(study, runs) and not any(
        _has_validated(RunFolder(study.outputs / "runs" / run)) for run in runs
    )


def _has_validated(folder: RunFolder) -> bool:
    try:
        rows = read_metrics(folder.metrics) if folder.metrics.exists() else []
    except UserError:
        return True  # for all that is known
    return any(key.startswith(VALID) for row in rows for key in row)


def _ended_of(study: Study, runs: set[str]) -> set[str]:
    """Return those of the runs that were ever trained, whatever they were judged by, even if they are gone by now."""
    ended = {*ended_runs(study.outputs), *Chain.of(study.outputs).ended}
    return ended & runs


def conditions(study: Study) -> dict[str, str]:
    """Return the id of each arm's recipe, which does not depend on the seed."""
    return {cell.arm: condition_id(cell.planned.recipe) for cell in study.cells if cell.seed == study.seeds[0]}


def judged(study: Study) -> dict[str, str]:
    """Return the ids of the evaluation and the curve of each arm."""
    return {cell.arm: f"{cell.planned.evaluation_id} {cell.planned.curve_id}" for cell in study.cells}


def ways_of(study: Study) -> dict[str, str]:
    """Return the way in which each arm is judged, where that is less than an id: of tasks that say so."""
    return {cell.arm: way for cell in study.cells if (way := cell.planned.task.way())}


def judged_otherwise(
    study: Study, then: Mapping[str, str], ways: Mapping[str, str], called: Callable[[str], str]
) -> bool:
    """Return whether an arm is judged otherwise than it was registered. `called`: the present name of an arm."""
    ids, now = judged(study), ways_of(study)
    for arm, one in then.items():
        name = called(arm)
        if ids.get(name, one) != one and not (arm in ways and set(ways[arm].split()) <= set(now.get(name, "").split())):
            return True
    return False


def _declared(study: Study) -> dict[str, Any]:
    experiment = study.experiment
    content = {
        "question": None if experiment is None else experiment.question,
        "arms": [arm.name for arm in study.arms],
        "baseline": study.baseline,
        "seeds": list(study.seeds),
        "claims": [claim.registered() for claim in study.claims],
        "error": "moderated" if experiment is None else experiment.decisive_error,
    }
    if study.looks is not None:
        content["looks"] = [study.looks.first, study.looks.last]
    return {**content, "digest": json_digest(content, 11), "within": within_of(study)}


def within_of(study: Study) -> str | None:
    """Return the factor, declared by its file, whose levels have a baseline each."""
    return None if study.experiment is None else study.experiment.within


OF_FILES = (".json", ".csv", ".png")
"""Suffixes of a study's own files, whose names no folder of an arm may have."""


def link(study: Study) -> None:
    """Create symbolic links `<arm>/<seed>` to the run folders, for browsing."""
    for arm in study.arms:
        name = folder_name(arm.name)
        folder = study.folder / (f"{name}_" if Path(name).suffix in OF_FILES else name)
        runs = os.path.relpath(study.outputs / "runs", folder)
        for cell in study.cells_of(arm.name):
            place, target = f"{folder}/{cell.seed}", f"{runs}/{cell.planned.run_id}"
            if _read_link(place) != target and cell.planned.folder.path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                _link(place, target)


def _link(place: str, target: str) -> None:
    """Let the link point there; another sweep of the study may be making it, too."""
    made = f"{place}.{os.getpid()}"
    Path(made).unlink(missing_ok=True)
    os.symlink(target, made, target_is_directory=True)
    os.replace(made, place)


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
