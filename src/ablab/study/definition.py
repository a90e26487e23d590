"""A study as typed: which arms, which seeds, and the run that each pair of them is."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.config import Composed, compose_arm
from ablab.config.former import key_of_now
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError
from ablab.plan import plan
from ablab.record import Record
from ablab.search.settings import Settings
from ablab.search.space import Space, parsed
from ablab.study.arms import Cell, Study, digest_of, united
from ablab.study.claims import OF_CURVES, Settled, check_measured, settled
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import Experiment, Tune, find, read
from ablab.study.searches.search import BEST, USUAL, Search, declared, search
from ablab.study.tuning import trial_arms, tuned_arms

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


@cache
def define(words: tuple[str, ...]) -> Study:
    """Compose and validate every run of the words of a sweep, `experiment=<name>` or values with commas.

    Where an experiment tunes its arms, that comes first: a study of its own, until all of its runs are there.
    """
    overrides = _parse(words)
    named = [override for override in overrides if override.key_or_group == "experiment"]
    others = [override for override in overrides if override.key_or_group not in ("experiment", *OF_A_SWEEP)]
    if named:
        if named[-1].is_sweep_override():
            raise UserError(f"{named[-1].input_line}: allowed: one experiment at a time")
        return replace(_declared(str(named[-1].value()), others), typed=words)
    return replace(_ad_hoc(others), typed=words)


def define_search(words: Sequence[str], settings: Settings | None = None) -> Search | None:
    """The search that an experiment declares, or, with the settings of hydra/sweeper=optuna, that the words are.

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
        raise UserError(f"{seeds[-1].input_line}: luck is not searched for; allowed: one seed for all trials")
    if seeds:
        settings = settings.model_copy(update={"training_seed": _seeds(seeds, [])[-1]})
    varied = [override for override in others if override.is_sweep_override()]
    common = [str(o.input_line) for o in others if not o.is_sweep_override() and o.key_or_group != "seed"]
    return search(None, settings, Space(tuple(parsed(override) for override in varied)), common)


def announced(search: Search) -> Study:
    """The study that is to follow a declared search, for what can be said of it before: its claims and its seeds."""
    cells = list(_cells([Arm(USUAL, ())], search.seeds, search.common, naming=True))
    arms = [Arm(USUAL, ()), Arm(BEST, ())]
    claims = [] if search.experiment is None else settled(search.experiment, arms, USUAL)
    return Study(search.name, arms, USUAL, list(search.seeds), cells, search.experiment, claims)


def _declared_search(named: "Override", overrides: Sequence["Override"]) -> Search | None:
    name = str(named.value())
    path = find(name)
    experiment = read(path)
    if experiment.search is None:
        return None
    varied = set(experiment.search.space)
    common, seeds = _line(name, overrides, varied), _seeds(overrides, experiment.seeds)
    try:
        _check_seedless(experiment.common)
        claims = settled(experiment, [Arm(USUAL, ()), Arm(BEST, ())], USUAL)
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

    parse(words)  # words what is wrong
    with own_hydra():
        # A glob needs to know the options of groups.
        loader = GlobalHydra.instance().config_loader()
        overrides = [
            in_words_of_now(override)
            for override in OverridesParser.create(config_loader=loader).parse_overrides(list(words))
        ]
        return overrides if intervals else [_listed(override) for override in overrides]


def _listed(override: "Override") -> "Override":
    if override.is_sweep_override() and not override.is_discrete_sweep():
        raise UserError(
            f"{override.input_line}: a range without steps; allowed: values with commas, choice(), range(); "
            "hydra/sweeper=optuna searches it"
        )
    return override


def _words(override: "Override") -> list[str]:
    """One for each value; a single one stays as it was typed."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _seeds(overrides: Sequence["Override"], usual: Sequence[int]) -> list[int]:
    """Those that the line says, the last word counting."""
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
        if repeated := [word for word in values if values.count(word) > 1]:
            raise UserError(f"{override.input_line}: {repeated[0]} comes twice; allowed: values that differ")
    for combination in product(*words):
        varied = [word for word, varies in zip(combination, swept, strict=True) if varies]
        arms.append(Arm(",".join(varied) or "one arm", combination))
    seeds = _seeds(overrides, [1])
    cells = list(_cells(arms, seeds, ()))
    names, cells = _one_arm_a_run(arms, cells)
    return Study(f"s{digest_of(cells)}", _united_arms(arms, names), names[arms[0].name], seeds, cells, None)


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
    seeds = _seeds(overrides, experiment.seeds)
    common = (*experiment.common, *line)
    try:
        claims = settled(experiment, arms, baseline)
        if experiment.tune is not None:
            _check_measured(claims, list(_cells(arms, seeds[:1], common, naming=True)))
            trials = _trials(path.stem, experiment, experiment.tune, arms, seeds, common)
            records = _records_of(trials)
            if records is None:
                return trials
            arms = tuned_arms(arms, experiment.tune, records)
        cells = list(_cells(arms, seeds, common, naming=True))
        _check_measured(claims, cells)
        _check_distinct(claims, cells)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    names, cells = _one_arm_a_run(arms, cells)
    claims = [claim.model_copy(update={"arm": names[claim.arm], "baseline": names[claim.baseline]}) for claim in claims]
    return Study(path.stem, _united_arms(arms, names), names[baseline], seeds, cells, experiment, claims)


def _one_arm_a_run(arms: Sequence[Arm], cells: Sequence[Cell]) -> tuple[dict[str, str], list[Cell]]:
    """Arms whose settings have the same effect are one, with all names: the new name of each, and its cells once."""
    keys = {arm.name: tuple(cell.key for cell in cells if cell.arm == arm.name) for arm in arms}
    names = united([arm.name for arm in arms], keys.__getitem__)
    once = {(names[cell.arm], cell.seed): cell for cell in reversed(cells)}
    return names, [replace(cell, arm=arm) for (arm, _), cell in reversed(once.items())]


def _united_arms(arms: Sequence[Arm], names: Mapping[str, str]) -> list[Arm]:
    first = {names[arm.name]: arm for arm in reversed(arms)}
    return [Arm(name, first[name].words) for name in dict.fromkeys(names[arm.name] for arm in arms)]


def _check_distinct(claims: Sequence[Settled], cells: Sequence[Cell]) -> None:
    """A run is as good as itself, whatever its arms are called."""
    for claim in claims:
        one, other = ([_seen(claim, cell) for cell in cells if cell.arm == arm] for arm in (claim.arm, claim.baseline))
        if one == other:
            raise UserError(
                f"claims.arm={claim.arm}: its settings have the same effect as those of {claim.baseline}, so they are "
                "the same runs; allowed: arms that differ"
            )


def _seen(claim: Settled, cell: Cell) -> str:
    """What decides the score of a run in the claim's metric."""
    if claim.metric in OF_CURVES:
        return cell.key
    return f"{cell.planned.run_id} {cell.planned.evaluation_id}"


