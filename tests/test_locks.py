"""Locks are held by one process at a time, and a refusal names the process that holds one."""

import errno
import os
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from filelock import FileLock

from ablab.errors import BusyError, TakenOverError, UserError
from ablab.files import write_text
from ablab.store.heartbeat import DEAD, Heartbeat, Pulse, heartbeat, read_pulse
from ablab.store.locks import hold, is_former, is_held, is_running, locked, owned
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder


def test_a_lock_is_held_until_the_block_ends(tmp_path):
    path = tmp_path / "new" / "lock"
    assert not is_held(path)
    with hold(path, lambda: "unused"):
        assert is_held(path)
        with pytest.raises(BusyError, match=r"^it is busy; wait for it, or stop it$"), hold(path, lambda: "it is busy"):
            pass
    assert not is_held(path)


def test_the_end_of_a_run_leaves_no_pulse_of_any_process(tmp_path):
    """A kill between a pulse and its name leaves a file of that process, which no other writes again."""
    folder, other = (RunFolder(tmp_path / "runs" / name) for name in ("r1", "r12"))
    folder.path.mkdir(parents=True)
    for left in (folder.pulse.with_name(f"{folder.pulse.name}.123"), other.pulse):
        left.write_text("{")
    with heartbeat(folder.pulse):
        pass
    assert sorted(path.name for path in folder.path.parent.glob(".*")) == [other.pulse.name]


def test_a_refusal_names_the_process_if_it_has_a_heartbeat(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "r1")
    with locked(folder):
        with pytest.raises(BusyError, match=r"^r1 is being worked on by another process; wait"), locked(folder):
            pass
        with heartbeat(folder.pulse):
            _wait_for(folder.pulse.exists)
            line = rf"^r1 is being worked on by process {os.getpid()}; wait"
            with pytest.raises(BusyError, match=line), locked(folder):
                pass


def test_a_lock_that_is_asked_for_at_that_moment_is_no_refusal(tmp_path):
    path = tmp_path / "lock"
    asking = FileLock(path, thread_local=False)
    asking.acquire()
    threading.Timer(0.03, asking.release).start()
    with hold(path, lambda: "busy"):
        assert is_held(path)


