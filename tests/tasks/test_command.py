"""Anybody's program as a task: studies of commands, what makes another run, and every way in which a command fails."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import ablab
from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.search.stopping import TrialHandle
from ablab.store.artefacts import MatrixArtefact, SeriesArtefact, comparable_artefacts
from ablab.store.chain import Chain
from ablab.study.definition import define
from ablab.study.experiment import read
from ablab.study.ledger import register
from ablab.study.search import define_search
from ablab.sweep.progress import last_line
from ablab.tasks.command.artefacts import write_artefacts
from ablab.tasks.command.process import execute
from ablab.tasks.command.result import CommandError, ProgressLines, read_result

TRAIN = """
import argparse, json, random, sys
words = argparse.ArgumentParser()
for name in ("schedule", "seed", "out"):
    words.add_argument(f"--{name}")
asked = words.parse_args()
noise = random.Random(f"{asked.seed} {asked.schedule}").gauss(0, 0.02)
loss = 2.0 - 0.3 * (asked.schedule == "cosine") + noise
print("trains with", asked.schedule)
json.dump({"scores": {"val_loss": loss}}, open(asked.out, "w"))
"""
STUDY = """
question: Does cosine decay beat linear decay?
command: [python, train.py, --schedule, "{schedule}", --seed, "{seed}", --out, "{result}"]
inputs: [train.py]
scores: {val_loss: {better: lower, unit: nats}}
factors: {schedule: [linear, cosine]}
seeds: [1, 2, 3]
claims: [{arm: schedule=cosine, expect: less, margin: 0.01}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder: a script and an experiment. `python` is the one that tests run with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(TRAIN)
    Path("experiments").mkdir()
    Path("experiments/lr.yaml").write_text(STUDY)
    return tmp_path


def words_of(script, *more):
    """Return the words of one run of a script."""
    Path("one.py").write_text(f"import json, os, signal, sys, time\nout, seed = sys.argv[1:3]\n{script}\n")
    command = "task.command=[python,one.py,'{result}','{seed}']"
    scores = "task.scores={loss: {better: lower}}"
    return ["task=command", command, scores, "task.inputs=[one.py]", "logger=none", *more]


def result(content):
    """Return the statement that writes a result."""
    return f"open(out, 'w').write({content!r})"


DONE = result('{"scores": {"loss": 1}}')


def only_run():
    (run,) = open_store("outputs").runs()
    return run


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
        (("seeds:", "metric: loss_\nseeds:"), "metric=loss_"),
        (("seeds: [1, 2, 3]", "seeds: 3"), "seeds=3: allowed: a list such as [1, 2, 3], or {from: 3, to: 6}"),
        (("{schedule: [", "{seed: [1, 2], schedule: ["), "factors.seed: every run fills {seed} in itself"),
        (("question:", "timeout: -1\nquestion:"), "timeout=-1: allowed: greater than 0"),
        (("question:", "check: {epochs: 1}\nquestion:"), "check.epochs: no such value; allowed: schedule"),
    ],
)
def test_a_file_that_cannot_mean_a_study_is_refused_in_a_line(folder, capsys, edit, why):
    Path("experiments/lr.yaml").write_text(STUDY.replace(*edit))
    assert main(["study", "experiment=lr"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert not Path("outputs").exists()


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        ("pass", 1, "the command ended without a result: it wrote nothing to {result}"),
        ("sys.exit('no data')", 1, "the command ended with exit code 1: no data"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "the command was killed by SIGKILL"),
        (result("{'scores"), 1, "result.json: not readable as JSON"),
        (result("[1]"), 1, "result.json: no object; allowed: such as"),
        (result('{"scores": {"error": 1}}'), 1, "result.json: scores: loss is missing, and there is error"),
        (
            result('{"scores": {"loss": "1.5"}}'),
            1,
            "result.json: scores.loss=1.5: allowed: a valid number, without quotes",
        ),
        (result('{"score": 1}'), 1, "result.json: score: no such key; allowed: scores, status, curve, items, cost"),
        (result("{}"), 1, "result.json: scores: missing"),
        (result('{"scores": {"loss": 1}, "curve": [{"loss": 1}]}'), 1, "result.json: curve.0.step: missing"),
        (result('{"scores": {"loss": 1}, "curve": [{"step": 1, "when": "x"}]}'), 1, "curve.0.when=x: allowed:"),
        (result('{"scores": {"loss": 1}, "status": "done"}'), 1, "status=done: allowed: 'finished' or 'diverged'"),
        (
            result('{"scores": {"loss": 0.5}, "items": {"loss": [40, 60]}}'),
            1,
            "result.json: items.loss: their mean is 50, and the score 0.5; allowed: a mean equal to the score",
        ),
        (
            result('{"scores": {"loss": 1.021}, "items": {"loss": [0, 2]}}'),
            1,
            "their mean is 1, and the score 1.021",
        ),
        (result('{"scores": {"loss": 1}, "items": {"loss": []}}'), 1, "items.loss: there are none"),
        (result('{"scores": {"loss": 1}, "items": {"los": [1]}}'), 1, "items.los: there is no score of this name"),
    ],
)
def test_a_command_that_gives_no_result_fails_in_a_line(folder, capsys, script, code, why):
    assert main(["train", *words_of(script)]) == code
    assert why in capsys.readouterr().err.splitlines()[-1]
    assert only_run().record is None, "nothing stands in for what is missing"


