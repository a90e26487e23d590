"""Whatever changes with the step, as a pure function of it. `step` counts optimiser steps; no torch here."""

from collections.abc import Callable, Sequence
from math import cos, isnan, pi


def inverse_sqrt(step: int, *, warmup: int, peak: float) -> float:
    """Learning rate at step >= 1: linear up to `peak` at `warmup` >= 1, then peak * sqrt(warmup / step).

    With peak = (d_model * warmup)^-0.5 this is Vaswani et al. 2017, eq. 3.
    """
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def cosine(step: int, *, warmup: int, total: int, peak: float, floor: float) -> float:
    """Learning rate at step >= 1: linear up to `peak` at `warmup`, then half a cosine down to `floor` at `total`.

    Loshchilov and Hutter 2017 (SGDR), eq. 5 without restarts. 1 <= warmup < total; `floor` remains after `total`.
    """
    if step <= warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / (total - warmup))
    return floor + (peak - floor) * (1 + cos(pi * progress)) / 2


DropSchedule = Callable[[int, float, int, int], float]
"""(step, p, warmup, total) -> the drop probability at that step, in [0, p]."""


def none(step: int, p: float, warmup: int, total: int) -> float:
    """0 throughout."""
    return 0.0


def constant(step: int, p: float, warmup: int, total: int) -> float:
    """`p` throughout."""
    return p


def vshape(step: int, p: float, warmup: int, total: int) -> float:
    """`p` at step 0, 0 at `warmup`, `p` at `total` and after (Zhou et al. 2020).

    p (1 - t/T_w) for t < T_w; p (t - T_w) / (T - T_w) from there.
    """
    if step < warmup:
        return p * (1 - step / warmup)
    return p * min(1.0, (step - warmup) / (total - warmup))


def rising(step: int, p: float, warmup: int, total: int) -> float:
    """0 at step 0, `p` at `total` and after: a curriculum."""
    return p * min(1.0, step / total)


def falling(step: int, p: float, warmup: int, total: int) -> float:
    """`p` at step 0, 0 at `total` and after: an annealing."""
    return p * max(0.0, 1 - step / total)


DROP_SCHEDULES: dict[str, DropSchedule] = {
    "none": none,
    "constant": constant,
    "vshape": vshape,
    "rising": rising,
    "falling": falling,
}


def plateau(
    scores: Sequence[float], *, better: Callable[[float, float], bool], peak: float, decay: float, patience: int
) -> float:
    """Learning rate after these validation scores: `peak` times `decay` for each stall.

    A stall is `patience` >= 1 validations in a row of which none is better than the best before them; NaN never is.
    The count then starts again, and the best stays the best (Nguyen and Salazar 2019, appendix A; their published code
    decays when the last score is below each of the `patience` scores before it, which is seldom the same).
    `better(a, b)`: whether a is better than b, `operator.lt` for a loss and `operator.gt` for BLEU.
    """
    rate, waited = peak, 0
    best: float | None = None
    for score in scores:
        if not isnan(score) and (best is None or better(score, best)):
            best, waited = score, 0
        else:
            waited += 1
        if waited == patience:
            rate, waited = rate * decay, 0
    return rate
