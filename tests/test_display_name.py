"""What a run is called on a screen: what differs from the defaults, and from the runs beside it."""

import pytest

from ablab.config import compose
from ablab.config.groups import default_choices
from ablab.tasks import identity


def _name(typed: str) -> str:
    return identity.display_name(compose(typed.split()), default_choices())


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("", "s1"),
        ("seed=7", "s7"),
        ("norm=scalenorm layerdrop=0.2", "norm=scalenorm,layerdrop=0.2,s1"),
        ("layerdrop=0.2 norm=scalenorm", "norm=scalenorm,layerdrop=0.2,s1"),
        ("outputs=elsewhere decoding=greedy logger=none smoke=true", "s1"),
        ("norm=pre layerdrop=0.0", "s1"),
        ("norm=post", "norm=post,s1"),  # which places its norms after sublayers
        ("optim.lr=${layerdrop} layerdrop=0.5", "layerdrop=0.5,optim.lr=0.5,s1"),
    ],
)
def test_the_display_name_shows_what_differs(typed, name):
    assert sorted(_name(typed).split(",")) == sorted(name.split(","))
    assert _name(typed).endswith(f"s{compose(typed.split()).config.seed}")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["layerdrop=0.2,s1", "s1"], ["layerdrop=0.2", "the defaults"]),
        (["a=1,b=2,s1", "a=1,b=3,s1"], ["b=2", "b=3"]),
        (["sites=[a,b],c=1", "sites=[a],c=1"], ["sites=[a,b]", "sites=[a]"]),
        (["a=1,s1"], ["a=1,s1"]),
    ],
)
def test_names_side_by_side_say_what_differs(names, shown):
    assert identity.distinct(names) == shown