SERIES = {
    "kind": "series",
    "title": "Loss by depth",
    "section": "Depth",
    "x": {"title": "depth"},
    "y": {"title": "loss"},
    "series": [{"label": "train", "x": [1, 2], "y": [2.5, 1]}],
}
MATRIX = {
    "kind": "matrix",
    "title": "Confusion",
    "section": "Errors",
    "value": "share",
    "x": {"title": "said", "labels": ["a", "b", "c"]},
    "y": {"title": "true", "labels": ["a", "b"]},
    "slices": [{"label": "all", "values": [[0.5, 0.25, 0.25], [0, 1, 0]]}],
}


def changed(artefact, **fields):
    return {"artefacts": {"one": {**artefact, **fields}}}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"cost": {"second": 1}}, "cost.second: no such key; allowed: seconds, tokens, memory, devices"),
        ({"cost": {"seconds": "1"}}, "cost.seconds=1: allowed: a valid number, without quotes"),
        ({"cost": {"seconds": -0.1}}, "cost.seconds=-0.1: allowed: greater than or equal to 0"),
        ({"cost": {"seconds": float("inf")}}, "cost.seconds=inf: allowed: a finite number"),
        ({"cost": {"tokens": 1.5}}, "cost.tokens=1.5: allowed: a valid integer"),
        ({"cost": {"memory": float("nan")}}, "cost.memory=nan: allowed: a valid integer"),
        ({"cost": {"devices": 0}}, "cost.devices=0: allowed: greater than or equal to 1"),
        ({"cost": {"devices": True}}, "cost.devices=True: allowed: a valid integer"),
        ({"cost": 3}, "cost=3: allowed: an object"),
        ({"artefacts": {"../one": SERIES}}, "allowed: a name of letters, digits and _, not a digit first, of at most"),
        ({"artefacts": {"a" * 101: SERIES}}, "allowed: a name of letters, digits and _, not a digit first, of at most"),
        ({"artefacts": {"one": [1]}}, "artefacts.one=[1]: allowed: an object"),
        (changed(SERIES, kind="cube"), "artefacts.one.kind: allowed: series, matrix, table, picture"),
        (changed({}), "artefacts.one.kind: allowed: series, matrix, table, picture"),
        (changed(SERIES, name="x"), "artefacts.one.name: no such key; allowed: schema_version, title, section"),
        (changed(SERIES, x={"titel": "x"}), "artefacts.one.x.titel: no such key; allowed: title, labels"),
        (changed(SERIES, x=3), "artefacts.one.x=3: allowed: an object"),
        (changed(SERIES, title=3), "artefacts.one.title=3: allowed: text"),
        (changed(SERIES, x={}), "artefacts.one.x.title: missing"),
        (
            changed(SERIES, series=[{"label": "a", "x": [1], "y": ["2"]}]),
            "artefacts.one.series.0.y.0=2: allowed: ",
        ),
        (
            changed(SERIES, series=[{"label": "a", "x": [1], "y": [float("nan")]}]),
            "series.0.y.0=nan: allowed: ",
        ),
        (changed(SERIES, series=[{"label": "a", "x": [1], "y": []}]), "a: 1 x, 0 y, 0 names"),
        (changed(SERIES, series=[{"label": "a", "x": [], "y": []}]), "allowed: at least one line, each with at least"),
        (changed(SERIES, series=[]), "allowed: at least one line, each with at least one point"),
        (changed(SERIES, series=SERIES["series"] * 2), "allowed: another label for each of its parts"),
        (changed(SERIES, settings={"rate": float("nan")}), "artefacts.one.settings: allowed: what JSON can hold"),
        (changed(MATRIX, slices=[{"label": "all", "values": [[1]]}]), "all: its values are not 2 rows of 3"),
        (
            changed(MATRIX, slices=[{"label": "a", "value": [[1]]}]),
            "one.slices.0.value: no such key; allowed: label,",
        ),
        (
            changed(MATRIX, x={"title": ""}, y={"title": ""}, slices=[{"label": "all", "values": []}]),
            "allowed: labels of x and y, one for each column and row",
        ),
    ],
)
def test_a_wrong_cost_or_artefact_is_refused_in_a_line(tmp_path, more, why):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"scores": {"loss": 1}, **more}))
    with pytest.raises(CommandError) as raised:
        read_result(path, ["loss"])
    assert why in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("cost", [{}, {"seconds": 0, "tokens": 1e9, "memory": 0, "devices": 1}])
