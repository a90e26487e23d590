"""Checks, tuning and searches of a command, by the names in its braces."""

import json
import re
from pathlib import Path

import pytest

from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.judge.prospects import known_noise
from ablab.search.stopping import Stopping, TrialHandle
from ablab.study.definition import define
from ablab.study.search import define_search
from ablab.sweep.search_sweep import _handle_of, open_trials
from ablab.tasks.task import ScoredValidation
from tests.tasks.commands import STUDY, TRAIN, words_of


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('\'{"scores": {"loss": 1}}\'', "another seed gives equal scores"),
        ("json.dumps({'scores': {'loss': int(seed)}})", "deterministic: with one seed, two runs have equal scores"),
        (
            "json.dumps({'scores': {'loss': 1, 'took': time.time()}})",
            "; another seed leaves loss as it is, of which copies are no evidence",
        ),
        (
            "json.dumps({'scores': {'loss': time.time()}})",
            "not deterministic: with one seed, two runs differ in loss by",
        ),
    ],
)
def test_the_law_of_seeds_is_checked_before_a_study(folder, capsys, script, said):
    words = words_of(f"open(out, 'w').write({script})")
    if "took" in script:
        words = [word.replace("}}", "}, took: {better: lower}}") for word in words]
    main(["study", *words, "task.environment={DEPTH: '1'}", "check=true"])
    assert said in capsys.readouterr().out
    assert not Path("outputs/runs").exists()


@pytest.mark.slow
def test_a_study_with_values_of_a_check_is_checked_before_its_first_run(folder, capsys):
    text = STUDY.replace('--seed, "{seed}"', '--seed, "{seed}{epochs}"') + "common: [epochs=5]\ncheck: {epochs: 1}\n"
    Path("experiments/lr.yaml").write_text(text.replace("[1, 2, 3]", "[1]").split("claims")[0] + text[-38:])
    Path("train.py").write_text(TRAIN.replace("{asked.seed}", "{asked.seed[1:]}"))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 1
    said = capsys.readouterr().out
    assert "fails  schedule=linear: another seed gives equal scores" in said
    assert "{seed}, which is in word 6 ({seed}{epochs})" in said
    assert not Path("outputs/runs").exists()
    Path("train.py").write_text(TRAIN)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert "works  schedule=linear: deterministic" in capsys.readouterr().out
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert "works" not in capsys.readouterr().out


