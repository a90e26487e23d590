"""Curves of heads of a real run: beside those of layers, saved as models, gone on with, and never measured twice."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
import torch

from ablab.commands.cli import main
from ablab.files import read_json
from ablab.judge.comparisons import pictured
from ablab.judge.selection_ad_hoc import of_runs
from ablab.store.run_folder import CARD
from ablab.transformer.pruning.heads import Heads
from ablab.transformer.pruning.saved_model import ModelCard, find_model, of_run
from ablab.transformer.pruning.surgery import prune
from ablab.transformer.stages.callbacks import TrackerCallback
from ablab.transformer.stages.models import load_model
from ablab.transformer.translation.validation import Validator
from tests.pruning.conftest import pruned, the_run
from tests.run.conftest import make_store

MEASURED = (
    *("parameters", "bytes", "test_set", "test_bleu", "test_chrf", "valid_loss", "valid_bleu"),
    *("sentences_per_second", "speed_ratio", "combinations"),
)
HEAD_COLUMNS = ("strategy", "heads", "encoder", "decoder", "cross", *MEASURED)

CPU = torch.device("cpu")
FEWEST = 8
"""Attentions of 2 encoder and 3 decoder layers."""


def head_curves(run):
    return [curve for curve in run.curves() if curve.of_heads]


@pytest.fixture(scope="module")
def small(deep):
    """The run's model with one head in each attention."""
    said = pruned(deep, "pruning=importance", f"save={FEWEST}")
    assert said.code == 0, said.out
    (line,) = [line for line in said.out.splitlines() if line.startswith("Next: ")]
    return line.rpartition("run=")[2]


def test_the_curve(deep, small):
    run = the_run(deep)
    curve = next(curve for curve in head_curves(run) if curve.label == "importance")
    totals = [Heads.of(point.heads).total for point in curve.points]
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] == FEWEST
    assert curve.combinations == 0
    assert curve.settings["pruning"] == {"kind": "importance", "what": "heads"}
    first, selected = curve.points[0], run.record().selected
    assert first.valid["loss"] == pytest.approx(selected.scores["loss"], rel=1e-6)
    assert first.parameters == run.record().cost.parameters
    assert run.evaluation(first.evaluation_id).settings.get("kept") is None
    last = curve.points[-1]
    assert last.parameters < first.parameters
    evaluation = run.evaluation(last.evaluation_id)
    assert evaluation.settings["kept"] == {f"{site}_heads": layers for site, layers in last.heads.items()}
    assert last.scores == {name: evaluation.scores[name] for name in ("bleu", "chrf")}
    importance = read_json(run.head_importance)
    for site, layers in last.heads.items():
        for kept, row in zip(layers, importance[site], strict=True):
            assert row[kept[0]] == max(row)