def test_a_cost_may_be_given_in_part_and_at_its_ends(tmp_path, cost):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"scores": {"loss": 1}, "cost": cost}))
    assert read_result(path, ["loss"]).cost.model_dump(exclude_none=True) == cost


def test_the_cost_that_a_program_tells_is_kept_beside_the_measured_one_and_shown(folder, capsys):
    told = {"seconds": 5000, "tokens": 1000, "memory": 2**50, "devices": 2}
    assert main(["train", *words_of(result(json.dumps({"scores": {"loss": 1}, "cost": told})))]) == 0
    run = only_run()
    cost = run.record.cost
    assert cost.told.model_dump() == told
    assert (cost.tokens, cost.peak_memory_bytes) == (1000, 2**50)
    assert max(cost.seconds, cost.train_seconds, run.scores["seconds"]) < 500, "that time is measured"
    capsys.readouterr()
    assert main(["show", f"run={run.id}"]) == 0
    assert "as it says  1 h 23 min, 1,000 tokens, 1125.9 TB of memory, 2 devices" in capsys.readouterr().out
    assert main(["show", f"run={run.id}", "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["told_cost"] == told


def test_a_program_that_tells_no_cost_has_the_measured_one_and_no_artefacts(folder, capsys):
    assert main(["train", *words_of(DONE)]) == 0
    run = only_run()
    assert (run.record.cost.told, run.record.cost.tokens) == (None, 0)
    assert 0 < run.record.cost.peak_memory_bytes < 2**50
    assert not run.folder.artefacts.exists()
    capsys.readouterr()
    assert main(["show", f"run={run.id}"]) == 0
    assert "as it says" not in capsys.readouterr().out


def test_the_artefacts_of_a_result_are_those_of_the_run(folder):
    written = json.dumps({"scores": {"loss": 1}, "artefacts": {"depth": SERIES, "errors": MATRIX}})
    assert main(["train", *words_of(result(written))]) == 0
    assert comparable_artefacts(only_run().folder.artefacts) == {
        "depth": SeriesArtefact(**SERIES),
        "errors": MatrixArtefact(**MATRIX),
    }


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000"
    "000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)
PICTURE = {"kind": "picture", "title": "Loss surface", "section": "Looks", "file": "plots/one.png"}
TABLE = {"kind": "table", "title": "By class", "section": "Errors", "columns": ["class", "n"], "rows": [["cat", 3]]}
DRAWN = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "there is no such file in {folder}"),
        (b"GIF89a", "allowed: a PNG or SVG, by what the file holds"),
        (PIXEL[:-12], "a PNG that is cut off"),
        (PIXEL.replace(b"IDAT", b"IDAU"), "a damaged PNG"),
        (PIXEL + bytes(2 * 2**20), "allowed: at most 2,097,152"),
        (b"<html/>", "its outermost element is html"),
        (b'<!DOCTYPE svg [<!ENTITY a "b">]>' + DRAWN, "an SVG with entities"),
    ],
)
def test_a_picture_that_is_none_is_refused_in_a_line(tmp_path, content, why):
    (tmp_path / "plots").mkdir()
    if content is not None:
        (tmp_path / "plots/one.png").write_bytes(content)
    (tmp_path / "result.json").write_text(json.dumps({"scores": {"loss": 1}, "artefacts": {"one": PICTURE}}))
    with pytest.raises(CommandError) as raised:
        read_result(tmp_path / "result.json", ["loss"])
    assert "artefacts.one.file=plots/one.png: " in str(raised.value)
    assert why in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("place", ["/etc/hostname", "../one.png"])
def test_a_picture_lies_in_the_folder_of_its_run(tmp_path, place):
    (tmp_path / "one.png").write_bytes(PIXEL)
    (tmp_path / "work").mkdir()
    path = tmp_path / "work/result.json"
    path.write_text(json.dumps({"scores": {"loss": 1}, "artefacts": {"one": {**PICTURE, "file": place}}}))
    with pytest.raises(CommandError, match=r"from \{folder\} on, and in it"):
        read_result(path, ["loss"])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rows": [["cat"]]}, "row 1 has 1 cells, and there are 2 columns"),
        ({"rows": [["cat", float("nan")]]}, "artefacts.one.rows.0.1=nan: allowed: text, a finite number"),
        ({"rows": []}, "allowed: at least one row"),
        ({"columns": ["n", "n"]}, "allowed: another label"),
    ],
)
def test_a_wrong_table_is_refused_in_a_line(tmp_path, fields, why):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"scores": {"loss": 1}, **changed(TABLE, **fields)}))
    with pytest.raises(CommandError) as raised:
        read_result(path, ["loss"])
    assert why in str(raised.value)


