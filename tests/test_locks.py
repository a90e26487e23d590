"""Locks are held by one process at a time, and a refusal names the process that holds one."""

import os
import threading
import time

import pytest
from filelock import FileLock

from ablab.errors import UserError
from ablab.store.heartbeat import heartbeat
from ablab.store.locks import BusyError, hold, is_held, locked
from ablab.store.run_folder import RunFolder


def test_a_lock_is_held_until_the_block_ends(tmp_path):
    path = tmp_path / "new" / "lock"
    assert not is_held(path)
    with hold(path, lambda: "unused"):
        assert is_held(path)
        with pytest.raises(BusyError, match=r"^it is busy; wait for it, or stop it$"), hold(path, lambda: "it is busy"):
            pass
    assert not is_held(path)


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


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    path, line = tmp_path / "file" / "runs" / "lock", r"^outputs: nothing can be written in .*/file/runs \("
    with pytest.raises(UserError, match=line), hold(path, lambda: "busy"):
        pass


def _wait_for(condition) -> None:
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
