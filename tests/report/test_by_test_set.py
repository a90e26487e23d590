"""Several test sets are shown apart: each with the BLEU that sacrebleu gives its sentences."""

import csv
import json
import statistics

import pytest

from ablab.store.records import EvaluatedSet
from ablab.transformer.data.scoring import bleu
from tests.report.conftest import typed
from tests.report.synthetic import SENTENCES, corpus, fill

SETS = [EvaluatedSet(name="news", sentences=100), EvaluatedSet(name="talks", sentences=SENTENCES - 100)]
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.2": 0.2}


@pytest.fixture
def two_sets(tmp_path, undrawn):
    """A study of two arms and three seeds on two test sets, and the folder of its report."""
    words = ("layerdrop=0,0.2", "seed=1,2,3", "logger=none", f"outputs={tmp_path}")
    study = fill(words[:-1], ERRORS, outputs=tmp_path)
    for cell in study.cells:
        folder = cell.planned.folder
        evaluation = folder.evaluation(cell.planned.evaluation_id)
        folder.write_evaluation(
            evaluation.model_copy(update={"test_sets": SETS}), folder.hypotheses(evaluation.evaluation_id)
        )
    code, _, err = typed(*words, "resamples=1000")
    assert (code, err) == (0, "")
    (report,) = (tmp_path / "reports").iterdir()
    return study, report


def test_each_arm_has_its_bleu_on_each_test_set(two_sets, tmp_path):
    study, report = two_sets
    _, references = corpus(tmp_path)
    lines = json.loads((report / "report.json").read_text())["test_sets"]
    assert [(line["test_set"], line["sentences"], line["arm"]) for line in lines] == [
        (one.name, one.sentences, arm) for one in SETS for arm in ERRORS
    ]
    for line in lines:
        part = slice(0, 100) if line["test_set"] == "news" else slice(100, None)
        folders = [cell.planned for cell in study.cells if cell.arm == line["arm"]]
        found = [bleu(planned.folder.hypotheses(planned.evaluation_id)[part], references[part]) for planned in folders]
        assert (line["mean"], line["sd"], line["n"]) == (
            pytest.approx(statistics.fmean(found)),
            pytest.approx(statistics.stdev(found)),
            3,
        )


def test_every_format_has_the_table(two_sets):
    _, report = two_sets
    first = json.loads((report / "report.json").read_text())["test_sets"][0]
    with (report / "test_sets.csv").open() as file:
        row = next(csv.DictReader(file))
    assert (row["test set"], row["arm"]) == ("news", "no LayerDrop")
    assert float(row["test BLEU"]) == pytest.approx(first["mean"])
    for name, title in (("report.md", "## By test set"), ("report.tex", "by test set"), ("report.html", "By test set")):
        text = (report / name).read_text()
        assert title in text
        assert f"{first['mean']:.2f}" in text


def test_one_test_set_has_no_such_table(reported):
    assert reported.data["test_sets"] == []
    assert not (reported.folder / "test_sets.csv").exists()
    assert "By test set" not in reported.text("report.html")