def test_tables_and_pictures_are_shown_packed_and_verified(folder, capsys):
    under_no_heading = {**PICTURE, "file": "b.svg", "section": None}
    artefacts = {"one": PICTURE, "drawn": under_no_heading, "classes": TABLE}
    written = json.dumps({"scores": {"loss": 1}, "artefacts": artefacts})
    files = "folder = os.path.dirname(out); os.makedirs(f'{folder}/plots', exist_ok=True); "
    files += (
        f"open(f'{{folder}}/plots/one.png', 'wb').write({PIXEL!r}); open(f'{{folder}}/b.svg', 'wb').write({DRAWN!r})"
    )
    assert main(["train", *words_of(f"{files}\n{result(written)}")]) == 0
    run = only_run()
    kept = run.folder.artefacts
    assert (kept / "one.png").read_bytes() == PIXEL
    assert sorted(path.name for path in kept.iterdir()) == [
        *("classes.json", "drawn.json", "drawn.svg", "one.json", "one.png"),
    ]
    assert main(["report", f"runs={run.id}"]) == 0
    (page,) = Path("outputs/reports").rglob("report.html")
    text = page.read_text()
    assert 'src="data:image/png;base64,' in text
    assert 'src="data:image/svg+xml;base64,' in text
    assert "<script>alert" not in text
    assert "By class" in text
    assert ">Artefacts</h2>" in text
    assert main(["pack", f"runs={run.id}", "to=one.zip"]) == 0
    assert main(["verify", "archive=one.zip"]) == 0
    (kept / "one.png").write_bytes(PIXEL + b"x")
    capsys.readouterr()
    assert main(["verify", f"run={run.id}"]) == 1
    assert "artefacts/one.png is not what was given in training" in capsys.readouterr().out


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
    assert "its file was not at hand" in capsys.readouterr().out
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


def test_claims_about_tables_are_packed_with_a_run_and_verified(folder, capsys):
    Path("claims.yaml").write_text("metric: score\nbaseline: a\nseeds: [1, 2]\nclaims: [{arm: b, expect: greater}]\n")
    assert main(["register", "claims.yaml", "table=results.csv"]) == 0
    assert main(["train", *words_of(DONE)]) == 0
    assert main(["pack", f"runs={only_run().id}", "to=one.zip"]) == 0
    (kept,) = Path("outputs/claims").iterdir()
    with zipfile.ZipFile("one.zip") as packed:
        assert "ablab report" not in packed.read("README.md").decode(), "runs alone are no study to report by name"
        assert f"claims/{kept.name}" in packed.namelist()
    stamp = Chain.of(Path("outputs")).stamp
    for words in (["archive=one.zip"], [f"stamp={stamp}"]):
        assert main(["verify", *words]) == 0
    kept.write_text(kept.read_text().replace("greater", "less"))
    assert main(["pack", f"runs={only_run().id}", "to=two.zip"]) == 0
    capsys.readouterr()
    for words in (["archive=two.zip"], [f"stamp={stamp}"]):
        assert main(["verify", *words]) == 1
        assert f"claims/{kept.name} is not what was entered: it was edited" in capsys.readouterr().out


