"""Stores of commands: of which study a run is, what conditions select, and what verify, pack, diff and rm say of it."""

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from ablab import run
from ablab.api import open as open_store
from ablab.commands import ls
from ablab.commands.cli import main
from ablab.commands.rm import _as_condition
from ablab.errors import INTERRUPTED, UserError
from ablab.store.chain import Chain
from ablab.tasks.command.task import Command
from ablab.tracking.tracker import Tracker, closing
from tests.tasks.commands import DONE, TRAIN, words_of
from tests.tasks.commands import STUDY as COSINE

STUDY = """
question: Does size matter?
command: [python, train.py, --schedule, "{size}", --seed, "{seed}", --out, "{result}"]
inputs: [train.py]
scores: {val_loss: {better: lower}}
factors: {size: [linear, cosine]}
common: [logger=none]
seeds: [1, 2]
claims: [{arm: size=cosine, expect: less}]
"""


@pytest.fixture
def launched(folder, capsys):
    """A study that was launched. Another one, `alpha`, of the same runs was launched after it."""
    Path("train.py").write_text(TRAIN)
    for name in ("zeta", "alpha"):
        Path(f"experiments/{name}.yaml").write_text(STUDY)
        assert main(["train", "-m", f"experiment={name}"]) == 0
    capsys.readouterr()
    return folder


