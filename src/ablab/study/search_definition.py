"""Definition of a search, declared by an experiment or typed, and of the study that follows it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError
from ablab.search.settings import Settings
from ablab.search.space import Space, parsed
from ablab.study.cells import cells_of, check_all_measured, check_distinct
from ablab.study.claims import Settled, check_measured, check_scale, settled
from ablab.study.design import Arm
from ablab.study.experiment import Experiment
from ablab.study.experiment_file import find, read
from ablab.study.grid import grid_of
from ablab.study.search import BEST, USUAL, SearchStudy, declared, search
from ablab.study.study import Study
from ablab.study.study_file import StudyFile, check_own
from ablab.study.typed import check_of_runs, line_beside, parse_words, planned_seeds, seeds_of
from ablab.text import program

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

ARMS = [Arm(USUAL, ()), Arm(BEST, ())]
"""Of the study that follows a search, before its winner is known."""


def define_search(words: Sequence[str], settings: Settings | None = None) -> SearchStudy | None:
    """Return the search that an experiment declares, or that the words define with the settings of
    hydra/sweeper=optuna.

    None where there is none. Every end and level of its space is composed and validated.
    """
    overrides = parse_words(words, intervals=settings is not None)
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
        settings = settings.model_copy(update={"training_seed": seeds_of(seeds, [])[-1]})
    varied = [override for override in others if override.is_sweep_override()]
    common = [str(o.input_line) for o in others if not o.is_sweep_override() and o.key_or_group != "seed"]
    return search(None, settings, Space(tuple(parsed(override) for override in varied)), common)


def _declared_search(named: "Override", overrides: Sequence["Override"]) -> SearchStudy | None:
    name = str(named.value())
    path = find(name)
    experiment = read(path)
    if experiment.search is None:
        return None
    varied = set(experiment.search.space)
    common, seeds = line_beside(name, overrides, varied), seeds_of(overrides, planned_seeds(experiment))
    try:
        check_of_runs(experiment.common)
        claims = _claims(experiment, ARMS)
        found = declared(StudyFile(path, experiment), (*experiment.common, *common), seeds)
        for claim in claims:
            check_measured(claim, found.base)
            check_scale(claim, found.recipes)  # the winner may be any of them
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    check_own(found.file, found.folder, Path(found.base.config.outputs))
    return found


def announced(search: SearchStudy) -> Study:
    """Return the study that will follow a declared search, as far as it is known before: its claims and its seeds."""
    cells = list(cells_of([Arm(USUAL, ())], search.seeds, search.common, naming=True))
    claims = [] if search.experiment is None else _claims(search.experiment, ARMS)
    return Study(search.name, ARMS, USUAL, list(search.seeds), cells, search.experiment, claims, file=search.file)


def confirming(name: str, path: Path, experiment: Experiment, overrides: Sequence["Override"]) -> Study:
    """Return the study that follows a search: the winner against the usual words, on seeds that did not choose it."""
    from ablab.config.grammar import spelled  # it imports Hydra, which help pages do without

    named = parse_words([f"experiment={spelled('experiment', name)}"])[-1]
    found = _declared_search(named, overrides)
    assert found is not None
    best = found.winner()
    if best is None:
        raise UserError(f"{path}: its search comes first; type {program('train')} -m experiment={name}")
    arms, seeds = [Arm(USUAL, ()), Arm(BEST, best)], seeds_of(overrides, planned_seeds(experiment))
    try:
        claims = _claims(experiment, arms)
        cells = list(cells_of(arms, seeds, found.common, naming=True))
        check_all_measured(claims, cells)
        check_distinct(claims, cells)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return Study(path.stem, arms, USUAL, seeds, cells, experiment, claims, file=found.file)


def _claims(experiment: Experiment, arms: Sequence[Arm]) -> list[Settled]:
    return settled(experiment.claims, grid_of(arms, USUAL, None), experiment.metric)
