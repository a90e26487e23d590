"""Definition of a study from typed words: its arms, its seeds, and the run of each pair."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError
from ablab.store.garbage import uncollected
from ablab.study.cells import cells_of, check_all_measured, check_differ, check_distinct, one_arm_a_run, united_arms
from ablab.study.claims import Settled, asked, settled
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import find, read
from ablab.study.extending import added_so_far, check_followed
from ablab.study.grid import grid_of
from ablab.study.search import confirming
from ablab.study.study import Study, digest_of
from ablab.study.study_file import StudyFile, check_own
from ablab.study.tuning import tuned_of
from ablab.study.tuning_study import (
    Compared,
    check_scales_when_tuned,
    compared_when_tuned,
    records_of,
    settings_to_try,
    tuning_study,
    usual_runs,
)
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
    return Study(f"s{digest_of(cells)}", united_arms(arms, names), names[arms[0].name], seeds, cells, None)


def _declared(name: str, overrides: Sequence["Override"]) -> Study:
    path = find(name)
    experiment = read(path)
    if experiment.search is not None:
        return confirming(name, path, experiment, overrides)
    try:
        arms, baseline = arms_of(experiment)
        check_of_runs((*experiment.common, *(word for arm in arms for word in arm.words)))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    line = line_beside(name, overrides, {word.partition("=")[0] for arm in arms for word in arm.words})
    looks, seeds = looks_of(name, experiment, overrides), seeds_of(overrides, planned_seeds(experiment))
    common = (*experiment.common, *line)
    try:
        grid = grid_of(arms, baseline, experiment.within)
        compared = Compared(arms, grid.baselines, settled(experiment.claims, grid, experiment.metric))
        tuned, trials = [], None
        if experiment.tune is not None:
            usual = list(cells_of(arms, seeds[:1], common, naming=True))
            check_all_measured(compared.claims, usual)
            settings = settings_to_try(experiment.tune, arms, common)
            trials = tuning_study(StudyFile(path, experiment), settings, arms, seeds, common)
            records = records_of(trials)
            if records is None:
                check_scales_when_tuned(experiment.tune, compared.claims, usual, trials, len(settings))
                return trials
            tuned = tuned_of(arms, experiment.tune, settings, records, usual_runs(experiment.tune, arms, common))
            compared = compared_when_tuned(experiment.tune, compared, tuned, grid)
        cells = list(cells_of(compared.arms, seeds, common, naming=True))
        check_all_measured(compared.claims, cells)
        check_differ(compared.arms, cells, {experiment.metric, *(claim.metric for claim in compared.claims)})
        check_distinct(compared.claims, cells)
        if looks is not None:
            check_followed(compared.claims, experiment.error)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    names, cells = one_arm_a_run(compared.arms, cells)
    study = Study(
        path.stem,
        united_arms(compared.arms, names),
        names[baseline],
        seeds,
        cells,
        experiment,
        _each_once([claim.renamed(names) for claim in compared.claims]),
        baselines={names[arm]: names[other] for arm, other in compared.baselines.items()},
        looks=looks,
        tuned=tuned,
        trials=trials,
        file=StudyFile(path, experiment),
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
