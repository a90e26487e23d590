"""The front: what no other dominates, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from ablab.search.settings import front, objectives_now

OBJECTIVES = objectives_now()
BOTH = [OBJECTIVES["valid_bleu"], OBJECTIVES["parameters"]]
POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


def dominates(one, other):
    """BLEU is to be large, parameters are to be few."""
    return one[0] >= other[0] and one[1] <= other[1] and one != other


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points):
    best = front(points, BOTH)
    assert best
    for number, point in enumerate(points):
        assert (number in best) == (not any(dominates(other, point) for other in points))


def test_by_one_objective_the_front_is_the_best():
    assert front([(3.0,), (1.0,), (2.0,), (1.0,)], [OBJECTIVES["valid_loss"]]) == [1, 3]
