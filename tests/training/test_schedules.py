from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.config.folder import named_values
from ablab.training.schedules import DROP_SCHEDULES, inverse_sqrt, vshape

P, WARMUP, TOTAL = 0.2, 100, 1000
spans = st.tuples(st.integers(0, 5000), st.integers(1, 5000)).map(lambda pair: (pair[0], sum(pair)))


def noam(step: int, d_model: int, warmup: int) -> float:
    """Vaswani et al. 2017, eq. 3."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def rate(step: int, d_model: int, warmup: int) -> float:
    return inverse_sqrt(step, warmup=warmup, peak=(d_model * warmup) ** -0.5)


@given(step=st.integers(1, 10**6), d_model=st.integers(2, 4096), warmup=st.integers(1, 10**5))
def test_learning_rate_is_the_papers_formula(step, d_model, warmup):
    assert rate(step, d_model, warmup) == pytest.approx(noam(step, d_model, warmup), rel=1e-12)


def test_learning_rate_at_the_first_step_of_the_base_model():
    assert rate(1, 512, 4000) == pytest.approx(1.7469e-7, rel=1e-4)  # by hand from the formula


@given(warmup=st.integers(1, 10**4), peak=st.floats(1e-6, 1.0))
def test_learning_rate_peaks_at_the_end_of_warm_up_and_has_no_jump(warmup, peak):
    values = [inverse_sqrt(step, warmup=warmup, peak=peak) for step in range(max(1, warmup - 2), warmup + 3)]
    assert inverse_sqrt(warmup, warmup=warmup, peak=peak) == peak == max(values)
    assert all(abs(a - b) <= peak / warmup * (1 + 1e-9) for a, b in pairwise(values))


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
    schedule = DROP_SCHEDULES[name]
    points = [schedule(step, P, WARMUP, TOTAL) for step in (0, WARMUP, TOTAL)]
    assert points == pytest.approx([start, end_of_warmup, end])
    assert schedule(TOTAL + 1, P, WARMUP, TOTAL) == schedule(10 * TOTAL, P, WARMUP, TOTAL) == points[-1]


@pytest.mark.parametrize("name", DROP_SCHEDULES)
@given(span=spans, p=st.floats(0, 1), step=st.integers(0, 20_000))
def test_a_drop_schedule_stays_between_0_and_p_without_jumps(name, span, p, step):
    warmup, total = span
    now, then = (DROP_SCHEDULES[name](moment, p, warmup, total) for moment in (step, step + 1))
    assert 0 <= now <= p
    steepest = p / min(warmup or total, total - warmup)
    assert abs(now - then) <= steepest * (1 + 1e-9) + 1e-12


@given(span=spans, p=st.floats(0.01, 1))
def test_vshape_is_the_papers_formula(span, p):
    warmup, total = span
    for step in {0, warmup // 2, warmup, (warmup + total) // 2, total}:
        falling = step < warmup
        expected = p * (1 - step / warmup) if falling else p * (step - warmup) / (total - warmup)
        assert vshape(step, p, warmup, total) == pytest.approx(expected)


def test_vshape_without_warm_up_only_rises():
    assert [vshape(step, 0.4, 0, 4) for step in range(6)] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.4])


def test_every_schedule_has_its_file_and_every_file_its_schedule():
    assert set(DROP_SCHEDULES) == named_values("drophead", "schedule")
