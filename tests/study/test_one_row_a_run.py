"""No table shows one run twice, and no arm is trained for a setting that does nothing."""

import re

import pytest
import yaml

from ablab.errors import UserError
from ablab.study.definition import define
from ablab.study.study import same_runs


def declared(tmp_path, monkeypatch, **content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir(exist_ok=True)
    text = yaml.safe_dump({"question": "?", "seeds": [1, 2], **content}, sort_keys=False)
    (tmp_path / "experiments" / "x.yaml").write_text(text)
    return define(("experiment=x",))


def test_a_key_that_no_arm_reads_is_refused():
    with pytest.raises(UserError, match=r"^drophead.p=0 has no effect with drophead=none; .* none of the 3 arms"):
        define(("drophead.p=0,0.1,0.3",))


def test_a_key_that_some_arms_read_is_fine_and_arms_that_coincide_are_one():
    study = define(("drophead=none,vshape", "drophead.p=0.1,0.2", "seed=1,2"))
    assert [arm.name for arm in study.arms] == [
        "drophead=none,drophead.p=0.1 = drophead=none,drophead.p=0.2",
        "drophead=vshape,drophead.p=0.1",
        "drophead=vshape,drophead.p=0.2",
    ]
    assert len(study.cells) == len(study.runs) == 6
    assert study.baseline == study.arms[0].name


def test_the_words_of_a_run_are_those_that_it_can_be_typed_with():
    study = define(("drophead=none,vshape", "drophead.p=0.1,0.2", "seed=1"))
    assert study.cells[0].words == ("drophead=none", "seed=1")


def test_a_part_that_does_nothing_is_the_plain_arm():
    study = define(("layerdrop=0,0.2", "layerdrop_rates=uniform,linear"))
    assert len(study.arms) == 3


def test_a_value_that_comes_twice_is_refused():
    with pytest.raises(UserError, match="norm=pre comes twice"):
        define(("norm=pre,post,pre",))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("norm=pre,post", "norm=scalenorm"),
            "norm=scalenorm: norm=pre,post is there already; allowed: one of the two",
        ),
        (("layerdrop=0.1", "layerdrop=0,0.2"), "layerdrop=0,0.2: layerdrop=0.1 is there already"),
        (("optim.schedule=noam,cosine", "schedule=wsd"), "schedule=wsd: optim.schedule=noam,cosine is there already"),
        (("experiment=norms", "experiment=layerdrop"), "experiment=layerdrop: experiment=norms is there already"),
    ],
)
def test_a_key_that_varies_is_typed_once(words, told):
    """The last word would decide the runs, and the first would name their arms."""
    with pytest.raises(UserError, match=f"^{re.escape(told)}"):
        define(words)


def test_of_words_that_do_not_vary_the_last_one_counts():
    words = ("norm=pre,post", "layerdrop=0.1", "layerdrop=0.2")
    assert all(cell.planned.config.layerdrop_encoder == 0.2 for cell in define(words).cells)


def test_a_claim_between_arms_that_are_one_is_refused(tmp_path, monkeypatch):
    factors = {"rate": {"off": ["drophead=constant", "drophead.p=0"], "none": [], "on": ["drophead=constant"]}}
    claim = {"arm": "rate=none", "baseline": "rate=off", "expect": "equal", "margin": 0.5}
    with pytest.raises(UserError, match="same effect as those of rate=off"):
        declared(tmp_path, monkeypatch, factors=factors, claims=[claim])


def test_a_claim_of_an_arm_that_is_one_with_another_is_about_both(tmp_path, monkeypatch):
    factors = {"rate": {"off": ["drophead=constant", "drophead.p=0"], "none": [], "on": ["drophead=constant"]}}
    claim = {"arm": "rate=on", "baseline": "rate=none", "expect": "greater"}
    study = declared(tmp_path, monkeypatch, factors=factors, claims=[claim])
    assert study.claims[0].baseline == "rate=off = rate=none" == study.baseline


def test_arms_that_differ_by_pruning_alone_are_one_row_of_whole_models(tmp_path, monkeypatch):
    arms = {"plain": [], "searched": ["pruning=search"], "other": ["norm=post"]}
    study = declared(tmp_path, monkeypatch, design="arms", arms=arms)
    assert [arm.name for arm in study.arms] == ["plain", "searched", "other"]
    assert study.rows == {"plain": "plain = searched", "searched": "plain = searched", "other": "other"}


