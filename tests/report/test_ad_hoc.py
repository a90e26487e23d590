"""Runs of a store that nobody planned to compare: judged alike, or the report says that they are not."""

import json

import pytest

from ablab.tasks.identity import evaluation_id
from tests.report.conftest import typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")

WORDS = ("norm=pre,post", "seed=1,2,3", "logger=none")
ERRORS = {"norm=pre": 0.2, "norm=post": 0.3}


def _filled(outputs):
    return fill(WORDS, ERRORS, outputs=outputs)


def _judged_anew(cell, bleu):
    """By a wider beam, later."""
    folder = cell.planned.folder
    usual = folder.evaluation(cell.planned.evaluation_id)
    settings = {**usual.settings, "decoding": {**usual.settings["decoding"], "beam_size": 12}}
    update = {
        "settings": settings,
        "evaluation_id": evaluation_id(settings),
        "scores": {"bleu": bleu},
        "ended": "2099-01-01",
    }
    folder.write_evaluation(usual.model_copy(update=update), [""] * usual.sentences)


def _reported(outputs):
    code, _, err = typed("where=data=numbers", f"outputs={outputs}", "resamples=1000")
    assert (code, err) == (0, "")
    (folder,) = (outputs / "reports").iterdir()
    return json.loads((folder / "report.json").read_text())


def test_one_search_is_not_compared_with_another(tmp_path):
    study = _filled(tmp_path)
    before = _reported(tmp_path)
    assert before["notes"] == []
    for cell in study.cells:
        if cell.arm == "norm=post" or cell.seed == 1:
            _judged_anew(cell, 99.0)
    after = _reported(tmp_path)
    assert [arm["mean"] for arm in after["arms"]] == [arm["mean"] for arm in before["arms"]]
    assert after["differences"] == before["differences"]
    (note,) = after["notes"]
    assert note.startswith("scores are those on ")
    assert "beam_size=4" in note
    assert note.endswith("; 4 other evaluations are left out")


def test_what_most_runs_have_counts_and_of_several_the_latest(tmp_path):
    study = _filled(tmp_path)
    for cell in study.cells:
        _judged_anew(cell, 50.0 + cell.seed)
    assert {arm["mean"] for arm in _reported(tmp_path)["arms"]} == {52.0}


def test_arms_that_share_no_way_of_judging_are_told(tmp_path):
    study = _filled(tmp_path)
    for cell in study.cells:
        if cell.arm == "norm=post":
            _judged_anew(cell, 99.0)
            usual = cell.planned.folder.path / "evaluations" / f"{cell.planned.evaluation_id}.json"
            usual.unlink()
    gone, note = _reported(tmp_path)["notes"]
    assert gone.startswith("results that were entered are gone: ")
    assert note.startswith("arms are judged in different ways")
    assert "the defaults on" in note
    assert "beam_size=12" in note


def test_a_run_that_was_not_judged_like_the_others_is_missing(tmp_path):
    study = _filled(tmp_path)
    cell = study.cells[-1]
    _judged_anew(cell, 99.0)
    (cell.planned.folder.path / "evaluations" / f"{cell.planned.evaluation_id}.json").unlink()
    data = _reported(tmp_path)
    assert sorted((arm["finished"], arm["planned"]) for arm in data["arms"]) == [(2, 3), (3, 3)]
    assert any("1 not judged" in note for note in data["notes"])


def test_the_words_of_a_launcher_are_no_settings_of_a_report(tmp_path):
    _filled(tmp_path)
    code, _, err = typed(*WORDS, f"outputs={tmp_path}", "hydra.launcher.jobs=2", "resamples=1000")
    assert (code, err) == (0, "")
