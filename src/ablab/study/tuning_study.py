"""The tuning study of an experiment, which runs before its own, and what it makes of the arms and claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ablab.config import compose_arm
from ablab.errors import UserError
from ablab.fields import flatten
from ablab.search.space import checked
from ablab.store.records import Record
from ablab.study.cells import cells_of, check_differ, check_scales
from ablab.study.claims import Settled, check_scale
from ablab.study.design import Arm
from ablab.study.experiment import Tune
from ablab.study.grid import Grid
from ablab.study.search import space_of
from ablab.study.study import Cell, Study
from ablab.study.study_file import StudyFile
from ablab.study.tuning import TUNED, Tuned, settings_of, trial_arms
from ablab.tasks.registry import task_in_words


@dataclass(frozen=True)
class Compared:
    """What a study compares: its arms, the baseline of each, and the claims."""

    arms: Sequence[Arm]
    baselines: Mapping[str, str]
    claims: Sequence[Settled]


def both_ways(compared: Compared, tuned: Sequence[Tuned]) -> Compared:
    """Add each arm with its best settings, compared with its baseline at its own best ones, and the claims of these.

    These claims come first. Those at usual settings are secondary: they show what tuning changes, and must not widen
    the intervals of what the study asks.
    """
    names = {one.arm.name: one.name for one in tuned}
    arms = [*compared.arms, *(Arm(one.name, one.words) for one in tuned)]
    baselines = {**compared.baselines, **{names[arm]: names[base] for arm, base in compared.baselines.items()}}
    usual = [claim.model_copy(update={"secondary": True}) for claim in compared.claims]
    return Compared(arms, baselines, [*(_of_tuned(claim, names) for claim in compared.claims), *usual])


def _of_tuned(claim: Settled, names: Mapping[str, str]) -> Settled:
    found = claim.renamed(names)
    # What weighs several arms has a name in words.
    return found if not claim.parts else found.model_copy(update={"arm": f"{claim.arm}{TUNED}"})


def settings_to_try(tune: Tune, arms: Sequence[Arm], common: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the settings to try, after checking that every end and level composes."""
    varied = {word.partition("=")[0] for arm in arms for word in arm.words}
    for key in tune.keys:
        if key in varied:
            raise UserError(f"tune.key={key}: it is what the arms differ by; allowed: a key that they leave alone")
    if tune.space is None:
        return settings_of(tune, None)
    words, seed = (*common, *arms[0].words), f"seed={tune.seeds[0]}"
    space = checked(
        space_of(tune.space, "tune.space"),
        words,
        evaluations=False,
        try_out=lambda tried: compose_arm([*tried, seed]).unread,
    )
    return settings_of(tune, space)


def tuning_study(
    file: StudyFile,
    settings: Sequence[tuple[str, ...]],
    arms: Sequence[Arm],
    seeds: Sequence[int],
    common: Sequence[str],
) -> Study:
    """Return the tuning study, which runs before the experiment's own."""
    tune = file.experiment.tune
    assert tune is not None
    if shared := sorted(set(tune.seeds) & set(seeds)):
        raise UserError(f"tune.seeds: {', '.join(map(str, shared))} are seeds of the study too; allowed: others")
    trials = trial_arms(arms, settings, task_in_words((*common, *arms[0].words)).lean)
    cells = list(cells_of(trials, tune.seeds, common, naming=True))
    check_differ(trials, cells, [cells[0].planned.task.primary])
    name = f"{file.path.stem}-tuning"
    return Study(name, trials, trials[0].name, tune.seeds, cells, file.experiment, is_tuning=True, file=file)


def check_scales_when_tuned(
    tune: Tune, claims: Sequence[Settled], usual: Sequence[Cell], trials: Study, settings: int
) -> None:
    """Raise UserError where scores that choose settings, or that claims will compare, are not in one measure.

    `usual`: cells of the arms as they are; `settings`: the number that each arm of `trials` is tried with.
    """
    check_scales(claims, usual)
    for begin in range(0, len(trials.arms), settings):
        arms = [arm.name for arm in trials.arms[begin : begin + settings]]
        recipes = [flatten(trials.cells_of(arm)[0].planned.recipe) for arm in arms]
        validated = trials.task.validated
        if (reason := validated[tune.metric].unlike(recipes)) is not None:
            allowed = [key for key, score in validated.items() if score.unlike(recipes) is None]
            raise UserError(f"tune.metric={tune.metric}: {reason}; allowed: {', '.join(allowed)}")
        for claim in claims:
            check_scale(claim, recipes)  # any of these settings may become the arm's


def records_of(trials: Study) -> dict[str, list[Record]] | None:
    """Return the records by arm; None while any is missing."""
    records: dict[str, list[Record]] = {}
    for cell in trials.cells:
        record = cell.planned.folder.record()
        if record is None:
            return None
        records.setdefault(cell.arm, []).append(record)
    return records


def usual_runs(tune: Tune, arms: Sequence[Arm], common: Sequence[str]) -> dict[str, str]:
    """Return the id of each arm's run with its own settings, under the first seed of tuning."""
    cells = cells_of(arms, tune.seeds[:1], common, naming=True)
    return {cell.arm: cell.planned.run_id for cell in cells}


def compared_when_tuned(tune: Tune, compared: Compared, tuned: Sequence[Tuned], grid: Grid) -> Compared:
    """Return what is compared once the arms are tuned."""
    if tune.judged == "tuned":
        words = {one.arm.name: one.words for one in tuned}
        return replace(compared, arms=[replace(arm, words=words[arm.name]) for arm in compared.arms])
    baselines = {arm.name: grid.baseline_of(arm).name for arm in compared.arms}
    return both_ways(replace(compared, baselines=baselines), tuned)
