"""The rate that decays when validation stalls: the paper's words written out, and what PyTorch does."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ablab.config import compose
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.training.schedules import plateau
from ablab.transformer.training.state import Plateau, TrainingState, ValDecay
from ablab.transformer.translation.validation import TranslationValidation as Validation

RATES = {"peak": 1.0, "decay": 0.5}
# Few values, so that equal scores, which are no better, are frequent.
runs_of_scores = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), max_size=25)


def by_words(scores: list[float], sign: int, patience: int) -> float:
    """Nguyen and Salazar 2019: multiplied by the factor when `patience` evaluations did not improve."""
    rate, since = 1.0, 0
    for number in range(1, len(scores) + 1):
        last = [sign * score for score in scores[max(since, number - patience) : number]]
        before = [sign * score for score in scores[: number - len(last)]]
        if len(last) == patience and before and max(last) <= max(before):
            rate, since = rate / 2, number
    return rate


def orders(scores: list[float], sign: int) -> list[tuple[float]]:
    """The larger of two orders is better."""
    return [(sign * score,) for score in scores]


@pytest.mark.parametrize("sign", [-1, 1], ids=["loss", "bleu"])
@given(scores=runs_of_scores, patience=st.integers(1, 4))
def test_it_is_the_papers_rule(sign, scores, patience):
    assert plateau(orders(scores, sign), patience=patience, **RATES) == by_words(scores, sign, patience)


@pytest.mark.parametrize(("sign", "mode"), [(-1, "min"), (1, "max")], ids=["loss", "bleu"])
@given(scores=runs_of_scores, patience=st.integers(1, 4))
def test_it_is_pytorchs_with_one_less_of_patience(sign, mode, scores, patience):
    """PyTorch waits until there are more poor validations than its patience."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode=mode, factor=0.5, patience=patience - 1, threshold=0.0, eps=0.0
    )
    for score in scores:
        theirs.step(score)
    (group,) = optimizer.param_groups
    assert plateau(orders(scores, sign), patience=patience, **RATES) == group["lr"]


def test_the_third_poor_validation_in_a_row_decays_and_the_second_does_not():
    stalled = [5.0, 4.0, 4.0, 4.5, 4.0]
    rates = [plateau(orders(stalled[:number], -1), patience=3, **RATES) for number in range(len(stalled) + 1)]
    assert rates == [1, 1, 1, 1, 1, 0.5]


def test_what_is_no_number_is_never_better():
    assert plateau(orders([math.nan, 5.0, 4.0], -1), patience=2, **RATES) == 1
    assert plateau(orders([5.0, math.nan, math.nan], -1), patience=2, **RATES) == 0.5


@pytest.mark.parametrize("warm_up", [None, 10])
@pytest.mark.parametrize(("min_lr", "last"), [(1.0, 2), (0.5, 3), (0.5 + 1e-9, 2), (0.25, 4), (0.0, None)])
def test_training_ends_under_the_least_rate_and_not_at_it(warm_up, min_lr, last):
    """Each validation after the first stalls, and halves the rate: 1, 1/2, 1/4 ... `last`: the one that ends it."""
    own = {"decay_monitor": "loss", "decay_patience": 1, "min_lr": min_lr, **RATES}
    rule = Plateau(**own) if warm_up is None else ValDecay(warmup_steps=warm_up, **own)
    stalled = [Validation(10 * number, loss=3.0, bleu=0.0) for number in range(1, 6)]
    over = [rule.is_over(stalled[:number]) for number in range(1, 6)]
    assert over == [last is not None and number >= last for number in range(1, 6)]


def test_equal_bleu_stalls_only_if_the_loss_does_too():
    rule = Plateau(decay_monitor="bleu", decay_patience=1, min_lr=0.0, **RATES)
    falling = [Validation(10 * i, loss=3.0 - i / 10, bleu=0.0) for i in range(1, 6)]
    assert rule.rate(61, falling) == 1.0
    assert rule.rate(61, [*falling, Validation(60, loss=2.5, bleu=0.0)]) == 0.5


@pytest.mark.parametrize(("monitor", "expected"), [("loss", 0.25), ("bleu", 1.0)])
def test_either_score_can_be_monitored(monitor, expected):
    """BLEU rises while the loss does."""
    validations = [Validation(10 * i, loss=3.0 + i, bleu=1.0 + i) for i in range(1, 4)]
    rule = Plateau(decay_monitor=monitor, decay_patience=1, min_lr=0.0, **RATES)
    assert rule.rate(31, validations) == expected


@given(scores=runs_of_scores, warmup_steps=st.integers(1, 60), step=st.integers(1, 300))
def test_with_warm_up_it_rises_and_then_decays_by_the_validations_after_it(scores, warmup_steps, step):
    own = {"decay_monitor": "bleu", "decay_patience": 2, "min_lr": 0.1, **RATES}
    rule, without = ValDecay(warmup_steps=warmup_steps, **own), Plateau(**own)
    validations = [Validation(10 * i, loss=0.0, bleu=score) for i, score in enumerate(scores, 1)]
    after = [each for each in validations if each.step >= warmup_steps]
    assert rule.rate(min(step, warmup_steps), []) == min(step, warmup_steps) / warmup_steps
    assert rule.rate(warmup_steps + step, validations) == without.rate(step, after)
    assert rule.is_over(validations) == without.is_over(after)


@pytest.mark.parametrize("monitor", ["loss", "bleu"])
@pytest.mark.parametrize(("decay_monitor", "expected"), [("loss", 0.25), ("bleu", 1.0)])
def test_a_run_decays_by_its_own_score_whichever_chooses_the_weights(decay_monitor, expected, monitor):
    own = ("decay=0.5", "decay_patience=1", f"decay_monitor={decay_monitor}")
    config = compose(
        ["optim=plateau", "optim.lr=1", *(f"schedule.{word}" for word in own), f"training.monitor={monitor}"]
    )
    state = TrainingState()
    rate = build_objective(config.config, state).learning_rate
    assert rate(1) == 1.0
    state.validations += [Validation(10 * i, loss=3.0 + i, bleu=1.0 + i) for i in range(1, 4)]
    assert rate(31) == expected
