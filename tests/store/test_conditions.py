"""What where= means."""

import pytest

from ablab.api.run import DAMAGED
from ablab.errors import UserError
from ablab.study.ledger import State
from ablab.tasks.conditions import STATES, conditions, meeting, near_miss, typed

RUNS = [{"norm": "pre", "layerdrop": "0.0", "test_bleu": "31.5"}, {"norm": "scalenorm", "layerdrop": "0.1"}]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("", [True, True]),
        ("norm=pre", [True, False]),
        ("norm!=pre", [False, True]),
        ("layerdrop=0", [True, False]),
        ("layerdrop=1e-1", [False, True]),
        ("layerdrop<=0 norm=pre", [True, False]),
        ("test_bleu>31", [True, False]),
        ("test_bleu>=31.5", [True, False]),
        ("test_bleu<99", [True, False]),
        ("test_bleu!=31.5", [False, True]),
        ("norm=pre layerdrop=0.1", [False, False]),
        ("norm=pre,scalenorm", [True, True]),
        ("norm!=pre,post", [False, True]),
        ("layerdrop=0,5", [True, False]),
        ("norm='pre'", [True, False]),
    ],
)
def test_which_runs_meet_conditions(text, met):
    assert meeting(RUNS, text) == met


def test_a_level_called_nan_is_itself():
    runs = [{"fill": "nan"}, {"fill": "zero"}]
    assert meeting(runs, "fill=nan") == [True, False]
    assert meeting(runs, "fill!=nan") == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        *("norm", "=pre", "test_bleu>much", "<3", "size<1MB", "state!=finised", "state=finished,over"),
        *("ended<2026-13", "ended=2026-02-31", "ended!=2026-13-45"),
    ],
)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UserError, match="allowed: "):
        conditions(text)


@pytest.mark.parametrize("text", ["id=", "id=r1,", "id!="])
def test_an_id_that_says_nothing_is_refused(text):
    """It would be that of all runs, which `rm` would remove."""
    with pytest.raises(UserError, match="allowed: how an id begins"):
        conditions(text)


def test_an_open_quote_is_refused():
    with pytest.raises(UserError, match="a quote is not closed"):
        conditions("label='ScaleNorm")


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("arm=norm=soft", [True, False]),
        ("arm='Soft norm, tuned'", [True, False]),
        ("label='Soft norm, tuned'", [True, False]),
        ("arm!='Soft norm, tuned'", [False, True]),
        ("arm!=norm=soft", [False, True]),
        ("name='Soft norm, tuned'", [True, False]),
        ("name=norm=soft,s1", [True, False]),
        ("id=r12", [True, False]),
        ("id=r12,r3", [True, True]),
        ("id!=r12", [False, True]),
    ],
)
def test_a_run_goes_by_its_names_by_what_people_call_its_arm_and_by_how_its_id_begins(text, met):
    arm = {"arm": "norm=soft", "label": "Soft norm, tuned"}
    runs = [{**arm, "name": "norm=soft,s1", "id": "r12ab"}, {"norm": "pre", "name": "s2", "id": "r3c12"}]
    assert meeting(runs, text) == met
    assert near_miss(runs, "arm='Soft norm tuned'") == "; did you mean arm='Soft norm, tuned'?"


def test_every_state_of_a_run_may_be_asked_for():
    assert set(STATES) == {*(state.value for state in State), DAMAGED}


def test_a_key_that_no_run_has_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="did you mean layerdrop"):
        meeting(RUNS, "layerdrp=0")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("norm=scalenrom", "; did you mean norm=scalenorm?"),
        ("layerdrop=0 norm=pree", "; did you mean norm=pre?"),
        ("norm=batch", ""),
        ("norm=pre layerdrop=0.1", ""),
        ("norm!=scalenrom", ""),
    ],
)
def test_a_value_that_no_run_has_is_proposed_if_one_is_like_it(text, hint):
    assert near_miss(RUNS, text) == hint


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("drophead.sites=[encoder,decoder]", True),
        ("drophead.sites=[decoder,encoder]", False),
        ("drophead.sites!=[cross]", True),
        ("data.size=1e-5", True),
        ("tied=true", True),
        ("init_from=null", True),
    ],
)
def test_a_value_is_written_in_a_condition_as_on_the_command_line(condition, holds):
    settings = {
        "drophead": {"sites": ["encoder", "decoder"]},
        **{"data": {"size": 0.00001}, "tied": True, "init_from": None},
    }
    assert meeting([typed(settings)], condition) == [holds]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("arm=a=1,b=2", [True, False, False]),
        ("arm!=a=1,b=2", [False, True, True]),
        ("arm=a=1,a=2", [False, True, True]),
        ("arm=a=1,b=3", [False, False, False]),
        ("label='One, two'", [False, False, True]),
        ("name=a=1,b=2", [False, False, False]),
    ],
)
def test_the_name_of_an_arm_of_two_factors_is_no_list_of_two_arms(text, met):
    """Else `rm where='arm=a=1,b=2'` would remove arm a=1 of another study."""
    runs = [{"arm": "a=1,b=2", "name": "r1"}, {"arm": "a=1", "name": "a=1"}, {"arm": "a=2", "label": "One, two"}]
    assert meeting(runs, text) == met
