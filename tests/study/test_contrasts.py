"""What claims compare: arms by short names, effects, interactions, steps of a ladder, and each level of a factor."""

import pytest

from ablab.errors import UserError
from ablab.study.claims import Settled, settled
from ablab.study.design import arms_of
from ablab.study.experiment import Experiment
from ablab.study.grid import grid_of

FACTORS = {"norm": ["pre", "scalenorm"], "drop": {"off": [], "on": ["layerdrop=0.2"]}}
GREATER = {"expect": "greater"}


def claimed(*claims, **changes):
    """The claims of an experiment, as they are judged."""
    content = {"question": "?", "factors": FACTORS, "seeds": [1], "claims": [{**GREATER, **one} for one in claims]}
    experiment = Experiment.model_validate({**content, **changes})
    return settled(experiment.claims, grid_of(*arms_of(experiment), experiment.within), experiment.metric)


def sides(*claims, **changes):
    return [(claim.arm, claim.baseline) for claim in claimed(*claims, **changes)]


@pytest.mark.parametrize(
    ("name", "arm"),
    [
        ("scalenorm", "norm=scalenorm,drop=off"),
        ("norm=scalenorm", "norm=scalenorm,drop=off"),
        ("on", "norm=pre,drop=on"),
        ("scalenorm,on", "norm=scalenorm,drop=on"),
        ("drop=on,scalenorm", "norm=scalenorm,drop=on"),
        ("norm=scalenorm,drop=on", "norm=scalenorm,drop=on"),
    ],
)
def test_an_arm_is_named_by_the_levels_that_set_it_apart(name, arm):
    assert sides({"arm": name}) == [(arm, "norm=pre,drop=off")]


def test_an_arm_of_a_list_is_named_by_the_beginning_that_no_other_has():
    arms = {"plain": [], "dropped 0.2": ["layerdrop=0.2"], "dropped 0.5": ["layerdrop=0.5"]}
    named = {"factors": {}, "design": "arms", "arms": arms}
    assert sides({"arm": "dropped 0.5", "baseline": "pl"}, **named) == [("dropped 0.5", "plain")]
    with pytest.raises(UserError, match=r"claims\.arm=dropped: 2 arms are like that: dropped 0\.2; dropped 0\.5"):
        sides({"arm": "dropped"}, **named)


def test_an_arm_keeps_its_name_though_it_reads_like_a_level():
    arms = {"plain": [], "on": ["layerdrop=0.2"], "on, late": ["layerdrop=0.5"]}
    assert sides({"arm": "on"}, factors={}, design="arms", arms=arms) == [("on", "plain")]


def test_a_level_that_two_factors_share_needs_its_factor():
    factors = {"one": {"off": [], "on": ["layerdrop=0.1"]}, "other": {"off": [], "on": ["norm=post"]}}
    assert sides({"arm": "one=on"}, factors=factors) == [("one=on,other=off", "one=off,other=off")]
    with pytest.raises(
        UserError, match=r"claims\.arm=on: no such arm; one and other have such a level; allowed: one=on"
    ):
        sides({"arm": "on"}, factors=factors)


def test_a_main_effect_is_the_mean_difference_over_the_other_factors():
    (claim,) = claimed({"effect": "norm"})
    assert (claim.arm, claim.baseline) == ("norm=scalenorm, mean over drop", "norm=pre")
    assert claim.weights == {
        "norm=scalenorm,drop=off": 0.5,
        "norm=pre,drop=off": -0.5,
        "norm=scalenorm,drop=on": 0.5,
        "norm=pre,drop=on": -0.5,
    }


def test_an_interaction_is_the_difference_of_two_differences_whichever_way_round():
    one, other = claimed({"interaction": ["norm", "drop"]}, {"interaction": ["drop", "norm"]})
    assert one.weights == other.weights
    assert one.weights == {
        "norm=scalenorm,drop=on": 1,
        "norm=pre,drop=on": -1,
        "norm=scalenorm,drop=off": -1,
        "norm=pre,drop=off": 1,
    }
    assert one.arm == "norm=scalenorm with drop=on"


def test_over_a_third_factor_an_interaction_is_a_mean():
    (claim,) = claimed({"interaction": ["norm", "drop"]}, factors={**FACTORS, "seedless": ["a", "b", "c"]})
    assert len(claim.weights) == 12
    assert set(map(abs, claim.weights.values())) == {1 / 3}