def test_a_diverged_attempt_keeps_no_artefacts_of_one_before(folder):
    artefacts = json.dumps({"scores": {"loss": 1}, "artefacts": {"classes": TABLE}})
    first = "first = os.environ['ABLAB_ATTEMPT'] == '1'\nif first:\n    " + result(artefacts)
    diverged = "else:\n    " + result('{"scores": {"loss": 1}, "status": "diverged"}')
    words = words_of(f"{first}\n{diverged}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ablab.tasks.own.Loop.validate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(["train", *words]) != 0
    (kept,) = Path("outputs/runs").glob("*/artefacts")
    assert [path.name for path in kept.iterdir()] == ["classes.json"]
    main(["train", *words])
    assert not list(kept.iterdir())
    assert only_run().state == "diverged"


def test_artefacts_of_an_attempt_before_are_removed(tmp_path):
    write_artefacts(tmp_path, {"depth": SeriesArtefact(**SERIES), "errors": MatrixArtefact(**MATRIX)}, tmp_path)
    write_artefacts(tmp_path, {"errors": MatrixArtefact(**MATRIX)}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["errors.json"]


@pytest.mark.slow
def test_artefacts_of_a_command_are_drawn_and_packed(folder, capsys):
    content = TRAIN.replace('{"val_loss": loss}}', '{"val_loss": loss}, "artefacts": ARTEFACTS}')
    Path("train.py").write_text(f"ARTEFACTS = {{'depth': {SERIES}, 'errors': {MATRIX}}}\n{content}")
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    document = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert [(one["key"], one["section"]) for one in document["artefacts"]] == [("depth", "Depth"), ("errors", "Errors")]
    assert "Loss by depth" in Path("outputs/reports/lr/report.html").read_text()
    assert main(["pack", "experiment=lr"]) == 0
    with zipfile.ZipFile("outputs/packs/lr.zip") as packed:
        assert sum(name.endswith("artefacts/errors.json") for name in packed.namelist()) == 6


def test_a_score_may_be_the_rounded_mean_of_its_items(folder):
    assert main(["train", *words_of(result('{"scores": {"loss": 1.019}, "items": {"loss": [0, 2]}}'))]) == 0
    assert only_run().state == "finished"


@pytest.mark.slow
def test_items_are_not_tested_where_runs_have_different_numbers_of_them(folder):
    items = "[loss] * (5 + (asked.schedule == 'cosine' and asked.seed == '2'))"
    scores = "{'scores': {'val_loss': loss}, 'items': {'val_loss': " + items + "}}"
    Path("train.py").write_text(TRAIN.replace('{"scores": {"val_loss": loss}}', scores))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    report = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert report["claims"][0]["outcome"] == "supported", "over seeds"
    (line,) = report["differences"]
    assert line["crossed"] is line["randomisation_p"] is None
    assert line["crossed_refused"] == "its runs have different numbers of items: 5, 6"


@pytest.mark.parametrize("written", ['{"scores": {"loss": NaN}}', '{"scores": {"loss": 1}, "status": "diverged"}'])
def test_what_is_no_finite_number_is_an_outcome(folder, written):
    assert main(["train", *words_of(result(written))]) == 0
    assert only_run().state == "diverged"


def test_a_score_that_nobody_declared_makes_no_run_diverged(folder):
    written = '{"scores": {"loss": 2, "rate": NaN}, "curve": [{"step": 1, "loss": 3, "norm": Infinity, "seen": 5}]}'
    assert main(["train", *words_of(result(written))]) == 0
    run = only_run()
    assert run.state == "finished"
    assert run.record.validations == [{"step": 1, "loss": 3, "seen": 5}, {"step": 2, "loss": 2}]


def test_a_declared_score_that_is_lost_on_the_way_does(folder):
    assert main(["train", *words_of(result('{"scores": {"loss": 2}, "curve": [{"step": 1, "loss": NaN}]}'))]) == 0
    assert only_run().state == "diverged"


def test_what_is_in_braces_but_no_name_stays_as_it_is(folder):
    words = words_of(f"assert json.loads(sys.argv[3]) == dict(a=1); {DONE}")
    words[1] = "task.command=[python,one.py,'{result}','{seed}','{\"a\": 1}']"
    assert main(["train", *words]) == 0


def test_a_command_that_never_ends_is_ended_with_its_children(folder, capsys):
    script = "import subprocess; subprocess.Popen(['sleep', '987.6']); time.sleep(60)"
    assert main(["train", *words_of(script, "task.timeout=0.02", "task.grace=0.2")]) == 1
    assert "the command had not ended after 1.2 seconds (timeout)" in capsys.readouterr().err
    time.sleep(0.2)
    assert not _runs("987.6")


def test_children_that_it_leaves_behind_are_ended(folder):
    script = f"import subprocess; subprocess.Popen(['sleep', '986.5']); {DONE}"
    assert main(["train", *words_of(script)]) == 0
    time.sleep(0.2)
    assert not _runs("986.5")


def _runs(word):
    return any(
        word.encode() in path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid()) and path.exists()
    )


@pytest.mark.parametrize("daemon", ["sleep 600", "yes"])
def test_a_daemon_that_keeps_its_streams_open_is_not_waited_for(folder, capsys, daemon):
    start = f"print(subprocess.Popen({daemon.split()}, start_new_session=True).pid, file=open('pid', 'w'))"
    began = time.monotonic()
    try:
        assert main(["train", *words_of(f"import subprocess\n{start}\nprint('its own last words')\n{DONE}")]) == 0
    finally:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - began < 60
    assert "its own last words" in capsys.readouterr().out


def test_what_it_says_beyond_measure_is_left_out(folder, capsys, monkeypatch):
    monkeypatch.setattr("ablab.tasks.command.process.MOST", 1 << 16)
    script = f"print('x' * (1 << 20)); {DONE}"
    assert main(["train", *words_of(script)]) == 0
    said = capsys.readouterr().out
    assert "is left out]" in said
    assert said.count("x" * 1000) < 100


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_next_attempt_goes_on_in_the_same_folder(folder, sent):
    script = f"""
kept = os.path.join(os.path.dirname(out), "kept")
if os.environ["ABLAB_ATTEMPT"] == "1":
    signal.signal(signal.SIGTERM, lambda *_: (open(kept, "w").write(seed), sys.exit(3)))
    open("ready", "w").close()
    time.sleep(60)
assert open(kept).read() == seed
{DONE}
"""
    words = words_of(script)
    process = subprocess.Popen([sys.executable, "-m", "ablab", "train", *words])
    while not Path("ready").exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(sent)
    assert process.wait(30) == 130
    assert main(["train", *words]) == 0
    assert only_run().state == "finished"


def test_a_command_ends_with_a_killed_run(folder):
    words = words_of("open('ready', 'w').write(str(os.getpid())); time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-m", "ablab", "train", *words])
    while not Path("ready").exists() or not Path("ready").read_text():
        time.sleep(0.05)
        assert process.poll() is None
    process.kill()
    process.wait()
    command = Path(f"/proc/{Path('ready').read_text()}")
    for _ in range(50):
        if not command.exists():
            return
        time.sleep(0.1)
    pytest.fail("the command outlives its run")