def test_where_nothing_can_be_written_a_heartbeat_tells_who_runs(tmp_path, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    folder = RunFolder(tmp_path / "runs" / "r1")
    with locked(folder), heartbeat(folder.pulse):
        _wait_for(folder.pulse.exists)
        pulse = read_pulse(folder.pulse)
        monkeypatch.setattr(FileLock, "acquire", refused)
        assert is_running(folder, pulse)
        assert not is_running(folder, None)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    path, line = tmp_path / "file" / "runs" / "lock", r"^outputs: nothing can be written in .*/file/runs \("
    with pytest.raises(UserError, match=line), hold(path, lambda: "busy"):
        pass


def test_a_machine_is_known_by_its_start_and_not_by_its_name(tmp_path):
    """Two containers of one name on two machines would otherwise both train a run, where locks do not reach."""
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    with heartbeat(folder.pulse):
        _wait_for(folder.pulse.exists)
        pulse = read_pulse(folder.pulse)
    assert pulse.is_here
    folder.pulse.write_text(pulse.model_copy(update={"machine": "another"}).model_dump_json())
    line = rf"^r1 is being worked on by process {os.getpid()} on "
    with pytest.raises(BusyError, match=line), locked(folder):
        pass
    os.utime(folder.pulse, (time.time() - 3600,) * 2)
    with locked(folder):
        assert folder.owner.exists()
    assert not folder.owner.exists()


@pytest.mark.parametrize("ahead", [-86400.0, 0.0, 86400.0])
@pytest.mark.parametrize(("age", "is_alive"), [(0.0, True), (DEAD - 5, True), (DEAD + 5, False)])
def test_the_clock_of_another_machine_may_be_another(ahead, age, is_alive, tmp_path):
    """One that lives is left alone, and one that is dead is not waited for, whatever it took the time to be."""
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    at = time.time() - age
    pulse = Pulse(host="elsewhere", machine="another", pid=1, began=0, updated=at + ahead)
    folder.pulse.write_text(pulse.model_dump_json())
    os.utime(folder.pulse, (at, at))  # by the clock of the file system
    assert is_running(folder, read_pulse(folder.pulse)) == is_alive
    if is_alive:
        with pytest.raises(BusyError, match="r1 is being worked on by process 1 on elsewhere"), locked(folder):
            pass
    else:
        with locked(folder):
            pass
    assert {path.name for path in folder.pulse.parent.iterdir()} == {"r1", ".r1.lock", ".r1.pulse"}


def test_the_clock_of_the_file_system_may_be_another_than_ours(monkeypatch, tmp_path):
    """As that of a server: ours is an hour ahead, and a pulse from just now is from just now."""
    pulse = Pulse(host="elsewhere", machine="another", pid=1, began=0, updated=0)
    (tmp_path / "pulse").write_text(pulse.model_dump_json())
    ours = time.time
    monkeypatch.setattr(time, "time", lambda: ours() + 3600)
    assert read_pulse(tmp_path / "pulse").is_fresh
    os.utime(tmp_path / "pulse", (ours() - DEAD - 5,) * 2)
    assert not read_pulse(tmp_path / "pulse").is_fresh


@pytest.mark.parametrize(("job", "is_busy"), [("17_3", False), ("17_4", True), (None, True)])
def test_the_next_attempt_of_a_job_does_not_wait_for_the_former(tmp_path, monkeypatch, job, is_busy):
    """A queue, or Ray, begins it on another machine once the first is lost; any other process has to wait."""
    folder = RunFolder(tmp_path / "runs" / "rabc")
    monkeypatch.setenv("ABLAB_JOB", "17_3")
    folder.pulse.parent.mkdir()
    pulse = Pulse(host="elsewhere", machine="another", job=job, pid=1, began=0, updated=time.time())
    folder.pulse.write_text(pulse.model_dump_json())
    assert is_former(folder) is not is_busy, "then it waits for a lock, which the former may hold for a checkpoint"
    with pytest.raises(BusyError) if is_busy else nullcontext(), locked(folder):
        Heartbeat(folder.pulse).beat()
        assert read_pulse(folder.pulse).job == "17_3"


def test_a_run_that_was_taken_over_gets_nothing_more(tmp_path):
    """As from a machine that sleeps and wakes, on a file system where its lock is unknown to others."""
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    with locked(folder) as owner, heartbeat(folder.pulse, lambda: owner.is_still) as sleeper:
        write_text(folder.path / "mine", "1")
        with owned(folder), heartbeat(folder.pulse):  # the other does not see the lock
            _wait_for(folder.pulse.exists)
            theirs = folder.owner.read_text()
            with pytest.raises(TakenOverError, match=rf"^r1 was taken over by process {os.getpid()} on "):
                write_text(folder.path / "late", "1")
            with pytest.raises(TakenOverError):
                folder.write_record(Record.model_construct(provenance={}))
            sleeper.remove()
            assert folder.owner.read_text() == theirs
            assert folder.pulse.exists()
            write_text(tmp_path / "elsewhere", "1")
    assert {path.name for path in folder.path.iterdir()} == {"mine"}
    assert not (tmp_path / "register.jsonl").exists()


@pytest.fixture
def disk(monkeypatch):
    """Errors of the disk that reading a token meets, in their order; then it is read."""
    errors, read = [], Path.read_text

    def read_text(path, *args, **options):
        if path.name.endswith(".owner") and errors:
            raise OSError(errors.pop(0), "stale file handle")
        return read(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr("ablab.store.locks.PAUSES", (0, 0))
    return errors


def test_an_error_of_the_disk_that_passes_is_no_other_process(tmp_path, disk):
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    with locked(folder) as owner:
        disk[:] = [errno.ESTALE, errno.EIO]
        write_text(folder.path / "mine", "1")
        assert owner.is_still
        disk[:] = [errno.EIO] * 3
        with pytest.raises(OSError, match="stale"):
            write_text(folder.path / "late", "1")
        assert owner.is_still
    assert {path.name for path in folder.path.iterdir()} == {"mine"}


def test_a_heart_beats_on_while_the_disk_does_not_answer(tmp_path):
    asked = []

    def owns():
        asked.append(time.time())
        raise OSError(errno.EIO, "no answer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ablab.store.heartbeat.BEAT", 0.01)
        with heartbeat(tmp_path / "pulse", owns):
            _wait_for(lambda: len(asked) > 3)
            assert read_pulse(tmp_path / "pulse") is not None
    assert len(asked) > 3


def _wait_for(condition) -> None:
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)


def test_a_new_stage_is_written_at_once_and_a_step_with_the_next_beat(tmp_path, monkeypatch):
    monkeypatch.setattr("ablab.store.heartbeat.BEAT", 600.0)
    path = tmp_path / "heartbeat.json"
    with heartbeat(path) as beating:
        beating.tell(stage="training")
        until = time.monotonic() + 60
        while (pulse := read_pulse(path)) is None or pulse.stage != "training":
            assert time.monotonic() < until, "the stage waits for the next beat"
            time.sleep(0.01)
        beating.tell(step=7)
        time.sleep(0.2)
        assert read_pulse(path).step == 0
    assert not path.exists()
