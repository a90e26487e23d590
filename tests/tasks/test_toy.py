"""The platform knows no translation: a task from outside trains, sweeps, is tuned, judged, reported, packed, verified.

The class and its YAML file lie in the user's folder; nothing of ablab names them.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.config import Config
from ablab.errors import UserError
from ablab.store.run_folder import RunFolder
from ablab.tasks.identity import run_id
from ablab.tasks.registry import fault_of
from ablab.tasks.score import Score
from tests.tasks import toy

RATES = """
question: Does a higher rate fit better?
common: [task=toy]
factors: {task.rate: [0.3, 0.6]}
seeds: [1, 2, 3, 4, 5]
claims:
- {arm: task.rate=0.6, expect: not_worse, margin: 0.05}
- {arm: task.rate=0.6, expect: equal, metric: test_near, margin: 5}
- {arm: task.rate=0.6, expect: less, metric: failures}
"""
TUNED = """
question: Do more steps help where each number of them has its best rate?
common: [task=toy]
factors: {task.steps: [60, 120]}
tune: {key: task.rate, values: [0.2, 0.4], seeds: [11], metric: error, judged: tuned}
seeds: [1, 2]
"""
IDLE = """
from toy_task import Toy

class Idle(Toy):
    name = "idle"

    def __init__(self, steps: int = 0):
        self.rate, self.steps = 0.3, steps
