"""Which words of a run are its arm and seed, which of its values counts, and what is refused."""

import math
from types import SimpleNamespace

import pytest

import ablab
from ablab.errors import UserError
from ablab.judge.table_claims import TableExperiment
from ablab.judge.tool_runs import ToolRun, _corpora, _of_shots, results_of_runs, words_of_path

LEVEL = {"linear": 1.30, "cosine": 1.22, "constant": 1.45}
NOISE = {1: 0.013, 2: -0.021, 3: 0.002}


def loss(schedule, seed, step=4):
    return LEVEL[schedule] + 2 / step + NOISE[seed] * (1 + len(schedule) / 10)


def runs(*more, **shared):
    """Three arms and three seeds, as a tool might keep them."""
    return [
        ToolRun(
            where=f"run {schedule} {seed}",
            words={
                "schedule": schedule,
                "seed": str(seed),
                "out_dir": f"runs/{schedule}{seed}",
                "data_seed": f"1{seed}",
            },
            metrics=["val_loss"],
            points=lambda metric, schedule=schedule, seed=seed: [(s, loss(schedule, seed, s)) for s in (1, 2, 4)],
            **shared,
        )
        for schedule in LEVEL
        for seed in NOISE
    ] + list(more)


def asked(**said):
    return TableExperiment.model_validate({"metric": "val_loss", "better": "lower", **said})


def scores(results):
    return {
        arm: {seed: given and next(iter(given.scores.values())) for seed, given in of_arm.items()}
        for arm, of_arm in results.runs.items()
    }


def test_arms_are_the_words_that_differ_and_do_not_follow_from_the_run_or_the_seed():
    found = results_of_runs("mlruns", runs(), asked())
    assert scores(found) == {f"schedule={one}": {seed: loss(one, seed) for seed in NOISE} for one in LEVEL}
    assert "schedule tells arms apart, and seed is the seed" in found.notes[0]
    said = results_of_runs("mlruns", runs(), asked(arm=["schedule"], seed="data_seed"))
    assert (list(said.runs["schedule=linear"]), said.notes) == ([11, 12, 13], [])


@pytest.mark.parametrize(("at", "step"), [("last", 4), (2, 2), ("best", 4)])
def test_the_value_that_counts_can_be_said(at, step):
    found = results_of_runs("mlruns", runs(), asked(at=at))
    assert scores(found)["schedule=cosine"][1] == loss("cosine", 1, step)
    assert any("best of its values" in note for note in found.notes) == (at == "best")


def test_best_is_the_highest_where_higher_is_better_and_what_is_not_finite_diverged():
    values = {"a": [(1, 3.0), (2, math.inf), (3, 2.0)], "b": [(1, math.nan)]}
    found = [ToolRun(arm, {"arm": arm, "seed": "1"}, ["f1"], lambda _, arm=arm: values[arm]) for arm in values]
    best = results_of_runs("x", found, TableExperiment(metric="f1", at="best"))
    assert scores(best) == {"arm=a": {1: 3.0}, "arm=b": {1: None}}
    assert not best.unfinished


@pytest.mark.parametrize(("value", "is_score"), [(9.9e29, True), (1e30, False), (1.797e308, False), (-1e30, False)])
@pytest.mark.parametrize("at", ["last", "best", 1])
def test_what_no_table_may_hold_diverged(value, is_score, at):
    """MLflow's databases write infinity as the largest number."""
    run = ToolRun("a", {"arm": "a", "seed": "1"}, ["f1"], lambda _: [(1, value)])
    found = results_of_runs("x", [run], TableExperiment(metric="f1", at=at))
    assert scores(found) == {"all": {1: value if is_score else None}}


def test_runs_that_ended_at_different_steps_are_said_to_have():
    late = ToolRun("late", {"schedule": "linear", "seed": "9"}, ["val_loss"], lambda _: [(1, 2.0), (5, 1.0)])
    said = "the last values of val_loss are of different steps, 4 to 5; at: <step> says one"
    assert said in results_of_runs("mlruns", runs(late), asked(arm=["schedule"])).notes
    assert said not in results_of_runs("mlruns", runs(), asked(arm=["schedule"])).notes
    assert said not in results_of_runs("mlruns", runs(late), asked(arm=["schedule"], at=1)).notes


