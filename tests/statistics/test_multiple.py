"""One error rate for several claims."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.statistics.multiple import family, holm, simultaneous_level

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_holm_by_hand():
    """0.01 x 4, 0.02 x 3, then the larger of 0.03 x 2 and what came before; 0.5 alone."""
    assert holm([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.06, 0.5, 0.04, 0.06])


@given(P_VALUES)
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= np.minimum(1, len(p) * np.array(p))).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


@given(P_VALUES, st.randoms())
def test_holm_does_not_depend_on_the_order_of_claims(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    assert holm([p[i] for i in order]) == pytest.approx(holm(p)[order])


@given(P_VALUES)
def test_without_margins_the_family_is_holms(p):
    never = [1.0] * len(p)
    assert family(p, never, p, p).zero == pytest.approx(holm(p), abs=1e-12)


CLAIMS = st.lists(st.tuples(*[st.sampled_from([0.0, 1e-4, 0.004, 0.009, 0.02, 0.04, 0.3, 1.0])] * 3), max_size=6)


@given(CLAIMS)
def test_decisions_agree_with_the_local_levels(claims):
    """A hypothesis falls if and only if its unadjusted p-value is within the claim's local level."""
    zero, outside, inside = (np.array([claim[i] for claim in claims]) for i in range(3))
    inside = np.maximum(zero, inside)
    settled = np.minimum(np.maximum(zero, outside), inside)
    result = family(zero, outside, inside, settled)
    for p, adjusted in ((zero, result.zero), (outside, result.outside), (inside, result.inside)):
        assert ((adjusted <= 0.05) == (p <= result.local)).all()


@given(CLAIMS.filter(bool))
def test_a_claim_that_cannot_be_tested_keeps_its_place(claims):
    zero, outside, inside = ([claim[i] for claim in claims] for i in range(3))
    settled = np.maximum(zero, outside)
    without = family(zero, outside, inside, settled)
    with_one = family([*zero, 1.0], [*outside, 1.0], [*inside, 1.0], [*settled, 1.0])
    assert (with_one.zero[:-1] >= without.zero).all()
    assert (with_one.local[:-1] <= without.local).all()


def test_equivalence_alone_passes_no_share_on():
    """Ten arms equal to the baseline are seen to be so; the tests of no difference stay at a tenth."""
    result = family([0.03] * 10, [1e-9] * 10, [1.0] * 10, [0.03] * 10)
    assert (result.outside <= 0.05).all()
    assert result.zero == pytest.approx([0.3] * 10)
    assert result.local == pytest.approx([0.005] * 10)


def test_a_settled_claim_passes_its_share_on():
    result = family([0.001, 0.04], [1.0, 1.0], [0.002, 1.0], [0.002, 1.0])
    assert result.zero == pytest.approx([0.002, 0.04])
    assert result.local == pytest.approx([0.025, 0.05])


def test_bonferroni_level():
    assert simultaneous_level(5) == pytest.approx(0.99)


@pytest.mark.parametrize("p", [[-0.1], [1.1], [float("nan")], [[0.1]]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(p)


def test_a_claim_is_settled_at_its_share_and_not_above():
    """Of two claims each has a share of 2.5 %; a settled one passes its own on."""
    for settled, local in ((0.025, 0.05), (0.025 + 1e-12, 0.025)):
        found = family([settled, 0.9], [1.0, 1.0], [1.0, 1.0], [settled, 0.9])
        assert found.local[1] == pytest.approx(local)


@pytest.mark.parametrize("alpha", [0.0, 0.5, -0.1, 1.0])
def test_an_error_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"strictly between 0 and 0\.5"):
        family([0.1], [0.1], [0.1], [0.1], alpha=alpha)
    assert family([0.1], [0.1], [0.1], [0.1], alpha=0.499).local[0] == pytest.approx(0.499)
