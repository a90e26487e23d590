"""Student's t distribution. scipy is imported on first use: commands that only plan should not wait for it."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def quantile(probability: float, df: float) -> float:
    """The value that t with `df` > 0 degrees of freedom stays below with this probability."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def upper_tail(t: float | Floats, df: float | Floats) -> Floats:
    """P(T >= t), elementwise."""
    from scipy.special import stdtr

    return np.asarray(stdtr(df, -np.asarray(t, dtype=float)))


def two_sided(t: float | Floats, df: float | Floats) -> Floats:
    """P(|T| >= |t|), elementwise."""
    return 2 * upper_tail(np.abs(t), df)
