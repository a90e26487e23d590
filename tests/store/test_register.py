"""The register of a store is a chain: whatever is done to its lines shows, and whatever was acknowledged stays."""

import errno
import json
import multiprocessing
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.store.chain import RECORD, Chain, complete
from ablab.store.register import ORIGIN, Register, file_digest, waiting_for


def _filled(store, entries=6):
    for number in range(entries):
        Register(store).append("written", run=f"r{number}", file=RECORD, digest=f"{number:016x}")
    return Register(store).path


def _damaged(path, change):
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
    return Chain.of(path.parent)


def test_each_line_holds_the_digest_of_the_one_before(tmp_path):
    chain = Chain.of(_filled(tmp_path).parent)
    assert [entry.before for entry in chain.entries] == [ORIGIN, *chain.digests[:-1]]
    assert [entry.what for entry in chain.entries] == ["begun", *6 * ["written"]]
    assert (chain.unreadable, chain.broken) == ([], [])
    assert chain.stamp == f"7:{chain.digests[-1]}"
    assert Chain.of(tmp_path / "nowhere").stamp is None


LINES = 7
FACTS = st.fixed_dictionaries({"what": st.just("written"), "run": st.sampled_from(["r0", "r1", "rx"])})


@given(
    how=st.sampled_from(["edit", "remove", "insert", "swap"]),
    one=st.integers(0, LINES - 2),
    other=st.integers(0, LINES - 1),
    facts=FACTS,
)
def test_every_change_but_one_at_the_end_breaks_the_chain(how, one, other, facts):
    """A change of the last line, or of all from some line on, is for a stamp to find."""
    with tempfile.TemporaryDirectory() as name:
        path = _filled(Path(name))
        whole = path.read_bytes().splitlines(keepends=True)

        def change(lines):
            if how == "edit":
                lines[one] = (json.dumps({**json.loads(lines[one]), **facts, "at": "1"}) + "\n").encode()
            elif how == "remove":
                del lines[one]
            elif how == "insert":  # one that follows the line before it
                before = json.loads(lines[one])["before"]
                lines.insert(one, (json.dumps({**facts, "at": "1", "before": before}) + "\n").encode())
            else:
                lines[one], lines[other] = lines[other], lines[one]

        chain = _damaged(path, change)
        changed = path.read_bytes().splitlines(keepends=True) != whole
        assert bool(chain.broken) == changed


@given(kept=st.integers(0, LINES - 1), more=st.integers(0, 3))
def test_a_cut_end_is_found_by_the_stamp_whatever_follows(kept, more):
    with tempfile.TemporaryDirectory() as name:
        path = _filled(Path(name))
        stamp = Chain.of(path.parent).stamp
        chain = _damaged(path, lambda lines: lines.__delitem__(slice(kept, None)))
        assert not chain.bears(stamp)
        for number in range(more):
            Register(path.parent).append("set aside", run=f"r{number}")
        chain = Chain.of(path.parent)
        assert (chain.broken, chain.bears(stamp)) == ([], False)


def test_stamps_stay_valid_as_the_register_grows(tmp_path):
    stamps = []
    for number in range(5):
        Register(tmp_path).append("set aside", run=f"r{number}")
        stamps.append(Chain.of(tmp_path).stamp)
    assert all(map(Chain.of(tmp_path).bears, stamps))
    assert not any(map(Chain.of(tmp_path).bears, ["", "0:", "x", f"5:{ORIGIN}", f"99:{ORIGIN}"]))


@pytest.mark.parametrize("torn", [b'{"at": "now", "wh', b"\xff" * 9000, b"{}"])
def test_a_torn_line_is_dropped(tmp_path, torn):
    path = _filled(tmp_path)
    stamp = Chain.of(tmp_path).stamp
    with path.open("ab") as file:
        file.write(torn)
    assert Chain.of(tmp_path).stamp == stamp
    Register(tmp_path).append("set aside", run="r1")
    chain = Chain.of(tmp_path)
    assert (chain.unreadable, chain.broken, len(chain.entries)) == ([], [], LINES + 1)


def test_a_torn_first_line_begins_again(tmp_path):
    path = _filled(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:20])
    Register(tmp_path).append("set aside", run="r1")
    assert [entry.what for entry in Chain.of(tmp_path).entries] == ["begun", "set aside"]


def test_a_line_longer_than_a_block_is_read_from_the_end(tmp_path):
    for number in range(1500):
        (tmp_path / "runs" / f"r{number:011}").mkdir(parents=True)
        (tmp_path / "runs" / f"r{number:011}" / RECORD).write_text("{}")
    Register(tmp_path).append("set aside", run="r1")
    Register(tmp_path).append("set aside", run="r1")
    chain = Chain.of(tmp_path)
    assert (chain.broken, len(chain.entries), len(chain.entries[0].runs)) == ([], 3, 1500)


def test_a_full_disk_leaves_no_entry(tmp_path, monkeypatch):
    path = _filled(tmp_path)
    whole = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ablab.store.register.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            Register(tmp_path).append("set aside", run="r1")
    assert path.read_bytes() == whole


def _append(store, who, number):
    for index in range(number):
        Register(store).append("written", run=f"r{who}", file=f"evaluations/{index}.json", digest="0")


def test_appends_of_several_processes_are_all_there_in_one_chain(tmp_path):
    spawn = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    processes = [spawn.Process(target=_append, args=(tmp_path, who, 25)) for who in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    chain = Chain.of(tmp_path)
    assert (chain.broken, chain.unreadable) == ([], [])
    assert [entry.what for entry in chain.entries].count("begun") == 1
    for who in range(4):
        files = [entry.file for entry in chain.entries if entry.run == f"r{who}"]
        assert files == [f"evaluations/{index}.json" for index in range(25)]


@pytest.mark.parametrize("entered", [True, False])
def test_a_file_whose_writing_was_killed_has_its_name_if_it_was_entered(tmp_path, entered):
    path = tmp_path / "studies" / "s" / "registered.json"
    Register(tmp_path).write(path, [1], "registered", study="s")
    Register(tmp_path).write(path, [1, 2], "registered", study="s")
    assert Chain.of(tmp_path).files["studies/s/registered.json"] == file_digest(path)
    waiting = waiting_for(path)
    waiting.write_text("[1, 2, 3]")
    if entered:
        Register(tmp_path).append("registered", study="s", digest=file_digest(waiting))
    complete(tmp_path, path)
    assert json.loads(path.read_text()) == ([1, 2, 3] if entered else [1, 2])
    assert not waiting.exists()


def test_a_register_begins_with_what_was_there_before(tmp_path):
    for place in ("runs/r1", "superseded/r2-1"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / RECORD).write_text("{}")
    old = tmp_path / "studies" / "s" / "registered.json"
    old.parent.mkdir(parents=True)
    old.write_text("[]")
    Register(tmp_path).append("set aside", run="r3")
    chain = Chain.of(tmp_path)
    assert chain.ended == {"r1", "r2"}
    assert chain.older_files == {"studies/s/registered.json": file_digest(old)}