"""
QUIET = ("logger=none",)


def with_line(line):
    """The toy task with a line more in its constructor."""
    source, own = Path(toy.__file__).read_text(), "        self.rate, self.steps = rate, steps\n"
    assert own in source
    return source.replace(own, f"{own}        {line}\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder: the class, the option and two experiments. Python knows one module of a name."""
    path, before = tmp_path_factory.mktemp("toy"), os.getcwd()
    shutil.copyfile(Path(__file__).with_name("toy.py"), path / "toy_task.py")
    for name, text in (
        ("conf/task/toy.yaml", "_target_: toy_task.Toy\n"),
        ("conf/task/idle.yaml", "_target_: idle_task.Idle\n"),
        ("conf/task/hides.yaml", "_target_: hides_task.Toy\n"),
        ("conf/task/raises.yaml", "_target_: raises_task.Toy\n"),
        ("hides_task.py", with_line("self.memory = rate")),
        ("raises_task.py", with_line("raise ValueError('low above high')")),
        ("idle_task.py", IDLE),
        ("experiments/rates.yaml", RATES),
        ("experiments/tuned.yaml", TUNED),
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    os.chdir(path)
    yield path
    os.chdir(before)


@pytest.fixture(scope="module")
def swept(folder):
    assert main(["train", "-m", "experiment=rates", *QUIET]) == 0
    return folder


def test_it_trains_and_says_its_scores(folder, capsys):
    assert main(["train", "task=toy", *QUIET]) == 0
    said = capsys.readouterr().out
    assert "\ntest error  0." in said
    assert "\nvalidation error 0." in said, "a long title stands apart from its value"
    (run,) = open_store("outputs").runs("state=finished task.rate=0.3")
    assert (run.name, set(run.scores)) == ("task=toy,s1", {"test_error", "test_near", "valid_error"})
    assert [row["step"] for row in run.training_curve()] == list(range(5, 65, 5))
    assert main(["train", "task=toy", *QUIET]) == 0
    assert "nothing is trained again" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["task=toy", "norm=post"], "norm=post has no effect with task=toy; allowed with task=translation"),
        (["task=toy", "data.train_size=9"], "data.train_size=9 has no effect with task=toy"),
        (["task=toy", "task.rate=-1"], "task.rate=-1: allowed: greater than 0"),
        (["task.rate=1"], "task.rate=1 has no effect with task=translation; allowed with task=hides, raises, toy"),
        (["task=tow"], "task=tow"),
    ],
)
def test_what_it_does_not_read_is_refused_in_a_line(folder, capsys, words, why):
    assert main(["train", *words, *QUIET]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("words", [["sort=-test_error"], ["columns=id,task.rate"]])
def test_a_list_of_no_runs_says_so_whatever_its_columns(swept, capsys, words):
    assert main(["ls", "where=seed=99", *words]) == 0
    assert capsys.readouterr().out.startswith("no runs")


def test_a_record_has_the_settings_that_it_reads_and_no_others(swept):
    """And so has what --cfg job prints, from which an experiment file is made."""
    (path, *_) = Path("outputs/runs").glob("*/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert set(record["config"]) == set(Config.model_fields)
    assert set(record["choices"]) == {"task", "trainer", "logger"}


def test_an_evaluation_names_the_components_of_its_code(swept):
    """By these, arms whose recipes differ are seen to share their code."""
    for path in Path("outputs/runs").glob("*/record.json"):
        (evaluation,) = path.parent.glob("evaluations/*.json")
        known = json.loads(path.read_text(encoding="utf-8"))["provenance"]["components"]["evaluation"]
        assert json.loads(evaluation.read_text(encoding="utf-8"))["components"] == known != {}


def test_what_the_command_line_prints_of_it_has_no_other_fields(folder, capsys):
    assert main(["train", "task=toy", "--cfg", "job"]) == 0
    assert set(yaml.safe_load(capsys.readouterr().out)) == set(Config.model_fields)
    assert main(["train", "task=toy", "smoke=true", "--cfg", "job", "--resolve"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["outputs"] == "outputs/smoke"


def test_check_tries_it_out_and_keeps_no_run(folder, capsys):
    assert main(["check", "task=toy", "outputs=checked"]) == 0
    assert "works  one arm" in capsys.readouterr().out
    assert not Path("checked/runs").exists()


@pytest.mark.parametrize("verb", ["prune", "translate", "analyse", "export"])
def test_verbs_of_translation_refuse_its_runs_in_a_line(swept, capsys, verb):
    run = open_store("outputs").runs("state=finished")[0]
    assert main([verb, f"run={run.id}"]) == 2
    assert "allowed: runs of task=translation" in capsys.readouterr().err


def test_the_api_translates_only_runs_of_translation(swept):
    run = open_store("outputs").runs("state=finished")[0]
    with pytest.raises(UserError, match=r"is a run of task=toy_task\.Toy; allowed: runs of task=translation$"):
        run.translate(["a"])


@pytest.mark.parametrize("rank", ["0", "1"])
def test_as_one_of_several_processes_it_is_refused_in_a_line(folder, capsys, monkeypatch, rank):
    for name, value in {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: None)  # the test keeps its own
    assert main(["train", "task=toy", *QUIET]) == 2
    assert capsys.readouterr().err == "error: torchrun: a run of task=toy is one process; allowed: without torchrun\n"


def test_a_killed_run_goes_on_to_the_same_bits(folder):
    words = ["task=toy", "task.steps=400", *QUIET]
    command = [sys.executable, "-m", "ablab", "train", *words, "outputs=killed"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    state = None
    for _ in range(3000):
        time.sleep(0.01)
        state = next(Path(folder, "killed").glob("runs/*/checkpoints/state.json"), None)
        if state is not None:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert state is not None
    assert not (state.parents[1] / "record.json").exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    assert main(["train", *words, "outputs=whole"]) == 0
    (resumed,), (whole,) = (open_store(store).runs() for store in ("killed", "whole"))
    assert resumed.record.validations == whole.record.validations
    assert resumed.evaluation.scores == whole.evaluation.scores


def test_a_sweep_trains_what_is_missing(swept, capsys):
    (lost,) = open_store("outputs").runs("task.rate=0.6 seed=2")
    shutil.rmtree(lost.path)
    assert main(["train", "-m", "experiment=rates", *QUIET]) == 0
    said = capsys.readouterr().out
    assert "[10/10] task.rate=0.6, seed 2: finished" in said
    (table,) = Path("outputs/studies/rates").glob("arms.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["seeds"] for row in rows] == ["5", "5"]
    assert {"test_error", "test_error_sd", "test_near"} < set(rows[0])


def test_claims_are_judged_and_reported_in_every_format(swept, capsys):
    assert main(["report", "experiment=rates", "resamples=1000", *QUIET]) == 0
    said = capsys.readouterr().out
    assert "near points" in said
    report = Path("outputs/reports/rates")
    data = json.loads((report / "report.json").read_text())
    outcomes = {claim["metric"]: claim["outcome"] for claim in data["claims"]}
    assert set(outcomes) == {"test_error", "test_near", "failures"}
    assert outcomes["test_error"] == "supported"
    assert [arm["scores"].keys() for arm in data["arms"]] == [{"test_near", "valid_error"}] * 2
    assert all(line["crossed"] is None for line in data["differences"])
    names = {path.name for path in report.iterdir()}
    assert {"report.html", "report.md", "report.tex", "claims.csv", "arms.csv", "forest.png", "valid_error.png"} < names
    page = (report / "report.html").read_text()
    assert "BLEU" not in page
    assert "test, 200 items" in page
    assert "tokens" not in (report / "report.md").read_text()


@pytest.mark.slow
def test_it_is_tuned(folder):
    assert main(["train", "-m", "experiment=tuned", *QUIET]) == 0
    assert main(["report", "experiment=tuned", "resamples=1000", *QUIET]) == 0
    (tuned,) = (json.loads(Path("outputs/reports/tuned/report.json").read_text())["tuning"][:1],)
    assert tuned[0]["metric"] == "validation error"


def test_one_that_diverges_is_a_result(folder, capsys):
    assert main(["train", "task=toy", "task.rate=50", *QUIET]) == 0
    assert "diverged" in capsys.readouterr().out
    (run,) = open_store("outputs").runs("state=diverged")
    assert "above 1,000,000" in run.record.reason


def test_runs_of_several_tasks_are_not_compared(swept, capsys):
    (run,) = open_store("outputs").runs("task.rate=0.3 seed=1")
    record = json.loads((run.path / "record.json").read_text())
    recipe = {**run.folder.recipe(), "seed": 99}
    other = run.path.with_name(run_id(recipe))
    shutil.copytree(run.path, other)
    RunFolder(other).begin(recipe)
    record["config"]["task"] = {"kind": "translation"}
    record["choices"]["task"] = "translation"
    (other / "record.json").write_text(json.dumps({**record, "run_id": other.name}))
    try:
        assert main(["report", f"runs={run.id},{other.name}"]) == 2
        assert main(["report", "where=state=finished"]) == 2
        told = capsys.readouterr().err.splitlines()
        said = [line.partition(": these are runs of ")[2].partition("; allowed: ") for line in told]
        assert said[0][0] == "task=toy and task=translation"
        assert sorted(said[1][0].split(" and ")) == ["task=toy", "task=translation"], "in the order of their ids"
        assert {allowed for _, _, allowed in said} == {"runs of one task"}
        assert main(["train", "-m", "task=toy,translation", *QUIET]) == 2
        assert "the arms are runs of task=toy and task=translation; allowed: one task" in capsys.readouterr().err
    finally:
        shutil.rmtree(other)


def test_every_arm_is_tried_out_and_nothing_of_it_kept(folder, capsys):
    words = ["task=toy", "task.rate=0.1,0.2", "outputs=tried"]
    assert main(["study", *words, "check=true"]) == 0
    said = capsys.readouterr().out
    assert [line.split(",")[0].split(":")[0] for line in said.splitlines() if "s a step" in line] == [
        "works  task.rate=0.1",
        "works  task.rate=0.2",
    ]
    assert "About " in said  # as the number of steps is known
    (tried,) = Path("tried/studies").glob("*/tried.json")
    assert [(one["parameters"], one["total_steps"]) for one in json.loads(tried.read_text()).values()] == [
        (None, 60)
    ] * 2
    assert not Path("tried/runs").exists()


SEARCH = """
question: Which rate?
common: [task=toy, task.steps=40]
seeds: [1, 2]
search: {trials: 12, sampler: random, stopping: median, objectives: [valid_error], training_seed: 9,
         space: {task.rate: {low: 0.001, high: 0.5, log: true}}}
"""


def test_help_of_a_task_of_ones_own_lists_what_it_reads(folder, capsys):
    assert main(["train", "task=toy", "--help"]) == 0
    page = capsys.readouterr().out
    assert "task:" in page
    assert "rate:" in page
    assert not any(f"\n{other}" in page for other in ("layerdrop:", "norm:", "optim:", "training:", "data:"))


def test_an_arm_of_no_steps_is_tried_out_without_a_time(folder, capsys):
    assert main(["study", "task=idle", "task.steps=0,5", "outputs=idle", "check=true"]) == 0
    works = [line for line in capsys.readouterr().out.splitlines() if line.startswith("works")]
    assert works[0] == "works  task.steps=0: no step to time"
    assert works[1].startswith("works  task.steps=5: ")


@pytest.mark.slow
def test_a_search_stops_its_poor_trials_and_alone_they_go_on(folder, capsys):
    (folder / "experiments" / "search_rate.yaml").write_text(SEARCH)
    assert main(["train", "-m", "experiment=search_rate", "outputs=searched", *QUIET]) == 0
    assert "trials stopped early" in capsys.readouterr().out
    (table,) = Path("searched/studies/search_rate").glob("trials.csv")
    stopped = [row for row in csv.DictReader(table.read_text().splitlines()) if row["outcome"] == "stopped"]
    assert stopped
    assert all(40 / 3 <= int(row["steps"]) < 40 == int(row["total_steps"]) for row in stopped)
    poor = stopped[0]
    assert not Path("searched/runs", poor["run_id"], "record.json").exists()
    words = ["task=toy", "task.steps=40", f"task.rate={poor['task.rate']}", "seed=9", "outputs=searched"]
    assert main(["train", *words, *QUIET]) == 0
    assert f"{poor['run_id']} continues from step {poor['steps']}" in capsys.readouterr().out


def test_a_score_of_another_task_is_no_objective(folder, capsys):
    line = ["hydra/sweeper=optuna", "task=toy", "task.rate=interval(0.1,0.2)"]
    assert main(["train", "-m", *line, *QUIET]) == 2
    told = "hydra.sweeper.objectives=[valid_loss]: task=toy has no such score; allowed: parameters, valid_error"
    assert told in capsys.readouterr().err


DRAFT = """
import numpy as np
from toy_task import Tested, Toy

class Lacking(Toy.__bases__[0]):
    name = "lacking"

    def train_on(self, loop):
        pass

class Misnamed(Toy):
    listed = ("test_err",)

class Plain:
    pass

class NotANumber(Toy):
    def train_on(self, loop):
        loop.validate(1, {"error": float("nan")}, 0.0)

class Undeclared(Toy):
    def train_on(self, loop):
        loop.validate(1, {"eror": 1.0}, 0.0)

class Untested(Toy):
    def test(self, state, seed):
        return Tested({"error": 1.0})

class Twice(Toy):
    def train_on(self, loop):
        super().train_on(loop)
        loop.validate(self.steps, {"error": 0.1}, 0.0)

class Silent(Toy):
    def test(self, state, seed):
        return None

class InWords(Toy):
    def test(self, state, seed):
        return Tested({"error": "3", "near": 1.0})

class OfNumPy(Toy):
    def train_on(self, loop):
        loop.validate(np.int64(1), {"error": np.float32(0.5)}, 0.25, np.int64(1))

    def test(self, state, seed):
        return Tested({"error": np.float32(0.5), "near": np.int64(1)})

class StateOfNumPy(Toy):
    def train_on(self, loop):
        loop.validate(1, {"error": 0.5}, {"slope": np.float32(0.25)})

class Leaving(Toy):
    def train_on(self, loop):
        raise SystemExit(0)

class ByStep(Toy):
    def train_on(self, loop):
        loop.validate(1, {"error": 0.5}, {"steps": {1: 0.5}})

class InPairs(Toy):
    def train_on(self, loop):
        loop.validate(1, {"error": 0.5}, [("a", 1)])

class FlatItems(Toy):
    def test(self, state, seed):
        return Tested({"error": 1.0, "near": 1.0}, {"error": [1.0, 0.0]})

class OtherItems(Toy):
    def test(self, state, seed):
        return Tested({"error": 1.0, "near": 1.0}, {"eror": [[1.0, 1.0]]})

class NoItem(Toy):
    def test(self, state, seed):
        return Tested({"error": 1.0, "near": 1.0}, {"error": [[float("nan"), 1.0]]})

class ListedScores(Toy):
    scores = list(Toy.scores.values())

class ByPlace(Toy):
    def __init__(self, rate: float = 0.1, /):
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("Lacking", 2, "lacks scores, primary, loss, test; allowed: a task that has them"),
        ("Misnamed", 2, "names the score test_err, which its scores lack"),
        ("Plain", 2, "no task; allowed: a class that derives from ablab.tasks.own.OwnTask"),
        ("NotANumber", 0, "the validation error is not a number at step 1"),
        ("Undeclared", 2, "task=toy: gave the validation scores eror; allowed: those it declares, error"),
        ("Untested", 2, "task=toy: gave the test scores error; allowed: those it declares, error, near"),
        ("Twice", 2, "task=toy: validated after step 60, and before after 60; allowed: later steps"),
        ("Silent", 2, "task=toy: its test returned a NoneType; allowed: a Tested"),
        ("InWords", 2, "task=toy: the test score error is '3'; allowed: a number"),
        ("OfNumPy", 0, "Results: "),
        ("StateOfNumPy", 2, "task=toy: the state after step 1 is not for JSON (Object of type float32 is not"),
        ("Leaving", 1, "drafts.py, line 55: RuntimeError: sys.exit(0)"),
        ("ByStep", 2, "task=toy: the state after step 1 is not for JSON (the key 1); allowed: "),
        ("InPairs", 2, "task=toy: the state after step 1 is not for JSON (tuple); allowed: "),
        ("FlatItems", 2, "task=toy: item 0 of error is 1.0; allowed: its sums, finite numbers"),
        ("OtherItems", 2, "task=toy: items of eror, which is no score; allowed: error, near; did you mean error?"),
        ("NoItem", 2, "task=toy: item 0 of error is [nan, 1.0]; allowed: its sums, finite numbers"),
        ("ListedScores", 2, "has as scores list; allowed: a mapping of names to ablab.tasks.score.Score"),
        ("ByPlace", 2, "__init__ takes rate by its place alone; allowed: fields, by their names"),
    ],
)
def test_a_draft_is_told_in_a_line_and_stops_no_other(folder, capsys, name, code, why):
    (folder / "drafts.py").write_text(DRAFT)
    option = folder / "conf" / "task" / f"{name.lower()}.yaml"
    option.write_text(f"_target_: drafts.{name}\n")
    command = [sys.executable, "-m", "ablab"]
    done, other = (
        subprocess.run([*command, *words], capture_output=True, text=True, cwd=folder, check=False)
        for words in (
            ["train", f"task={name.lower()}", "outputs=drafts", *QUIET],
            ["train", "task=toy", "outputs=drafts", *QUIET],
        )
    )
    listed = subprocess.run([*command, "ls", "outputs=drafts"], capture_output=True, cwd=folder, check=False)
    option.unlink()
    assert (done.returncode, other.returncode, listed.returncode) == (code, 0, 0)
    assert why in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_it_is_packed_and_verified(swept, capsys):
    assert main(["verify", "experiment=rates"]) == 0
    assert "10 evaluations scored again from their items: none differ" in capsys.readouterr().out
    one = min(path.name for path in Path("outputs/runs").iterdir() if path.is_dir())
    assert main(["verify", f"run={one}"]) == 0
    assert "1 evaluation scored again" in capsys.readouterr().out
    assert main(["pack", "experiment=rates"]) == 0
    assert main(["verify", "archive=outputs/packs/rates.zip"]) == 0
    run, other = open_store("outputs").runs("task.rate=0.6")[:2]
    state = other.folder.checkpoints / "state.json"
    before = state.read_text()
    for text, fault in ((before.replace("1", "2"), "is not what was left by training"), (None, "is gone")):
        state.unlink() if text is None else state.write_text(text)
        assert main(["verify", "experiment=rates"]) == 1
        assert f"{other.id}/checkpoints/state.json {fault}" in capsys.readouterr().out
    state.write_text(before)
    assert main(["verify", "experiment=rates"]) == 0
    (path,) = run.folder.path.glob("evaluations/*.json")
    content = json.loads(path.read_text())
    content["scores"]["near"] += 1
    path.write_text(json.dumps(content))
    assert main(["verify", "experiment=rates"]) == 1


def test_without_its_class_its_runs_can_be_listed(swept, tmp_path):
    command = [sys.executable, "-m", "ablab", "ls", f"outputs={Path('outputs').resolve()}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "task.rate=0.3\n" in done.stdout


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("hides", "self.memory hides a method of Task; allowed: another name"),
        ("raises", "ValueError: low above high"),
    ],
)
def test_a_constructor_that_cannot_be_is_one_line(folder, capsys, task, why):
    assert main(["train", f"task={task}", *QUIET]) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("name", "key"), [("state", "state"), ("odd", "step")])
def test_a_score_has_no_name_of_a_column(name, key):
    score = Score("x", "", 1, False, "validation", key)
    members = {"name": "odd", "scores": {name: score}, "primary": name, "loss": name, "listed": (), "beside": ()}
    assert "allowed: other names than id, name, state" in fault_of(type("Odd", (toy.Toy,), members))
