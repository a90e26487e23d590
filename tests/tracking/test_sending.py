"""Whatever the server does, the run goes on, the wait at its end is short, and afterwards each row is there once."""

import os
import signal
import time
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.commands.sync import unsent
from ablab.tracking import wandb
from ablab.tracking.events import EVENTS, FOLDER, Events
from ablab.tracking.sender import AGENTS
from ablab.tracking.server import KNOWN
from ablab.tracking.wandb import Wandb
from tests.tracking.conftest import CARD

STEPS = tuple(range(0, 60, 10))

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738"
    "550000000049454e44ae426082"
)


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "runs" / "rabc"


def told(tracker: Events, folder: Path, *, failed: bool = False) -> None:
    """A small run's worth of news."""
    for step in STEPS:
        tracker.log(step, {"train/loss": 1.0 / (1 + step)})
    tracker.table(20, "valid/samples", ["a"], [["x"]])
    (folder / "map.png").write_bytes(PIXEL)
    tracker.picture(20, "valid/map", folder / "map.png", "a map")
    tracker.along("layers", 2, {"pruning/bleu": 1.0})
    tracker.summary({"test/bleu": 20.0})
    tracker.finish(failed=failed)


def assert_all_there_once(server) -> None:
    there = server.runs["rabc"]
    assert [step for step, _ in there.points("train/loss")] == list(STEPS)
    assert [step for step, _ in there.points("valid/samples")] == [20]
    assert [step for step, _ in there.points("valid/map")] == [20]
    assert there.points("pruning/bleu", "axis/layers") == [(2, 1)]
    assert sorted(there.lines) == list(range(len(STEPS) + 3))
    assert there.summary["test/bleu"] == 20.0


def synced(run: Path) -> int:
    return main(["sync", f"outputs={run.parents[1]}"])


def test_a_run_is_sent_while_it_goes_on(serve, run, capsys):
    server, said = serve(), []
    tracker = Wandb(run, CARD, said.append, "online")
    tracker.log(0, {"train/loss": 1.0})
    while "rabc" not in server.runs:  # it is there before the run has ended
        time.sleep(0.05)
    told(tracker, run)
    assert said == []
    assert_all_there_once(server)
    there = server.runs["rabc"]
    assert there.exit_code == 0
    assert {"name": "rabc", "displayName": "s1", "project": "p", "groupName": "g"}.items() <= there.about.items()
    assert any(name.endswith(".png") and content == PIXEL for name, content in there.files.items())
    asked = server.asked
    assert synced(run) == 0
    assert "0 runs and studies" in capsys.readouterr().out
    assert server.asked == asked


def test_the_service_of_whoever_started_a_run_is_left_alone(serve, run, monkeypatch):
    serve()
    monkeypatch.setenv("WANDB_SERVICE", "3-1-tcp-localhost-1")  # nobody is there
    told(Events(run, CARD, print), run)
    assert synced(run) == 0


def test_under_an_agent_of_wandbs_sweeps_a_run_keeps_its_own_name_and_project(serve, run, monkeypatch):
    """All runs of a sweep, and its study, would otherwise be one run there, in the project of the agent."""
    server = serve()
    for name, value in zip(AGENTS, ("sw1", "agentrun", str(run / "params.yaml")), strict=True):
        monkeypatch.setenv(name, value)
    told(Events(run, CARD, print), run)
    assert synced(run) == 0
    assert list(server.runs) == ["rabc"]
    assert server.runs["rabc"].about["project"] == "p"


def test_a_last_line_that_a_kill_has_cut_off_is_nothing_to_send(serve, run):
    serve()
    told(Events(run, CARD, print), run)
    with (run / FOLDER / EVENTS).open("ab") as file:
        file.write(b'{"event": "row", "at"')
    assert synced(run) == 0
    assert [*unsent(run.parents[1])] == []


def test_what_was_told_offline_is_sent_once(serve, run, capsys):
    server = serve()
    began = time.time()
    told(Events(run, CARD, print), run, failed=True)
    ended = time.time()
    assert main(["sync", f"outputs={run.parents[1]}", "dry_run=true"]) == 0
    assert "rabc to p: not sent" in capsys.readouterr().out
    assert server.asked == 0
    assert synced(run) == 0
    assert_all_there_once(server)
    assert server.runs["rabc"].exit_code == 1
    times = [row["_timestamp"] for row in server.runs["rabc"].history]
    assert began - 1 <= min(times) <= max(times) <= ended + 0.001, "when it was told, not when it was sent"
    assert server.runs["rabc"].summary["started"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    later = Events(run, CARD, print)
    later.log(70, {"train/loss": 0.1})
    later.finish(failed=False)
    assert synced(run) == 0
    assert len(server.runs["rabc"].points("train/loss")) == len(STEPS) + 1
    assert sorted(server.runs["rabc"].lines) == list(range(len(STEPS) + 4))


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("refuses", "returned error 403"),
        pytest.param("hangs", "timed out", marks=pytest.mark.slow),
        pytest.param("fails", "HTTP 500", marks=pytest.mark.slow),
    ],
)
def test_a_server_that_takes_nothing_costs_a_line(manner, words, serve, run):
    server, said = serve(manner), []
    tracker = Wandb(run, CARD, said.append, "online")
    told(tracker, run)
    assert len(said) == 1
    assert words in said[0]
    assert said[0].endswith("ablab sync sends the rest")
    server.manner = "accepts"
    assert synced(run) == 0
    assert_all_there_once(server)


