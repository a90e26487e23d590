"""Learning-rate and drop-rate schedules as pure functions of the optimiser step, without torch."""

from collections.abc import Callable, Sequence
from math import cos, isnan, pi


def inverse_sqrt(step: int, *, warmup_steps: int, peak: float) -> float:
    """Return the rate at step >= 1: linear to `peak` at `warmup_steps` >= 1, then peak * sqrt(warmup_steps / step).

    With peak = (d_model * warmup_steps)^-0.5 this is Vaswani et al. 2017, eq. 3.
    """
    return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)


def cosine(step: int, *, warmup_steps: int, total: int, peak: float, min_lr: float) -> float:
    """Return the rate at step >= 1: linear to `peak` at `warmup_steps`, then half a cosine to `min_lr` at `total`.

    Loshchilov and Hutter 2017 (SGDR), eq. 5 without restarts. 1 <= warmup_steps < total; `min_lr` remains after it.
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / (total - warmup_steps))
    return min_lr + (peak - min_lr) * (1 + cos(pi * progress)) / 2


def wsd(step: int, *, warmup_steps: int, decay_share: float, total: int, peak: float, min_lr: float) -> float:
    """Return the rate at step >= 1: linear to `peak` at `warmup_steps`, `peak`, then linear to `min_lr` at `total`.

    Warm-up, stable, decay (Hu et al. 2024, section 4.2). The last part takes the share `decay_share` of all steps. The
    paper lets it fall exponentially; a straight line, which ends at `min_lr` whatever the length, does as well
    (Hägele et al. 2024, section 3). warmup_steps >= 1 and warmup_steps <= (1 - decay_share) total; `min_lr` remains
    after `total`.
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    left = max(0.0, (total - step) / (decay_share * total))
    return peak if left >= 1 else min_lr + (peak - min_lr) * left


DropSchedule = Callable[..., float]
"""A function of the step and the schedule's keyword options that returns the drop probability, in [0, p]."""


def none(step: int) -> float:
    """Return 0 at every step."""
    return 0.0


def constant(step: int, *, p: float) -> float:
    """Return `p` at every step."""
    return p


def vshape(step: int, *, p: float, warmup_steps: int, total_steps: int) -> float:
    """Fall from `p` at step 0 to 0 at `warmup_steps`, then rise to `p` at `total_steps` and after (Zhou et al. 2020).

    p (1 - t/T_w) for t < T_w; p (t - T_w) / (T - T_w) from there.
    """
    if step < warmup_steps:
        return p * (1 - step / warmup_steps)
    return p * min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))


def rising(step: int, *, p: float, total_steps: int) -> float:
    """Rise linearly from 0 at step 0 to `p` at `total_steps` and after: a curriculum."""
    return p * min(1.0, step / total_steps)


def falling(step: int, *, p: float, total_steps: int) -> float:
    """Fall linearly from `p` at step 0 to 0 at `total_steps` and after: annealing."""
    return p * max(0.0, 1 - step / total_steps)


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
    """Return the learning rate after these validation scores: `peak` times `decay` for each stall.

    A stall is `patience` >= 1 validations in a row none of which is better than the best before them; NaN never is.
    The count then starts again, and the best is kept (Nguyen and Salazar 2019, appendix A; their published code
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
