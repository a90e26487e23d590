"""Definition of a search, typed or declared: its space, settings and name. No trial is begun here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ablab.config import compose_arm
from ablab.config.keys import all_fields
from ablab.errors import UserError
from ablab.fields import Role, flatten
from ablab.files import json_digest, read_json
from ablab.plan import Planned, plan
from ablab.search.settings import Dimensions, Settings, ValueRange, objectives_now
from ablab.search.space import RUNTIME_GROUPS, Range, Space, checked, levels
from ablab.study.experiment import Experiment
from ablab.study.study_file import StudyFile
from ablab.tasks.registry import task_in_words, task_of
from ablab.tasks.score import Recipe, alike, unlike

REPORT = "search.json"
"""File name of a search's results, in the study's folder."""

USUAL, BEST = "usual", "best"
"""The arms of the study that follows a declared search, on fresh seeds."""

OF_EXPERIMENTS = ("factors", "arms", "exclude", "baseline", "within", "tune")


@dataclass(frozen=True)
class SearchStudy:
    """A space and the settings of its search.

    `common`: words of every trial. `base`: the run at the first corner of the space.
    """

    label: str | None
    settings: Settings
    space: Space
    common: tuple[str, ...]
    base: Planned
    experiment: Experiment | None
    seeds: tuple[int, ...] = ()
    """Fresh seeds for the winner of a declared search."""
    recipes: Sequence[Recipe] = field(default=(), compare=False, repr=False)
    """Of trials at the corners of the space."""
    file: StudyFile | None = None
    """The file that declares it."""

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
        return self.label or f"search-{self.digest}"

    @property
    def study_name(self) -> str:
        """Optuna's name of the study: another space under the same label is another search."""
        return f"{self.name}-{self.digest}" if self.label else self.name

    @property
    def folder(self) -> Path:
        """The folder of the search, which holds none of its runs."""
        return Path(self.base.config.outputs) / "studies" / self.name

    def words(self, number: int, own: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a trial's run, without pruning: depth-quality curves of trials are not needed."""
        from ablab.config.grammar import literal  # it imports Hydra, which help pages do without

        seed, trial = f"seed={self.settings.training_seed}", literal(f"{self.folder.resolve()}:{number}")
        words = (*self.common, *own, seed, *self.base.task.lean, f"search_trial={trial}")
        unread = compose_arm(words).unread
        return tuple(word for word in words if word not in unread)

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
    label: str | None,
    settings: Settings,
    space: Space,
    common: Sequence[str],
    experiment: Experiment | None = None,
    seeds: Sequence[int] = (),
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

    whole = checked(space, common, evaluations="decoding_speed" in settings.objectives, try_out=try_out)
    _check_objectives(settings.objectives, recipes, "search." if experiment else "hydra.sweeper.")
    base = planned([*common, *next(whole.corners()), *task_in_words(common).lean])
    return SearchStudy(label, settings, whole, tuple(common), base, experiment, tuple(seeds), recipes)


def _check_objectives(objectives: Sequence[str], recipes: Sequence[Recipe], prefix: str) -> None:
    """Raise UserError for an objective whose values are not in one measure over the space."""
    scores = task_of(recipes[0]).scores
    for name in objectives:
        if (reason := unlike(scores, name, recipes)) is not None:
            raise UserError(
                f"{prefix}objectives=[{name}]: {reason}; allowed: {alike(scores, objectives_now(), recipes)}"
            )


def declared(file: StudyFile, common: Sequence[str], seeds: Sequence[int]) -> SearchStudy:
    """Make the search that a file's `search:` block declares."""
    experiment = file.experiment
    block = experiment.search
    assert block is not None
    for key in OF_EXPERIMENTS:
        if getattr(experiment, key):
            raise UserError(f"{key}: the arms of a search are {USUAL} and {BEST}; allowed beside search: common, seeds")
    if block.training_seed in seeds:
        raise UserError(
            f"seeds: {block.training_seed} is search.training_seed, on which the winner was chosen; allowed: others"
        )
    block.check("search.")
    found = search(file.path.stem, block, space_of(block.space, "search.space"), common, experiment, seeds)
    return replace(found, file=file)


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
