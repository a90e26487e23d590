"""What must be said beside any figure is said in every output, and each kind of it is among the notes."""

import csv
import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from ablab.api.study import LaunchedStudy
from ablab.api.tables import Rows
from ablab.commands.report import _say, _write, track_report
from ablab.judge.document import Document
from ablab.judge.selection_of_study import of_study
from ablab.judge.setup import setup
from ablab.report.checklist import facts
from ablab.report.dashboard.content import Content
from ablab.report.dashboard.send import as_sent, report
from ablab.report.latex import breakable
from ablab.report.names import named
from ablab.report.sentences import methods, notes
from ablab.report.tables import tables
from ablab.tracking.console import Console
from ablab.tracking.open import Guarded
from ablab.tracking.tracker import Tracker

NOTES = ["10 runs were given up on 2026-11-25: the machine is gone", "all 3 claims are exploratory: seen before"]


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data).model_copy(update={"notes": NOTES})


@pytest.fixture
def written(document, tmp_path, undrawn):
    _write(document.model_dump(), named(document), tmp_path / "noted")
    return tmp_path / "noted"


@pytest.mark.parametrize(
    ("steps", "of_mean", "said"), [([900, 1000], 4.0, True), ([900, 1000], 4.5, False), ([1000], 4.0, False)]
)
def test_weights_that_averaging_made_worse_are_said(reported, steps, of_mean, said):
    """The last of them validates at a BLEU of 5.5."""
    selection = of_study(reported.study)

    def averaged(run):
        validations = [{"step": 900.0, "bleu": 7.0}, {"step": 1000.0, "bleu": 5.5}]
        selected = run.record.selected.model_copy(update={"steps": steps, "scores": {"bleu": of_mean}})
        return replace(run, record=run.record.model_copy(update={"selected": selected, "validations": validations}))

    arms = [replace(arm, runs=list(map(averaged, arm.runs))) for arm in selection.arms if not arm.diverged]
    found = [note for note in notes(replace(selection, arms=arms), []) if note.startswith("averaged weights")]
    runs = sum(len(arm.runs) for arm in arms)
    line = f"averaged weights are worse on validation than the last of them in {runs} of {runs} runs, by 1.50 BLEU on"
    assert found == [f"{line} average"] * said
    count = {len(steps)} - {1}
    assert [line for line in methods(selection, []) if line.startswith("They are means")] == []
    told = [line for line in methods(replace(selection, arms=arms), []) if line.startswith("They are means")]
    assert told == [f"They are means of {one} checkpoints." for one in count]


TEXTS = ("report.html", "report.md", "report.tex", "column_table.tex", "column_figure.tex", "column_methods.tex")


def test_every_file_says_it(document, written):
    files = {path.name for path in written.iterdir()}
    assert files == {*TEXTS, "checklist.md", "report.json", *(f"{table.key}.csv" for table in tables(document))}
    for note in NOTES:
        for name in (*TEXTS, "checklist.md"):
            said = breakable(note) if name.endswith(".tex") else note
            assert said in (written / name).read_text(encoding="utf-8"), name
    assert json.loads((written / "report.json").read_text())["notes"] == NOTES
    for table in tables(document):
        for row in csv.DictReader((written / f"{table.key}.csv").read_text(encoding="utf-8").splitlines()):
            assert row["report says"] == "; ".join(NOTES)


def test_nothing_is_said_where_there_is_nothing_to_say(document, tmp_path, undrawn):
    silent = document.model_copy(update={"notes": []})
    _write(silent.model_dump(), silent, tmp_path / "plain")
    for name in TEXTS[3:]:
        assert "Note:" not in (tmp_path / "plain" / name).read_text(encoding="utf-8")


def test_the_terminal_says_it(document, tmp_path, capsys):
    _say(document, tmp_path, Console())
    said = capsys.readouterr().out
    assert all(f"Note: {note}" in said for note in NOTES)


def test_the_report_in_wandb_says_it(document):
    content = Content(
        "s", "p", None, "arm", ("r1",), "BLEU", ("test/bleu",), ("valid/bleu",), (), document, is_ours=True
    )
    sent = json.dumps(as_sent(report(content, "team")))
    assert all(note in sent for note in NOTES)


def test_the_run_of_the_study_in_wandb_says_it(document, reported, monkeypatch):
    seen = {}

    class Heard(Tracker):
        summary = staticmethod(seen.update)

    tracker = Guarded(Heard(), "W&B", print)
    monkeypatch.setattr("ablab.commands.report.open_study_tracker", lambda *_: nullcontext(tracker))
    assert track_report(document, reported.study, print)
    assert seen["report/notes"] == "; ".join(NOTES)
    Heard.summary = lambda *_: 1 / 0
    assert not track_report(document, reported.study, print), "what it has missed is told again"


def test_rows_in_python_and_their_frame_say_it(document, reported):
    study = LaunchedStudy(of_study(reported.study))
    study.__dict__["document"] = document
    assert study.notes == NOTES
    assert study.table().notes == study.table()[:2].notes == tuple(NOTES)
    assert study.to_pandas().attrs["notes"] == NOTES
    assert Rows([{"a": 1}]).to_pandas().attrs["notes"] == []


@pytest.fixture(scope="module")
def selection(reported):
    return of_study(reported.study)


def test_claims_that_are_exploratory_are_counted_with_their_reasons(selection, reported):
    claims = Document.model_validate(reported.data).claims
    late = [claims[0].model_copy(update={"exploratory": "it came later"}), *claims[1:]]
    assert notes(selection, claims) == []
    assert notes(selection, late) == [f"1 of {len(claims)} claims is exploratory: it came later"]
    flawed = replace(selection, flaws=("results were edited", "runs are gone"))
    every = [claim.model_copy(update={"exploratory": "results were edited; runs are gone"}) for claim in claims]
    said = f"all {len(claims)} claims are exploratory, for what is said above"
    assert notes(flawed, every) == [*flawed.flaws, said]
    elsewhere = replace(selection, origin="origin not verified")
    told, better = notes(elsewhere, claims)
    assert told == "origin not verified: the figures are not from runs of a store"
    assert better.startswith("taken as better: higher test BLEU")


def test_only_a_registration_before_the_runs_fixes_settings(selection):
    late = selection.registered.model_copy(update={"runs_already_done": 6})
    departed = "seeds 4, 5 of the first launch are left out"
    for one, why in (
        (selection, None),
        (replace(selection, registered=None), "no study registered them"),
        (replace(selection, registered=late), "6 of the runs had finished when the study was registered"),
        (replace(selection, departed=departed), departed),
    ):
        assert setup(one).unfixed == why


@pytest.mark.parametrize("why", ["no study registered them", "6 of the runs had finished", "seeds 4, 5 are left out"])
def test_the_checklist_does_not_say_that_settings_were_fixed_where_nothing_shows_it(document, why):
    fixed, open_ = (
        dict(facts(document.model_copy(update={"setup": document.setup.model_copy(update={"unfixed": unfixed})})))
        for unfixed in (None, why)
    )
    assert "all values were registered before its runs" in fixed["Search"]
    assert f"nothing shows that they were fixed before the runs, since {why}." in open_["Search"]
    assert "registered before" not in open_["Search"]
