"""One-way analysis of variance: how far the means of groups lie apart beside the noise within them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import finite, vary


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
