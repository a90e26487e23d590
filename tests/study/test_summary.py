"""The table that a sweep ends with says what a mean does not."""

import csv

import pytest
from matplotlib.figure import Figure

from ablab.store.records import Stretch
from ablab.study.ledger import ledger
from ablab.sweep.plots import draw_learning
from ablab.sweep.summary import COMPARISON, close, figures, is_closed, rows_of, table_lines
from tests.report.synthetic import fill
from tests.study.pretend import pretend
from tests.translation import TRANSLATION

MACHINE = {"versions": {}, "threads": 1, "device": "x", "devices": 1, "micro_batches": 1, "compile": False}


def test_runs_that_changed_code_on_the_way_are_counted(study):
    for cell in study.cells:
        pretend(cell, 1.0)
    folder = study.cells[0].planned.folder
    codes = [Stretch(code=code, first_step=1, last_step=1, **MACHINE) for code in "ab"]
    folder.write_record(folder.record().model_copy(update={"stretches": codes}))
    entries = ledger(study)
    assert "1 mixed" in table_lines(study, entries)[1]
    (row,) = rows_of(study, entries)
    assert figures(TRANSLATION, row)["mixed"] == 1


WORDS = ("layerdrop=0,0.1", "seed=1,2,3", "logger=none")
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.2}


@pytest.fixture
def failing(tmp_path):
    """Two arms of three seeds; one run of the second diverged."""
    return fill(WORDS, ERRORS, outputs=tmp_path, diverged=frozenset({("layerdrop=0.1", 2)}))


def test_an_arm_with_a_diverged_run_has_no_mean_over_the_others(failing):
    entries = ledger(failing)
    whole, failed = (figures(TRANSLATION, row) for row in rows_of(failing, entries))
    scores = ("test_bleu", "test_bleu_sd", "test_chrf", "valid_loss")
    assert [failed[column] for column in scores] == [None] * 4
    assert None not in [whole[column] for column in scores]
    assert (failed["seeds"], failed["missing"]) == (2, "1 diverged")
    assert failed["seconds"] is not None  # a diverged run cost its time all the same
    assert table_lines(failing, entries)[2].split()[:6] == ["LayerDrop", "0.1", "2", "-", "-", "-"]
    close(failing, entries, lambda _: None)
    with (failing.folder / COMPARISON).open() as file:
        assert [row["test_bleu"] == "" for row in csv.DictReader(file)] == [False, True]


def test_arms_csv_is_of_the_runs_that_are_there_whoever_ended_them(failing):
    """A command that finds everything done ends no run; others may have, since arms.csv was written."""
    assert not is_closed(failing, ledger(failing))
    close(failing, ledger(failing), lambda _: None)
    assert is_closed(failing, ledger(failing))
    cell = next(cell for cell in failing.cells if cell.arm == "layerdrop=0")
    pretend(cell, 30.0)
    assert not is_closed(failing, ledger(failing))
    close(failing, ledger(failing), lambda _: None)
    assert is_closed(failing, ledger(failing))


def test_the_learning_curves_name_what_their_mean_leaves_out(failing, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    assert draw_learning(failing, ledger(failing), tmp_path / "curves.png")
    (legend,) = [panel.get_legend() for panel in figures[0].axes if panel.get_legend()]
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["no LayerDrop", "LayerDrop 0.1 (2 of 3 runs: 1 diverged)"]


def test_the_curves_of_many_arms_have_no_legend(failing, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    monkeypatch.setattr("ablab.sweep.plots.MOST_NAMED", 1)
    monkeypatch.setattr("ablab.sweep.plots.MOST_THIN", 1)
    assert draw_learning(failing, ledger(failing), tmp_path / "curves.png")
    assert not any(panel.get_legend() for panel in figures[0].axes)
    assert figures[0].get_suptitle() == "2 arms: the report names each"
    assert all(len(panel.lines) == 2 for panel in figures[0].axes)  # the means alone
