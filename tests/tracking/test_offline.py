"""logger.offline=wandb: W&B's own offline session has all of a run, and `wandb sync` and `ablab sync` send it once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.tracking import sender
from ablab.tracking.wandb import Wandb
from tests.tracking.conftest import CARD
from tests.tracking.test_sending import assert_all_there_once, synced, told


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "runs" / "rabc"


def offline(run, card=CARD) -> Wandb:
    return Wandb(run, card, pytest.fail, "offline", "wandb")


def sessions(run) -> list[Path]:
    return sorted((run / "tracking" / "wandb").glob("offline-run-*"))


def synced_by_wandb(session) -> str:
    """What `wandb sync` says, as one would type it."""
    command = [sys.executable, "-m", "wandb", "sync", str(session)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_wandbs_own_tool_sends_the_session_and_nothing_is_left_for_ours(serve, run, capsys):
    tracker = offline(run)
    tracker.dataset("numbers up to 10", {"kind": "numbers", "digest": "abc"})
    told(tracker, run)
    (session,) = sessions(run)
    server = serve()
    synced_by_wandb(session)
    assert_all_there_once(server)
    assert server.runs["rabc"].exit_code == 0
    (dataset,) = server.artifacts.of_kind("dataset")
    assert dataset.name == "numbers_up_to_10"
    assert json.loads(dataset.metadata) == json.loads(dataset.files["dataset.json"])
    assert json.loads(dataset.metadata) == {"kind": "numbers", "digest": "abc"}
    (table,) = server.artifacts.of_kind("run_table")
    assert any(b'"data": [["x"]]' in content for content in table.files.values())
    assert synced(run) == 0
    assert "0 runs and studies" in capsys.readouterr().out


def test_ours_sends_it_too_and_nothing_is_left_for_wandbs_own(serve, run, capsys):
    told(offline(run), run)
    server = serve()
    assert synced(run) == 0
    assert_all_there_once(server)
    assert "No runs to sync" in synced_by_wandb(sessions(run)[0])
    assert synced(run) == 0
    assert "0 runs and studies" in capsys.readouterr().out


def test_a_run_that_goes_on_has_one_session_with_all_of_it(serve, run, capsys):
    told(offline(run), run, failed=True)
    (first,) = sessions(run)
    server = serve()
    synced_by_wandb(first)
    tracker = offline(run)
    tracker.log(70, {"train/loss": 0.1})
    tracker.finish(failed=False)
    (second,) = sessions(run)
    assert main(["sync", f"outputs={run.parents[1]}", "dry_run=true"]) == 0
    assert "rabc to p: not sent" in capsys.readouterr().out, "what came after the first was sent"
    synced_by_wandb(second)
    there = server.runs["rabc"]
    assert [step for step, _ in there.points("train/loss")] == [0, 10, 20, 30, 40, 50, 70]
    assert sorted(there.lines) == list(range(10))


def test_a_session_that_was_not_finished_vouches_for_nothing(run, monkeypatch):
    told(offline(run), run)
    (session,) = sessions(run)
    (file,) = session.glob("*.wandb")
    mark = file.with_suffix(".wandb.synced")
    mark.touch()
    assert sender.sent(run) == (run / "tracking" / "events.jsonl").stat().st_size
    mark.unlink()

    class KilledError(BaseException):
        pass

    def killed(*_):
        raise KilledError

    monkeypatch.setattr(sender, "_send", killed)
    with pytest.raises(KilledError):
        sender.main(run, "offline")
    mark.touch()  # `wandb sync` takes what there is of a session
    assert sender.sent(run) == 0


def test_whatever_wandb_raises_costs_a_line(run):
    said: list[str] = []
    (run / "tracking").mkdir(parents=True)
    (run / "tracking" / "dataset.json").mkdir()  # it cannot be written
    tracker = Wandb(run, CARD, said.append, "offline", "wandb")
    tracker.dataset("numbers", {"digest": "abc"})
    told(tracker, run)
    assert len(said) == 1
    assert said[0].startswith("W&B has not taken all of it (")
    assert said[0].endswith("; ablab sync sends the rest")


def test_without_the_library_a_line_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ablab.tracking.wandb.find_spec", lambda name: None)
    assert main(["train", "logger=wandb", "logger.offline=wandb", f"outputs={tmp_path}"]) == 2
    assert capsys.readouterr().err == "error: logger.offline=wandb: W&B is not installed; pip install wandb\n"


def test_events_alone_start_no_process(run, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    told(Wandb(run, CARD, print, "offline"), run)
    assert not sessions(run)