@pytest.mark.parametrize(("state", "is_open"), [("FINISHED", False), ("RUNNING", True), ("FAILED", True)])
def test_while_a_run_has_not_finished_there_is_no_verdict(monkeypatch, state, is_open):
    """Those that are left may be the ones that went well."""
    more = ToolRun("more", {"schedule": "linear", "seed": "9"}, ["val_loss"], lambda _: [(4, 1.8)], state=state)
    monkeypatch.setattr("ablab.judge.selection_of_table.tool_runs", lambda place: runs(more))
    judged = ablab.judge("mlruns", "val_loss", better="lower", baseline="schedule=cosine", arm=["schedule"])
    assert {one.outcome == "provisional" for one in judged.verdicts} == {is_open}


def test_a_step_is_asked_of_finished_runs_alone():
    """One that failed before it counts as failed; the values that it has decide nothing."""
    crashed = ToolRun(
        where="run linear 9",
        words={"schedule": "linear", "seed": "9"},
        metrics=["val_loss"],
        points=lambda _: [(1, 3.0)],
        state="FAILED",
    )
    found = results_of_runs("mlruns", runs(crashed), asked(arm=["schedule"], at=4))
    assert found.unfinished == {("schedule=linear", 9): "failed"}
    assert scores(found)["schedule=linear"][1] == pytest.approx(loss("linear", 1))


def test_a_word_that_is_no_seed_of_a_training_is_one_where_it_is_named():
    """Such as the seed of an evaluation: three of one model are no three runs."""
    every = [
        ToolRun(
            where=f"{schedule}{seed}",
            words={"schedule": schedule, "random_seed": str(seed)},
            metrics=["val_loss"],
            points=lambda _, schedule=schedule, seed=seed: [(0, loss(schedule, seed))],
            not_seeds=("random_seed",),
        )
        for schedule in LEVEL
        for seed in NOISE
    ]
    with pytest.raises(UserError, match="seed: missing, and no word is called seed"):
        results_of_runs("results", every, asked())
    assert len(results_of_runs("results", every, asked(seed="random_seed")).runs["schedule=linear"]) == 3


def test_a_run_that_failed_counts_only_where_no_other_finished():
    again = ToolRun("again", {"schedule": "linear", "seed": "1"}, [], lambda _: [], state="FAILED")
    alone = ToolRun("alone", {"schedule": "linear", "seed": "9"}, [], lambda _: [], state="KILLED")
    goes_on = ToolRun("goes on", {"schedule": "linear", "seed": "8"}, [], lambda _: [], state="RUNNING")
    found = results_of_runs("mlruns", runs(again, alone, goes_on), asked(arm=["schedule"]))
    assert scores(found)["schedule=linear"] == {**{seed: loss("linear", seed) for seed in NOISE}, 8: None, 9: None}
    assert found.unfinished == {("schedule=linear", 9): "failed", ("schedule=linear", 8): "running"}


