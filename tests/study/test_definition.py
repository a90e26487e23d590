"""From words or a file to runs: every one composed, equal ones once, seeds shared by all arms."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.study.definition import define
from ablab.tasks.plan import plan
from tests.study.conftest import STUDY
from tests.study.pretend import pretend


def test_a_sweep_is_arms_by_seeds(tmp_path):
    study = define(("norm=pre,post", "seed=1,2,3", "layerdrop=0.2", f"outputs={tmp_path}"))
    assert [arm.name for arm in study.arms] == ["norm=pre", "norm=post"]
    assert study.seeds == [1, 2, 3]
    assert len(study.runs) == len(study.cells) == 6
    for cell in study.cells:
        assert cell.planned.run_id == plan(compose(cell.words)).run_id
        assert cell.planned.config.layerdrop == 0.2
        assert cell.planned.config.seed == cell.seed


def test_a_seed_that_words_refer_to_is_followed():
    study = define(("data.corpus_seed=${seed}", "seed=1,2"))
    assert [cell.planned.config.data.corpus_seed for cell in study.cells] == [1, 2]


def test_so_is_one_that_an_option_refers_to(tmp_path, monkeypatch):
    (tmp_path / "conf" / "data").mkdir(parents=True)
    (tmp_path / "conf" / "data" / "drawn.yaml").write_text("defaults: [numbers]\ncorpus_seed: ${seed}\n")
    monkeypatch.chdir(tmp_path)
    study = define(("data=drawn", "seed=1,2"))
    assert [cell.planned.config.data.corpus_seed for cell in study.cells] == [1, 2]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("norm=choice(pre,post)", ["pre", "post"]),
        ("layerdrop=range(0,0.3,0.1)", ["0.0", "0.1", "0.2"]),
        ("norm=glob(scale*)", ["scalenorm", "scalenorm_fixnorm"]),
        ("model.d_ff=sort(64,32)", ["32", "64"]),
    ],
)
def test_the_whole_grammar_of_sweeps_serves(word, values):
    key = word.partition("=")[0]
    assert [arm.name for arm in define((word,)).arms] == [f"{key}={value}" for value in values]


def test_judging_a_run_in_two_ways_is_two_things_to_do():
    study = define(("decoding=beam,greedy", "seed=1,2"))
    assert len(study.runs) == 4
    assert len({cell.planned.run_id for cell in study.cells}) == 2


def test_the_order_of_typing_names_no_study():
    one, other = define(("norm=pre,post", "seed=1,2")), define(("seed=2,1", "norm=post,pre"))
    assert one.name == other.name != define(("norm=pre,post", "seed=1,3")).name


def test_how_a_sweep_goes_names_nothing():
    assert define(("norm=pre,post", "retry_failed=true", "rerun=stale")).name == define(("norm=pre,post",)).name
    assert not any("re" in word for cell in define(("seed=1,2", "rerun=true")).cells for word in cell.words)


def test_a_file_declares_a_study(place):
    study = define(("experiment=help",))
    assert study.name == "help"
    assert [arm.name for arm in study.arms] == [
        "norm=pre,layerdrop=0",
        "norm=scalenorm,layerdrop=0",
        "norm=pre,layerdrop=0.2",
    ]
    assert study.baseline == "norm=pre,layerdrop=0"
    assert len(study.runs) == 6
    assert all(cell.planned.config.model.d_model == 16 for cell in study.cells)


def test_the_line_adds_to_the_file(place):
    study = define(("experiment=help", "training.max_steps=9", "seed=1,2,3"))
    assert study.seeds == [1, 2, 3]
    assert all(cell.planned.config.training.max_steps == 9 for cell in study.cells)


def test_an_arm_or_a_seed_added_later_leaves_the_other_runs_alone(place):
    before = set(define(("experiment=help",)).runs)
    (place / "experiments" / "more.yaml").write_text(
        STUDY.replace("[0, 0.2]", "[0, 0.2, 0.5]").replace("[1, 2]", "[1, 2, 3]")
    )
    after = set(define(("experiment=more",)).runs)
    assert before < after


def test_one_arm_with_twice_the_seeds_is_a_study_of_noise(place):
    (place / "experiments" / "noise.yaml").write_text(
        "question: How large is noise?\ndesign: arms\narms: {a: []}\nseeds: [1, 2, 3, 4]\n"
    )
    assert len(define(("experiment=noise",)).runs) == 4


TUNED = STUDY + "tune: {values: [0.001, 0.01], seeds: [101, 102]}\n"


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_every_arm_gets_the_value_that_is_best_for_it_on_validation(metric, place):
    (place / "experiments" / "tuned.yaml").write_text(TUNED.replace("values", f"metric: {metric}, values"))
    trials = define(("experiment=tuned",))
    assert trials.is_tuning
    assert trials.name == "tuned-tuning"
    assert len(trials.runs) == 3 * 2 * 2
    assert {cell.seed for cell in trials.cells} == {101, 102}
    for cell in trials.cells:
        slow = cell.planned.config.optim.lr == 0.001
        is_post = cell.planned.config.layerdrop == 0.2
        pretend(cell, 2.0 if slow == is_post else 3.0, "diverged" if slow and "scalenorm" in cell.arm else "finished")
    study = define(("experiment=tuned",))
    assert not study.is_tuning
    best = {"norm=pre,layerdrop=0": 0.01, "norm=scalenorm,layerdrop=0": 0.01, "norm=pre,layerdrop=0.2": 0.001}
    usual = define(("experiment=help",)).cells[0].planned.config.optim.lr
    rates = {cell.arm: cell.planned.config.optim.lr for cell in study.cells}
    assert rates == dict.fromkeys(best, usual) | {f"{arm}, tuned": rate for arm, rate in best.items()}
    assert study.seeds == [1, 2]
    assert not set(study.runs) & set(trials.runs)


def test_an_arm_that_no_value_trains_is_said(place):
    (place / "experiments" / "tuned.yaml").write_text(TUNED)
    for cell in define(("experiment=tuned",)).cells:
        pretend(cell, 2.0, "diverged")
    with pytest.raises(UserError, match=r"norm=pre,layerdrop=0 diverges with each of optim.lr=0.001; optim.lr=0.01"):
        define(("experiment=tuned",))


def test_a_single_run_says_how_to_sweep(capsys):
    assert main(["train", "experiment=norms"]) == 2
    assert "ablab train -m experiment=norms" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "sets"),
    [
        ("[test_2016_flickr,test_2017_flickr]", [["test_2016_flickr", "test_2017_flickr"]]),
        ("test_2016_flickr,test_2017_flickr", ["test_2016_flickr", "test_2017_flickr"]),
        (
            "[test_2016_flickr,test_2017_flickr],test_2016_flickr",
            [["test_2016_flickr", "test_2017_flickr"], "test_2016_flickr"],
        ),
    ],
)
def test_brackets_make_test_sets_one_value(value, sets, tmp_path):
    """Without them a sweep evaluates the same run on each."""
    study = define(("data=multi30k", f"data.test={value}", "seed=1,2", "logger=none", f"outputs={tmp_path}"))
    assert [cell.planned.config.data.test for cell in study.cells if cell.planned.config.seed == 1] == sets
    assert len({cell.planned.run_id for cell in study.cells}) == 2
    assert len({cell.planned.evaluation_id for cell in study.cells}) == len(sets)