def test_a_factor_of_three_levels_needs_the_level():
    factors = {**FACTORS, "norm": ["pre", "post", "scalenorm"]}
    (claim,) = claimed({"effect": "post"}, factors=factors)
    assert claim.arm == "norm=post, mean over drop"
    (claim,) = claimed({"effect": "post", "baseline": "scalenorm"}, factors=factors)
    assert claim.baseline == "norm=scalenorm"
    with pytest.raises(UserError, match=r"claims\.effect=norm: no level of a factor"):
        claimed({"effect": "norm"}, factors=factors)


def test_a_ladder_compares_each_part_with_the_arm_before_it():
    each = {"arm": "each", "baseline": "before"}
    assert sides(each, design="ladder") == [
        ("+norm=scalenorm", "norm=pre,drop=off"),
        ("+drop=on", "+norm=scalenorm"),
    ]
    assert sides({"arm": "drop=on", "baseline": "before"}, design="ladder") == [("+drop=on", "+norm=scalenorm")]
    assert sides({"arm": "+drop=on"}, design="ladder") == [("+drop=on", "norm=pre,drop=off")]


def test_each_is_every_arm_against_its_baseline():
    assert len(sides({"arm": "each"})) == 3
    assert {baseline for _, baseline in sides({"arm": "each"})} == {"norm=pre,drop=off"}


def test_within_each_level_of_a_factor_arms_have_a_baseline_of_their_own():
    found = claimed({"arm": "scalenorm"}, within="drop")
    assert [(claim.arm, claim.baseline) for claim in found] == [
        ("norm=scalenorm,drop=off", "norm=pre,drop=off"),
        ("norm=scalenorm,drop=on", "norm=pre,drop=on"),
        ("norm=scalenorm, mean over drop", "norm=pre"),
    ]
    (mean,) = claimed({"effect": "norm"})
    assert found[-1].weights == mean.weights
    assert sides({"arm": "scalenorm,on"}, within="drop") == [("norm=scalenorm,drop=on", "norm=pre,drop=on")]
    assert len(sides({"arm": "each"}, within="drop")) == 2


def test_what_comes_before_is_of_the_same_level_of_within():
    """Where nothing of its level is, an arm is its own baseline, and has no claim."""
    ladder = {"design": "ladder", "factors": {"lang": ["de", "fr"], "norm": ["pre", "scalenorm"]}, "within": "lang"}
    before = {"arm": "each", "baseline": "before"}
    steps = sides(before, **{**ladder, "within": None})
    assert len(steps) == 2
    assert sides(before, **ladder) == steps[1:]
    norms = {"norm": ["pre", "post", "scalenorm"]}
    for factors in ({**norms, "lang": ["de", "fr"]}, {"lang": ["de", "fr"], **norms}):
        found = claimed(before, factors=factors, within="lang")
        levels = [
            [dict(word.split("=") for word in name.split(",")) for name in (one.arm, one.baseline)] for one in found
        ]
        assert all(ours["lang"] == theirs["lang"] for ours, theirs in levels)
        assert sorted((ours["lang"], ours["norm"], theirs["norm"]) for ours, theirs in levels) == [
            (lang, *pair) for lang in ("de", "fr") for pair in (("post", "pre"), ("scalenorm", "post"))
        ]


def test_a_baseline_without_a_level_of_within_is_that_of_each_arms_own():
    factors = {"norm": ["pre", "post", "scalenorm"], "drop": FACTORS["drop"]}
    found = sides({"arm": "each", "baseline": "post"}, factors=factors, within="drop")
    assert found == [
        (f"norm={norm},drop={drop}", f"norm=post,drop={drop}")
        for norm in ("pre", "scalenorm")
        for drop in ("off", "on")
    ]
    assert sides({"arm": "scalenorm,on", "baseline": "post"}, factors=factors, within="drop") == found[-1:]


def test_shares_of_failures_have_no_mean():
    assert len(sides({"arm": "scalenorm", "metric": "failures"}, within="drop")) == 2


