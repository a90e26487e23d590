"""The ledger of a loop: what is on record, whatever is edited, killed or asked at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ablab.commands.cli import main
from ablab.errors import DROPPED, RUN_FAILED
from ablab.files import write_json
from ablab.store.chain import Chain
from ablab.store.failures import write_failure
from ablab.store.register import LOOP as LEDGER
from ablab.store.register import Register, file_digest, waiting_for
from ablab.study.definition import define
from ablab.study.loop import Book, Declaration, Ledger, ledger_of, read_loop
from ablab.sweep.loop_runs import LoopRuns, RunFailedError
from ablab.tracking.console import Console
from tests.loop.loops import LOOP, TRAIN, book, propose, started
from tests.study.conftest import SMALL


def test_a_loop_whose_name_has_a_dot_is_no_other_loop(tmp_path):
    for name in ("loop", "v1.2"):
        write_json(Ledger(tmp_path, name).path, {})
    found = {
        name: None if (ledger := ledger_of([f"experiment={name}"], tmp_path)) is None else ledger.name
        for name in ("loop", "loop.2", "v1.2", "my/loop.yaml", "v1.2.yml")
    }
    assert found == {"loop": "loop", "loop.2": None, "v1.2": "v1.2", "my/loop.yaml": "loop", "v1.2.yml": "v1.2"}


def test_the_ledger_hears_of_the_run_that_failed_and_not_of_those_that_were_stopped_for_it(tmp_path):
    first, second = define((*SMALL, "seed=1,2", f"outputs={tmp_path}")).cells

    def launch(*_):
        write_failure(second.planned.folder.failure, "error", "no memory for it", None)
        return True

    launcher = SimpleNamespace(check=list, launching=lambda fail_fast: launch)
    runs = LoopRuns(SimpleNamespace(name="loop"), tmp_path, launcher, Console(bars=False))
    with pytest.raises(RunFailedError, match=f"{second.planned.run_id}: no memory for it"):
        runs.train([first, second])


def test_the_reason_is_registered_before_any_run(folder):
    Path("train.py").write_text("import sys; sys.exit('it never trains')")
    assert main(["try", "lr=0.2", "because=a reason"]) == 1
    (proposal,) = book().proposals
    assert (proposal.because, proposal.seeds, proposal.outcome) == ("a reason", [], "open")
    register = Path("outputs/register.jsonl").read_text().splitlines()
    assert json.loads(register[1])["what"] == "loop", "the proposal stands before any run"


def test_a_ledger_is_shown_whose_floor_diverged(folder, capsys):
    Path("train.py").write_text(TRAIN.replace("lr > 9", "lr > 0.1"))
    assert propose("width=9") == 0
    Path("train.py").write_text(TRAIN.replace("lr > 9", "width > 8"))
    assert propose("lr=0.2") == 1
    assert "diverged; allowed: another file, with those of its kept changes in common" in capsys.readouterr().err
    assert main(["loop"]) == 0
    said = capsys.readouterr().out
    assert "Floor: loop: a run of the floor diverged" in said
    assert "0 runs so far" not in said
    assert "width=9" in said
    assert main(["loop", "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["floor"] == []


def test_a_change_whose_code_is_again_as_it_was_goes_on_with_its_seeds(folder, capsys):
    """Others would be a second chance; without any it could never be judged."""
    text = LOOP.replace("runs: 40", "runs: 4").replace("looks: [1, 2]", "looks: [1, 3]").replace("0.3]", "0.9999]")
    Path("experiments/loop.yaml").write_text(text)
    assert propose("width=7.9") == 2
    assert "proposal 1 needs 2 more runs" in capsys.readouterr().err
    (before,) = book().proposals
    assert (before.outcome, len(before.looks), len(before.seeds)) == ("open", 1, 1)
    Path("experiments/loop.yaml").write_text(text.replace("runs: 4", "runs: 40"))
    Path("train.py").write_text(f"{TRAIN}\n# edited\n")
    propose("width=7.9")
    assert book().proposals[0].outcome == "set aside"
    Path("train.py").write_text(TRAIN)
    assert propose("width=7.9") == DROPPED
    after = book().proposals[0]
    assert (after.number, after.outcome, after.why) == (1, "dropped", "")
    assert after.seeds[:1] == before.seeds


def test_a_look_and_what_it_decides_are_written_at_once(folder, monkeypatch):
    """After a kill between them, a change that was dropped would go on."""
    written, write = [], Ledger.write
    monkeypatch.setattr(Ledger, "write", lambda ledger, found: written.append(found) or write(ledger, found))
    assert propose("width=7") == DROPPED
    assert [each.proposals[0].outcome for each in written if each.proposals and each.proposals[0].looks] == ["dropped"]


def test_a_reader_changes_no_ledger_that_another_process_writes(folder):
    ledger = Ledger(folder / "outputs", "loop")
    loop = read_loop("loop").loop
    first = Book(declared=[Declaration(at="2026-01-01T00:00:00Z", content="1", said=loop.model_dump(mode="json"))])
    ledger.write(first)
    waiting = waiting_for(ledger.path)
    second = first.model_copy(update={"declared": [*first.declared, *first.declared]})
    write_json(waiting, second.model_dump(mode="json"))
    assert ledger.read() == first
    Register(ledger.outputs).append(LEDGER, study="loop", digest=file_digest(waiting))
    assert ledger.read() == second
    assert waiting.exists()
    with ledger.alone(print):
        assert not waiting.exists()
        assert ledger.read() == second


def test_an_edited_ledger_is_refused_and_verify_tells(folder, capsys):
    propose("width=7")
    path = Path("outputs/studies/loop/loop.json")
    path.write_text(path.read_text().replace('"dropped"', '"kept"'))
    assert propose("lr=0.2") == 2
    assert "not the ledger that was registered" in capsys.readouterr().err
    assert main(["verify", "outputs=outputs", "stamp=0:0"]) in (1, 2)


def test_a_failure_stays_on_record_whatever_is_deleted_or_restored(folder, capsys):
    assert propose("width=7") == DROPPED
    shutil.copytree("outputs", "before")
    assert propose("width=100") == RUN_FAILED
    stamp = Chain.of(Path("outputs")).stamp
    for record in Path("outputs/runs").glob("*/failure.json"):
        shutil.rmtree(record.parent)
    assert propose("width=100") == RUN_FAILED, "it may be proposed again"
    assert [proposal.outcome for proposal in book().proposals] == ["dropped", "failed", "failed"]
    shutil.rmtree("outputs")
    shutil.copytree("before", "outputs")
    capsys.readouterr()
    assert main(["verify", "experiment=loop", f"stamp={stamp}"]) == 1, "a store of before lacks what the stamp saw"
    Path("outputs/register.jsonl").unlink()
    assert propose("width=6") == 2
    assert "not the ledger that was registered" in capsys.readouterr().err


def test_an_edited_file_is_on_record(folder, capsys):
    propose("width=7")
    file = Path("experiments/loop.yaml")
    file.write_text(file.read_text().replace("margin: 0.05", "margin: 0.5"))
    propose("width=6")
    assert [one.said["margin"] for one in book().declared] == [0.05, 0.5]
    assert "it was edited since" in capsys.readouterr().out
    file.write_text(file.read_text().replace("margin: 0.5", "margin: 0.7"))
    propose("width=6")
    assert "it was edited since" in capsys.readouterr().out
    assert [one.said["margin"] for one in book().declared] == [0.05, 0.5, 0.7], "also where nothing was run"
    propose("width=6")
    assert "it was edited since" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "seeds"), [("[1, 2]", "[2]", [1, 2]), ("[2, 3]", "[2]", [2, 2]), ("[1, 3]", "[1, 2]", [1, 2])]
)
def test_edited_looks_go_on_where_a_proposal_is(folder, before, after, seeds):
    """One that was stopped between two looks; where no look is left, the last one decides by its rules."""
    file = Path("experiments/loop.yaml")
    file.write_text(LOOP.replace("[1, 2]", before))
    assert propose("lr=0.2") == 0
    there = book()
    (kept,) = there.proposals
    stopped = kept.model_copy(update={"outcome": "open", "looks": kept.looks[:1]})
    Ledger(Path("outputs"), "loop").write(there.model_copy(update={"proposals": [stopped], "floors": there.floors[:1]}))
    levels = "stop: [0.3]" if "," in after else "stop: []"
    file.write_text(file.read_text().replace(before, after).replace("stop: [0.3]", levels))
    assert propose("lr=0.2") == 0
    assert [look.seeds for look in book().proposals[0].looks] == seeds


def test_another_metric_is_another_loop(folder, capsys):
    propose("width=7")
    file = Path("experiments/loop.yaml")
    file.write_text(file.read_text().replace("metric: val_loss", "metric: seconds"))
    assert propose("width=6") == 2
    assert "metric=seconds: its proposals were judged by val_loss" in capsys.readouterr().err
    assert [one.said["metric"] for one in book().declared] == ["val_loss"]


def test_a_floor_of_edited_inputs_says_why_it_is_trained_anew(folder, capsys):
    propose("width=7")
    Path("train.py").write_text(f"{TRAIN}# edited\n")
    propose("width=6")
    first, second = (floor.why for floor in book().floors)
    assert first == "the first of the baseline"
    assert second == "the one before is of another recipe: its settings or inputs were edited"


@pytest.mark.slow
def test_two_proposers_at_once_are_judged_in_one_order(folder):
    Path("pause.txt").write_text("0.05")
    asked = [
        subprocess.Popen([sys.executable, "-m", "ablab", "try", f"width={width}", "because=x"], stdout=subprocess.PIPE)
        for width in (3, 4)
    ]
    for one in asked:
        one.communicate()
    assert [one.returncode for one in asked] == [DROPPED, DROPPED]
    assert sorted(proposal.words for proposal in book().proposals) == [["width=3"], ["width=4"]]
    assert len(book().floors) == 1


@pytest.mark.slow
def test_a_killed_proposer_goes_on_with_the_seeds_that_were_drawn(folder):
    Path("pause.txt").write_text("0.2")
    with subprocess.Popen(
        [sys.executable, "-m", "ablab", "try", "lr=0.2", "because=x"], stdout=subprocess.DEVNULL, start_new_session=True
    ) as asked:
        while not (Path("started.txt").exists() and len(started()) >= 4):
            time.sleep(0.02)
        os.killpg(asked.pid, signal.SIGKILL)
    (before,) = book().proposals
    assert (before.outcome, bool(before.seeds)) == ("open", True)
    Path("pause.txt").write_text("0")
    assert propose("lr=0.2") == 0
    (after,) = book().proposals
    assert after.seeds[: len(before.seeds)] == before.seeds
    assert len(book().floors) == 1


@pytest.mark.slow
def test_a_loop_is_packed_and_verified_with_its_ledger(folder, capsys):
    assert propose("lr=0.2") == 0
    assert propose("width=7") == DROPPED
    assert main(["confirm", "hydra.launcher.jobs=4"]) == 0
    capsys.readouterr()
    assert main(["verify", "experiment=loop"]) == 0, capsys.readouterr().out
    assert main(["pack", "experiment=loop", "to=loop.zip"]) == 0
    with zipfile.ZipFile("loop.zip") as packed:
        names = packed.namelist()
    assert {"studies/loop/loop.json", "reports/loop/confirmation.md", "register.jsonl"} <= {*names}
    runs = book().runs + (3 + 1) * 2
    assert sum(name.endswith("/record.json") for name in names) == runs
    assert main(["verify", "archive=loop.zip"]) == 0, capsys.readouterr().out
    path = Path("outputs/studies/loop/loop.json")
    path.write_text(path.read_text().replace("it should help", "it was planned"))
    capsys.readouterr()
    assert main(["verify", "experiment=loop"]) == 1
    assert "loop.json is not what was entered: it was edited" in capsys.readouterr().out
