from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ablab.config.kinds import class_of
from ablab.transformer.training.schedules import cosine, inverse_sqrt, vshape, wsd
from tests.shipped import shipped

P, WARMUP, TOTAL = 0.2, 100, 1000
spans = st.tuples(st.integers(0, 5000), st.integers(1, 5000)).map(lambda pair: (pair[0], sum(pair)))


def drop(name: str, p: float, warmup: int, total: int):
    """A drop schedule with those of the settings that its option reads."""
    values = {"p": p, "warmup_steps": warmup, "total_steps": total}
    own = class_of("drophead", name).model_fields
    return partial(shipped("drophead")[name], **{key: value for key, value in values.items() if key in own})


def noam(step: int, d_model: int, warmup: int) -> float:
    """Vaswani et al. 2017, eq. 3."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def rate(step: int, d_model: int, warmup: int) -> float:
    return inverse_sqrt(step, warmup_steps=warmup, peak=(d_model * warmup) ** -0.5)


@given(step=st.integers(1, 10**6), d_model=st.integers(2, 4096), warmup=st.integers(1, 10**5))
def test_learning_rate_is_the_papers_formula(step, d_model, warmup):
    assert rate(step, d_model, warmup) == pytest.approx(noam(step, d_model, warmup), rel=1e-12)


def test_learning_rate_at_the_first_step_of_the_base_model():
    assert rate(1, 512, 4000) == pytest.approx(1.7469e-7, rel=1e-4)  # by hand from the formula


@given(warmup=st.integers(1, 10**4), peak=st.floats(1e-6, 1.0))
def test_learning_rate_peaks_at_the_end_of_warm_up_and_has_no_jump(warmup, peak):
    values = [inverse_sqrt(step, warmup_steps=warmup, peak=peak) for step in range(max(1, warmup - 2), warmup + 3)]
    assert inverse_sqrt(warmup, warmup_steps=warmup, peak=peak) == peak == max(values)
    assert all(abs(a - b) <= peak / warmup * (1 + 1e-9) for a, b in pairwise(values))


def test_cosine_is_what_pytorch_anneals_after_warm_up():
    warmup, total, peak, floor = 10, 60, 5e-3, 1e-4
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup, eta_min=floor)
    for step in range(warmup, total + 1):
        (expected,) = annealing.get_last_lr()
        assert cosine(step, warmup_steps=warmup, total=total, peak=peak, min_lr=floor) == pytest.approx(
            expected, rel=1e-12
        )
        optimizer.step()
        annealing.step()


@given(span=spans.filter(lambda span: span[0] > 0), step=st.integers(1, 20_000))
def test_cosine_rises_to_its_peak_and_falls_to_its_floor(span, step):
    warmup, total = span
    rate = [cosine(at, warmup_steps=warmup, total=total, peak=1.0, min_lr=0.1) for at in (step, step + 1)]
    if step < warmup:
        assert rate[0] == step / warmup < rate[1]
    else:
        assert 1 >= rate[0] >= rate[1] >= 0.1
    assert cosine(total + step, warmup_steps=warmup, total=total, peak=1.0, min_lr=0.1) == 0.1


@pytest.mark.parametrize(
    ("name", "start", "end_of_warmup", "end"),
    [
        ("none", 0, 0, 0),
        ("constant", P, P, P),
        ("vshape", P, 0, P),
        ("rising", 0, P * WARMUP / TOTAL, P),
        ("falling", P, P * (1 - WARMUP / TOTAL), 0),
    ],
)
def test_points_of_the_drop_schedules(name, start, end_of_warmup, end):
    schedule = drop(name, P, WARMUP, TOTAL)
    points = [schedule(step) for step in (0, WARMUP, TOTAL)]
    assert points == pytest.approx([start, end_of_warmup, end])
    assert schedule(TOTAL + 1) == schedule(10 * TOTAL) == points[-1]


@pytest.mark.parametrize("name", shipped("drophead"))
@given(span=spans, p=st.floats(0, 1), step=st.integers(0, 20_000))
def test_a_drop_schedule_stays_between_0_and_p_without_jumps(name, span, p, step):
    warmup, total = span
    now, then = (drop(name, p, warmup, total)(moment) for moment in (step, step + 1))
    assert 0 <= now <= p
    steepest = p / min(warmup or total, total - warmup)
    assert abs(now - then) <= steepest * (1 + 1e-9) + 1e-12


@given(span=spans, p=st.floats(0.01, 1))
def test_vshape_is_the_papers_formula(span, p):
    warmup, total = span
    for step in {0, warmup // 2, warmup, (warmup + total) // 2, total}:
        falling = step < warmup
        expected = p * (1 - step / warmup) if falling else p * (step - warmup) / (total - warmup)
        assert vshape(step, p=p, warmup_steps=warmup, total_steps=total) == pytest.approx(expected)


def test_vshape_without_warm_up_only_rises():
    assert [vshape(step, p=0.4, warmup_steps=0, total_steps=4) for step in range(6)] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.4]
    )


@given(warmup=st.integers(1, 400), share=st.floats(0.01, 1), step=st.integers(1, 2000), floor=st.floats(0, 0.9))
def test_wsd_is_warm_up_stable_and_one_minus_the_square_root(warmup, share, step, floor):
    now = wsd(step, warmup_steps=warmup, decay_share=share, total=1000, peak=1.0, min_lr=floor)
    begin = 1000 * (1 - share)
    if step <= begin:
        assert now == min(1.0, step / warmup)
    elif step >= 1000:
        assert now == pytest.approx(min(floor, step / warmup))
    else:
        decayed = floor + (1 - floor) * (1 - ((step - begin) / (1000 - begin)) ** 0.5)
        assert now == pytest.approx(min(decayed, step / warmup))
