"""Definition of a search, typed or declared, and of the study that follows it. No trial is begun here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablab.config import compose, compose_arm
from ablab.config.keys import all_fields
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError, about, choices
from ablab.fields import Role, flatten
from ablab.files import json_digest, read_json
from ablab.search.settings import Dimensions, SearchBlock, Settings, ValueRange, objectives_of, validated
from ablab.search.space import RUNTIME_GROUPS, Range, Space, checked, levels, parsed
from ablab.study.cells import cells_of, check_all_measured, check_scores
from ablab.study.claims import Settled, check_measured, check_scale, settled
from ablab.study.design import Arm, check_labels
from ablab.study.experiment import WORTH, Experiment, find, read
from ablab.study.grid import grid_of
from ablab.study.study import Cell, Study
from ablab.study.study_file import StudyFile, check_own
from ablab.study.typed import check_of_runs, line_beside, parse_words, planned_seeds, seeds_of
from ablab.tasks.plan import Planned, plan
from ablab.tasks.registry import task_in_words
from ablab.tasks.score import Recipe, alike, unlike
from ablab.tasks.task import Task
from ablab.text import program

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


REPORT = "search.json"
"""File name of a search's results, in the study's folder."""

USUAL, BEST = "usual", "best"
"""The arms of the study that follows a declared search, on fresh seeds."""

OF_EXPERIMENTS = ("factors", "arms", "exclude", "baseline", "within", "tune", "worth")


@dataclass(frozen=True)
class SearchStudy:
    """A space and the settings of its search.

    `common`: words of every trial. `base`: the run at the first corner of the space.
    """

    settings: Settings
    space: Space
    common: tuple[str, ...]
    base: Planned
    file: StudyFile | None
    """The file that declares it; None of a search that was typed."""
    seeds: tuple[int, ...] = ()
    """Fresh seeds for the winner of a declared search."""
    recipes: Sequence[Recipe] = field(default=(), compare=False, repr=False)
    """Of trials at the corners of the space."""

    @cached_property
    def digest(self) -> str:
        """Digest of all that trials and their order depend on, which the number of trials and the storage are not."""
        settings = self.settings.model_dump(include={"sampler", "stopping", "objectives", "seed", "training_seed"})
        # The last word of a key counts. Runtime keys affect no result, so they do not affect the name.
        words = {word.partition("=")[0]: word for word in self.common if not _is_runtime(word.partition("=")[0])}
        base = [self.base.run_id, *([self.base.evaluation_id] if "decoding_speed" in self.settings.objectives else [])]
        content = {**settings, "space": self.space.plain, "common": sorted(words.values()), "base": base}
        return json_digest(content, 11)

    @property
    def name(self) -> str:
        """The experiment's name, or one made from the digest."""
        return f"search-{self.digest}" if self.file is None else self.file.path.stem

    @property
    def study_name(self) -> str:
        """Optuna's name of the study: another space under the same name is another search."""
        return self.name if self.file is None else f"{self.name}-{self.digest}"

    @property
    def folder(self) -> Path:
        """The folder of the search, which holds none of its runs."""
        return self.outputs / "studies" / self.name

    @property
    def outputs(self) -> Path:
        """The store of the search and its runs."""
        return self.base.outputs

    def words(self, number: int, own: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a trial's run, without pruning: depth-quality curves of trials are not needed."""
        from ablab.config.grammar import literal  # it imports Hydra, which help pages do without

        seed, trial = f"seed={self.settings.training_seed}", literal(f"{self.folder.resolve()}:{number}")
        words = (*self.common, *own, seed, *self.base.task.lean, f"search_trial={trial}")
        unread = compose_arm(words).unread
        return tuple(word for word in words if word not in unread)

    def cell(self, number: int, own: Sequence[str]) -> Cell:
        """Return the run of a trial, planned; UserError where no run can have its values."""
        words = self.words(number, own)
        planned = plan(compose(words))
        return Cell(f"trial {number}", planned.config.seed, words, planned)

    def report(self) -> dict[str, Any] | None:
        """Return the results so far; None where there are none, or where they are those of another space."""
        path = self.folder / REPORT
        try:
            content: dict[str, Any] | None = read_json(path) if path.exists() else None
            return content if content is not None and content["digest"] == self.digest else None
        except (LookupError, TypeError):
            raise UserError(f"{path}: cannot be read as what a search has found") from None

    def winner(self) -> tuple[str, ...] | None:
        """Return the words of the best trial once all trials have ended; None before."""
        content = self.report()
        if content is None or content["told"] < self.settings.trials or content["best"] is None:
            return None
        words = tuple(content["best"]["words"])
        unread = compose_arm([*self.common, *words]).unread
        return tuple(word for word in words if word not in unread)


def search(
    settings: Settings, space: Space, common: Sequence[str], file: StudyFile | None = None, seeds: Sequence[int] = ()
) -> SearchStudy:
    """Make a search, after checking that every end and level of its space composes to a run, and that its objectives
    compare these.
    """
    seed = f"seed={settings.training_seed}"

    def planned(words: Sequence[str]) -> Planned:
        return plan(compose_arm([*words, seed]))

    recipes = []

    def try_out(words: Sequence[str]) -> Mapping[str, str]:
        tried = planned(words)
        recipes.append(flatten(tried.recipe))
        return tried.composed.unread

    whole = checked(space, [common], evaluations="decoding_speed" in settings.objectives, try_out=try_out)
    base = planned([*common, *next(whole.corners()), *task_in_words(common).lean])
    _check_objectives(settings, base.task, recipes, "search." if file else "hydra.sweeper.")
    return SearchStudy(settings, whole, tuple(common), base, file, tuple(seeds), recipes)


def _check_objectives(settings: Settings, task: Task, recipes: Sequence[Recipe], prefix: str) -> None:
    """Raise UserError for an objective whose values are not in one measure over the space, or stop no trial."""
    scores, own = task.scores, objectives_of(task)
    for name in settings.objectives:
        if name not in own:
            raise UserError(f"{prefix}objectives=[{name}]: task={task.name} has no such score; {choices(name, own)}")
        if (reason := unlike(scores, name, recipes)) is not None:
            raise UserError(f"{prefix}objectives=[{name}]: {reason}; allowed: {alike(scores, own, recipes)}")
    if settings.stopping != "none" and settings.objectives[0] not in (told := validated(task)):
        raise UserError(
            f"{prefix}stopping={settings.stopping}: validations say nothing of {settings.objectives[0]}; "
            f"allowed: none, or objectives of {', '.join(told)}"
        )


def _declared(file: StudyFile, block: SearchBlock, common: Sequence[str], seeds: Sequence[int]) -> SearchStudy:
    experiment = file.experiment
    for key in OF_EXPERIMENTS:
        if getattr(experiment, key):
            raise UserError(f"{key}: the arms of a search are {USUAL} and {BEST}; allowed beside search: common, seeds")
    if any(claim.metric == WORTH for claim in experiment.claims):
        raise UserError("claims.metric=worth: the baseline of a search has one length; allowed: a study without search")
    check_labels(experiment.labels, ARMS)
    if block.training_seed in seeds:
        raise UserError(
            f"seeds: {block.training_seed} is search.training_seed, on which the winner was chosen; allowed: others"
        )
    block.check("search.")
    return search(block, space_of(block.space, "search.space"), common, file, seeds)


def space_of(dimensions: Dimensions, place: str) -> Space:
    """Return the space that a file declares at this place."""
    from ablab.config.grammar import spelled  # it imports Hydra, which help pages do without

    try:
        return Space(
            tuple(
                Range(key, values)
                if isinstance(values, ValueRange)
                else levels(key, [spelled(key, value) for value in values])
                for key, values in dimensions.items()
            )
        )
    except UserError as error:
        raise UserError(f"{place}.{error}") from None


def _is_runtime(key: str) -> bool:
    return key in RUNTIME_GROUPS or all_fields().get(key) is Role.RUNTIME


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
        if not named or named[-1].is_sweep_override():
            return None
        name = str(named[-1].value())
        file = StudyFile(path := find(name), read(path))
        return None if file.experiment.search is None else _declared_search(name, file, others)
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
    return search(settings, Space(tuple(parsed(override) for override in varied)), common)


def _declared_search(name: str, file: StudyFile, overrides: Sequence["Override"]) -> SearchStudy:
    path, experiment = file
    assert experiment.search is not None
    varied = set(experiment.search.space)
    common, seeds = line_beside(name, overrides, varied), seeds_of(overrides, planned_seeds(experiment))
    with about(path):
        check_of_runs(experiment.common)
        claims = _claims(experiment, ARMS)
        found = _declared(file, experiment.search, (*experiment.common, *common), seeds)
        check_scores(found.base.task, {experiment.metric, *(claim.metric for claim in claims)})
        for claim in claims:
            check_measured(claim, found.base)
            check_scale(claim, found.recipes)  # the winner may be any of them
    check_own(found.file, found.folder, found.outputs)
    return found


def announced(search: SearchStudy) -> Study:
    """Return the study that will follow a declared search, as far as it is known before: its claims and its seeds."""
    arms = [Arm(USUAL, ())]
    cells = list(cells_of(arms, search.seeds, _read_by(arms, search.common), naming=True))
    claims = [] if search.file is None else _claims(search.file.experiment, ARMS)
    return Study(search.name, ARMS, USUAL, list(search.seeds), cells, claims, file=search.file)


def confirming(name: str, file: StudyFile, overrides: Sequence["Override"]) -> Study:
    """Return the study that follows a search: the winner against the usual words, on seeds that did not choose it."""
    path, experiment = file
    found = _declared_search(name, file, overrides)
    best = found.winner()
    if best is None:
        raise UserError(f"{path}: its search comes first; type {program('train')} -m experiment={name}")
    arms, seeds = [Arm(USUAL, ()), Arm(BEST, best)], seeds_of(overrides, planned_seeds(experiment))
    with about(path):
        claims = _claims(experiment, arms)
        cells = list(cells_of(arms, seeds, _read_by(arms, found.common), naming=True))
        check_all_measured(claims, cells)
    return Study(path.stem, arms, USUAL, seeds, cells, claims, file=file)


def _read_by(arms: Sequence[Arm], common: Sequence[str]) -> tuple[str, ...]:
    """Return the common words that an arm reads: others are those of trials, which have been checked."""
    unread = [compose_arm((*common, *arm.words)).unread for arm in arms]
    return tuple(word for word in common if not all(word in each for each in unread))


def _claims(experiment: Experiment, arms: Sequence[Arm]) -> list[Settled]:
    return settled(experiment.claims, grid_of(arms, USUAL, None), experiment.metric)
