"""Main effects and interactions of a factorial design, with seeds as blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ablab.statistics.paired import Paired, of_differences, without_rounding
from ablab.statistics.student import Floats


@dataclass(frozen=True)
class Effect:
    """An effect of levels against the usual ones: of one factor for a main effect, of two for an interaction.

    `axes`: the places of these factors among all. `levels`: of each factor, (level, usual level). `differences`:
    [seeds].
    """

    factors: tuple[str, ...]
    axes: tuple[int, ...]
    levels: tuple[tuple[str, str], ...]
    differences: Floats
    level: float

    @property
    def paired(self) -> Paired:
        """Mean, interval and p over seeds, uncorrected. Raises NotTestable as `of_differences` does."""
        return of_differences(self.differences, self.level)


def effects(scores: npt.ArrayLike, factors: Mapping[str, Sequence[str]], level: float = 0.95) -> list[Effect]:
    """Estimate all main effects, then all two-way interactions, each against the first level of its factors.

    scores: [levels of factor 1, ..., levels of factor k, seeds]; factors: their names and levels in that order, k >= 1,
    two levels or more each. Every cell needs a score from every seed: ValueError otherwise.

    Each effect is a contrast of cell means (Montgomery 2017, chapter 6), computed within a seed and then treated like
    any paired difference, n - 1 degrees of freedom: no assumption that effects vary alike over seeds, as a pooled error
    would make. A main effect is the mean over all levels of the other factors: level less usual. An interaction is how
    much the effect of one factor differs between two levels of another, (b, d) - (a, d) - (b, c) + (a, c), averaged
    over the rest; 0 when effects add up.
    """
    values = np.asarray(scores, dtype=np.float64)
    names = list(factors)
    expected = tuple(len(factors[name]) for name in names)
    if not names or values.ndim != len(names) + 1 or values.shape[:-1] != expected:
        raise ValueError(f"scores must be [*{expected}, seeds], got shape {values.shape}.")
    if min(expected) < 2:
        raise ValueError(f"a factor has two levels or more, got {dict(zip(names, expected, strict=True))}.")
    if not np.isfinite(values).all():
        raise ValueError("every cell needs a finite score from every seed; leave incomplete seeds out.")
    order = range(len(names))
    groups: list[tuple[int, ...]] = [(i,) for i in order] + list(combinations(order, 2))
    return [effect for group in groups for effect in _of(group, values, factors, names, level)]


def _of(
    group: tuple[int, ...],
    values: Floats,
    factors: Mapping[str, Sequence[str]],
    names: list[str],
    level: float,
) -> list[Effect]:
    """The contrasts of these factors, averaged over the others."""
    others = tuple(axis for axis in range(len(names)) if axis not in group)
    cells = values.mean(axis=others)
    for axis in range(len(group)):
        usual = cells.take([0], axis=axis)
        cells = cells.take(range(1, cells.shape[axis]), axis=axis) - usual
    chosen = tuple(names[i] for i in group)
    found = []
    for index in np.ndindex(cells.shape[:-1]):
        levels = tuple((factors[name][i + 1], factors[name][0]) for name, i in zip(chosen, index, strict=True))
        found.append(Effect(chosen, group, levels, without_rounding(cells[index], values), level))
    return found
