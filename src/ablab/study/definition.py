"""Definition of a study from typed words: its arms, its seeds, the run of each pair, and the tuning study before it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ablab.code.machine import uncollected
from ablab.config import compose_arm
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError, about, choices
from ablab.fields import as_typed, flatten
from ablab.search.space import check_role, checked
from ablab.store.records import Record
from ablab.study.cells import (
    cells_of,
    check_all_measured,
    check_differ,
    check_distinct,
    check_scales,
    check_scores,
    one_arm_a_run,
    united_arms,
)
from ablab.study.claims import Settled, asked, check_scale
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import Tune, find, read
from ablab.study.extending import added_so_far, check_followed
from ablab.study.grid import Grid, grid_of
from ablab.study.search import confirming, space_of
from ablab.study.study import Cell, Study, digest_of
from ablab.study.study_file import StudyFile, check_own
from ablab.study.tuning import TUNED, Tuned, trial_arms, tuned_of
from ablab.study.typed import (
    MOST_VALUES,
    check_of_runs,
    line_beside,
    looks_of,
    parse_words,
    planned_seeds,
    seeds_of,
    words_of,
)
from ablab.study.worth import claims_of, lengths_of
from ablab.tasks.registry import task_in_words

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


@uncollected()
def define(words: tuple[str, ...]) -> Study:
    """Compose and validate every run of the words of a sweep: `experiment=<name>`, or values with commas.

    Where an experiment tunes its arms, return the tuning study instead until all of its runs exist.
    """
    overrides = parse_words(words)
    named = [override for override in overrides if override.key_or_group == "experiment"]
    others = [override for override in overrides if override.key_or_group not in ("experiment", *OF_A_SWEEP)]
    if named:
        if named[-1].is_sweep_override():
            raise UserError(f"{named[-1].input_line}: allowed: one experiment at a time")
        study = replace(_declared(str(named[-1].value()), others), typed=words)
        for one in filter(None, (study, study.trials)):
            check_own(one.file, one.folder, one.outputs)
        return study
    return replace(_ad_hoc(others), typed=words)


def _ad_hoc(overrides: Sequence["Override"]) -> Study:
    rest = [override for override in overrides if override.key_or_group != "seed"]
    words = [words_of(override) for override in rest]
    swept = [override.is_sweep_override() for override in rest]
    arms = []
    for override, values in zip(rest, words, strict=True):
        word, times = Counter(values).most_common(1)[0]
        if times > 1:
            raise UserError(f"{override.input_line}: {word} comes twice; allowed: values that differ")
    if (count := prod(map(len, words))) > MOST_VALUES:
        raise UserError(f"{count:,} arms; allowed: up to {MOST_VALUES:,}")
    for combination in product(*words):
        varied = [word for word, varies in zip(combination, swept, strict=True) if varies]
        arms.append(Arm(",".join(varied) or "one arm", combination))
    seeds = seeds_of(overrides, [1])
    cells = list(cells_of(arms, seeds, ()))
    check_differ(arms, cells, [cells[0].planned.task.primary])
    names, cells = one_arm_a_run(arms, cells)
    return Study(f"s{digest_of(cells)}", united_arms(arms, names), names[arms[0].name], seeds, cells)


def _declared(name: str, overrides: Sequence["Override"]) -> Study:
    path = find(name)
    experiment = read(path)
    file = StudyFile(path, experiment)
    if experiment.search is not None:
        return confirming(name, file, overrides)
    with about(path):
        arms, baseline = arms_of(experiment)
        check_of_runs((*experiment.common, *(word for arm in arms for word in arm.words)))
    line = line_beside(name, overrides, {word.partition("=")[0] for arm in arms for word in arm.words})
    looks, seeds = looks_of(name, experiment, overrides), seeds_of(overrides, planned_seeds(experiment))
    common = (*experiment.common, *line)
    with about(path):
        grid = grid_of(arms, baseline, experiment.within)
        lengths = lengths_of(experiment, arms, baseline, common)
        compared_arms = arms if lengths is None else [*arms, *lengths.arms]
        compared = Compared(compared_arms, grid.baselines, claims_of(experiment, grid, lengths))
        metrics = {experiment.metric, *(claim.metric for claim in compared.claims)}
        tuned, trials = [], None
        if experiment.tune is not None:
            usual = list(cells_of(arms, seeds[:1], common, naming=True))
            check_all_measured(compared.claims, usual)
            settings = settings_to_try(experiment.tune, arms, common)
            trials = tuning_study(file, settings, arms, seeds, common)
            records = records_of(trials)
            if records is None:
                check_scales_when_tuned(experiment.tune, compared.claims, usual, trials, len(settings))
                check_scores(usual[0].planned.task, metrics)
                twice = experiment.tune.judged == "both"
                if twice:
                    check_differ(arms, usual, metrics)
                    check_distinct(compared.claims, usual)
                if looks is not None:
                    check_followed([*compared.claims] * (1 + twice), experiment.error)
                return trials
            own = usual_runs(experiment.tune, arms, common)
            words = {cell.arm: cell.words for cell in trials.cells}
            tuned = tuned_of(arms, experiment.tune, settings, records, own, words)
            compared = compared_when_tuned(experiment.tune, compared, tuned, grid)
        cells = list(cells_of(compared.arms, seeds, common, naming=True))
        check_scores(cells[0].planned.task, metrics)
        check_all_measured(compared.claims, cells)
        check_differ(compared.arms, cells, metrics)
        check_distinct(compared.claims, cells)
        if looks is not None:
            check_followed(compared.claims, experiment.error)
    names, cells = one_arm_a_run(compared.arms, cells)
    study = Study(
        path.stem,
        united_arms(compared.arms, names),
        names[baseline],
        seeds,
        cells,
        _each_once([claim.renamed(names) for claim in compared.claims]),
        baselines={names[arm]: names[other] for arm, other in compared.baselines.items()},
        looks=looks,
        tuned=tuned,
        trials=trials,
        file=file,
        lengths=lengths,
    )
    return study if looks is None else replace(study, cells=added_so_far(study, looks))


def _each_once(claims: Sequence[Settled]) -> list[Settled]:
    """Leave out claims at usual settings where tuning left both arms as they are."""
    found: dict[str, Settled] = {}
    for claim in claims:
        # What weighs several arms has a name in words, which says whether they are tuned.
        names = {"arm": "", "baseline": ""} if claim.parts else {}
        found.setdefault(asked(claim).model_copy(update={"secondary": False, **names}).model_dump_json(), claim)
    return list(found.values())


@dataclass(frozen=True)
class Compared:
    """What a study compares: its arms, the baseline of each, and the claims."""

    arms: Sequence[Arm]
    baselines: Mapping[str, str]
    claims: Sequence[Settled]


def _of_tuned(claim: Settled, names: Mapping[str, str]) -> Settled:
    found = claim.renamed(names)
    # What weighs several arms has a name in words.
    return found if not claim.parts else found.model_copy(update={"arm": f"{claim.arm}{TUNED}"})


def settings_to_try(tune: Tune, arms: Sequence[Arm], common: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the settings that every arm is tried with, after checking that every end and level composes."""
    varied = {word.partition("=")[0] for arm in arms for word in arm.words}
    for key in tune.keys:
        if key in varied:
            raise UserError(f"tune.key={key}: it is what the arms differ by; allowed: a key that they leave alone")
        check_role(key, evaluations=False)
    if tune.space is None:
        return [(f"{tune.key}={as_typed(value)}",) for value in tune.values or ()]
    space = checked(
        space_of(tune.space, "tune.space"),
        [(*common, *arm.words) for arm in arms],
        evaluations=False,
        try_out=lambda tried: compose_arm([*tried, f"seed={tune.seeds[0]}"]).unread,
    )
    # Optuna takes a second to import, which only this needs.
    from ablab.search.sampling import draws

    assert tune.trials is not None
    return list(dict.fromkeys([(), *draws(space, tune.trials - 1, tune.draws)]))


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
    return Study(name, trials, trials[0].name, tune.seeds, cells, is_tuning=True, file=file)


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
        if tune.metric not in validated:
            raise UserError(f"tune.metric={tune.metric}: {choices(tune.metric, validated)}")
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
    """Return what is compared once the arms are tuned: they with their best settings, alone or beside the usual ones.

    Beside these, each is compared with its baseline at its own best settings. The claims of that come first. Those at
    usual settings are secondary: they show what tuning changes, and must not widen the intervals of what the study
    asks.
    """
    words = {one.arm.name: one.words for one in tuned}
    if tune.judged == "tuned":
        return replace(compared, arms=[replace(arm, words=words[arm.name]) for arm in compared.arms])
    names = {one.arm.name: one.name for one in tuned}
    arms = [*compared.arms, *(Arm(one.name, words[one.arm.name]) for one in tuned)]
    usual = {arm.name: grid.baseline_of(arm).name for arm in compared.arms}
    baselines = {**usual, **{names[arm]: names[base] for arm, base in usual.items()}}
    secondary = [claim.model_copy(update={"secondary": True}) for claim in compared.claims]
    return Compared(arms, baselines, [*(_of_tuned(claim, names) for claim in compared.claims), *secondary])