def test_progress_is_a_curve_and_items_are_kept(folder):
    script = (
        "place = os.path.join(os.path.dirname(out), 'progress.jsonl')\n"
        "for step in (10, 20):\n"
        "    print(json.dumps({'step': step, 'loss': 3 - step / 20, 'rate': 0.1}), file=open(place, 'a'))\n"
    ) + result('{"scores": {"loss": 2}, "items": {"loss": [1, 2.5, 2.5]}}')
    assert main(["train", *words_of(script)]) == 0
    run = only_run()
    assert [(row["step"], row["loss"]) for row in run.record.validations] == [(10, 2.5), (20, 2), (21, 2)]
    assert run.evaluation.items == {"loss": [[1, 1], [2.5, 1], [2.5, 1]]}


def test_a_line_of_progress_that_a_kill_cut_off_does_not_reach_the_next_attempt(folder):
    """A program that buffers what it writes leaves half a line."""
    script = (
        "place = open(os.path.join(os.path.dirname(out), 'progress.jsonl'), 'a')\n"
        'place.write(\'{"step": 1, "loss": 3}\\n{"step": 2, "lo\')\n'
        "place.flush()\n"
        "if os.environ['ABLAB_ATTEMPT'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "place.write('ss\": 2}\\n')\n"
        "place.close()\n"
    ) + DONE
    words = ["train", *words_of(script)]
    main(words)
    assert main(words) == 0
    assert [(row["step"], row["loss"]) for row in only_run().record.validations] == [(1, 3), (2, 2), (3, 1)]


def test_a_file_of_progress_that_is_begun_anew_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_text('{"step": 1, "loss": 3.25}\n')
    lines = ProgressLines(path)
    assert [point.step for point in lines.news()] == [1]
    path.write_text('{"step": 1}\n')
    assert [point.scores for point in lines.news()] == [{}]
    assert lines.news() == []


@pytest.mark.slow
def test_a_curve_of_other_scores_than_the_declared_is_drawn_where_it_has_them(folder, capsys):
    written = '{"scores": {"val_loss": loss}, "curve": [{"step": 1, "rate": 0.1}, {"step": 2, "val_loss": 3}]}'
    Path("train.py").write_text(TRAIN.replace('{"scores": {"val_loss": loss}}', written))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    assert Path("outputs/studies/lr/learning_curves.png").exists()
    (series,) = json.loads(Path("outputs/reports/lr/report.json").read_text())["series"]
    assert [line["x"] for line in series["lines"]] == [[2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('\'{"scores": {"loss": 1}}\'', "another seed gives equal scores"),
        ("json.dumps({'scores': {'loss': int(seed)}})", "deterministic: with one seed, two runs have equal scores"),
        (
            "json.dumps({'scores': {'loss': time.time()}})",
            "not deterministic: with one seed, two runs differ in loss by",
        ),
    ],
)
def test_the_law_of_seeds_is_checked_before_a_study(folder, capsys, script, said):
    words = words_of(f"open(out, 'w').write({script})")
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


def test_the_last_line_of_a_run_is_what_a_terminal_would_show(tmp_path):
    log = tmp_path / "log.txt"
    assert last_line(log) == ""
    for written, shown in (
        ("step 1\nstep 2\n\n", "step 2"),
        ("10 %\r20 %\r", "20 %"),
        ("\x1b[31mred\x1b[0m [1/2]", "red [1/2]"),
        ("x" * 9999, "x" * 60),
    ):
        log.write_text(written)
        assert last_line(log) == shown


