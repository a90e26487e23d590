"""Select the runs of a study by what its store keeps of it, where neither its file nor its own parts are at hand."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from ablab.errors import UserError
from ablab.judge.metrics import measures
from ablab.judge.registration import ListedRun, Registered, called, listed, misplaced
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.judge.selection_of_study import awaited_and_late, level_names
from ablab.statistics.looks import Looks
from ablab.store.run_folder import RunFolder
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import Experiment, is_there
from ablab.study.extending import closings, extensions
from ablab.study.grid import grid_of
from ablab.study.study_file import kept
from ablab.study.worth import Lengths
from ablab.tasks.registry import task_recorded
from ablab.tasks.task import Task

NOTE = "reported from the store alone, which keeps the experiment as it was registered"
LATER = "registered at a later launch, and left out of a report from the store alone"


def of_kept(words: Sequence[str], outputs: Path) -> SelectedArms | None:
    """Return a registered study that words name by its name alone, of which there is no file; None for all others."""
    (key, _, name), *others = [word.partition("=") for word in words]
    return None if key != "experiment" or others or not name or is_there(name) else of_store(name, outputs)


def of_store(name: str, outputs: Path) -> SelectedArms | None:
    """Return the study of this name as its store keeps it; None where it does not.

    Raises UserError for a study whose arms were tuned or searched, or of which runs were given up: what these were can
    only be told from the file.
    """
    folder = outputs / "studies" / name
    if (file := kept(folder)) is None:
        return None
    registered = Registered.of(folder)
    assert registered is not None, "a file that was registered has a registration"
    experiment = file.experiment
    _check_told(name, folder, experiment)
    rows = listed(folder)
    there = [_run(row, registered, outputs) for row in rows]
    runs = [(row.arm, run) for row, run in zip(rows, there, strict=True)]
    runs += [(arm, _missing(outputs / f"runs/{arm}/{seed}", seed)) for arm, seed in _unlisted(rows, registered)]
    arms = [ArmRuns(arm, [run for of, run in runs if of == arm]) for arm in registered.arms]
    departed = _misplaced(rows, there, folder) or _departed(arms, registered)
    later = [claim for claim in Registered.every(folder)[-1].claims if not registered.asks(claim)]
    first = next((run for arm in arms for run in arm.runs if run.record is not None), None)
    if first is None or first.record is None:
        raise UserError(f"experiment={name}: none of its runs has ended in {outputs}")
    task = task_recorded(first.record.settings, None if first.evaluation is None else first.evaluation.settings)
    designed, baseline = arms_of(experiment)
    baselines = grid_of(designed, baseline, experiment.within).baselines
    awaited, late = awaited_and_late(arms, registered, set())
    return SelectedArms(
        name=name,
        question=experiment.question,
        source=experiment.source,
        arms=arms,
        baseline=called(baseline, registered.arms),
        metric=experiment.metric,
        task=task,
        measures=measures(task),
        claims=registered.claims,
        registered=registered,
        outputs=outputs,
        factors=level_names(experiment),
        departed=departed,
        notes=[NOTE, *([] if departed is None else [departed]), *(f"{LATER}: {claim.words}" for claim in later)],
        error=registered.error,
        within=experiment.within,
        baselines={called(arm, registered.arms): called(base, registered.arms) for arm, base in baselines.items()},
        awaited=awaited,
        late=late,
        declared=experiment.metric,
        labels=experiment.spoken,
        study=folder,
        looks=None if registered.looks is None else Looks(*registered.looks),
        ended=next((one.ended for one in extensions(folder)[-1:]), None),
        lengths=_lengths(experiment, designed, baseline, registered, task),
    )


def _check_told(name: str, folder: Path, experiment: Experiment) -> None:
    """Raise UserError for a study of which the store does not tell all that its file would."""
    if closings(folder):
        raise UserError(f"experiment={name}: runs of it were given up; allowed: with the file of the experiment")
    if experiment.tune is not None or experiment.search is not None:
        raise UserError(f"experiment={name}: its arms were tuned or searched; allowed: with the file of the experiment")


def _misplaced(rows: Sequence[ListedRun], there: Sequence[ArmRun], folder: Path) -> str | None:
    """Say what the list of a study has in the place of other runs; None where it has nothing."""
    known = {run.folder.run_id: (run.record.condition_id, run.seed) for run in there if run.record is not None}
    first, *others = [*misplaced(rows, known, Registered.every(folder)), None]
    return first if len(others) < 2 else f"{first} ({len(others) - 1} more are like it)"


def _departed(arms: Sequence[ArmRuns], registered: Registered) -> str | None:
    """Return in words which arms have runs of other recipes than those that were registered; None where none has.

    A later launch made them, or somebody has edited the list of the study's runs.
    """
    others = [arm.name for arm in arms if any(_is_of_another(run, registered.condition(arm.name)) for run in arm.runs)]
    return f"settings of {', '.join(others)} differ from those of the first launch" if others else None


def _is_of_another(run: ArmRun, condition: str | None) -> bool:
    return condition is not None and run.record is not None and run.record.condition_id != condition


def _unlisted(rows: Sequence[ListedRun], registered: Registered) -> Iterator[tuple[str, int]]:
    """Yield arm and seed of registered runs that the study does not list; where seeds are added, nobody knows."""
    there = {(row.arm, row.seed) for row in rows}
    every = product(registered.arms, registered.seeds) if registered.looks is None else ()
    yield from (place for place in every if place not in there)


def _missing(path: Path, seed: int) -> ArmRun:
    return ArmRun(RunFolder(path), seed, "missing", None, None, None, {})


def _run(row: ListedRun, registered: Registered, outputs: Path) -> ArmRun:
    folder = RunFolder(outputs / "runs" / row.run_id)
    evaluation, _, curve = (registered.way(row.arm) or "").partition(" ")
    try:
        return ArmRun.read(folder, evaluation, curve) or _missing(folder.path, row.seed)
    except UserError as error:
        return ArmRun.damaged(folder, row.seed, {}, str(error))


def _lengths(
    experiment: Experiment, designed: Sequence[Arm], baseline: str, registered: Registered, task: Task
) -> Lengths | None:
    """Return the baseline at other lengths, which are the arms that the design does not have."""
    names = {arm.name for arm in designed}
    others = [arm for arm in registered.arms if not names & set(arm.split(" = "))]
    if not experiment.worth or len(others) != 2:
        return None
    return Lengths(task, baseline, *(Arm(name, ()) for name in others))
