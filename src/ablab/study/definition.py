"""Definition of a study from typed words: its arms, its seeds, and the run of each pair."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.config import compose_arm
from ablab.config.former import key_of
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError
from ablab.garbage import uncollected
from ablab.program import program
from ablab.search.settings import Settings
from ablab.search.space import Space, checked, parsed
from ablab.statistics.looks import Looks
from ablab.store.records import Record
from ablab.study.both_ways import Compared, both_ways, tuned_alone
from ablab.study.cells import cells_of, check_distinct, one_arm_a_run, united_arms
from ablab.study.claims import Settled, asked, check_measured, settled
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import Added, Experiment, Tune
from ablab.study.experiment_file import find, names, read
from ablab.study.extending import added_so_far, check_followed
from ablab.study.grid import Grid, grid_of
from ablab.study.search import BEST, USUAL, SearchStudy, declared, search, space_of
from ablab.study.study import Cell, Study, digest_of
from ablab.study.tuning import Tuned, settings_of, trial_arms, tuned_of

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


MOST_VALUES = 100_000
"""Most values of one key, and most arms of a sweep: more are a slip of the keyboard, and would never be planned."""


@cache
@uncollected()
def define(words: tuple[str, ...]) -> Study:
    """Compose and validate every run of the words of a sweep: `experiment=<name>`, or values with commas.

    Where an experiment tunes its arms, return the tuning study instead until all of its runs exist.
    """
    overrides = _parse(words)
    named = [override for override in overrides if override.key_or_group == "experiment"]
    others = [override for override in overrides if override.key_or_group not in ("experiment", *OF_A_SWEEP)]
    if named:
        if named[-1].is_sweep_override():
            raise UserError(f"{named[-1].input_line}: allowed: one experiment at a time")
        return replace(_declared(str(named[-1].value()), others), typed=words)
    return replace(_ad_hoc(others), typed=words)


def define_search(words: Sequence[str], settings: Settings | None = None) -> SearchStudy | None:
    """Return the search that an experiment declares, or that the words define with the settings of
    hydra/sweeper=optuna.

    None where there is none. Every end and level of its space is composed and validated.
    """
    overrides = _parse(words, intervals=settings is not None)
    named = [override for override in overrides if override.key_or_group == "experiment"]
    others = [override for override in overrides if override.key_or_group not in ("experiment", *OF_A_SWEEP)]
    if settings is None:
        return _declared_search(named[-1], others) if named and not named[-1].is_sweep_override() else None
    if named:
        raise UserError(
            f"{named[-1].input_line}: an experiment declares its search itself; allowed: search: in its file, "
            "without hydra/sweeper=optuna"
        )
    seeds = [override for override in others if override.key_or_group == "seed"]
    if any(override.is_sweep_override() for override in seeds):
        raise UserError(f"{seeds[-1].input_line}: a search does not vary the seed; allowed: one seed for all trials")
    if seeds:
        settings = settings.model_copy(update={"training_seed": _seeds(seeds, [])[-1]})
    varied = [override for override in others if override.is_sweep_override()]
    common = [str(o.input_line) for o in others if not o.is_sweep_override() and o.key_or_group != "seed"]
    return search(None, settings, Space(tuple(parsed(override) for override in varied)), common)


def announced(search: SearchStudy) -> Study:
    """Return the study that will follow a declared search, as far as it is known before: its claims and its seeds."""
    cells = list(cells_of([Arm(USUAL, ())], search.seeds, search.common, naming=True))
    arms = [Arm(USUAL, ()), Arm(BEST, ())]
    claims = [] if search.experiment is None else _claims(search.experiment, grid_of(arms, USUAL, None))
    return Study(search.name, arms, USUAL, list(search.seeds), cells, search.experiment, claims)


def _claims(experiment: Experiment, grid: Grid) -> list[Settled]:
    return settled(experiment.claims, grid, experiment.metric)


def _declared_search(named: "Override", overrides: Sequence["Override"]) -> SearchStudy | None:
    name = str(named.value())
    path = find(name)
    experiment = read(path)
    if experiment.search is None:
        return None
    varied = set(experiment.search.space)
    common, seeds = _line(name, overrides, varied), _seeds(overrides, _planned(experiment))
    try:
        _check_seedless(experiment.common)
        claims = _claims(experiment, grid_of([Arm(USUAL, ()), Arm(BEST, ())], USUAL, None))
        found = declared(path.stem, experiment, (*experiment.common, *common), seeds)
        for claim in claims:
            check_measured(claim, found.base)
        return found
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _parse(words: Sequence[str], *, intervals: bool = False) -> list["Override"]:
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from ablab.config.overrides import in_words_of_now, parse
    from ablab.config.values import own_hydra

    for word in words:
        if "=" not in word and word in names():
            raise UserError(f"{word}: a value without its key; did you mean experiment={word}?")
    for override in parse(words):  # raises UserError where a word is malformed
        _check_range(override)
    with own_hydra():
        # Expanding a glob requires the options of groups.
        loader = GlobalHydra.instance().config_loader()
        overrides = [
            in_words_of_now(override)
            for override in OverridesParser.create(config_loader=loader).parse_overrides(list(words))
        ]
        return overrides if intervals else [_listed(override) for override in overrides]


def _check_range(override: "Override") -> None:
    from hydra.core.override_parser.types import RangeSweep

    value = override.value()
    if isinstance(value, RangeSweep) and value.step == 0:
        raise UserError(f"{override.input_line}: a range in steps of 0 never ends; allowed: another step")


def _listed(override: "Override") -> "Override":
    if override.is_sweep_override() and not override.is_discrete_sweep():
        raise UserError(
            f"{override.input_line}: a range without steps; allowed: values with commas, choice(), range(); "
            "hydra/sweeper=optuna searches it"
        )
    return override


def _words(override: "Override") -> list[str]:
    """Return one word for each value; a single value stays as typed."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    values = list(islice(override.sweep_string_iterator(), MOST_VALUES + 1))
    if not values:
        raise UserError(f"{override.input_line}: stands for no value at all; allowed: one or more")
    if len(values) > MOST_VALUES:
        raise UserError(f"{override.input_line}: too many values; allowed: up to {MOST_VALUES:,}")
    return [f"{override.get_key_element()}={value}" for value in values]


