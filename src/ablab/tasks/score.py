"""Scores as data: title, unit and direction of one number per run, and where a run's files hold it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from ablab.fields import as_typed

Recipe = Mapping[str, Any]
"""Flat, with dotted names."""


@dataclass(frozen=True)
class Scale:
    """What runs must share so that their values of a score are in one measure.

    `reason`: why values cannot be compared otherwise; `instead`: what can. `settings`: those of a recipe that decide.
    """

    reason: str
    settings: Callable[[Recipe], Mapping[str, Any]]
    instead: str = ""

    def unlike(self, title: str, recipes: Iterable[Recipe]) -> str | None:
        """Return why the score of this title cannot be compared between runs of these recipes; None if it can."""
        found = [self.settings(recipe) for recipe in recipes]
        if all(settings == found[0] for settings in found):
            return None
        instead = f"; {self.instead} can be compared" if self.instead else ""
        return f"{title} {self.reason} ({_differing(found)}){instead}"


def _differing(found: Iterable[Mapping[str, Any]]) -> str:
    """Return the settings that differ, with their values: `data.vocab_size 150, 600`."""
    values: dict[str, dict[str, Any]] = {}
    for settings in found:
        for key, value in settings.items():
            values.setdefault(key, {})[_short(as_typed(value))] = value
    several = {key: sorted(named, key=lambda name: _place(named[name])) for key, named in values.items()}
    return "; ".join(f"{key} {', '.join(names)}" for key, names in several.items() if len(names) > 1)


def _place(value: object) -> float:
    """Return a number as itself, so that numbers are in their order; anything else stays where it is."""
    return value if isinstance(value, int | float) else 0.0


def _short(value: str) -> str:
    """Return a digest cut short."""
    return value if len(value) <= SHORT else f"{value[: SHORT - 4]} ..."


OF_LISTS = ("id", "name", "state", "seed", "study", "arm", "label", "ended", "step")
"""Names that no score may have: lists of runs, conditions and curves have columns of theirs."""

SHORT = 24

LARGEST_SCORE = 1e30
"""Size from which a score counts as none: tests take the fourth power of differences, which must be a number."""

Place = Literal["validation", "test", "training", "evaluating"]
"""Scores of the selected weights on validation, and of the latest evaluation; costs of training, and of evaluation."""


COSTS = ("training", "evaluating")


@dataclass(frozen=True)
class Score:
    """One number per run, by which runs are compared. `digits`: after the decimal point.

    `place`, `key`: where a run's files hold it, and its name there. `scale`: what runs must share to be compared by it.
    `converged`: the validation score that must have stopped improving before it is judged; itself, where it is one and
    names none. `enough`: the largest gain over the last fifth of training that still counts as converged. `absurd`: a
    difference that nothing is expected to make. `of_sums`: makes it of sums over test items.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    place: Place
    key: str
    scale: Scale | None = None
    converged: str | None = None
    enough: float = 0.0
    absurd: float = inf
    of_sums: Callable[[Any], Any] | None = None

    def value(self, record: Any, evaluation: Any) -> float | None:
        """Read it from a run's record and evaluation, or from their outlines; None where they do not hold it."""
        if self.place == "test":
            return None if evaluation is None else _number(evaluation.scores.get(self.key))
        if self.place == "validation":
            return None if record.selected is None else _number(record.selected.scores.get(self.key))
        return _number(getattr(record.cost if self.place == "training" else evaluation, self.key, None))

    def unlike(self, recipes: Iterable[Recipe]) -> str | None:
        """Return why the score cannot be compared between runs of these recipes; None if it can."""
        return None if self.scale is None else self.scale.unlike(self.title, recipes)


def _number(found: Any) -> float | None:
    return None if found is None else float(found)


Scores = Mapping[str, Score]
"""By the names that experiment files use."""


def unlike(scores: Scores, name: str, recipes: Sequence[Recipe]) -> str | None:
    """Return why the metric of this name cannot be compared between runs of these recipes; None if nothing forbids."""
    return scores[name].unlike(recipes) if name in scores else None


def alike(scores: Scores, names: Iterable[str], recipes: Sequence[Recipe]) -> str:
    """Return which of these metrics can be compared between runs of these recipes, for a message."""
    return ", ".join(name for name in names if unlike(scores, name, recipes) is None)
