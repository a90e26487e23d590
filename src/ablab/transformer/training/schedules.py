"""Learning-rate and drop-rate schedules as pure functions of the optimiser step, without torch.

A DropHead schedule returns a drop probability in [0, p].
"""

from collections.abc import Sequence
from math import cos, isnan, pi, sqrt

from ablab.fields import Count, DropProbability, LastStep, NonNegative, Share, WholeNumber


def inverse_sqrt(step: int, *, warmup_steps: Count, peak: float) -> float:
    """Return the rate at step >= 1: linear to `peak` at `warmup_steps` >= 1, then peak * sqrt(warmup_steps / step).

    With peak = (d_model * warmup_steps)^-0.5 this is Vaswani et al. 2017, eq. 3.
    """
    return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)


def cosine(step: int, *, warmup_steps: Count, total: int, peak: float, min_lr: NonNegative) -> float:
    """Return the rate at step >= 1: linear to `peak` at `warmup_steps`, then half a cosine to `min_lr` at `total`.

    Loshchilov and Hutter 2017 (SGDR), eq. 5 without restarts. 1 <= warmup_steps < total; `min_lr` remains after it.
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / (total - warmup_steps))
    return min_lr + (peak - min_lr) * (1 + cos(pi * progress)) / 2


def wsd(step: int, *, warmup_steps: Count, decay_share: Share, total: int, peak: float, min_lr: NonNegative) -> float:
    """Return the rate at step >= 1 of warm-up, stable, decay (Hu et al. 2024, MiniCPM, section 4.2).

    Linear to `peak` at `warmup_steps`, then `peak`; over the last `decay_share` of the `total` steps it falls to
    `min_lr` as 1 - sqrt of the progress (Haegele et al. 2024, section 3, who found that form the best of theirs).
    """
    warm = peak * min(1.0, step / warmup_steps)
    begin = total * (1 - decay_share)
    if step <= begin:
        return warm
    progress = min(1.0, (step - begin) / (total - begin))
    return min(warm, min_lr + (peak - min_lr) * (1 - sqrt(progress)))


def none(step: int) -> float:
    """Return 0 at every step."""
    return 0.0


def constant(step: int, *, p: DropProbability) -> float:
    """Return `p` at every step."""
    return p


def vshape(step: int, *, p: DropProbability, warmup_steps: WholeNumber, total_steps: LastStep) -> float:
    """Fall from `p` at step 0 to 0 at `warmup_steps`, then rise to `p` at `total_steps` and after (Zhou et al. 2020).

    p (1 - t/T_w) for t < T_w; p (t - T_w) / (T - T_w) from there.
    """
    if step < warmup_steps:
        return p * (1 - step / warmup_steps)
    return p * min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))


def rising(step: int, *, p: DropProbability, total_steps: LastStep) -> float:
    """Rise linearly from 0 at step 0 to `p` at `total_steps` and after: a curriculum."""
    return p * min(1.0, step / total_steps)


def falling(step: int, *, p: DropProbability, total_steps: LastStep) -> float:
    """Fall linearly from `p` at step 0 to 0 at `total_steps` and after: annealing."""
    return p * max(0.0, 1 - step / total_steps)


def plateau(orders: Sequence[tuple[float, ...]], *, peak: float, decay: float, patience: int) -> float:
    """Return the learning rate after validations of these orders: `peak` times `decay` for each stall.

    A stall is `patience` >= 1 validations in a row none of which is better than the best before them; NaN never is.
    The count then starts again, and the best is kept (Nguyen and Salazar 2019, appendix A; their published code
    decays when the last score is below each of the `patience` scores before it, which is seldom the same). Orders are
    those of `Validation.order`: the larger one is better.
    """
    rate, waited = peak, 0
    best: tuple[float, ...] | None = None
    for order in orders:
        if not any(map(isnan, order)) and (best is None or order > best):
            best, waited = order, 0
        else:
            waited += 1
        if waited == patience:
            rate, waited = rate * decay, 0
    return rate
