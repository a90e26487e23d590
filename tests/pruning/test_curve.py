"""The curve that every run leaves: points that are evaluations, chosen on validation, never on the test set."""

import csv
import json
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from ablab.config import compose
from ablab.store.spent import read_spent
from ablab.transformer.data.scoring import score
from ablab.transformer.stages.pruning_curve import label
from tests.pruning.conftest import pruned, the_run
from tests.run.conftest import typed

MEASURED = (
    *("parameters", "bytes", "test_set", "test_bleu", "test_chrf", "valid_loss", "valid_bleu"),
    *("sentences_per_second", "speed_ratio", "combinations"),
)
COLUMNS = ("strategy", "curve", "layers", "encoder", "decoder", *MEASURED)


def the_curve(run, label):
    """The whole one: other tests may have asked for some of its depths."""
    return max((curve for curve in run.curves() if curve.label == label), key=lambda curve: len(curve.points))


def table(run):
    with (run.artefacts / "depth_quality.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_training_leaves_the_curve_of_the_paper(deep):
    run = the_run(deep)
    curve = the_curve(run, "every_other")
    decoder = [point for point in curve.points if point.curve == "decoder"]
    both = [point for point in curve.points if point.curve == "both"]
    assert [len(point.decoder) for point in decoder] == [len(point.decoder) for point in both] == [3, 2, 1]
    assert [len(point.encoder) for point in decoder] == [2, 2, 2]
    assert [len(point.encoder) for point in both] == [2, 1, 1]
    assert curve.combinations == 0
    for word in ("every_other", "decoder alone", "both stacks", "1.00x"):
        assert word in deep.said.out


@pytest.mark.parametrize("kind", ["greedy", "search"])
def test_a_label_says_that_both_stacks_shrink_together_where_they_do(kind):
    """Pictures and tables keep one curve of a label."""

    def said(*words):
        return label(compose([f"pruning={kind}", *words]).config.pruning)

    assert said() == said("pruning.what=heads") == said("pruning.curves=[decoder]") == kind
    assert said("pruning.together=true") == f"{kind} together"


def test_a_label_says_nothing_of_together_where_it_has_no_effect():
    pruning = compose(["pruning=greedy", "pruning.together=true"]).config.pruning
    assert label(pruning.model_copy(update={"curves": ["decoder"]})) == "greedy"
    assert label(pruning.model_copy(update={"what": "heads"})) == "greedy"


def test_the_first_point_is_the_model_itself(deep):
    run = the_run(deep)
    point = the_curve(run, "every_other").points[0]
    selected = run.record().selected
    # The record's figures are those of the same weights on the same text.
    assert point.valid["loss"] == pytest.approx(selected.scores["loss"], rel=1e-6)
    assert point.valid["bleu"] == pytest.approx(selected.scores["bleu"])
    assert point.parameters == run.record().cost.parameters
    assert point.speed_ratio == 1.0
    assert run.evaluation(point.evaluation_id).settings.get("kept") is None
    assert point.bytes > 4 * point.parameters * 0.99


def test_every_point_is_an_evaluation_of_its_layers(deep):
    run = the_run(deep)
    for point in the_curve(run, "every_other").points[1:]:
        evaluation = run.evaluation(point.evaluation_id)
        if len(point.decoder) < 3:
            assert evaluation.settings["kept"] == {"encoder": point.encoder, "decoder": point.decoder}
        assert point.scores == {name: evaluation.scores[name] for name in ("bleu", "chrf")}
        assert (run.path / "evaluations" / f"{point.evaluation_id}.txt").exists()


def test_fewer_layers_have_fewer_parameters(deep):
    for name in ("decoder", "both"):
        points = [point for point in the_curve(the_run(deep), "every_other").points if point.curve == name]
        for one, fewer in pairwise(points):
            assert fewer.parameters < one.parameters
            assert fewer.bytes < one.bytes


def test_another_strategy_joins_the_table_and_the_picture(deep):
    run = the_run(deep)
    assert pruned(deep, "pruning=first", "pruning.curves=[decoder]", "save=none").code == 0
    rows = table(run)
    assert tuple(rows[0]) == COLUMNS
    assert {row["strategy"] for row in rows} >= {"every_other", "first"}
    first = [row for row in rows if row["strategy"] == "first"]
    assert [row["decoder"] for row in first] == ["1 2 3", "1 2", "1"]
    assert [row["layers"] for row in first] == ["3", "2", "1"]
    series = json.loads((run.artefacts / "depth_quality.json").read_text())
    assert "decoder: first" in {line["label"] for line in series["series"]}
    assert (run.artefacts / "depth_quality.png").read_bytes().startswith(b"\x89PNG")


def test_a_search_finds_the_lowest_validation_loss_of_all(deep):
    run = the_run(deep)
    assert pruned(deep, "pruning=search", "pruning.finalists=1", "save=none").code == 0
    found = the_curve(run, "search")
    assert found.combinations == 3 + 3 + 2  # 2 and 1 of 3 decoder layers, 1 of 2 encoder layers
    best = {len(p.decoder): p.valid["loss"] for p in found.points if p.curve == "decoder"}
    for other in run.curves():
        for point in other.points:
            if point.curve == "decoder":
                assert best[len(point.decoder)] <= point.valid["loss"]


@pytest.mark.parametrize("verb", ["train", "prune"])
def test_the_account_has_a_curve_that_was_stopped(verb, deep, monkeypatch):
    def stopped(*_):
        time.sleep(0.2)
        raise KeyboardInterrupt

    before = read_spent(the_run(deep).spent)["curve"]
    monkeypatch.setattr("ablab.transformer.translation.prune_curve.measure", stopped)
    words = ("pruning=greedy", "pruning.together=true")
    said = pruned(deep, *words) if verb == "prune" else typed(*deep.words, *words)
    assert said.code == 130
    assert read_spent(the_run(deep).spent)["curve"] >= before + 0.2


@pytest.mark.slow
def test_a_search_never_sees_the_test_set(deep, monkeypatch):
    """Scores of the test set that favour the shallowest model choose the same layers."""
    run = the_run(deep)
    words = ("pruning=search", "pruning.curves=[decoder]", "save=none")
    assert pruned(deep, *words).code == 0
    monkeypatch.setattr(
        "ablab.transformer.translation.evaluate.score", lambda *texts: replace(score(*texts), bleu=99.0)
    )
    assert pruned(deep, *words, "decoding.beam_size=2").code == 0
    one, other = (c for c in run.curves() if (c.label, c.settings["pruning"].get("curves")) == ("search", ["decoder"]))
    assert one.curve_id != other.curve_id
    assert {99.0} == {point.scores["bleu"] for point in other.points} != {point.scores["bleu"] for point in one.points}
    assert [point.decoder for point in one.points] == [point.decoder for point in other.points]


def test_nothing_is_measured_twice(deep, monkeypatch):
    pruned(deep, "pruning=last", "pruning.curves=[decoder]", "save=none")
    monkeypatch.setattr("ablab.transformer.translation.prune_curve.measure", _never)
    said = pruned(deep, "pruning=last", "pruning.curves=[decoder]", "save=none")
    assert said.code == 0
    assert "nothing is measured again" in said.out


def test_an_interrupted_curve_goes_on_where_it_was(deep, monkeypatch):
    from ablab.transformer.translation import prune_curve as measure
    from ablab.transformer.translation.evaluate import Evaluator

    def until_the_race(*_):
        raise KeyboardInterrupt

    words = ("pruning=random", "pruning.seed=7", "save=none")
    with monkeypatch.context() as patch:
        patch.setattr(measure.TranslationBench, "timing", until_the_race)
        assert pruned(deep, *words).code == 130
    monkeypatch.setattr(Evaluator, "evaluate", _never)
    assert pruned(deep, *words).code == 0


def _never(*_, **__):
    raise AssertionError("measured again")


def test_the_strategies_of_one_run_share_what_is_equal(deep):
    run = the_run(deep)
    pruned(deep, "pruning=first", "pruning.curves=[decoder]", "save=none")
    whole = {curve.points[0].evaluation_id for curve in run.curves() if curve.settings["decoding"]["beam_size"] == 4}
    assert len(whole) == 1
