"""Anybody's program as a task: studies of commands, what makes another run, and what a file may declare."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ablab
from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.study.definition import define
from ablab.tasks.command.inputs import digests_of
from ablab.tasks.registry import task_of
from tests.tasks.commands import DONE, STUDY, TRAIN, only_run, result, words_of


def test_a_study_of_commands_is_judged_reported_packed_and_verified(folder, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    said = capsys.readouterr().out
    assert "[1/6] schedule=linear, seed 1: finished, val_loss " in said
    order = re.findall(r"\] schedule=(\w+), seed (\d): finished", said)
    assert order == [
        *(("linear", "1"), ("cosine", "1"), ("cosine", "2"), ("linear", "2"), ("linear", "3"), ("cosine", "3")),
    ], "arms alternate, so that a machine's drift falls on all of them"
    assert "schedule=cosine is better than schedule=linear by at least 0.01 nats." in said
    (claim,) = json.loads(Path("outputs/reports/lr/report.json").read_text())["claims"]
    assert (claim["outcome"], claim["exploratory"], claim["unit"]) == ("supported", None, "nats")
    assert not list(Path("outputs/reports/lr").glob("val_loss.*")), "one point is no curve"
    logs = [run.folder.log.read_text() for run in open_store("outputs").runs("schedule=cosine val_loss<2.5")]
    assert len(logs) == 3
    assert all("trains with cosine" in log for log in logs)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert "6 runs: 6 finished" in capsys.readouterr().out
    assert {row["parameters"] for row in open_store("outputs").study("lr").table()} == {None}
    assert main(["pack", "experiment=lr", "to=lr.tar"]) == 2
    assert "to=lr.tar: allowed: a name that ends in .zip" in capsys.readouterr().err
    assert main(["pack", "experiment=lr"]) == 0
    capsys.readouterr()
    assert main(["verify", "archive=outputs/packs/lr.zip"]) == 0
    said = capsys.readouterr().out
    assert "No evaluation can be scored again: the scores are those that the programs gave" in said
    assert "none is broken" in said


def test_another_input_value_or_command_is_another_run_and_another_score_is_none(folder):
    def run_id(*more):
        assert main(["train", *words_of(result('{"scores": {"loss": 1, "error": 2}}'), *more)]) == 0
        return {run.id for run in open_store("outputs").runs()}

    first = run_id()
    assert run_id("seed=1") == first
    assert run_id("task.timeout=5", "task.grace=1", "trainer.threads=1") == first
    assert run_id("task.scores={error: {better: lower}}") == first, "it is evaluated again, and not run again"
    judged = [set(one.settings["task"]["scores"]) for one in only_run().evaluations]
    assert sorted(judged, key=len) == [{"loss"}, {"loss", "error"}]
    assert len(second := run_id("task.environment={DEPTH: '3'}")) == 2
    assert len(run_id("seed=2") - second) == 1
    before = len(open_store("outputs").runs())
    assert main(["train", *words_of("x = 1; " + result('{"scores": {"loss": 1}}'))]) == 0
    assert len(open_store("outputs").runs()) == before + 1


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (("{schedule}", "{shedule}"), "factors.schedule: no word of command has {schedule}"),
        (('"{seed}"', '"1"'), "command: no word has {seed}, so that copies of a run would be equal"),
        (('"{result}"', "here"), "command: no word has {result}, so that nothing would say where scores go"),
        (("inputs: [train.py]", "inputs: [trian.py]"), "inputs: trian.py: there is no such file"),
        (("[python,", "[pyhton,"), "command: pyhton: no such program"),
        (("better: lower", "better: smaller"), "scores.val_loss.better=smaller: allowed: higher, lower"),
        (("unit: nats", "units: nats"), "scores.val_loss.units: no such key"),
        (("unit: nats", "low: 1, high: 0"), "scores.val_loss: low=1, high=0: allowed: numbers, low below high"),
        (("unit: nats", "low: 1.5, high: 0.5"), "low=1.5, high=0.5: allowed: numbers, low below high"),
        (
            ("unit: nats}}", "unit: nats}, failures: {better: lower}}"),
            "scores.failures: that is the share of runs that",
        ),
        (("val_loss", "failures"), "claims.margin=0.01: a share of failures has no margin"),
        (("val_loss", "state"), "scores.state: that is a column of every list of runs; allowed: another name"),
        (("\ncommand: ", "\n# "), "inputs is said of a command, and there is none; allowed: with command: ..."),
        (("question:", "common: [stepz=3]\nquestion:"), "stepz: no word of command has {stepz}; allowed: schedule"),
        (("schedule", "lr-max"), "factors.lr-max: allowed in braces: names of letters, digits and _"),
        (("seeds:", "metric: loss_\nseeds:"), "metric=loss_"),
        (("seeds: [1, 2, 3]", "seeds: 3"), "seeds=3: allowed: a list such as [1, 2, 3], or {from: 3, to: 6}"),
        (("{schedule: [", "{seed: [1, 2], schedule: ["), "factors.seed: every run fills {seed} in itself"),
        (("question:", "timeout: -1\nquestion:"), "timeout=-1: allowed: greater than 0"),
        (("question:", "check: {epochs: 1}\nquestion:"), "check.epochs: no such value; allowed: schedule"),
        (("[linear, cosine]", "cosine"), "factors.schedule=cosine: allowed: a list"),
        (("question:", "common:\nquestion:"), "common=null: allowed: a list, such as [a, b]"),
        (("question:", "common: {epochs: 3}\nquestion:"), "common={epochs:3}: allowed: a list"),
        (("question:", "common: epochs=3\nquestion:"), "common=epochs=3: allowed: a list"),
        (("seeds: [1, 2, 3]", "seeds: []"), "seeds=[]: allowed: at least 1 item"),
        (("less, margin", "less, metric: lss, margin"), "allowed: failures, seconds, val_loss, worth"),
        (("{arm: schedule=cosine, expect: less, margin: 0.01}", "cosine"), "allowed: names with values, such as"),
    ],
)
def test_a_file_that_cannot_mean_a_study_is_refused_in_a_line(folder, capsys, edit, why):
    Path("experiments/lr.yaml").write_text(STUDY.replace(*edit))
    assert main(["study", "experiment=lr"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert not Path("outputs").exists()


@pytest.mark.slow
def test_an_archive_is_reported_where_its_file_and_program_are_not(folder, tmp_path_factory, monkeypatch, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    told = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert main(["pack", "experiment=lr", "to=lr.zip"]) == 0
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with zipfile.ZipFile("lr.zip") as packed:
        packed.extractall(elsewhere)
    monkeypatch.chdir(elsewhere)
    assert "ablab report experiment=lr" in Path("README.md").read_text()
    capsys.readouterr()
    assert main(["report", "experiment=lr", "outputs=."]) == 0
    assert "reported from the store alone" in capsys.readouterr().out
    again = json.loads(Path("reports/lr/report.json").read_text())
    for key in ("question", "metric", "baseline", "arms", "claims", "differences"):
        assert again[key] == told[key], key
    assert main(["verify", "experiment=lr", "outputs=."]) == 0
    closed = Path("studies/lr/closed.json")
    closed.write_text('[{"reason": "too slow", "closed": "2026-01-01T00:00:00Z", "runs": {}}]')
    assert main(["report", "experiment=lr", "outputs=."]) == 2
    assert "runs of it were given up" in capsys.readouterr().err
    closed.unlink()
    kept = Path("studies/lr/lr.yaml")
    kept.write_text(kept.read_text().replace("margin: 0.01", "margin: 0.02"))
    capsys.readouterr()
    assert main(["report", "experiment=lr", "outputs=."]) == 2
    assert "studies/lr/lr.yaml: it is not what was registered" in capsys.readouterr().err


def test_what_is_in_braces_but_no_name_stays_as_it_is(folder):
    words = words_of(f"assert json.loads(sys.argv[3]) == dict(a=1); {DONE}")
    words[1] = "task.command=[python,one.py,'{result}','{seed}','{\"a\": 1}']"
    assert main(["train", *words]) == 0


def test_no_file_outside_knows_that_commands_exist():
    """But for the one that registers what files declare, and the templates of new studies."""
    source = Path(ablab.__file__).parent
    knowing = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"tasks[./]command|task=command|\"command\"", path.read_text(encoding="utf-8"))
        and "tasks/command" not in path.as_posix()
    }
    assert knowing == {"tasks/declared.py", "commands/new.py", "commands/options.py"}


def test_a_file_that_the_command_imports_and_does_not_declare_is_named(folder, capsys):
    Path("helper.py").write_text("x = 1\n")
    assert main(["train", *words_of("import helper; " + result('{"scores": {"loss": 1}}'))]) == 0
    assert "helper.py is not among inputs: to edit it makes no other run" in capsys.readouterr().out


@pytest.mark.slow
def test_a_study_names_it_too_and_sees_that_it_was_edited_between_arms(folder, capsys):
    noise = "from random import Random\ndef noise(text): return Random(text).gauss(0, 0.02)\n"
    Path("helper.py").write_text(noise)
    used = TRAIN.replace("import argparse", "import argparse, helper").replace("random.Random(", "helper.noise(")
    Path("train.py").write_text(used.replace('").gauss(0, 0.02)', '")'))
    said = "helper.py is not among inputs: to edit it makes no other run, until it is added\n"
    assert main(["study", "experiment=lr"]) == 0
    assert capsys.readouterr().out.count(said) == 1
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert capsys.readouterr().out.count(said) == 1
    unlike = "The arms were not made alike: they differ in helper.py, which is no input."
    assert main(["report", "experiment=lr"]) == 0
    assert unlike not in capsys.readouterr().out
    Path("helper.py").write_text(noise + "# edited\n")
    assert main(["rm", "where=schedule=cosine"]) == 0
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    assert unlike in Path("outputs/reports/lr/report.md").read_text()
    Path("helper.py").write_text(noise + "# edited again\n")
    assert main(["rm", "where=schedule=linear seed=1"]) == 0
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    assert "from 2 versions of helper.py, which is no input" in Path("outputs/reports/lr/report.md").read_text()


def test_a_folder_with_the_store_is_the_same_input_after_a_run(folder):
    for _ in range(2):
        assert main(["train", *words_of(DONE, "task.inputs=[.]")]) == 0
    assert only_run().state == "finished"


def test_what_lies_behind_a_link_is_an_input_too(tmp_path, monkeypatch):
    """A data set often is a link to a larger disk; one that leads back to itself ends."""
    monkeypatch.chdir(tmp_path)
    for name in ("disk/part", "data"):
        Path(name).mkdir(parents=True)
    Path("data/readme").write_text("the data")
    Path("disk/part/train.txt").write_text("one")
    plain = digests_of(["data"], Path("outputs"))
    Path("data/train").symlink_to(Path("disk").resolve())
    Path("disk/again").symlink_to(Path("disk").resolve())
    Path("other").mkdir()
    Path("disk/other").symlink_to(Path("other").resolve())
    Path("other/disk").symlink_to(Path("disk").resolve())
    linked = digests_of(["data"], Path("outputs"))
    Path("disk/part/train.txt").write_text("another")
    assert len({str(digests) for digests in (plain, linked, digests_of(["data"], Path("outputs")))}) == 3


def test_a_link_into_the_store_and_what_is_named_there_are_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("outputs/runs", "data"):
        Path(name).mkdir(parents=True)
    Path("outputs/vocab.txt").write_text("one")
    Path("data/vocab.txt").symlink_to(Path("outputs/vocab.txt").resolve())
    names = ["data", "outputs/vocab.txt", f"{tmp_path}/data/*.txt"]
    before = digests_of(names, Path("outputs"))
    Path("outputs/runs/log").write_text("a run was here")
    assert digests_of([*names, "."], Path("outputs")).items() >= before.items()
    Path("outputs/vocab.txt").write_text("another")
    assert not set(before.values()) & set(digests_of(names, Path("outputs")).values())


@pytest.mark.parametrize("name", ["data/**x", "a\0b"])
def test_what_is_no_name_of_an_input_is_refused_in_a_line(name):
    with pytest.raises(UserError, match="no name of a file"):
        digests_of([name], Path("outputs"))


def test_what_systems_and_editors_leave_in_a_folder_is_no_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lib").mkdir()
    Path("lib/a.py").write_text("1")
    names = ["lib", "lib/*"]
    before = digests_of(names, Path("outputs"))
    for name in (".DS_Store", "._a.py", ".a.py.swp", ".#a.py", "#a.py#", "a.py~", ".nfs0001", "Thumbs.db"):
        Path("lib", name).write_text("2")
    Path("lib/.ipynb_checkpoints").mkdir()
    Path("lib/.ipynb_checkpoints/a.py").write_text("2")
    assert digests_of(names, Path("outputs")) == before
    assert digests_of(["lib/a.py~"], Path("outputs")), "it is an input where it is named"
    Path("lib/.env").write_text("2")
    assert digests_of(names[:1], Path("outputs")) != {"lib": before["lib"]}


def test_an_input_that_changes_while_a_run_reads_it_fails_the_run(folder, capsys):
    """Its id names the content before, and its result may be of the other."""
    Path("gain.txt").write_text("1")
    words = words_of("open('gain.txt', 'w').write('7')\n" + DONE, "task.inputs=[one.py,gain.txt]")
    assert main(["train", *words]) == 1
    assert "inputs: gain.txt changed while the command ran" in capsys.readouterr().err
    assert main(["train", *words]) == 0, "now it stays as it is"
    assert {run.state for run in open_store("outputs").runs()} == {"interrupted", "finished"}


def test_a_task_that_no_option_names_is_not_imported(tmp_path, monkeypatch):
    """The record of an archive may name what it likes."""
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("raise SystemExit('imported')")
    assert task_of({"task.kind": "evil.Payload"}).name == "unknown"
    assert "evil" not in sys.modules


def test_levels_are_what_they_are_in_the_file(folder):
    text = STUDY.replace("{schedule: [linear, cosine]}", "{rate: [1, 1.50, true, null, 'a, b', '007']}")
    Path("experiments/lr.yaml").write_text(text.replace("{schedule}", "{rate}").split("claims")[0])
    planned = {cell.arm: cell.planned.config.task.values["rate"] for cell in define(("experiment=lr",)).cells}
    named = {"rate=1": 1, "rate=1.5": 1.5, "rate=true": True, "rate=null": None, "rate=a, b": "a, b", "rate=007": "007"}
    assert planned == named


def test_a_finished_run_without_a_score_that_another_study_declares_fails_it_alone(folder, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    text = STUDY.replace("scores: {", "scores: {other: {better: higher}, ").split("claims")[0]
    Path("experiments/more.yaml").write_text(text)
    capsys.readouterr()
    assert main(["train", "-m", "experiment=more", "logger=none"]) == 1
    said = capsys.readouterr().out
    assert ", which had ended (rerun=true runs it again): scores: other is missing, and there is " in said
    assert "0 finished" not in said
    assert main(["study", "experiment=lr"]) == 0
    assert "failed" not in capsys.readouterr().out


def test_levels_that_are_alike_are_refused(folder, capsys):
    text = STUDY.replace("[linear, cosine]", "[linear, cosine, cosine]")
    Path("experiments/lr.yaml").write_text(text)
    assert main(["study", "experiment=lr"]) == 2
    assert "factors.schedule: needs levels that differ, got linear, cosine, cosine" in capsys.readouterr().err


def test_nothing_is_said_of_parameters_that_a_command_has_not(folder, capsys):
    Path("experiments/lr.yaml").write_text(STUDY.replace("cosine]", "ünï]").replace("=cosine", "=ünï"))
    assert main(["study", "experiment=lr"]) == 0
    said = capsys.readouterr().out
    assert "builds every arm" not in said
    assert "task.values.schedule=ünï" in said
    assert main(["train", *words_of(DONE)]) == 0
    assert main(["show", f"run={only_run().id}"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("training ")]
    assert "parameters" not in line
    assert "selected step: 1" in line


def test_a_column_is_whatever_a_condition_names(folder, capsys):
    command = "task.command=[python,one.py,'{result}','{seed}','{schedule}']"
    assert main(["train", *words_of(DONE), command, "task.values={schedule: linear}"]) == 0
    capsys.readouterr()
    assert main(["ls", "columns=schedule,seed", "where=schedule=linear", "format=csv"]) == 0
    assert capsys.readouterr().out.split() == ["schedule,seed", "linear,1"]


@pytest.mark.slow
def test_a_study_whose_input_was_edited_says_that_it_is_another(folder, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    Path("train.py").write_text(f"{TRAIN}\n# edited\n")
    assert main(["report", "experiment=lr"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "settings (inputs.train.py) differ from those of the first launch; launched there was: experiment=lr" in line


def test_a_check_says_why_a_program_fails_in_its_own_words(folder, capsys):
    Path("train.py").write_text("raise SystemExit('no room for the data')\n")
    assert main(["study", "experiment=lr", "check=true"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert ("no room for the data" in said, "DivergedError" in said) == (True, False)


def test_a_folder_whose_name_no_shell_would_take_for_one_is_refused(folder, capsys):
    assert main(["new", "-x"]) == 2
    assert "no name of a folder" in capsys.readouterr().err
    assert not Path("-x").exists()


@pytest.mark.slow
def test_a_new_study_of_a_command_ends_in_a_verdict(folder, capsys, monkeypatch):
    assert main(["new", "mine", "kind=command"]) == 0
    monkeypatch.chdir("mine")
    assert main(["study", "experiment=schedule", "check=true"]) == 0
    assert main(["train", "-m", "experiment=schedule", "logger=none"]) == 0
    assert main(["report", "experiment=schedule"]) == 0
    assert "A cosine schedule is better than a constant rate by at least 0.02 nats." in capsys.readouterr().out
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], check=True)


def test_a_run_beyond_bounds_that_were_declared_later_is_no_result_of_it(folder, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    path = Path("experiments/lr.yaml")
    path.write_text(path.read_text().replace("{better: lower,", "{better: lower, high: 1.9,"))
    capsys.readouterr()
    assert main(["train", "-m", "experiment=lr", "logger=none"]) != 0
    assert "its bounds are -inf and 1.9" in "".join(capsys.readouterr())


def test_a_step_among_the_scores_is_no_step_of_the_curve(folder, capsys):
    words = words_of(result('{"scores": {"loss": 1, "step": 5}}'))
    assert main(["train", *words]) == 0
    assert only_run().scores["loss"] == 1
    capsys.readouterr()
    declared = ["task.scores={step: {better: lower}}" if "task.scores" in word else word for word in words]
    assert main(["train", *declared]) == 2
    assert "scores.step: that is when a score was told; allowed: another name" in capsys.readouterr().err


BY_SCRIPT = """
question: Which script is better?
command: ["{program}", "{script}", "{seed}", "{result}"]
scores: {loss: {better: lower}}
factors: {script: [a.py, b.py]}
common: [program=python, logger=none]
seeds: [1, 2, 3]
claims: [{arm: script=b.py, expect: less}]
"""


def test_a_program_and_a_script_may_come_from_values(folder, capsys):
    for name in ("a", "b"):
        Path(f"{name}.py").write_text(f"# {name}\n")
    Path("experiments/by.yaml").write_text(BY_SCRIPT)
    assert main(["study", "experiment=by"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}.py is not among inputs: to edit it makes no other run" in said for name in ("a", "b"))
    study = define(("experiment=by",))
    tasks = [cell.planned.task for cell in study.cells]
    assert {tuple(task.unnamed()) for task in tasks} == {("a.py",), ("b.py",)}
    assert all(cell.planned.recipe["interpreter"].startswith("Python") for cell in study.cells)
    Path("experiments/by.yaml").write_text(BY_SCRIPT.replace("program=python", "program=pyhton"))
    assert main(["study", "experiment=by"]) == 2
    assert "command: pyhton: no such program" in capsys.readouterr().err


def test_tuning_runs_are_not_given_up(folder, capsys):
    for name in ("a", "b"):
        Path(f"{name}.py").write_text(f"# {name}\n")
    text = BY_SCRIPT.replace('"{seed}"', '"{rate}", "{seed}"').replace("program=python", "program=python, rate=1")
    Path("experiments/tuned.yaml").write_text(f"{text}tune: {{key: rate, values: [1, 2], seeds: [9], metric: loss}}\n")
    assert main(["study", "experiment=tuned", "close=hopeless"]) == 2
    assert "close=hopeless: tuned-tuning needs all of its runs; allowed: other values" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "val_loss: {better",
            "p(yes): {better",
            r"scores.p\(yes\): allowed: a name of letters, digits and _, not a digit",
        ),
        ("val_loss: {better", "été: {better", "scores.été: allowed: a name of letters"),
        (
            "inputs:",
            "environment: {A=B: '1'}\ninputs:",
            "environment.A=B: allowed: a name of letters, digits, _, . and -",
        ),
        ("unit: nats", r'unit: "a\nb"', r"scores.val_loss.unit='a\\nb': allowed: text on one line"),
    ],
)
def test_what_no_table_or_shell_can_name_is_refused_in_its_own_words(before, after, said, folder):
    text = STUDY.replace("claims: [", "metric: seconds\nclaims: [").replace(
        "arm: schedule=cosine, expect: less, margin: 0.01", ""
    )
    Path("experiments/odd.yaml").write_text(text.replace("claims: [{}]\n", "").replace(before, after))
    with pytest.raises(UserError, match=said):
        define(("experiment=odd",))


@pytest.mark.parametrize(
    "level", ["pay ${amount due}", "${", "${1+x}", "${}", "???", "می\u200cخواهم", "👩\u200d🔬", "a\u00a0b"]
)
def test_a_level_may_be_any_text_on_one_line(level, folder):
    Path("experiments/odd.yaml").write_text(
        STUDY.replace("[linear, cosine]", json.dumps(["linear", level], ensure_ascii=False)).replace(
            "{arm: schedule=cosine, expect: less, margin: 0.01}", ""
        )
    )
    cell = define(("experiment=odd",)).cells[-1]
    cell.planned.folder.begin(cell.planned.recipe)
    assert cell.planned.folder.recipe() == cell.planned.recipe
    assert cell.planned.recipe["task"]["values"]["schedule"] == level