PRUNED = {"arm": "searched", "baseline": "plain", "expect": "greater", "metric": "pruned_bleu", "layers": 2}
WHOLE = {"arm": "searched", "baseline": "plain", "expect": "greater"}


@pytest.mark.parametrize(("claim", "refused"), [(PRUNED, False), (WHOLE, True)])
def test_such_arms_can_be_claimed_to_differ_once_pruned_and_not_before(claim, refused, tmp_path, monkeypatch):
    arms = {"plain": [], "searched": ["pruning=search"]}
    content = {"design": "arms", "arms": arms, "claims": [claim]}
    if refused:
        with pytest.raises(UserError, match="same effect"):
            declared(tmp_path, monkeypatch, **content)
    else:
        assert declared(tmp_path, monkeypatch, **content).claims


def test_arms_are_one_as_far_as_their_seeds_go():
    """Where seeds are added, arms that differ by pruning alone may have different numbers of them."""
    found = same_runs(
        {
            "plain": {1: "a", 2: "b"},
            "pruned": {1: "a", 2: "b", 3: "c"},
            "again": {3: "c"},
            "other": {1: "a", 2: "x"},
            "unknown": {},
            "too": {},
        }
    )
    assert found["plain"] == found["pruned"] == found["again"]
    assert len({found[name] for name in ("plain", "other", "unknown", "too")}) == 4


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"factors": {"norm": ["pre", "post"], "outputs": ["a", "b"]}}, "outputs is runtime: it names no run"),
        ({"factors": {"trainer.threads": [1, 2]}}, "trainer.threads is runtime"),
        ({"factors": {"place": {"here": [], "there": ["logger=none"]}}}, "logger is runtime"),
        ({"design": "arms", "arms": {"a": ["norm=pre"], "b": ["norm=pre", "trainer=ddp"]}}, "trainer is runtime"),
        ({"factors": {"decoding.beam_size": [1, 4]}, "metric": "valid_loss"}, "which valid_loss cannot see"),
    ],
)
def test_arms_that_differ_by_nothing_that_is_compared_are_refused(tmp_path, monkeypatch, content, why):
    with pytest.raises(UserError, match=f" are the same runs: .*{why}"):
        declared(tmp_path, monkeypatch, **content)


@pytest.mark.parametrize("words", ["outputs=a,b", "trainer=cpu,ddp", "logger.name=a,b"])
def test_so_they_are_on_the_line(words):
    with pytest.raises(UserError, match=r"are the same runs: .* is runtime: it names no run"):
        define((words,))


JUDGED = [{"arm": "4", "expect": "less", "metric": "test_bleu"}]
"""A claim that sees how runs are decoded."""


@pytest.mark.parametrize(
    "content",
    [
        {"factors": {"decoding.beam_size": [1, 4]}},
        {"factors": {"pruning": ["none", "every_other"]}, "metric": "valid_loss"},
        {"factors": {"decoding.beam_size": [1, 4]}, "metric": "valid_loss", "claims": JUDGED},
        {"design": "arms", "arms": {"a": ["norm=pre"], "b": ["norm=post", "trainer.threads=2"]}},
    ],
)
def test_arms_that_differ_by_what_is_compared_are_arms(tmp_path, monkeypatch, content):
    assert len(declared(tmp_path, monkeypatch, **content).arms) == 2


def test_one_study_has_one_store(tmp_path, monkeypatch):
    arms = {"a": ["norm=pre", "outputs=oa"], "b": ["norm=post", "outputs=ob"]}
    with pytest.raises(UserError, match="outputs: the arms lie in oa and ob; allowed: one store for all arms"):
        declared(tmp_path, monkeypatch, design="arms", arms=arms)


def test_a_claim_about_validation_sees_no_test_set(tmp_path, monkeypatch):
    claims = [{"arm": "4", "expect": "less", "metric": "valid_loss"}]
    with pytest.raises(UserError, match=r"same effect as those of decoding\.beam_size=1"):
        declared(tmp_path, monkeypatch, factors={"decoding.beam_size": [1, 4]}, claims=claims)