TWICE = ToolRun("twin", {"schedule": "linear", "seed": "1"}, ["val_loss"], lambda _: [(1, 2.0)])
REFUSED = {
    "twice": (
        runs(TWICE),
        {"arm": ["schedule"]},
        "twin: schedule=linear, seed 1 is also run linear 1",
    ),
    "seed": (runs(), {"seed": "rng"}, "seed=rng: x: allowed: data_seed, out_dir, schedule, seed"),
    "arm": (runs(), {"arm": ["norm"]}, "arm=norm: x: allowed: data_seed, out_dir, schedule"),
    "metric": (runs(), {"metric": "loss"}, "metric=loss: x has none; allowed: val_loss; did you mean val_loss?"),
    "step": (runs(), {"at": 3}, "run linear 1: val_loss has no value at step 3; the nearest step is 2"),
    "where": (runs(), {"where": {"schedule": "cos"}}, "where.schedule=cos: x: allowed: constant, cosine, linear"),
    "nothing": ([], {}, "x: has no runs; allowed: a run for each arm and seed"),
    "no number": (
        [ToolRun("one", {"seed": "one", "arm": "a"}, ["val_loss"], lambda _: [(1, 1.0)])],
        {},
        "one: seed=one: allowed: whole numbers from 0",
    ),
    "no seed": (
        [ToolRun("one", {"arm": "a"}, ["val_loss"], lambda _: [(1, 1.0)])],
        {},
        "seed: missing, and no word is called seed in x; allowed: arm",
    ),
    "no score": (
        runs(ToolRun("bare", {"schedule": "new", "seed": "1"}, ["acc"], lambda _: [(1, 1.0)])),
        {},
        "bare: has no val_loss; allowed: acc",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_unclear_is_refused_in_a_line(name):
    found, said, why = REFUSED[name]
    with pytest.raises(UserError) as refused:
        results_of_runs("x", found, asked(**said))
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


def test_arms_that_no_word_tells_apart_are_asked_for():
    found = [
        ToolRun(str(seed), {"seed": str(seed), "out": f"r{seed}"}, ["f1"], lambda _: [(1, 1.0)]) for seed in (1, 2, 3)
    ]
    with pytest.raises(UserError, match="arm: missing, and no word of x tells arms apart for certain; allowed: out"):
        results_of_runs("x", found, TableExperiment())


PATHS = {
    "schedule=x,data_seed=0,init_seed=1": {"schedule": "x", "data_seed": "0", "init_seed": "1"},
    "train_seed=1/cosine": {"train_seed": "1", "folder": "cosine"},
    "data_seed=3/seed=2": {"seed": "2", "data_seed": "3"},
    "cosine/seed1": {"seed": "1", "folder": "cosine"},
    "cosine-seed_12": {"seed": "12", "folder": "cosine"},
    "schedule=cosine,lr=0.1,seed=3": {"seed": "3", "schedule": "cosine", "lr": "0.1"},
    "big/cosine/7": {"seed": "7", "folder": "big/cosine"},
    "seed1/cosine": {"seed": "1", "folder": "cosine"},
    "reseed1": {"folder": "reseed1"},
    "version_3": {"folder": "version_3"},
}


@pytest.mark.parametrize("path", PATHS)
def test_words_in_a_path(path):
    assert words_of_path(path.split("/")) == PATHS[path]


def of_tasks(**tasks):
    """A run with these tasks: of each its version, and the examples in prompts."""
    told = {f"{task}/acc": pair for task, pair in tasks.items()}
    return SimpleNamespace(
        metrics=dict.fromkeys(told),
        corpora={metric: f"{metric}, version {version}" for metric, (version, _) in told.items()},
        shots={metric: shots for metric, (_, shots) in told.items()},
        where="there",
    )


def test_a_metric_that_some_arm_lacks_is_of_one_version_too():
    """And of the prompts, those of each metric are compared, between the arms that have it."""
    metrics = ["a/acc", "b/acc"]
    same = {
        ("x", 1): of_tasks(a=(1, "0"), b=(2, "5")),
        ("y", 1): of_tasks(a=(1, "0"), b=(2, "5")),
        ("z", 1): of_tasks(a=(1, "0")),
    }
    assert set(_corpora(same, metrics).values()) == {"a/acc, version 1"}
    assert not [*_of_shots(same, metrics)]
    other = {**same, ("y", 1): of_tasks(a=(1, "0"), b=(3, "0"))}
    with pytest.raises(
        UserError, match="metric=b/acc: measured on b/acc, version 2; b/acc, version 3; allowed: runs of"
    ):
        _corpora(other, metrics)
    assert [*_of_shots(other, metrics)] == ["the examples in prompts of b/acc differ: 5 in x; 0 in y"]
