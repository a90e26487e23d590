"""Select the runs of a study: all that it should have, and its registration at the first launch."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from ablab.errors import UserError
from ablab.fields import as_typed, flatten
from ablab.files import json_digest, read_json
from ablab.judge.ends import given_up
from ablab.judge.metrics import measures
from ablab.judge.registration import Registered, called
from ablab.judge.runs import ArmRun, ArmRuns, evaluation_of
from ablab.judge.selection import SelectedArms, most_common, shared, way_of
from ablab.store.records import Curve
from ablab.store.run_folder import RunFolder
from ablab.study.claims import Settled, asked
from ablab.study.experiment import Added, ErrorEstimate, Experiment
from ablab.study.extending import MOST_CLAIMS, closings, extensions
from ablab.study.ledger import changed, conditions, entry_with, judged, judged_otherwise, within_of
from ablab.study.search import BEST, REPORT
from ablab.study.study import Cell, Study
from ablab.study.tuning import TUNING
from ablab.tasks.plan import Planned
from ablab.text import counted, how_many


def of_study(study: Study) -> SelectedArms:
    """Select every run that the study should have. Raises UserError where its claims are too many for looks."""
    experiment, registered = study.experiment, Registered.of(study.folder)
    other_names = {} if registered is None else _other_names(study, registered)
    if registered is not None:
        registered = registered.renamed(other_names).of_arms([arm.name for arm in study.arms])
    aside, departed = _departed(study, registered)
    withdrawn = _withdrawn(study, registered)
    _check_count(study, registered)
    heads = _head_curves(study)
    arms = [ArmRuns(arm.name, list(_runs_of(study, arm.name, heads[arm.name]))) for arm in study.arms]
    closed = closings(study.folder)
    closed_cells = {(cell.arm, cell.seed) for cell in study.cells if any(closing.state_of(cell) for closing in closed)}
    awaited, late = awaited_and_late(arms, registered, closed_cells)
    return SelectedArms(
        name="-".join((study.name, *aside)),
        question="" if experiment is None else experiment.question,
        source=None if experiment is None else experiment.source,
        arms=arms,
        baseline=study.baseline,
        metric=study.task.primary if experiment is None else experiment.metric,
        task=study.task,
        measures=measures(study.task),
        claims=[*study.claims, *withdrawn],
        registered=registered,
        outputs=study.outputs,
        factors={} if experiment is None else level_names(experiment),
        choosing=None if experiment is None else _choosing(study, experiment),
        searched=() if experiment is None else tuple(_searched(study, experiment)),
        departed=departed,
        notes=(
            *([] if departed is None else [departed]),
            *([] if not other_names else [f"arms have other names than at the first launch: {_told(other_names)}"]),
            *(f"no longer in the file, and judged as it was registered: {claim.words}" for claim in withdrawn),
            *_later(study, registered),
            *_other_ways(arms),
            *(one.said for one in closed),
        ),
        error=_error(experiment, registered),
        within=_within(study),
        baselines=study.baselines,
        awaited=awaited,
        declared=None if experiment is None else experiment.metric,
        late=late,
        given_up=given_up(study, closed),
        study=study.folder,
        tuned=study.tuned,
        tried=_tried(study.trials),
        tuning_metric="loss" if experiment is None or experiment.tune is None else experiment.tune.metric,
        looks=study.looks,
        lengths=study.lengths,
        labels={} if experiment is None else experiment.spoken,
        ended=next((one.ended for one in extensions(study.folder)[-1:]), None),
    )


def awaited_and_late(
    arms: Sequence[ArmRuns], registered: Registered | None, closed: Container[tuple[str, int]]
) -> tuple[list[ArmRun], list[ArmRun]]:
    """Return the registered runs that are still to end, and those that were given up and have ended since."""
    expected = {
        (arm.name, run.seed): run
        for arm in arms
        for run in arm.runs
        if registered is None or run.seed in registered.seeds
    }
    awaited = [run for place, run in expected.items() if not run.has_ended and place not in closed]
    return awaited, [run for place, run in expected.items() if run.has_ended and place in closed]


def _tried(trials: Study | None) -> list[ArmRun]:
    """Return the runs of tuning, if the study tunes its arms."""
    return [] if trials is None else [run for arm in trials.arms for run in _runs_of(trials, arm.name, "")]


def _within(study: Study) -> str | None:
    """Return the factor in each level of which arms have a baseline of their own; so they do when tuned."""
    return within_of(study) or (TUNING if study.tuned and study.baselines else None)


def check_begun(selection: SelectedArms) -> None:
    """Raise UserError if none of the runs has begun."""
    if not selection.where(lambda run: run.folder.path.exists()):
        first = selection.registered.typed if selection.registered and selection.departed else []
        allowed = "allowed: the settings of then, or the ids of its runs, which `ablab ls` tells (runs=<id>,<id>)"
        launched = f": {selection.departed}; launched there was: {' '.join(first)}; {allowed}" if first else ""
        raise UserError(f"{selection.name}: none of its runs has begun in {selection.outputs}{launched}")


def _error(experiment: Experiment | None, registered: Registered | None) -> ErrorEstimate:
    """Return how the noise of claims is estimated: as the file says, or as it was when the study was registered."""
    if experiment is not None and (experiment.error is not None or isinstance(experiment.seeds, Added)):
        return experiment.decisive_error
    return "moderated" if registered is None else registered.error


def _other_ways(arms: Sequence[ArmRuns]) -> Iterator[str]:
    """Yield a note on which evaluation counts where runs have several of their whole models."""
    judged: dict[RunFolder, set[str]] = {}
    for run in (run for arm in arms for run in arm.runs):
        if run.evaluation is not None:
            judged.setdefault(run.folder, set()).add(run.evaluation.evaluation_id)
    others = sum(len(folder.evaluation_ids() - taken - _of_points(folder)) for folder, taken in judged.items())
    if others:
        ways = "; ".join({way_of(run.evaluation): None for arm in arms for run in arm.runs if run.evaluation})
        yield f"scores are those on {ways}, as the words of the study say; {others} other evaluations are left out"


def _of_points(folder: RunFolder) -> set[str]:
    """Return the ids of evaluations of models pruned from the run."""
    return {point.evaluation_id for curve in _curves(folder) for point in curve.points}


def _other_names(study: Study, registered: Registered) -> dict[str, str]:
    """Return the present names of arms by the names of the registration that no arm has now.

    They have the same recipe and are judged alike, and no other arm does: else nobody knows which one was meant.
    """
    now, ways, names = conditions(study), judged(study), [arm.name for arm in study.arms]
    free = [arm for arm in names if not registered.has(arm)]
    gone = {arm: one for arm, one in registered.conditions.items() if called(arm, names) not in names}
    alike = {
        arm: [new for new in free if now[new] == one and ways[new] == registered.judged.get(arm, ways[new])]
        for arm, one in gone.items()
    }
    return {arm: found[0] for arm, found in alike.items() if len(found) == 1}


def _told(names: Mapping[str, str]) -> str:
    return ", ".join(f"{then} is {now}" for then, now in names.items())


def _withdrawn(study: Study, registered: Registered | None) -> list[Settled]:
    """Return claims of the first launch that the file no longer has.

    They stay in the family: dropping claims that fail would soften the correction of the others.
    """
    still = [asked(claim) for claim in study.claims]
    return [claim for claim in (registered.claims if registered else []) if asked(claim) not in still]


def _later(study: Study, registered: Registered | None) -> Iterator[str]:
    """Yield a note on arms that came after the first launch."""
    if arms := [arm.name for arm in study.arms if registered is not None and not registered.has(arm.name)]:
        yield f"arms that came after the first launch lend no noise to registered claims: {', '.join(arms)}"


def _check_count(study: Study, registered: Registered | None) -> None:
    later = [claim for claim in study.claims if registered is not None and not registered.asks(claim)]
    for secondary in (False, True):
        claims = sum(claim.secondary == secondary for claim in later)
        if study.looks is not None and claims > MOST_CLAIMS:
            raise UserError(
                f"{study.name}: {claims} claims that came after the first launch share an error rate; allowed where "
                f"seeds are added: up to {MOST_CLAIMS}"
            )


def _departed(study: Study, registered: Registered | None) -> tuple[list[str], str | None]:
    """Return how the study departs from its first launch: suffixes for the report's name, and a description or None.

    Leaving out seeds or arms, or changing settings, once results are known would allow verdicts to be chosen.
    """
    if registered is None:
        return [], None
    aside, departures = [], []
    now = conditions(study)
    then = [(called(arm, [*now]), one) for arm, one in registered.conditions.items()]
    if what := changed(study, then, registered.planned):
        aside.append(json_digest(now, 7))
        departures.append(f"{what} differ from those of the first launch")
    if judged_otherwise(study, registered.judged, registered.ways, lambda arm: called(arm, [*now])):
        aside.append(json_digest(judged(study), 7))
        departures.append("ways to judge differ from those of the first launch")
    if (error := _error(study.experiment, registered)) != registered.error:
        aside.append(error)
        departures.append(f"the error is {error}, and was {registered.error} at the first launch")
    looks = None if study.looks is None else [study.looks.first, study.looks.last]
    if looks != registered.looks:
        aside += ["looks", *(["none"] if looks is None else map(str, looks))]
        at, first = (f"after {one[0]} to {one[1]} seeds" if one else "once" for one in (looks, registered.looks))
        departures.append(f"claims are looked at {at}, and were to be {first} at the first launch")
    within = within_of(study)
    if "within" in registered.model_fields_set and within != registered.within:
        aside += ["within", within or "none"]
        departures.append(f"within is {within or 'none'}, and was {registered.within or 'none'} at the first launch")
    names = [arm.name for arm in study.arms]
    if gone := sorted(arm for arm in registered.conditions if called(arm, names) not in names):
        aside += ["arms", json_digest(gone, 7)]
        departures.append(f"arms of the first launch are left out: {', '.join(gone)}")
    if left_out := sorted(set(registered.seeds) - set(study.seeds)):
        aside += ["seeds", *map(str, study.seeds)]
        departures.append(f"seeds {counted(left_out)} of the first launch are left out")
    return aside, "; ".join(departures) or None


def _choosing(study: Study, experiment: Experiment) -> str | None:
    """Return a sentence on the scores that chose settings of the arms, or None.

    Scores by which something was chosen are no evidence for it; the report's own scores took no part. Trials are those
    that were made, settings those that differ.
    """
    if (search := experiment.search) is not None:
        by = f"by {', '.join(search.objectives)}, with seed {search.training_seed}"
        path = study.folder / REPORT
        trials = how_many(read_json(path)["told"] if path.exists() else search.trials, "trial")
        chosen = f"The arm {BEST} was chosen among {trials} ({search.sampler}) on validation, {by}"
    elif (tune := experiment.tune) is not None:
        by = f"on validation {tune.metric}, with seeds {counted(tune.seeds)}"
        tried = sorted({len(one.trials) for one in study.tuned})
        count = f"{counted(tried) or tune.trials} settings" if tune.values is None else f"{len(tune.values)} values"
        chosen = f"{' and '.join(tune.keys)} of each arm was chosen among {count} {by}"
    else:
        return None
    return f"{chosen}: no score of this report took part in it."


def _searched(study: Study, experiment: Experiment) -> Iterator[str]:
    """Yield a sentence on each setting that was searched: its values or bounds; and the sentence on the choice."""
    if (search := experiment.search) is not None:
        for key, values in search.space.items():
            yield f"{key}: {_bounds(values)}."
    elif (tune := experiment.tune) is not None:
        if tune.values is not None:
            yield f"{tune.key}: {', '.join(map(str, tune.values))}."
        for key, values in (tune.space or {}).items():
            yield f"{key}: {_bounds(values)}."
    if (chosen := _choosing(study, experiment)) is not None:
        yield chosen


def _bounds(values: Any) -> Any:
    return values.model_dump(exclude_defaults=True) if isinstance(values, BaseModel) else values


def _head_curves(study: Study) -> dict[str, str]:
    """Return the id of each arm's curve of heads: the one that the study asks for, else the usual one among its runs.

    Only curves judged as the study asks are compared.
    """
    found: dict[str, list[dict[str, Curve]]] = {arm.name: [] for arm in study.arms}
    for cell in study.cells:
        planned = cell.planned
        curves = {curve.curve_id: curve for curve in _curves(planned.folder) if _is_comparable(curve, planned)}
        found[cell.arm].append(curves)
    usual = most_common([curves for of_arm in found.values() for curves in of_arm])
    return {arm: shared(usual, of_arm) for arm, of_arm in found.items()}


def _curves(folder: RunFolder) -> list[Curve]:
    """Return all curves of a run, or none if one is damaged: a run that needs that one is marked where it is read."""
    with suppress(UserError):
        return folder.curves()
    return []


def _is_comparable(curve: Curve, planned: Planned) -> bool:
    judged_so = {key: value for key, value in curve.settings.items() if key != "pruning"} == planned.evaluation
    return curve.of_heads and judged_so and planned.task.may_judge_by(curve, planned)


def _runs_of(study: Study, arm: str, heads: str) -> Iterator[ArmRun]:
    for cell in study.cells_of(arm):
        try:
            yield _run(cell, heads)
        except UserError as error:
            yield ArmRun.damaged(cell.planned.folder, cell.seed, flatten(cell.planned.recipe), str(error))


def _run(cell: Cell, heads: str) -> ArmRun:
    planned = cell.planned
    record = planned.folder.record()
    curve = planned.folder.curve(planned.curve_id)
    return ArmRun(
        planned.folder,
        cell.seed,
        entry_with(cell, record).state.value,
        record,
        evaluation_of(planned.folder, planned.evaluation_id),
        None if curve is not None and curve.of_heads else curve,
        flatten(planned.recipe),
        head_curve=planned.folder.curve(heads) if heads else None,
    )


def level_names(experiment: Experiment) -> dict[str, list[str]]:
    """Return the levels by factor of a factorial design that has every combination; empty for any other."""
    if experiment.design != "factorial" or experiment.exclude:
        return {}
    return {
        factor: list(levels) if isinstance(levels, dict) else [as_typed(level) for level in levels]
        for factor, levels in experiment.factors.items()
    }