@pytest.mark.slow
def test_check_tries_the_arms_of_an_experiment_and_says_what_a_margin_is_beside(folder, capsys):
    Path("train.py").write_text(TRAIN.replace("random.Random(f", "random.Random(str(__import__('time').time()) + f"))
    assert main(["check", "experiment=lr"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == ["works  schedule=linear", "works  schedule=cosine"]
    assert all("not deterministic: with one seed, two runs differ in val_loss by 0.0" in line for line in said)
    assert all(line.endswith("; the least margin claimed of val_loss is 0.01") for line in said)
    Path("train.py").write_text(TRAIN.replace("{asked.seed} ", ""))
    assert main(["check", "experiment=lr", "format=json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] is False
    assert "another seed gives equal scores" in told["laws"][1]["broken"]


def test_check_refuses_a_search_and_names_what_it_takes(folder, capsys):
    Path("bowl.py").write_text(BOWL)
    Path("experiments/bowl.yaml").write_text(SEARCH)
    assert main(["check", "experiment=bowl"]) == 2
    assert main(["check"]) == 2
    search, nothing = capsys.readouterr().err.splitlines()
    assert "a search has no arms to try out" in search
    assert "norm=scalenorm, or experiment=NAME" in nothing


@pytest.mark.slow
def test_it_is_tuned_and_searched_by_names_in_braces(folder):
    text = STUDY.replace('"{schedule}"', '"{schedule}", --rate, "{rate}"').replace("  ", " ")
    script = TRAIN.replace('("schedule", "seed", "out")', '("schedule", "rate", "seed", "out")').replace(
        "loss = 2.0", "loss = (float(asked.rate) - 0.2) ** 2 + 2.0"
    )
    Path("train.py").write_text(script)
    block = "common: [rate=0.1]\ntune: {key: rate, values: [0.1, 0.2], seeds: [11]}\n"
    Path("experiments/lr.yaml").write_text(text + block)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    tuned = [run for run in open_store("outputs").runs("rate=0.2") if run.seed != 11]
    assert {run.seed for run in tuned} == {1, 2, 3}
    before = {run.id for run in open_store("outputs").runs()}
    assert main(["train", "-m", "experiment=lr", "logger=none", "rerun=true"]) == 0
    assert {run.id for run in open_store("outputs").runs()} == before
    aside = [next(iter(re.findall("r[0-9a-f]{11}", path.name))) for path in Path("outputs/superseded").iterdir()]
    assert sorted(aside) == sorted(before), "those of tuning, too, and each once"


BOWL = """
import json, random, sys
rate, seed, out, progress = sys.argv[1:]
loss = (float(rate) - 0.3) ** 2 + random.Random(seed + rate).gauss(0, 0.001)
with open(progress, "a") as file:
    for step in (10, 20, 30, 40):
        print(json.dumps({"step": step, "err": loss + 1 / step}), file=file)
json.dump({"scores": {"err": loss}}, open(out, "w"))
"""
SEARCH = """
question: Does a search find a better rate?
command: [python, bowl.py, "{rate}", "{seed}", "{result}", "{progress}"]
inputs: [bowl.py]
scores: {err: {better: lower}}
common: [rate=0.9]
seeds: [1, 2, 3]
claims: [{arm: best, expect: less}]
search: {space: {rate: {low: 0.0, high: 1.0}}, trials: 5, training_seed: 11}
"""


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["", "objectives: [err], stopping: median, "])
def test_a_search_of_a_command_takes_its_own_score(folder, objective):
    Path("bowl.py").write_text(BOWL)
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("trials:", f"{objective}trials:"))
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 0
    assert main(["report", "experiment=bowl"]) == 0
    best = {run.record.config["task"]["values"]["rate"] for run in open_store("outputs").runs("seed=1")} - {0.9}
    (rate,) = best
    assert abs(rate - 0.3) < 0.6
    assert TrialHandle.read(Path("outputs/studies/bowl")).score == "err", "of each line of progress"
    (claim,) = json.loads(Path("outputs/reports/bowl/report.json").read_text())["claims"]
    assert claim["outcome"] == "supported"
    notes = json.loads(Path("outputs/reports/bowl/report.json").read_text())["notes"]
    assert not [note for note in notes if "more run" in note], "the winning trial is no run that was left out"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("worth: true", "worth: the arms of a search are usual and best"),
        ("labels: {bset: B}", "labels: bset: no level or arm"),
        (
            "claims: [{arm: best, expect: greater, metric: worth, margin: 1.2}]",
            "claims.metric=worth: the baseline of a",
        ),
    ],
)
def test_what_nothing_reads_beside_a_search_is_refused(folder, capsys, line, why):
    Path("bowl.py").write_text(BOWL)
    text = SEARCH if not line.startswith("claims") else SEARCH.replace("claims: [{arm: best, expect: less}]\n", "")
    Path("experiments/bowl.yaml").write_text(f"{text}{line}\n")
    assert main(["study", "experiment=bowl"]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_a_search_that_is_cut_short_and_one_of_another_space_say_what_is_so(folder, capsys):
    Path("bowl.py").write_text(BOWL.replace("json.dump(", "assert float(rate) <= 0.5\njson.dump("))
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("trials: 5", "trials: 40"))
    assert main(["train", "-m", "experiment=bowl", "logger=none", "fail_fast=true"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"\d+ trials left: the same line, typed again, goes on", said)
    assert "Next come" not in said
    Path("bowl.py").write_text(BOWL)
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("high: 1.0", "high: 0.9").replace("trials: 5", "trials: 2"))
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 0
    assert "This storage lacks" not in capsys.readouterr().out


TYPED = (
    *("task=command", "task.command=[python,bowl.py,'{rate}','{seed}','{result}','{progress}']", "logger=none"),
    *("task.scores={err: {better: lower}, other: {better: higher}}", "task.values.rate=interval(0.0, 1.0)"),
)