def test_the_files_stand_beside_those_of_layers(deep, small):
    run = the_run(deep)
    pruned(deep, "pruning=every_other", "save=none")
    with (run.artefacts / "heads_quality.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEAD_COLUMNS
    assert {"importance"} <= {row["strategy"] for row in rows} <= {"importance", "random, seed 1", "greedy"}
    assert rows[0]["encoder"] == "1 2 | 1 2"
    series = json.loads((run.artefacts / "heads_quality.json").read_text())
    assert series["x"]["title"] == "heads kept"
    assert (run.artefacts / "heads_quality.png").read_bytes().startswith(b"\x89PNG")
    with (run.artefacts / "depth_quality.csv").open(newline="") as file:
        assert "importance" not in {row["strategy"] for row in csv.DictReader(file)}


@pytest.mark.slow
def test_random_and_greedy_join_the_picture(deep, small, tmp_path):
    said = pruned(deep, "pruning=random", "pruning.what=heads", "save=none")
    assert "random, seed 1" in said.out
    said = pruned(deep, "pruning=greedy", "pruning.what=heads", "pruning.budget=24", "save=none")
    greedy = next(curve for curve in head_curves(the_run(deep)) if curve.label == "greedy")
    assert 0 < greedy.combinations <= 24
    assert f"among {greedy.combinations} sets of heads" in said.out
    picture = tmp_path / "x.png"
    assert pruned(deep, "pruning=importance", f"picture={picture}", "save=none").code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    with picture.with_suffix(".csv").open(newline="") as file:
        assert {"importance", "greedy"} <= {row["strategy"] for row in csv.DictReader(file)}


def test_the_saved_model_is_the_full_one_without_the_heads(deep, small, capsys, monkeypatch, tmp_path):
    run = the_run(deep)
    saved = find_model(small, run.outputs)
    card = ModelCard.model_validate(read_json(saved.weights.parent / CARD))
    assert card.heads is not None
    whole, _ = load_model(of_run(run, run.record()), CPU)
    expected = prune(whole, Heads.of(card.heads)).state_dict()
    model, _ = load_model(saved, CPU)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two\n\nthree\n")))
    assert main(["translate", f"run={small}", f"outputs={tmp_path}"]) == 0
    assert capsys.readouterr().out.count("\n") == 3


def test_a_card_of_before_has_all_heads(deep, small):
    card = read_json(find_model(small, the_run(deep).outputs).weights.parent / CARD)
    del card["heads"]
    assert ModelCard.model_validate(card).heads is None


def test_what_a_model_of_fewer_heads_cannot_do_is_said_in_one_line(deep, small, capsys, tmp_path):
    pytest.importorskip("ctranslate2")
    for words in (
        ("export", f"run={small}", f"folder={tmp_path / 'exported'}"),
        ("train", f"init_from={small}", f"outputs={tmp_path / 'out'}"),
    ):
        assert main(list(words)) == 2
        err = capsys.readouterr().err
        assert "heads were removed" in err
        assert "allowed: a run, or a model that layers were removed from" in err
        assert err.count("\n") == 1


BAD = {
    "pruning=importance pruning.what=layers": ["pruning.what=layers", "allowed: pruning.what=heads"],
    "pruning=every_other pruning.what=heads": ["pruning.what=heads", "allowed with pruning=", "importance", "random"],
    "pruning=data_driven pruning.what=heads": ["pruning.what=heads", "allowed with pruning=", "importance", "random"],
    "pruning=importance pruning.heads=[7]": ["pruning.heads=[7]", "allowed: 8 to 16"],
    "pruning=importance pruning.heads=[17]": ["pruning.heads=[17]", "allowed: 8 to 16"],
    "pruning=importance pruning.curves=[decoder]": ["pruning.curves=[decoder]", "pruning=importance"],
    "pruning=importance save=2+2": ["save=2+2: no point of this curve", "16, "],
}


@pytest.mark.parametrize("line", BAD)
def test_what_cannot_be_is_said_in_one_line(line, deep, capsys):
    assert main(["prune", f"run={the_run(deep).path}", *line.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in BAD[line]:
        assert part in err


@pytest.mark.slow
def test_an_interrupted_curve_goes_on_where_it_was(deep, monkeypatch):
    from ablab.transformer.translation import prune_curve
    from ablab.transformer.translation.evaluate import Evaluator

    def until_the_race(*_):
        raise KeyboardInterrupt

    def never(*_, **__):
        raise AssertionError("measured again")

    words = ("pruning=search", "pruning.what=heads", "pruning.heads=[10]", "save=none")
    with monkeypatch.context() as patch:
        patch.setattr(prune_curve.TranslationBench, "timing", until_the_race)
        assert pruned(deep, *words).code == 130
    for owner, name in ((Evaluator, "evaluate"), (Validator, "loss"), (Validator, "bleu")):
        monkeypatch.setattr(owner, name, never)
    monkeypatch.setattr(prune_curve, "head_importance", never)
    assert pruned(deep, *words).code == 0
    assert next(curve for curve in head_curves(the_run(deep)) if curve.label == "search").combinations > 0
    monkeypatch.setattr(prune_curve, "measure", never)
    assert "nothing is measured again" in pruned(deep, *words).out


class Noted:
    """A tracker that only notes what it is sent."""

    def __init__(self):
        self.tables, self.pictures, self.points = {}, [], []

    def table(self, step, key, columns, rows, *, of):
        self.tables[key] = (columns, rows)

    def picture(self, step, key, path, caption, *, of):
        self.pictures.append(key)

    def along(self, axis, x, values):
        self.points.append((axis, x, values))


def test_a_tracker_gets_an_axis_of_heads(deep, small):
    (curve,) = [curve for curve in head_curves(the_run(deep)) if curve.label == "importance"]
    noted = Noted()
    TrackerCallback(noted, Path("metrics.csv")).on_curve(1, curve, Path("heads_quality.png"))
    columns, table = noted.tables["pruning/heads/importance"]
    assert tuple(columns) == HEAD_COLUMNS
    assert {len(row) for row in table} == {len(columns)}
    assert noted.pictures == ["pruning/heads_quality"]
    assert [(axis, x) for axis, x, _ in noted.points] == [("heads_kept", x) for x in sorted(row[1] for row in table)]
    assert noted.points[-1][2]["pruning/heads/importance/test_bleu"] == curve.points[0].scores["bleu"]


def test_a_report_shows_heads_beside_depths(deep, small):
    run = the_run(deep)
    shown = {series.key: series for series in pictured(of_runs(run.run_id, run.outputs))}
    assert {"decoder_depth", "heads", "heads_speed"} <= set(shown)
    (line,) = shown["heads"].lines
    assert FEWEST <= line.x[0] < line.x[-1] == 2 * FEWEST, "the newest of the curves"
    assert shown["heads"].x == "heads kept of the whole model"


@pytest.mark.slow
def test_training_ends_with_the_curve(tmp_path):
    store = make_store(tmp_path, "pruning=importance", "logger=none")
    (curve,) = store.run.curves()
    assert curve.of_heads
    assert "heads" in store.said.out
