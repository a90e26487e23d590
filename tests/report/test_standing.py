"""The path of a claim in the terminal: a block for each look, higher the nearer it came to a boundary."""

import pytest

from ablab.judge.extending import SETTLED, STEPS, claims_table, path
from ablab.judge.lines import FollowedLine, LookLine, Span
from tests.report.test_plain_words import claim

LEVEL = {"level": 0.95, "method": "t"}


def followed(*looks, state="open", **changed):
    """A claim with looks after 3, 4, ... seeds, each a difference and the half-width of its interval."""
    lines = [
        LookLine(n=n, difference=mean, interval=Span(low=mean - half, high=mean + half, **LEVEL))
        for n, (mean, half) in enumerate(looks, 3)
    ]
    return claim(followed=FollowedLine(state=state, first=3, last=8, looks=lines, chance=0.5), **changed)


def test_it_rises_towards_the_boundary_on_either_side():
    assert path(followed((0.0, 1.0), (0.5, 1.0), (0.99, 1.0))) == STEPS[0] + STEPS[3] + STEPS[6]
    assert path(followed((-0.5, 1.0))) == path(followed((0.5, 1.0)))


def test_only_the_look_that_settled_the_claim_is_full():
    assert path(followed((0.9, 1.0), (1.2, 1.0), state="settled")) == STEPS[6] + SETTLED
    assert SETTLED not in path(followed((5.0, 1.0), (0.9, 1.0)))


@pytest.mark.parametrize(
    ("look", "changed", "step"),
    [
        ((0.1, 0.4), {"expect": "equal"}, 6),  # all within the margin of 0.5
        ((0.1, 4.9), {"expect": "equal"}, 0),
        ((-0.5, 1.0), {"expect": "not_worse"}, 0),  # on the margin: neither not worse nor worse
        ((0.0, 1.0), {"expect": "not_worse"}, 3),
        ((0.5, 1.0), {"expect": "not_worse", "higher_is_better": False}, 0),
    ],
)
def test_claims_within_a_margin_have_their_own_way_to_go(look, changed, step):
    assert path(followed(look, **changed)) == STEPS[step]


def test_the_table_has_what_the_looks_have():
    _, row, _ = claims_table([followed((0.2, 1.0), (0.4, 0.6), interval=None)])
    assert row.startswith("norm=scalenorm against norm=pre in test BLEU  open ")
    for part in ("  4 of 8  ", "  +0.40 BLEU  ", "  [-0.20, +1.00] at 95 %  ", "  50 %"):
        assert part in row