def _seeds(overrides: Sequence["Override"], usual: Sequence[int]) -> list[int]:
    """Return the seeds typed on the line, or the usual ones where it names none."""
    typed = [word for override in overrides if override.key_or_group == "seed" for word in _words(override)]
    for word in typed:
        if not word.removeprefix("seed=").isdigit():
            raise UserError(f"{word}: allowed: whole numbers from 0")
    seeds = [int(word.removeprefix("seed=")) for word in typed] or list(usual)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"seed={','.join(map(str, seeds))}: seeds must differ")
    return seeds


def _ad_hoc(overrides: Sequence["Override"]) -> Study:
    rest = [override for override in overrides if override.key_or_group != "seed"]
    words = [_words(override) for override in rest]
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
    seeds = _seeds(overrides, [1])
    cells = list(cells_of(arms, seeds, ()))
    names, cells = one_arm_a_run(arms, cells)
    return Study(f"s{digest_of(cells)}", united_arms(arms, names), names[arms[0].name], seeds, cells, None)


def _declared(name: str, overrides: Sequence["Override"]) -> Study:
    path = find(name)
    experiment = read(path)
    if experiment.search is not None:
        return _confirming(name, path, experiment, overrides)
    try:
        arms, baseline = arms_of(experiment)
        _check_seedless((*experiment.common, *(word for arm in arms for word in arm.words)))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    line = _line(name, overrides, {word.partition("=")[0] for arm in arms for word in arm.words})
    looks, seeds = _looks(name, experiment, overrides), _seeds(overrides, _planned(experiment))
    common = (*experiment.common, *line)
    try:
        grid = grid_of(arms, baseline, experiment.within)
        compared, tuned, trials = Compared(arms, grid.baselines, _claims(experiment, grid)), [], None
        if experiment.tune is not None:
            _check_measured(compared.claims, list(cells_of(arms, seeds[:1], common, naming=True)))
            settings = _settings(experiment.tune, arms, common)
            trials = _trials(path.stem, experiment, settings, arms, seeds, common)
            records = _records_of(trials)
            if records is None:
                return trials
            tuned = tuned_of(arms, experiment.tune, settings, records)
            compared = _judged(experiment.tune, compared, tuned, grid)
        cells = list(cells_of(compared.arms, seeds, common, naming=True))
        _check_measured(compared.claims, cells)
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
    )
    return study if looks is None else replace(study, cells=added_so_far(study, looks))


