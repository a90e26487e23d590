"""An archive holds what fits its register, whatever is written to the store meanwhile, and no secrets."""

import pytest

from ablab.errors import UserError
from ablab.store import pack as packing
from ablab.store.chain import Chain
from ablab.store.pack import STORAGE, Contents, pack, unpack
from ablab.store.register import Register
from ablab.store.run_folder import RunFolder


@pytest.fixture
def store(tmp_path):
    """A store with a run and a study, which the register knows."""
    outputs = tmp_path / "outputs"
    run = outputs / "runs" / "r1"
    (run / "evaluations").mkdir(parents=True)
    (run / "metrics.csv").write_text("step\n1\n")
    Register(outputs).write(outputs / "studies" / "s" / "registered.json", [1], "registered", study="s")
    return outputs


def _packed(store, place):
    runs, studies = [RunFolder(store / "runs" / "r1")], [store / "studies" / "s"]
    return pack(place, "s", "now", runs, studies, Contents(weights=False))


def _while_packing(monkeypatch, then):
    """Let `then` happen when the first file has been read."""
    happened = []

    def digest(path):
        found = known(path)
        if not happened:
            happened.append(path)
            then()
        return found

    known = packing.sha256
    monkeypatch.setattr(packing, "sha256", digest)


def test_runs_that_end_meanwhile_are_no_fault_of_an_archive(store, tmp_path, monkeypatch):
    _while_packing(
        monkeypatch, lambda: Register(store).append("written", run="r2", file="record.json", digest="0" * 16)
    )
    index = _packed(store, tmp_path / "a.zip")
    (tmp_path / "theirs").mkdir()
    assert unpack(tmp_path / "a.zip", tmp_path / "theirs") == index
    assert index.stamp == Chain.of(tmp_path / "theirs").stamp != Chain.of(store).stamp


def test_what_is_packed_and_changes_meanwhile_is_said(store, tmp_path, monkeypatch):
    registered = store / "studies" / "s" / "registered.json"
    _while_packing(monkeypatch, lambda: Register(store).write(registered, [1, 2], "registered", study="s"))
    with pytest.raises(UserError, match=r"registered\.json changed while it was packed"):
        _packed(store, tmp_path / "a.zip")
    metrics = store / "runs" / "r1" / "metrics.csv"
    _while_packing(monkeypatch, lambda: metrics.write_text("step\n1\n2\n"))
    with pytest.raises(UserError, match=r"metrics\.csv changed while it was packed"):
        _packed(store, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_the_storage_of_a_search_is_left_out(store, tmp_path):
    """The URL of a database may hold a password."""
    (store / "studies" / "s" / STORAGE).write_text("postgresql://me:secret@host/db")
    assert not any(STORAGE in place for place in _packed(store, tmp_path / "a.zip").files)
