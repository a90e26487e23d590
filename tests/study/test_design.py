"""Designs: which arms come of factors and levels, and what cannot be one."""

import pytest

from ablab.errors import UserError
from ablab.study.design import arms_of
from ablab.study.experiment import Experiment
from ablab.study.grid import grid_of

FACTORS = {"norm": ["pre", "post"], "layerdrop": [0, 0.1, 0.2]}


def experiment(**changes):
    return Experiment.model_validate({"question": "?", "factors": FACTORS, "seeds": [1], **changes})


def names(**changes):
    arms, baseline = arms_of(experiment(**changes))
    return [arm.name for arm in arms], baseline


def test_factorial_is_every_combination():
    found, baseline = names()
    assert len(found) == len(set(found)) == 6
    assert baseline == "norm=pre,layerdrop=0" in found


def test_one_at_a_time_adds_each_part_to_the_baseline():
    found, baseline = names(design="one_at_a_time")
    assert baseline == found[0] == "norm=pre,layerdrop=0"
    assert found[1:] == ["norm=post,layerdrop=0", "norm=pre,layerdrop=0.1", "norm=pre,layerdrop=0.2"]


def test_leave_one_out_removes_each_part_from_the_full_model():
    found, baseline = names(design="leave_one_out")
    assert baseline == found[0] == "norm=post,layerdrop=0.2"
    assert found[1:] == ["norm=pre,layerdrop=0.2", "norm=post,layerdrop=0", "norm=post,layerdrop=0.1"]


@pytest.mark.parametrize("design", ["one_at_a_time", "leave_one_out"])
def test_every_arm_but_the_baseline_differs_from_it_by_one_factor(design):
    found, baseline = names(design=design, baseline={"layerdrop": 0.1})
    for name in found:
        differing = sum(a != b for a, b in zip(name.split(","), baseline.split(","), strict=True))
        assert differing == (name != baseline)


def test_zip_pairs_levels():
    found, baseline = names(design="zip", factors={"norm": ["pre", "post"], "layerdrop": [0, 0.2]})
    assert found == ["norm=pre,layerdrop=0", "norm=post,layerdrop=0.2"]
    assert baseline == found[0]


def test_exclude_takes_arms_out():
    found, _ = names(exclude=[{"norm": "post", "layerdrop": 0.2}, {"layerdrop": 0.1}])
    assert found == ["norm=pre,layerdrop=0", "norm=pre,layerdrop=0.2", "norm=post,layerdrop=0"]


def test_a_level_may_be_several_words():
    arms, baseline = arms_of(experiment(factors={"depth": {"shallow": [], "deep": ["model=deep", "layerdrop=0.2"]}}))
    assert [(arm.name, arm.words) for arm in arms] == [
        ("depth=shallow", ()),
        ("depth=deep", ("model=deep", "layerdrop=0.2")),
    ]
    assert baseline == "depth=shallow"


def test_explicit_arms():
    arms, baseline = arms_of(
        experiment(design="arms", factors={}, arms={"plain": [], "dropped": ["layerdrop=0.2"]}, baseline="dropped")
    )
    assert [arm.name for arm in arms] == ["plain", "dropped"]
    assert baseline == "dropped"


def test_levels_are_written_as_one_types_them():
    arms, _ = arms_of(experiment(factors={"drophead.sites": [["encoder", "cross"], []], "norm.learn_g": [True, None]}))
    assert arms[0].words == ("drophead.sites=[encoder,cross]", "norm.learn_g=true")
    assert arms[-1].words == ("drophead.sites=[]", "norm.learn_g=null")


BAD = {
    "no factors": ({"factors": {}}, "factors: design=factorial needs"),
    "equal levels": ({"factors": {"norm": ["pre", "pre"]}}, "factors.norm: needs levels that differ"),
    "no levels": ({"factors": {"norm": []}}, "factors.norm: needs levels"),
    "arms with factors": ({"arms": {"a": []}}, "arms: design=factorial makes its arms itself"),
    "factors with arms": ({"design": "arms", "arms": {"a": []}}, "factors: design=arms lists its arms"),
    "no arms": ({"design": "arms", "factors": {}}, "arms: design=arms needs at least one"),
    "unequal zip": ({"design": "zip"}, "norm has 2, layerdrop has 3"),
    "unknown factor": ({"baseline": {"norms": "pre"}}, "baseline: norms is no factor"),
    "unknown level": ({"baseline": {"norm": "pro"}}, "did you mean pre"),
    "unknown arm": ({"design": "arms", "factors": {}, "arms": {"a": []}, "baseline": "b"}, "baseline=b: no such arm"),
    "excluded baseline": ({"exclude": [{"norm": "pre"}]}, "baseline: norm=pre,layerdrop=0 is no arm"),
    "excluded nonsense": ({"exclude": [{"norm": 1}]}, "exclude: norm has no level 1"),
    "one key twice": (
        {"factors": {"recipe": {"a": ["optim.lr=0.1"], "b": ["optim.lr=0.2"]}, "optim.lr": [0.3, 0.4]}},
        "factors: recipe and optim.lr both set optim.lr in recipe=a,optim.lr=0.3, where the last would decide",
    ),
    "one key by a former name": (
        {"factors": {"optim.warmup_steps": [10, 20], "schedule.warmup_steps": [30, 40]}},
        "optim.warmup_steps and schedule.warmup_steps both set schedule.warmup_steps",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_design_is_said(case):
    changes, said = BAD[case]
    with pytest.raises(UserError, match=r"\A[^\n]*\Z") as refusal:
        arms_of(experiment(**changes))
    assert said in str(refusal.value)


RATES = {"optim.lr": [1e-3, 1e-4], "layerdrop": [0.0, 0.10], "data.tgt": ["1.10", "de"]}


def test_a_level_is_named_by_its_number_however_it_is_written():
    given = experiment(factors=RATES, baseline={"layerdrop": 0, "optim.lr": 1e-4}, exclude=[{"layerdrop": 0.1}])
    arms, baseline = arms_of(given)
    assert baseline == "optim.lr=0.0001,layerdrop=0.0,data.tgt=1.10"
    grid = grid_of(arms, baseline, None)
    assert grid.find("optim.lr=1e-3", "arm") is grid.find("1e-3", "arm") is grid.find("optim.lr=0.0010", "arm")
    assert grid.find("optim.lr=10e-4,data.tgt=de", "arm").levels["data.tgt"] == "de"
    assert grid.step("optim.lr=1e-3", "effect") == ("optim.lr", "0.001")


@pytest.mark.parametrize("name", ["optim.lr=1e-5", "1e-5", "data.tgt=1.1", "1.1", "layerdrop=0.00001"])
def test_another_number_is_no_level_and_suggests_none(name):
    arms, baseline = arms_of(experiment(factors=RATES))
    with pytest.raises(UserError, match="no such arm; allowed: ") as raised:
        grid_of(arms, baseline, None).find(name, "claims.arm")
    assert "did you mean" not in str(raised.value)


def test_a_named_level_is_no_number():
    arms, baseline = arms_of(experiment(factors={"rate": {"1.10": [], "2": ["layerdrop=0.2"]}}))
    with pytest.raises(UserError, match=r"rate=2\.0: no such arm"):
        grid_of(arms, baseline, None).find("rate=2.0", "claims.arm")