def _judged(tune: Tune, compared: Compared, tuned: Sequence[Tuned], grid: Grid) -> Compared:
    """Return what is compared once the arms are tuned."""
    if tune.judged == "tuned":
        return tuned_alone(compared, tuned)
    baselines = {arm.name: grid.baseline_of(arm).name for arm in compared.arms}
    return both_ways(replace(compared, baselines=baselines), tuned)


def _each_once(claims: Sequence[Settled]) -> list[Settled]:
    """Leave out claims at usual settings where tuning left both arms as they are."""
    found: dict[str, Settled] = {}
    for claim in claims:
        found.setdefault(asked(claim).model_copy(update={"secondary": False}).model_dump_json(), claim)
    return list(found.values())


def _settings(tune: Tune, arms: Sequence[Arm], common: Sequence[str]) -> list[tuple[str, ...]]:
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


def _planned(experiment: Experiment) -> list[int]:
    """Return all seeds that the study may have."""
    seeds = experiment.seeds
    return list(range(1, seeds.last + 1)) if isinstance(seeds, Added) else list(seeds)


def _looks(name: str, experiment: Experiment, overrides: Sequence["Override"]) -> Looks | None:
    if not isinstance(experiment.seeds, Added):
        return None
    typed = [override.input_line for override in overrides if override.key_or_group == "seed"]
    if typed:
        raise UserError(f"{typed[-1]}: experiment={name} adds its seeds itself; allowed: other keys")
    return experiment.seeds.looks


def _line(name: str, overrides: Sequence["Override"], varied: Collection[str]) -> list[str]:
    """Return the words beside an experiment's name. Raises UserError for a key that varies in the experiment."""
    line = []
    for override in overrides:
        key = override.key_or_group
        if key == "seed":
            continue
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: experiment={name} says what varies; allowed here: seed=1,2,...")
        if key in {key_of(one) for one in varied}:
            raise UserError(f"{override.input_line}: {key} varies in experiment={name}; allowed: other keys")
        line.append(str(override.input_line))
    return line


def _confirming(name: str, path: Path, experiment: Experiment, overrides: Sequence["Override"]) -> Study:
    """Return the study that follows a search: the winner against the usual words, on seeds that did not choose it."""
    named = _parse([f"experiment={name}"])[-1]
    found = _declared_search(named, overrides)
    assert found is not None
    best = found.winner()
    if best is None:
        raise UserError(f"{path}: its search comes first; type {program('train')} -m experiment={name}")
    arms, seeds = [Arm(USUAL, ()), Arm(BEST, best)], _seeds(overrides, _planned(experiment))
    try:
        claims = _claims(experiment, grid_of(arms, USUAL, None))
        cells = list(cells_of(arms, seeds, found.common, naming=True))
        _check_measured(claims, cells)
        check_distinct(claims, cells)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return Study(path.stem, arms, USUAL, seeds, cells, experiment, claims)


def _trials(
    name: str,
    experiment: Experiment,
    settings: Sequence[tuple[str, ...]],
    arms: Sequence[Arm],
    seeds: Sequence[int],
    common: Sequence[str],
) -> Study:
    """Return the tuning study, which runs before the experiment's own."""
    tune = experiment.tune
    assert tune is not None
    if shared := sorted(set(tune.seeds) & set(seeds)):
        raise UserError(f"tune.seeds: {', '.join(map(str, shared))} are seeds of the study too; allowed: others")
    trials = trial_arms(arms, settings)
    cells = list(cells_of(trials, tune.seeds, common, naming=True))
    return Study(f"{name}-tuning", trials, trials[0].name, tune.seeds, cells, experiment, is_tuning=True)


def _records_of(trials: Study) -> dict[str, list[Record]] | None:
    """Return the records by arm; None while any is missing."""
    records: dict[str, list[Record]] = {}
    for cell in trials.cells:
        record = cell.planned.folder.record()
        if record is None:
            return None
        records.setdefault(cell.arm, []).append(record)
    return records


def _check_seedless(words: Sequence[str]) -> None:
    for word in words:
        if word.partition("=")[0] == "seed":
            raise UserError(f"{word}: every arm gets the same seeds; allowed: seeds: in the file")


def _check_measured(claims: Sequence[Settled], cells: Sequence[Cell]) -> None:
    for claim in claims:
        for cell in cells:
            if cell.arm in claim.weights:
                check_measured(claim, cell.planned)
