"""The name of a run in a list begins with what tells it from the others, since it may be cut."""

from ablab.commands.ls import ShortNames
from ablab.tasks.identity import parts_of

COMMON = "optim=cosine,data=multi30k,training.max_steps=3000"
NAMES = [f"{COMMON},norm={norm},s{seed}" for norm in ("pre", "post") for seed in (1, 2)]
UNLIKE = "norm=qk,s1"


def shown(names):
    short = ShortNames(names)
    return [short.of(name) for name in names]


def test_one_unlike_run_hides_no_arm():
    assert shown(NAMES)[2] == "norm=post,s1"  # all have the rest
    among = shown([*NAMES, UNLIKE])
    assert among[2] == f"norm=post,{COMMON},s1"
    assert among[-1] == UNLIKE


def test_nothing_of_a_name_is_lost_or_added():
    names = [*NAMES, UNLIKE, "dropped 0.2,s1", "model.share=[1,2],layerdrop=0.2,s3"]
    for name, other in zip(names, shown(names), strict=True):
        assert sorted(parts_of(name)) == sorted(parts_of(other))


def test_keys_have_one_order_in_all_rows():
    names = ["a=1,b=1,s1", "b=2,a=1,s1", "b=3,a=2,s2"]
    assert shown(names) == ["b=1,a=1,s1", "b=2,a=1,s1", "b=3,a=2,s2"]
