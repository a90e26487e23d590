"""What is written is on disk before it has its name, and the name before anybody is told; locks end with a process."""

import errno
import fcntl
import os
import shutil
import stat

import pytest

from ablab.commands.cli import main
from ablab.errors import MachineError
from ablab.files import disk, sealed, sha256, write_json, write_text
from ablab.files.disk import keep_names, lock_at, move, publish, replacing
from ablab.store.metrics import MetricsFile
from ablab.store.register import Register


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Each sync and each rename below the folder, in their order: `("sync", "a/b")` or `("name", "a/b")`."""
    found = []
    replace = os.replace

    def below(path):
        return str(os.path.relpath(path, tmp_path))

    def fsync(handle):
        path = os.readlink(f"/proc/self/fd/{handle}")
        if path.startswith(str(tmp_path)):
            found.append(("sync", below(path)))

    def replaced(source, target, **rest):
        replace(source, target, **rest)
        found.append(("name", below(target)))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "rename", replaced)
    monkeypatch.setattr(disk, "_NAMED", set())
    return found


def test_content_is_synced_then_named_then_the_name_and_those_of_new_folders(calls, tmp_path):
    write_text(tmp_path / "a" / "b" / "file", "x")
    (content, temporary), *rest = calls
    assert content == "sync"
    assert temporary.startswith("a/b/.file.")
    assert rest == [("name", "a/b/file"), ("sync", "a/b"), ("sync", "a"), ("sync", ".")]
    calls.clear()
    write_text(tmp_path / "a" / "b" / "file", "y")  # the folders have their names for good
    assert [call for call in calls if call[0] == "sync"][1:] == [("sync", "a/b")]


def test_a_folder_that_is_made_anew_is_named_anew(calls, tmp_path):
    write_text(tmp_path / "a" / "file", "x")
    (tmp_path / "a").rename(tmp_path / "other")
    calls.clear()
    write_text(tmp_path / "a" / "file", "x")
    assert calls[-2:] == [("sync", "a"), ("sync", ".")]


def test_a_folder_is_published_with_all_that_is_in_it(calls, tmp_path):
    for name in ("made/file", "made/below/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    publish(tmp_path / "made", tmp_path / "place")
    named = calls.index(("name", "place"))
    assert set(calls[:named]) == {("sync", f"made{name}") for name in ("", "/file", "/below", "/below/file")}
    assert calls[named + 1] == ("sync", ".")


def test_a_folder_that_moves_is_synced_in_both_places(calls, tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    write_text(tmp_path / "here" / "it" / "file", "x")
    calls.clear()
    move(tmp_path / "here" / "it", tmp_path / "there" / "it")
    named = calls.index(("name", "there/it"))
    assert {("sync", "there"), ("sync", "here")} <= set(calls[named:])


def test_what_the_register_says_is_there_is_on_disk_and_so_is_the_register(calls, tmp_path):
    """The order: content, its waiting name, the register and its line, the name."""
    write_text(tmp_path / "runs" / "r1" / "x", "")
    calls.clear()
    Register(tmp_path).write(tmp_path / "runs" / "r1" / "record.json", {}, "written", run="r1", file="record.json")
    waiting = calls.index(("name", "runs/r1/.record.json.entering"))
    named = calls.index(("name", "runs/r1/record.json"))
    entry = calls.index(("sync", "register.jsonl"))
    assert calls[waiting + 1] == ("sync", "runs/r1")
    assert ("sync", ".") in calls[waiting:entry]  # which has the name of the new register
    assert waiting < entry < named
    assert calls[named + 1] == ("sync", "runs/r1")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("of_folder", [False, True])
def test_a_sync_that_fails_is_an_error_with_the_name_of_the_file(number, of_folder, monkeypatch, tmp_path):
    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode) == of_folder:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=os.strerror(number)) as told:
        write_json(tmp_path / "it.json", {})
    assert told.value.filename == str(tmp_path / "it.json")
    assert (tmp_path / "it.json").exists() == of_folder
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_a_file_system_that_syncs_no_folders_is_written_to_all_the_same(number, monkeypatch, tmp_path):
    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(tmp_path / "it", "x")
    keep_names(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
    with pytest.raises(OSError, match=os.strerror(number)), replacing(tmp_path / "it") as temporary:
        temporary.write_text("y")
    assert (tmp_path / "it").read_text() == "x"


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def lockless(request, monkeypatch):
    """A file system without locks, such as Lustre mounted with noflock, or NFS without its lock service."""

    def flock(handle, operation):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("lockless")
def test_a_file_system_without_locks_is_refused_and_no_file_takes_their_place(tmp_path):
    for _ in range(2):
        with pytest.raises(MachineError, match=f"{tmp_path}: lies on a file system without locks"):
            lock_at(tmp_path / "it.lock").acquire()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


@pytest.mark.usefixtures("lockless")
def test_a_run_in_such_a_store_is_refused_in_one_line(tmp_path, capsys):
    assert main(["train", "smoke=true", "logger=none", f"outputs={tmp_path}/o"]) == 2
    assert "lies on a file system without locks (flock); allowed: " in (said := capsys.readouterr().err)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert main(["ls", f"outputs={tmp_path}/o/smoke"]) == 0
    shutil.rmtree(tmp_path / "o")


def test_a_lock_keeps_others_out_and_ends_with_its_holder(tmp_path):
    from filelock import Timeout

    with lock_at(tmp_path / "it.lock"), pytest.raises(Timeout):
        lock_at(tmp_path / "it.lock", 0.01).acquire()
    with lock_at(tmp_path / "it.lock", 0.01):
        pass


def test_a_digest_for_a_record_is_of_what_is_on_disk(calls, tmp_path):
    (tmp_path / "metrics.csv").write_text("step\n")
    assert sealed(tmp_path / "metrics.csv") == sha256(tmp_path / "metrics.csv")
    assert calls == [("sync", "metrics.csv")]


def test_curves_are_on_disk_before_a_state_that_does_not_measure_them_again(calls, tmp_path):
    file = MetricsFile(tmp_path / "metrics.csv", ["step", "loss"], 0)
    calls.clear()
    file.write({"step": 1, "loss": 2.0})
    assert calls == []
    file.sync()
    assert calls == [("sync", "metrics.csv")]
    assert (tmp_path / "metrics.csv").read_text().endswith("1,2\n")
    file.close()


def test_a_move_to_a_full_file_system_leaves_no_half(monkeypatch, tmp_path):
    path, place = tmp_path / "a", tmp_path / "other" / "a"
    path.mkdir()
    place.parent.mkdir()
    (path / "content").write_text("all of it")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "another")))
    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(OSError, match="No space left on device"):
        move(path, place)
    assert not place.exists()
    assert (path / "content").read_text() == "all of it"
