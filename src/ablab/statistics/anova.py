"""Analysis of variance: of groups, one way, and of a factorial design with seeds as blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import finite, vary, without_rounding
from ablab.statistics.student import Floats


@dataclass(frozen=True)
class OneWay:
    """Variation between and within groups.

    `between`, `within`: standard deviations, of the groups' means without the noise in them and of a value in its
    group. `f`: the ratio of mean squares, 1 on average where all means are equal. `omega_squared`: the share of the
    variance that the groups explain, below 0 where they explain less than noise would.
    """

    between: float
    within: float
    f: float
    omega_squared: float

    @property
    def signal_to_noise(self) -> float:
        """Between by within."""
        return self.between / self.within


def one_way(groups: Sequence[npt.ArrayLike]) -> OneWay:
    """Compare the variation between and within groups, two or more of two or more values each.

    F (Fisher 1925); omega squared (Hays 1963); the variance between groups by the method of moments,
    (MS_between - MS_within) / n0, at least 0, with n0 = (N - sum n^2 / N) / (k - 1) (Searle et al. 1992, section 3.6).

    Raises ValueError for fewer groups or values, and NotTestable where no group varies.
    """
    values = [finite(group, "group") for group in groups]
    sizes = np.array([group.size for group in values])
    if len(values) < 2 or sizes.min() < 2:
        raise ValueError(f"at least two groups of at least two values are needed, got sizes {sizes.tolist()}.")
    total, k = int(sizes.sum()), len(values)
    means = np.array([group.mean() for group in values])
    ss_between = float((sizes * (means - np.concatenate(values).mean()) ** 2).sum())
    ss_within = float(sum(((group - mean) ** 2).sum() for group, mean in zip(values, means, strict=True)))
    if not any(map(vary, values)):
        raise NotTestable("values do not vary within groups")
    ms_between, ms_within = ss_between / (k - 1), ss_within / (total - k)
    n0 = (total - (sizes**2).sum() / total) / (k - 1)
    return OneWay(
        between=float(max(0.0, (ms_between - ms_within) / n0) ** 0.5),
        within=ms_within**0.5,
        f=ms_between / ms_within,
        omega_squared=(ss_between - (k - 1) * ms_within) / (ss_between + ss_within + ms_within),
    )


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


def effects(scores: npt.ArrayLike, factors: Mapping[str, Sequence[str]]) -> list[Effect]:
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
    return [effect for group in groups for effect in _of(group, values, factors, names)]


def _of(
    group: tuple[int, ...],
    values: Floats,
    factors: Mapping[str, Sequence[str]],
    names: list[str],
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
        found.append(Effect(chosen, group, levels, without_rounding(cells[index], values)))
    return found