def said(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    out, err = capsys.readouterr()
    return out + err


def test_a_run_is_of_the_study_that_planned_it_last(launched, capsys):
    assert {each.arm.study for each in open_store("outputs").runs()} == {"alpha"}
    os.utime("outputs/studies/zeta/runs.json")
    assert {each.arm.study for each in open_store("outputs").runs()} == {"zeta"}


def test_a_factor_called_size_is_what_its_condition_is_about(launched, capsys):
    assert len(open_store("outputs").runs("size=linear")) == 2
    assert "2 runs" in said(capsys, "rm", "where=size!=linear", "dry_run=true")


@pytest.mark.parametrize("name", ["val_loss", "state", "label"])
def test_a_value_named_as_a_score_or_a_column_is_refused(folder, capsys, name):
    Path("train.py").write_text(TRAIN)
    Path("experiments/bad.yaml").write_text(STUDY.replace("{size}", f"{{{name}}}").replace("size", name))
    assert f"values.{name}: that is a" in said(capsys, "study", "experiment=bad", code=2)


def test_a_study_called_tracking_is_packed_whole(folder, capsys):
    Path("train.py").write_text(TRAIN)
    Path("experiments/tracking.yaml").write_text(STUDY)
    assert main(["train", "-m", "experiment=tracking"]) == 0
    os.utime("outputs/studies/tracking/arms.csv", (0, 0))  # as in images that can be made again
    assert main(["pack", "experiment=tracking", "to=t.zip"]) == 0
    assert "none is broken" in said(capsys, "verify", "archive=t.zip")


def test_a_study_whose_folder_is_gone_is_missed(launched, capsys):
    stamp = Chain.of(Path("outputs")).stamp
    assert "All that was checked holds" in said(capsys, "verify", f"stamp={stamp}")
    shutil.rmtree("outputs/studies/zeta")
    assert "zeta" in said(capsys, "verify", f"stamp={stamp}", code=1)


def test_a_key_is_typed_once(launched, capsys):
    first, second = [each.id for each in open_store("outputs").runs()][:2]
    assert f"run={second}: run is given twice" in said(capsys, "rm", f"run={first}", f"run={second}", code=2)
    assert len(open_store("outputs").runs()) == 4


def test_a_run_that_was_set_aside_is_verified_by_what_was_entered_of_it(launched, capsys):
    one = open_store("outputs").runs()[0].id
    said(capsys, "rm", f"run={one}")
    (aside,) = Path("outputs/superseded").iterdir()
    assert "none is broken" in said(capsys, "verify", f"run={aside}")
    record = aside / "record.json"
    record.write_text(record.read_text().replace('"finished"', '"finished" '))
    assert "record.json is not in the register" in said(capsys, "verify", f"run={aside}", code=1)


def test_runs_of_two_stores_and_runs_of_two_seeds_are_told_apart(launched, capsys):
    shutil.copytree("outputs", "other")
    one, two = [each.id for each in open_store("outputs").runs("size=linear")]
    again = said(capsys, "diff", f"outputs/runs/{one}", f"other/runs/{one}")
    assert "Two runs of one recipe and one seed: they differ by their code, versions or machine alone." in again
    assert "Both are the same run." in said(capsys, "diff", one, f"outputs/runs/{one}")
    assert "Two seeds of one recipe" in said(capsys, "diff", one, two)


def test_a_run_is_found_by_its_path_before_it_has_a_record(launched, capsys):
    one = open_store("outputs").runs()[0].id
    Path(f"outputs/runs/{one}/record.json").unlink()
    assert one in said(capsys, "show", f"run=outputs/runs/{one}")
    assert f"run={'x' * 300}: no such run" in said(capsys, "show", f"run={'x' * 300}", code=2)


def test_a_run_without_a_record_is_found_by_the_names_of_its_command(launched, capsys):
    run = next(Path("outputs/runs").glob("r*"))
    size = open_store("outputs").run(run.name).values["size"]
    shutil.rmtree(run / "evaluations")
    (run / "record.json").unlink()
    store = open_store("outputs")
    assert store.run(run.name).task == "command"
    assert run.name in {each.id for each in store.runs(f"size={size} state=interrupted")}
    with pytest.raises(UserError, match="has not finished"):
        store.run(run.name).translate(["x"])


def test_ages_are_read_and_counted_in_utc(monkeypatch):
    ended = datetime.now(timezone.utc) - timedelta(hours=3)
    assert ls.age(ended.strftime("%Y-%m-%dT%H:%M:%SZ")) == "3 h"
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    today = datetime.now(timezone.utc).date()
    assert _as_condition("0d") == f"ended<={today.isoformat()}"
    assert _as_condition("30d") == f"ended<={(today - timedelta(days=30)).isoformat()}"


def test_means_over_arms_say_what_lists_say(launched, capsys):
    one = open_store("outputs").runs()[0].id
    Path(f"outputs/runs/{one}/record.json").write_text("{")
    assert f"damaged: {one}" in said(capsys, "ls", "by=arm")


@pytest.mark.parametrize(("ends", "decided"), [(True, False), (False, False), (False, True)])
def test_a_tracker_learns_whether_training_came_to_its_end(folder, monkeypatch, ends, decided):
    """A trial that its search has ended came to it."""
    told = []

    class Search:
        def __init__(self, trial, say):
            self.ends = decided

        def __call__(self, validations, total_steps):
            return None

    class Told(Tracker):
        def finish(self, *, failed):
            told.append(failed)

    monkeypatch.setattr(run, "open_tracker", lambda planned, say: closing(Told()))
    if not ends:
        monkeypatch.setattr(Command, "train", lambda self, work, callbacks, stops: None)
    monkeypatch.setattr(run, "Stopping", Search)
    words = [word for word in words_of(DONE) if not word.startswith("logger")]
    assert main(["train", *words, "logger=none", "search_trial=there"]) == (0 if ends else INTERRUPTED)
    assert told == [not ends and not decided]


def test_a_factor_may_be_called_as_a_field(folder, capsys):
    """`task=mnli` is what people type and what lists show."""
    Path("experiments/lr.yaml").write_text(
        COSINE.replace("schedule: [", "task: [").replace("schedule=", "task=").replace("{schedule}", "{task}")
    )
    assert main(["train", "-m", "experiment=lr", "logger=none", "seed=1"]) == 0
    capsys.readouterr()
    store = open_store("outputs")
    assert len(store.runs("task=cosine")) == 1
    assert len(store.runs("task!=cosine")) == 1
