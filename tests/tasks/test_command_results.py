"""What a program gives back: its scores and items, its costs, its artefacts; each as it may be, and as it may not."""

import json
import math
import re
import zipfile
from pathlib import Path

import pytest

from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.store.artefacts import MatrixArtefact, SeriesArtefact, comparable_artefacts
from ablab.store.chain import Chain
from ablab.study.experiment import read
from ablab.tasks.command.artefacts import write_artefacts
from ablab.tasks.command.result import CommandError, read_result
from ablab.tasks.own import DivergedError
from tests.tasks.commands import DONE, STUDY, TRAIN, only_run, result, words_of

ANY = {"loss": (-math.inf, math.inf)}
"""A score without bounds."""


@pytest.mark.parametrize(("loss", "is_refused"), [(0, False), (1, False), (-0.01, True), (1.01, True)])
def test_a_score_lies_within_its_bounds(tmp_path, loss, is_refused):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"scores": {"loss": loss}}))
    if is_refused:
        with pytest.raises(CommandError, match=f"scores.loss={loss}: its bounds are 0 and 1"):
            read_result(path, {"loss": (0, 1)})
    else:
        assert read_result(path, {"loss": (0, 1)}).scores == {"loss": loss}


@pytest.mark.parametrize("loss", ["1e30", "-3.7e200", "NaN", "Infinity"])
def test_a_score_without_a_size_is_divergence(tmp_path, loss):
    path = tmp_path / "result.json"
    path.write_text(f'{{"scores": {{"loss": {loss}}}}}')
    with pytest.raises(DivergedError, match="loss is "):
        read_result(path, ANY)
    path.write_text('{"scores": {"loss": 9e29}}')
    assert read_result(path, ANY).scores == {"loss": 9e29}


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        ("pass", 1, "the command ended without a result: it wrote nothing to {result}"),
        ("sys.exit('no data')", 1, "the command ended with exit code 1: no data"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "the command was killed by SIGKILL"),
        (result("{'scores"), 1, "result.json: not readable as JSON"),
        (result('{"scores": {"loss": 1, "loss": 2}}'), 1, "result.json: not readable as JSON (it has loss twice)"),
        (result('{"scores": {"\\uD800": 1}}'), 1, "result.json: \\ud800 is half of a character; allowed: text"),
        ("os.mkdir(out)", 1, "result.json: no file; allowed: one that the command writes to {result}"),
        (result("[1]"), 1, "result.json: no object; allowed: such as"),
        (result('{"scores": {"error": 1}}'), 1, "result.json: scores: loss is missing, and there is error"),
        (
            result('{"scores": {"loss": "1.5"}}'),
            1,
            "result.json: scores.loss=1.5: allowed: a number, without quotes",
        ),
        (result('{"score": 1}'), 1, "result.json: score: no such key; allowed: scores, status, curve, items, cost"),
        (result("{}"), 1, "result.json: scores: loss is missing, and there is none"),
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
        ({"cost": {"seconds": "1"}}, "cost.seconds=1: allowed: a number, without quotes"),
        ({"cost": {"seconds": -0.1}}, "cost.seconds=-0.1: allowed: greater than or equal to 0"),
        ({"cost": {"seconds": float("inf")}}, "cost.seconds=inf: allowed: a finite number"),
        ({"cost": {"tokens": 1.5}}, "cost.tokens=1.5: allowed: a whole number"),
        ({"cost": {"memory": float("nan")}}, "cost.memory=nan: allowed: a whole number"),
        ({"cost": {"devices": 0}}, "cost.devices=0: allowed: greater than or equal to 1"),
        ({"cost": {"devices": True}}, "cost.devices=True: allowed: a whole number"),
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
        read_result(path, ANY)
    assert why in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("cost", [{}, {"seconds": 0, "tokens": 1e9, "memory": 0, "devices": 1}])
def test_a_cost_may_be_given_in_part_and_at_its_ends(tmp_path, cost):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"scores": {"loss": 1}, "cost": cost}))
    assert read_result(path, ANY).cost.model_dump(exclude_none=True) == cost


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
        read_result(tmp_path / "result.json", ANY)
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
        read_result(path, ANY)


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
        read_result(path, ANY)
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


def test_claims_about_tables_are_packed_with_a_run_and_verified(folder, capsys):
    Path("claims.yaml").write_text("metric: score\nbaseline: a\nseeds: [1, 2]\nclaims: [{arm: b, expect: greater}]\n")
    assert main(["register", "claims.yaml", "table=results.csv"]) == 0
    assert main(["train", *words_of(DONE)]) == 0
    assert main(["pack", f"runs={only_run().id}", "to=one.zip"]) == 0
    (kept,) = Path("outputs/claims").iterdir()
    with zipfile.ZipFile("one.zip") as packed:
        about = packed.read("README.md").decode()
        assert "ablab report" not in about, "runs alone are no study to report by name"
        assert "leaves out" not in about, "there are neither weights nor texts"
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


@pytest.mark.parametrize("lost", ["NaN", "null", '"NaN"', '"NA"'])
def test_a_declared_score_that_is_lost_on_the_way_does(folder, lost):
    assert (
        main(["train", *words_of(result(f'{{"scores": {{"loss": 2}}, "curve": [{{"step": 1, "loss": {lost}}}]}}'))])
        == 0
    )
    assert only_run().state == "diverged"


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
    assert any(line.startswith("The baseline changed over the order of the runs: ") for line in report["methods"])
    assert report["claims"][0]["about"] == "time of a run"


def test_a_score_that_no_file_declares_is_none(folder):
    Path("experiments/lr.yaml").write_text(STUDY.replace("claims: [{", "claims: [{metric: accuracy, "))
    with pytest.raises(UserError, match="accuracy"):
        read(Path("experiments/lr.yaml"))