@pytest.mark.slow
def test_a_study_shows_what_its_running_commands_said_last(folder, capsys):
    script = TRAIN.replace("loss = 2.0", "import time\nprint('epoch 1', flush=True)\ntime.sleep(60)\nloss = 2.0")
    Path("train.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "-m", "ablab", "train", "-m", "experiment=lr", "logger=none"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(300):
            if any("epoch 1" in log.read_text() for log in Path("outputs").glob("runs/*/log.txt")):
                break
            time.sleep(0.1)
        assert main(["study", "experiment=lr"]) == 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.endswith("epoch 1")]
    assert line.split("   ")[:2] == ["  schedule=linear, seed 1", "training"]


@pytest.mark.slow
def test_an_input_may_be_mended_until_a_run_has_told_a_score(folder):
    """A launch that ended no run has shown nothing, so that claims stay what they were; later edits show."""
    Path("experiments/lr.yaml").write_text(STUDY.replace("[1, 2, 3]", "[1]"))
    place = Path("outputs/studies/lr/registered.json")

    def launched(script):
        Path("train.py").write_text(script)
        main(["train", "-m", "experiment=lr", "logger=none"])
        assert main(["report", "experiment=lr"]) in (0, 2)
        return len(json.loads(place.read_text()))

    assert launched("raise SystemExit('no data')") == 1
    assert launched(TRAIN) == 2
    report = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert not any("exploratory" in note or "settings differ" in note for note in report["notes"])
    assert report["claims"][0]["exploratory"] is None
    assert launched(f"{TRAIN}# edited\n") == 2, "what was registered stands once a run has ended"
    (later,) = Path("outputs/reports").glob("lr-*/report.json")
    assert "settings differ from those of the first launch" in json.loads(later.read_text())["claims"][0]["exploratory"]


def test_a_score_on_the_way_counts_as_seen(folder):
    Path("experiments/lr.yaml").write_text(STUDY.replace("[1, 2, 3]", "[1]"))
    study = define(("experiment=lr",))
    register(study)
    run = study.cells[0].planned.folder

    def entries_after(script, metrics):
        run.path.mkdir(parents=True, exist_ok=True)
        run.metrics.write_text(metrics)
        Path("train.py").write_text(script)
        register(define(("experiment=lr",)))
        return len(json.loads((study.folder / "registered.json").read_text()))

    assert entries_after(f"{TRAIN}# edited\n", "step,valid_val_loss\n") == 2
    assert entries_after(f"{TRAIN}# edited\n", "step,valid_val_loss\n") == 2, "nothing is new"
    assert entries_after(f"{TRAIN}# edited again\n", "step,valid_val_loss\n10,2.5\n") == 2
    assert entries_after(f"{TRAIN}# edited again\n", "no metrics\n1\n") == 2