def test_a_server_that_is_not_there_is_found_at_once(serve, run, monkeypatch, capsys):
    serve().close()
    said: list[str] = []
    began = time.monotonic()
    told(Wandb(run, CARD, said.append, "online"), run)
    assert time.monotonic() - began < wandb.FINISH_SECONDS
    assert "no answer from" in said[0]
    assert synced(run) == 2
    assert "out of reach" in capsys.readouterr().err
    # A sweep has found it before: no process is started at all.
    monkeypatch.setenv(KNOWN, "no network")
    tracker = Wandb(run, CARD, said.append, "online")
    assert tracker._process is None
    tracker.finish(failed=False)
    assert "(no network)" in said[1]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["sender", "core"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_whatever_becomes_of_wandb_the_run_ends_soon_and_nothing_is_lost(victim, number, serve, run, monkeypatch):
    monkeypatch.setattr(wandb, "FINISH_SECONDS", 4.0)
    server, said = serve(), []
    tracker = Wandb(run, CARD, said.append, "online")
    tracker.log(0, {"train/loss": 1.0})
    while "rabc" not in server.runs:
        time.sleep(0.05)
    assert tracker._process is not None
    pid = tracker._process.pid
    (core,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(pid if victim == "sender" else int(core), number)
    began = time.monotonic()
    told(tracker, run)
    assert time.monotonic() - began < 20
    assert len(said) == 1
    for _ in range(100):
        if not Path(f"/proc/{core}").exists():
            break
        time.sleep(0.05)
    else:
        pytest.fail("W&B's process was left behind")
    assert synced(run) == 0
    assert_all_there_once(server)


@pytest.mark.slow
def test_a_server_that_dies_in_mid_run_has_each_row_once_afterwards(serve, run, monkeypatch):
    monkeypatch.setattr(wandb, "FINISH_SECONDS", 20.0)
    server, said = serve(rows=3), []
    told(Wandb(run, CARD, said.append, "online"), run)
    assert len(said) == 1
    server.manner, server.most_rows = "accepts", None
    assert synced(run) == 0
    assert_all_there_once(server)


@pytest.mark.slow
def test_a_slow_server_gets_everything(serve, run):
    server, said = serve("slow"), []
    told(Wandb(run, CARD, said.append, "online"), run)
    assert said == []
    assert_all_there_once(server)


def test_without_a_key_online_is_refused_in_a_line(serve, run, monkeypatch, capsys):
    serve()
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("NETRC", str(run / "netrc"))
    assert main(["train", "logger.mode=online", f"outputs={run.parents[1]}"]) == 2
    assert "there is no key for http://127.0.0.1" in capsys.readouterr().err
    assert main(["train", "-m", "seed=1,2", "logger.mode=online", f"outputs={run.parents[1]}"]) == 2
    assert "there is no key" in capsys.readouterr().err
    assert not run.parents[1].exists() or not list(run.parents[1].iterdir())
    told(Events(run, CARD, print), run)
    assert synced(run) == 2


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("logger.project=my/proj", "none of / \\ # ? % :"),
        ("logger.project=''", "1 to 128 characters"),
        ("logger.entity='a b'", "the name of a user or team"),
    ],
)
def test_names_that_wandb_refuses_are_refused_first(words, allowed, tmp_path, capsys):
    assert main(["train", words, f"outputs={tmp_path}"]) == 2
    assert allowed in capsys.readouterr().err


def test_one_that_cannot_be_sent_holds_up_no_other(serve, run, capsys):
    server = serve()
    damaged = run.parent / "raaa" / FOLDER / EVENTS
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{}\n")
    told(Events(run, CARD, print), run)
    assert synced(run) == 1
    assert_all_there_once(server)
    said = capsys.readouterr()
    assert said.err == f"error: {damaged} names no run: it is damaged, and can be removed; all else is sent\n"
    assert "[1/2] raaa: not sent" in said.out
    damaged.unlink()
    assert synced(run) == 0


@pytest.mark.parametrize("content", ['{"by', '"x"', "[1]", '{"bytes": null}', '{"bytes": 1e3, "written": "7"}', "\xff"])
def test_a_damaged_note_of_what_was_sent_holds_up_nothing(content, serve, run):
    """The server knows which rows it has."""
    server = serve()
    told(Events(run, CARD, print), run)
    assert synced(run) == 0
    (run / FOLDER / "sent.json").write_text(content, encoding="latin-1")
    assert synced(run) == 0
    assert_all_there_once(server)


def test_a_store_without_events_has_nothing_to_send(tmp_path, capsys):
    assert main(["sync", f"outputs={tmp_path}"]) == 0
    assert "0 runs and studies" in capsys.readouterr().out
    assert main(["sync", f"outputs={tmp_path}/nowhere"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_sessions_of_earlier_versions_are_named(tmp_path, capsys):
    session = tmp_path / "runs" / "r1" / "wandb" / "offline-run-1"
    session.mkdir(parents=True)
    (session / "run-r1.wandb").touch()
    assert main(["sync", f"outputs={tmp_path}"]) == 0
    assert "1 sessions are of an earlier version: wandb sync" in capsys.readouterr().out


@pytest.mark.slow
def test_an_event_file_is_all_that_is_kept(serve, run):
    serve()
    told(Wandb(run, CARD, print, "online"), run)
    names = {path.name for path in (run / FOLDER).iterdir()}
    assert names == {"events.jsonl", "sent.json", "log.txt", "valid-map-20.png", ".sending.lock"}
