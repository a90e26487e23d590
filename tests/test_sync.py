"""What was logged offline is uploaded once; a server that refuses is said in one line, and nothing is lost."""

import io
import subprocess
import urllib.error

import pytest

from ablab.cli import main

SENT = "run-x.wandb.synced"


@pytest.fixture(autouse=True)
def _reachable(monkeypatch):
    monkeypatch.setattr("ablab.commands.sync.urllib.request.urlopen", lambda *_, **__: io.BytesIO())


@pytest.fixture
def store(tmp_path):
    """Two runs, the first with two sessions, and a study; all offline."""
    for place in (
        "runs/r1/wandb/offline-run-1",
        "runs/r1/wandb/offline-run-2",
        "runs/r2/wandb/offline-run-1",
        "studies/a/wandb/offline-run-1",
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run-x.wandb").write_bytes(b"")
    (tmp_path / "runs/r2/wandb/run-2").mkdir()  # was online
    return tmp_path


class Server:
    """Stands in for `wandb sync`."""

    def __init__(self, code=0):
        self.code, self.sent = code, []

    def __call__(self, command, **_):
        from pathlib import Path

        if self.code == 0:
            for session in command[4:]:
                (Path(session) / SENT).touch()
            self.sent.append([session.split("/")[-3] + "/" + session[-1] for session in command[4:]])
        return subprocess.CompletedProcess(command, self.code, "", "something\nNetwork error\n")


def test_each_session_is_sent_once_in_order(store, monkeypatch, capsys):
    server = Server()
    monkeypatch.setattr("ablab.commands.sync.subprocess.run", server)
    assert main(["sync", f"outputs={store}"]) == 0
    assert server.sent == [["r1/1", "r1/2"], ["r2/1"], ["a/1"]]
    assert main(["sync", f"outputs={store}"]) == 0
    assert len(server.sent) == 3
    assert "0 runs and studies" in capsys.readouterr().out


def test_a_dry_run_sends_nothing(store, monkeypatch, capsys):
    server = Server()
    monkeypatch.setattr("ablab.commands.sync.subprocess.run", server)
    assert main(["sync", f"outputs={store}", "dry_run=true"]) == 0
    assert server.sent == []
    assert "r1: 2 sessions, not sent" in capsys.readouterr().out


def test_a_server_that_refuses_is_said(store, monkeypatch, capsys):
    monkeypatch.setattr("ablab.commands.sync.subprocess.run", Server(code=1))
    assert main(["sync", f"outputs={store}"]) == 2
    assert capsys.readouterr().err.endswith("(Network error); sessions sent before remain there\n")


def test_a_server_that_is_not_there_is_said_at_once(store, monkeypatch, capsys):
    def refused(*_, **__):
        raise urllib.error.URLError("connection refused")

    server = Server()
    monkeypatch.setattr("ablab.commands.sync.subprocess.run", server)
    monkeypatch.setattr("ablab.commands.sync.urllib.request.urlopen", refused)
    assert main(["sync", f"outputs={store}"]) == 2
    assert "out of reach" in capsys.readouterr().err
    assert server.sent == []


def test_no_store_no_sync(tmp_path, capsys):
    assert main(["sync", f"outputs={tmp_path}/nowhere"]) == 2
    assert "no such folder" in capsys.readouterr().err