@pytest.mark.slow
def test_scores_that_are_declared_later_or_called_otherwise_reach_lists_and_reports(folder, capsys):
    Path("train.py").write_text(TRAIN.replace('{"val_loss": loss}', '{"val_loss": loss, "error": loss / 4}'))
    text = STUDY.replace("[1, 2, 3]", "[1]")
    Path("experiments/lr.yaml").write_text(text)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    more = "{val_loss: {better: lower, unit: nats, digits: 2, title: loss}, error: {better: lower, digits: 1}}"
    Path("experiments/lr.yaml").write_text(re.sub("scores: .*", f"scores: {more}", text))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    capsys.readouterr()
    assert main(["ls"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["id", "state", "seed", "val_loss", "error"]
    assert re.search(r" [12]\.\d\d +0\.\d  ", rows[0])
    run = open_store("outputs").runs("error<9")[0]
    assert main(["show", f"run={run.id}"]) == 0
    assert "error 0." in capsys.readouterr().out
    assert main(["report", "experiment=lr"]) == 0
    report = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert (report["title"], report["digits"]) == ("loss", 2)
    assert [one["name"] for one in report["beside"]] == ["val_loss", "error"]
    assert report["claims"][0]["exploratory"] is None, "nothing that it says was judged otherwise"
    Path("experiments/lr.yaml").write_text(text.replace("better: lower", "better: higher"))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    assert "ways to judge differ from those of the first launch" in capsys.readouterr().out


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
    assert "helper.py is no input, so that to edit it makes no other run" in capsys.readouterr().out


def test_a_folder_with_the_store_is_the_same_input_after_a_run(folder):
    for _ in range(2):
        assert main(["train", *words_of(DONE, "task.inputs=[.]")]) == 0
    assert only_run().state == "finished"


def test_levels_are_what_they_are_in_the_file(folder):
    text = STUDY.replace("{schedule: [linear, cosine]}", "{rate: [1, 1.50, true, null, 'a, b', '007']}")
    Path("experiments/lr.yaml").write_text(text.replace("{schedule}", "{rate}").split("claims")[0])
    planned = {cell.arm: cell.planned.config.task.values["rate"] for cell in define(("experiment=lr",)).cells}
    named = {"rate=1": 1, "rate=1.5": 1.5, "rate=true": True, "rate=null": None, "rate=a, b": "a, b", "rate=007": "007"}
    assert planned == named


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


def test_nothing_is_said_of_parameters_that_a_command_has_not(folder, capsys):
    assert main(["study", "experiment=lr"]) == 0
    assert "builds every arm" not in capsys.readouterr().out
    assert main(["train", *words_of(DONE)]) == 0
    assert main(["show", f"run={only_run().id}"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("training ")]
    assert "parameters" not in line
    assert "selected step: 1" in line


@pytest.mark.slow
def test_a_score_without_a_unit_is_told_without_one(folder, capsys):
    text = STUDY.replace(", unit: nats", "")
    Path("experiments/lr.yaml").write_text(text)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    Path("experiments/more.yaml").write_text(text.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    capsys.readouterr()
    assert main(["study", "experiment=more"]) == 0
    assert re.search(r"4 seeds see a difference of [\d.]+ with 80 % power", capsys.readouterr().out)


@pytest.mark.slow
def test_a_study_whose_input_was_edited_says_that_it_is_another(folder, capsys):
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    Path("train.py").write_text(f"{TRAIN}\n# edited\n")
    assert main(["report", "experiment=lr"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "settings differ from those of the first launch; launched there was: experiment=lr" in line


@pytest.mark.slow
def test_the_time_of_a_run_may_be_the_metric_and_ends_when_the_command_does(folder):
    script = TRAIN.replace(
        "loss = 2.0", "import time; time.sleep(0.31 + 0.4 * (asked.schedule == 'linear'))\nloss = 2.0"
    )
    Path("train.py").write_text(script)
    text = STUDY.replace("seeds:", "metric: seconds\nseeds:")
    Path("experiments/lr.yaml").write_text(text)
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    report = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert (report["metric"], report["unit"]) == ("seconds", "s")
    assert [line["title"] for line in report["drift"]] == ["time of a run"]
    assert any(line.startswith("Drift of the baseline over the order of the runs: ") for line in report["methods"])
    assert report["claims"][0]["about"] == "time of a run"


def test_a_wait_ends_with_its_command(monkeypatch):
    """Looks at a command are far apart here, and it is over before the next."""
    monkeypatch.setattr("ablab.tasks.command.process.POLL", 30.0)
    began = time.monotonic()
    execute([sys.executable, "-c", "pass"], {}, lambda: None, timeout=None, grace=1.0)
    assert time.monotonic() - began < 20


def test_a_score_that_no_file_declares_is_none(folder):
    Path("experiments/lr.yaml").write_text(STUDY.replace("claims: [{", "claims: [{metric: accuracy, "))
    with pytest.raises(UserError, match="accuracy"):
        read(Path("experiments/lr.yaml"))


@pytest.mark.slow
def test_a_new_study_of_a_command_ends_in_a_verdict(folder, capsys, monkeypatch):
    assert main(["new", "mine", "kind=command"]) == 0
    monkeypatch.chdir("mine")
    assert main(["study", "experiment=schedule", "check=true"]) == 0
    assert main(["train", "-m", "experiment=schedule", "logger=none"]) == 0
    assert main(["report", "experiment=schedule"]) == 0
    assert "schedule=cosine is better than schedule=constant" in capsys.readouterr().out
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_a_sweep_that_is_killed_goes_on_to_the_same_store(folder, number):
    """Whatever moment it is: the same line, typed again, ends with the scores of a sweep that nothing has killed."""
    script = TRAIN.replace("loss = 2.0", "import time; time.sleep(0.3)\nloss = 2.0")
    Path("train.py").write_text(script)
    line = [sys.executable, "-m", "ablab", "train", "-m", "experiment=lr", "logger=none"]
    assert subprocess.run([*line, "outputs=whole"], stdout=subprocess.DEVNULL).returncode == 0
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(2 + number)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert subprocess.run(line, stdout=subprocess.DEVNULL).returncode == 0
    scores = [{run.id: run.scores["val_loss"] for run in open_store(store).runs()} for store in ("outputs", "whole")]
    assert scores[0] == scores[1]
    assert len(scores[0]) == 6