@pytest.mark.slow
def test_a_typed_search_of_a_command_takes_its_own_scores(folder, capsys):
    Path("bowl.py").write_text(BOWL.replace('{"err": loss}', '{"err": loss, "other": -loss}'))
    line = ["train", "-m", *TYPED, "hydra/sweeper=optuna", "hydra.sweeper.trials=2"]
    assert main([*line, "hydra.sweeper.objectives=[accuracy]"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "hydra.sweeper.objectives.0=accuracy: " in said
    assert "err" in said
    assert main(line) == 0
    assert "chosen on validation by err" in capsys.readouterr().out
    assert main([*line, "hydra.sweeper.objectives=[other]"]) == 0
    assert "chosen on validation by other" in capsys.readouterr().out


@pytest.mark.parametrize(("ends", "whole"), [("{low: 1, high: 8}", True), ("{low: 1.0, high: 8}", False)])
def test_a_range_of_a_command_is_whole_if_its_ends_are_written_so(folder, ends, whole):
    Path("bowl.py").write_text(BOWL)
    Path("experiments/bowl.yaml").write_text(re.sub(r"rate: \{[^}]*\}", f"rate: {ends}", SEARCH))
    found = define_search(("experiment=bowl",))
    assert [dimension.whole for dimension in found.space.dimensions] == [whole]


def test_an_objective_that_the_command_lacks_is_refused(folder, capsys):
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("trials:", "objectives: [acc], trials:"))
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 2
    assert "search.objectives.0=acc: " in (said := capsys.readouterr().err)
    assert "err" in said


@pytest.mark.parametrize("text", ["1.10", "1e-3", "true", "null", "cos,ine", "[x]", "plain", "a b", "'q'"])
def test_a_text_of_a_space_comes_to_the_command_as_it_is(folder, text):
    Path("bowl.py").write_text(BOWL)
    space = f"rate: [{json.dumps(text)}, other]"
    Path("experiments/bowl.yaml").write_text(re.sub(r"rate: \{[^}]*\}", lambda _: space, SEARCH))
    found = define_search(("experiment=bowl",))
    (rates,) = found.space.dimensions
    cell = found.cell(0, [f"{rates.key}={rates.values[0]}"])
    assert cell.planned.config.task.values["rate"] == text


@pytest.mark.parametrize(
    ("more", "key", "lacking"),
    [
        ("metric: test_bleu", "metric=test_bleu", "bleu"),
        ("metric: decoding_speed", "metric=decoding_speed", "memory"),
        ("tune: {key: schedule, values: [1, 2], seeds: [11], metric: bleu}", "tune.metric=bleu", "accuracy"),
        (
            "search: {space: {schedule: [a, b]}, trials: 3, objectives: [decoding_speed]}",
            "search.objectives.0=",
            "bleu",
        ),
    ],
)
def test_a_file_that_declares_scores_is_offered_no_others(folder, more, key, lacking, capsys):
    Path("experiments/lr.yaml").write_text(f"{STUDY}{more}\n")
    assert main(["study", "experiment=lr"]) == 2
    said = capsys.readouterr().err
    assert f"{key}" in said
    assert "val_loss" in said
    assert lacking not in said.partition("allowed")[2]


def test_the_noise_of_a_plan_is_that_of_the_same_program(folder):
    """Another one may call its score the same, and count it in milliseconds."""
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    own = known_noise(define(("experiment=lr", "seed=7,8")), ["val_loss"])
    assert (own["val_loss"].runs, own["val_loss"].origin) == (6, "like runs of the store")
    other = Path("experiments/other.yaml")
    other.write_text(STUDY.replace("--schedule,", "--schedule=slow, --schedule,"))
    assert known_noise(define(("experiment=other",)), ["val_loss"]) == {}
    other.write_text(STUDY)
    Path("train.py").write_text(TRAIN + "# edited\n")
    assert known_noise(define(("experiment=other",)), ["val_loss"]) == {}


def test_the_usual_setting_may_be_the_winner(folder, capsys):
    """Its claim is not testable then, since both arms are the same runs; and nothing stays unfinished."""
    Path("bowl.py").write_text(BOWL.replace("(float(rate) - 0.3)", "(float(rate) - 0.8)"))
    quick = SEARCH.replace("{low: 0.0, high: 1.0}", "[0.9, 0.1]")
    Path("experiments/bowl.yaml").write_text(quick.replace("trials: 5", "trials: 2, sampler: random, seed: 3"))
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 0
    assert "usual = best (baseline)" in capsys.readouterr().out
    assert main(["report", "experiment=bowl"]) == 0
    assert "Not testable; best and usual are the same runs." in capsys.readouterr().out


def test_more_trials_may_have_another_winner_which_is_said(folder, capsys):
    """A report counts the trials that were made, whatever the file asks for by then."""
    Path("bowl.py").write_text(BOWL)
    file = Path("experiments/bowl.yaml")
    line = ["train", "-m", "experiment=bowl", "logger=none"]
    for trials in (1, 6):
        file.write_text(SEARCH.replace("trials: 5", f"trials: {trials}, sampler: random, seed: 4"))
        assert main(line) == 0
    assert "differ from those of the first launch: its claims are exploratory by now" in capsys.readouterr().out
    file.write_text(SEARCH.replace("trials: 5", "trials: 2, sampler: random, seed: 4"))
    assert main([*line, "retry_failed=true"]) == 0
    said = capsys.readouterr().out
    assert "6 trials, for 2 that are asked for: 6 finished" in said
    assert "retry_failed: a search keeps its trials" in said
    assert main(["report", "experiment=bowl"]) == 0
    (text,) = Path("outputs/reports").glob("bowl*/report.md")
    assert "The arm best was chosen among 6 trials (random)" in text.read_text()


ACCURATE = """
import json, sys
rate, seed, out, progress = sys.argv[1:]
json.dump({"scores": {"acc": 1 - float(rate), "cells": 1.0}}, open(out, "w"))
"""


def test_of_equal_trials_the_one_with_the_better_first_score_is_the_best(folder, capsys):
    """Whichever way that is: an accuracy is named as a loss is."""
    Path("bowl.py").write_text(ACCURATE)
    text = SEARCH.replace("{err: {better: lower}}", "{acc: {better: higher}, cells: {better: lower}}")
    text = text.replace("claims: [{arm: best, expect: less}]\n", "").replace(
        "trials: 5", "objectives: [cells], trials: 4"
    )
    Path("experiments/bowl.yaml").write_text(text)
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 0
    rates = {run.values["task.values.rate"] for run in open_store("outputs").runs() if run.seed == 11}
    told = json.loads(Path("outputs/studies/bowl/search.json").read_text())
    assert told["best"]["words"] == [f"task.values.rate={min(map(float, rates)):g}"]
    Path("experiments/bowl.yaml").write_text(text.replace("[cells]", "[parameters]"))
    assert main(["train", "-m", "experiment=bowl", "logger=none"]) == 2
    assert "parameters: allowed: acc, cells" in capsys.readouterr().err


def test_what_was_given_up_is_left_alone_by_the_same_line(folder, capsys):
    """Were it tried again, all claims would become exploratory; retry_failed=true does so."""
    Path("train.py").write_text(TRAIN.replace("loss = 2.0", "assert asked.seed != '3'\nloss = 2.0"))
    line = ["train", "-m", "experiment=lr", "logger=none"]
    assert main(line) == 1
    assert main(["study", "experiment=lr", "close='it fails for good'"]) == 0
    capsys.readouterr()
    assert main(line) == 0
    said = capsys.readouterr().out
    assert "2 runs were given up on 2" in said
    assert "retry_failed" not in said
    assert main([*line, "retry_failed=true"]) == 1
    assert "Next: the same line with retry_failed=true" in capsys.readouterr().out
    for word in ("+rerun=true", "+retry_failed=true", "~rerun"):
        assert main([*line, word]) == 2


def with_five_finished():
    """Return the search of bowl.yaml, and its trials, five of which have told 1.0 after 100 steps."""
    search = define_search(("experiment=bowl", "logger=none"))
    assert search is not None
    trials = open_trials(search)
    search.folder.mkdir(parents=True, exist_ok=True)
    _handle_of(search).write(search.folder)
    for number in range(5):
        trials.ask()
        asked = Stopping(f"{search.folder}:{number}")
        assert asked([ScoredValidation(step, {"err": 1.0}) for step in range(10, 101, 10)], None) is None
        trials.tell(number, "finished", [1.0], steps=100, total_steps=100)
    return search, trials


@pytest.mark.parametrize("told", ["progress", "curve"])
def test_a_program_that_has_ended_is_not_stopped_early(folder, told):
    """The search learns of it at the end alone, and its result may be the best."""
    curve = [{"step": step, "err": 9.0} for step in (40, 50)]
    lines = "".join(f"{json.dumps(point)}\n" for point in curve)
    written = {"scores": {"err": 0.01}, **({"curve": curve} if told == "curve" else {})}
    text = f"import sys\nopen(sys.argv[4], 'w').write({lines if told == 'progress' else ''!r})\n"
    Path("bowl.py").write_text(f"{text}open(sys.argv[3], 'w').write({json.dumps(written)!r})\n")
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("trials:", "stopping: median, trials:"))
    search, trials = with_five_finished()
    poor = trials.ask()
    assert main(["train", *search.words(poor.number, poor.words)]) == 0
    (run,) = open_store("outputs").runs()
    assert [row["err"] for row in run.record.validations] == [9.0, 9.0, 0.01]


def test_no_trial_of_a_program_is_stopped_before_a_third_of_what_others_took(folder):
    """Nor at its end. The program alone knows how long it goes on."""
    Path("bowl.py").write_text(BOWL)
    Path("experiments/bowl.yaml").write_text(SEARCH.replace("trials:", "stopping: median, trials:"))
    search, trials = with_five_finished()
    assert [trials.ask().number for _ in range(2)] == [5, 6]
    poor = Stopping(f"{search.folder}:5")
    assert poor([ScoredValidation(10, {"err": 9.0})], None) is None
    assert poor([ScoredValidation(30, {"err": 9.0})], None) is None
    assert poor([ScoredValidation(40, {"err": 9.0})], None) == "stopped by the search (median) at step 40"
    assert Stopping(f"{search.folder}:6")([ScoredValidation(100, {"err": 9.0})], None) is None