def _line(name: str, overrides: Sequence["Override"], varied: Collection[str]) -> list[str]:
    """The words beside an experiment's; what varies in it is not for them to say."""
    line = []
    for override in overrides:
        key = override.key_or_group
        if key == "seed":
            continue
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: experiment={name} says what varies; allowed here: seed=1,2,...")
        if key in {_key(one) for one in varied}:
            raise UserError(f"{override.input_line}: {key} varies in experiment={name}; allowed: other keys")
        line.append(str(override.input_line))
    return line


def _confirming(name: str, path: Path, experiment: Experiment, overrides: Sequence["Override"]) -> Study:
    """What comes after a search: its winner against the usual words, on seeds that had no part in choosing."""
    named = _parse([f"experiment={name}"])[-1]
    found = _declared_search(named, overrides)
    assert found is not None
    best = found.winner()
    if best is None:
        raise UserError(f"{path}: its search comes first; type python train.py -m experiment={name}")
    arms, seeds = [Arm(USUAL, ()), Arm(BEST, best)], _seeds(overrides, experiment.seeds)
    try:
        claims = settled(experiment, arms, USUAL)
        cells = list(_cells(arms, seeds, found.common, naming=True))
        _check_measured(claims, cells)
        _check_distinct(claims, cells)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return Study(path.stem, arms, USUAL, seeds, cells, experiment, claims)


def _trials(
    name: str, experiment: Experiment, tune: Tune, arms: Sequence[Arm], seeds: Sequence[int], common: Sequence[str]
) -> Study:
    """The study that comes first."""
    if shared := sorted(set(tune.seeds) & set(seeds)):
        raise UserError(f"tune.seeds: {', '.join(map(str, shared))} are seeds of the study too; allowed: others")
    if any(word.startswith(f"{tune.key}=") for arm in arms for word in arm.words):
        raise UserError(f"tune.key={tune.key}: it is what the arms differ by; allowed: a key that they leave alone")
    trials = trial_arms(arms, tune)
    cells = list(_cells(trials, tune.seeds, common, naming=True))
    return Study(f"{name}-tuning", trials, trials[0].name, tune.seeds, cells, experiment, is_tuning=True)


def _records_of(trials: Study) -> dict[str, list[Record]] | None:
    """By arm; None while any is missing."""
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
            if cell.arm in (claim.arm, claim.baseline):
                check_measured(claim, cell.planned)


def _cells(arms: Sequence[Arm], seeds: Sequence[int], common: Sequence[str], *, naming: bool = False) -> Iterator[Cell]:
    """`naming`: say which arm cannot be, where the words do not. A word that no arm reads is refused."""
    composed = [_composed(arm, (*common, *arm.words, f"seed={seeds[0]}"), naming=naming) for arm in arms]
    _check_effect(arms, [(*common, *arm.words) for arm in arms], composed)
    for arm, one in zip(arms, composed, strict=True):
        words = tuple(word for word in (*common, *arm.words) if word not in one.unread)
        # Composing is most of the work, and a seed is nothing but a seed unless a word refers to it.
        same = not any("${" in word for word in words)
        for seed in seeds:
            own = (*words, f"seed={seed}")
            yield Cell(arm.name, seed, own, plan(_reseeded(one, seed) if same else compose_arm(own)))


def _composed(arm: Arm, words: Sequence[str], *, naming: bool) -> Composed:
    try:
        return compose_arm(words)
    except UserError as error:
        raise UserError(f"{arm.name}: {error}") if naming else error from None


def _check_effect(arms: Sequence[Arm], words: Sequence[Sequence[str]], composed: Sequence[Composed]) -> None:
    """A key may have an effect in some arms alone; one that no arm reads changes nothing, and is refused."""
    read = {_key(word) for own, one in zip(words, composed, strict=True) for word in own if word not in one.unread}
    for one in composed:
        for word, why in one.unread.items():
            if _key(word) not in read:
                raise UserError(why if len(arms) == 1 else f"{why}; none of the {len(arms)} arms reads it")


def _key(word: str) -> str:
    return key_of_now(word.partition("=")[0])


def _reseeded(composed: Composed, seed: int) -> Composed:
    config = composed.config.model_copy(update={"seed": seed})
    return replace(composed, config=config, changes=composed.changes | {"seed": seed})