@pytest.mark.parametrize(
    ("claim", "changes", "said"),
    [
        ({}, {}, "claims: nothing given; allowed: one of arm, effect, interaction"),
        ({"arm": "on", "effect": "norm"}, {}, "claims: arm and effect given; allowed: one of"),
        ({"arm": "scale norm"}, {}, "claims.arm=scale norm: no such arm; allowed: drop=off, drop=on, norm=pre"),
        ({"effect": "nrm"}, {}, "claims.effect=nrm: no level of a factor; allowed: drop=off, drop=on"),
        ({"effect": "norm", "baseline": "on"}, {}, "claims.baseline=on: allowed beside effect=norm: a level of norm"),
        ({"effect": "norm"}, {"design": "one_at_a_time"}, "claims: there is no arm norm=scalenorm,drop=on"),
        ({"effect": "norm"}, {"factors": {"norm": ["pre", "post"]}}, "norm is the only factor; allowed: arm=norm=post"),
        (
            {"effect": "norm=pre"},
            {},
            "claims.effect=norm=pre: that is its baseline too; allowed: another level of norm",
        ),
        ({"effect": "on"}, {"within": "drop"}, "levels of drop, as of within, are not compared with each other"),
        (
            {"arm": "norm=scalenorm,drop=on", "baseline": "norm=pre,drop=off"},
            {"within": "drop"},
            "norm=scalenorm,drop=on has another level of drop; levels of drop, as of within, are not compared with",
        ),
        (
            {"arm": "norm=scalenorm", "baseline": "norm=pre,drop=on"},
            {"within": "drop"},
            "it has a level of drop, as of within, and arm=norm=scalenorm has none; allowed: both with one, or neither",
        ),
        ({"interaction": ["norm=pre", "on"]}, {}, "norm=pre is the baseline's; allowed: other levels"),
        ({"interaction": ["norm"]}, {}, "claims.interaction=[norm]: allowed: levels of two factors"),
        ({"interaction": ["norm", "scalenorm"]}, {}, "claims.interaction=[norm, scalenorm]: allowed: levels of two"),
        ({"interaction": ["norm", "drop"], "baseline": "on"}, {}, "claims.baseline=on: an interaction has none"),
        (
            {"effect": "norm", "metric": "failures"},
            {},
            "claims.metric=failures: norm=scalenorm, mean over drop is no arm",
        ),
        ({"arm": "on", "expect": "not_worse"}, {}, "claims.expect=not_worse: by how much? say a margin"),
        ({"arm": "on", "expect": "not_worse", "metric": "failures"}, {}, "a share of failures has no margin"),
        (
            {"arm": "on", "metric": "failures", "margin": 0.1},
            {},
            "claims.margin=0.1: a share of failures has no margin",
        ),
        ({"arm": "norm=pre,drop=off", "baseline": "before"}, {}, "that is its baseline too"),
        ({"arm": "on"}, {"within": "nrm"}, "within=nrm: no such factor; allowed: drop, norm; did you mean norm?"),
        ({"arm": "on"}, {"within": "norm", "factors": {"norm": ["pre", "post"]}}, "it is the only factor"),
        (
            {"arm": "post"},
            {"within": "layerdrop", "factors": {"norm": ["pre", "post"], "layerdrop": [0]}},
            "within=layerdrop: it has one level, 0; allowed: a factor of several",
        ),
        ({"arm": "on"}, {"within": "drop", "design": "zip"}, "within=drop: drop=on has no baseline"),
        ({"arm": "scalenorm", "baseline": "before"}, {"within": "drop"}, "claims.baseline=before: allowed beside arm="),
        ({"effect": "a"}, {"factors": {}, "design": "arms", "arms": {"a": [], "b": []}}, "the arms have no factors"),
    ],
)
def test_what_names_no_comparison_is_refused(claim, changes, said):
    with pytest.raises(UserError) as refused:
        claimed(claim, **changes)
    assert said in str(refused.value)


def test_a_claim_that_could_be_made_before_is_registered_as_before():
    """A study that was launched must not look changed because claims can say more now."""
    (claim,) = claimed({"arm": "on", "margin": 1.0})
    assert set(claim.registered()) == {
        *("arm", "baseline", "metric", "expect", "margin", "fall", "layers", "published", "source")
    }


@pytest.mark.parametrize("claim", [{"effect": "norm"}, {"arm": "on", "secondary": True}])
def test_what_is_registered_can_be_read_back(claim):
    (made,) = claimed(claim)
    assert Settled.model_validate(made.registered()) == made


def test_arms_that_were_united_are_renamed_in_their_claims():
    (claim,) = claimed({"effect": "norm"})
    renamed = claim.renamed({name: f"{name} = x" for name in claim.weights})
    assert list(renamed.weights) == [f"{name} = x" for name in claim.weights]
    assert renamed.arm == claim.arm


def test_a_registration_says_of_lengths_only_where_there_are_any():
    """What older stores registered of an interaction keeps its digest."""
    parts = [{"arm": "a", "baseline": "b", "weight": 1.0}]
    claim = {"arm": "x", "baseline": "y", "metric": "m", "expect": "greater"}
    plain = Settled.model_validate({**claim, "parts": parts}).registered()
    assert plain["parts"] == parts
    at_lengths = [{**parts[0], "is_of_length": True}]
    assert Settled.model_validate({**claim, "parts": at_lengths}).registered()["parts"] == at_lengths
