"""The processes of one run on one machine: process 0 starts the others, leads them, and they end when it does."""

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, BinaryIO

import torch.distributed as dist
from torch import Tensor

from ablab.errors import LostError
from ablab.training.distributed import ProcessGroup
from ablab.training.rendezvous import Rendezvous
from ablab.training.validation import Validation

GRACE = 10.0
"""Seconds in which a process that broke a connection, or was sent home, has ended."""

PARTED = 3
"""Exit code of a process that ended since another was gone."""

READY, LOST = b"+", b"-"
"""What the others answer: all is built; the reason why they end."""

# Signals that reach the whole family are for process 0. Set before the imports, which take seconds.
_PROGRAM = (
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "from {module} import {name}\n"
    "{name}()\n"
)


class WorkerGroup(ProcessGroup):
    """Process 0, and the others as it sees them. They are told what is next through their standard input."""

    def __init__(self, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        super().__init__(0, 1 + len(processes))
        self.processes = processes

    def go_on(self, validations: Sequence[Validation]) -> None:
        """There is another step; `validations` were made since the one before."""
        self._tell(json.dumps([astuple(validation) for validation in validations]))

    def check(self) -> None:
        """LostError when one of them has ended."""
        lost = {rank: p for rank, p in enumerate(self.processes, start=1) if p.poll() is not None}
        # Who ended only since another did has nothing to tell.
        for rank, process in sorted(lost.items(), key=lambda item: item[1].returncode == PARTED):
            raise LostError(f"device {rank} of {self.size}: {_how_ended(process)}; the same line continues the run")

    def await_ready(self) -> None:
        """Until all have built what they need."""
        for process in self.processes:
            assert process.stdout is not None
            if process.stdout.read(len(READY)) != READY:
                self._explain()

    def dismiss(self) -> None:
        """It is over, and all leave the group."""
        with suppress(LostError):  # too late to matter
            self._tell("null")
        dist.destroy_process_group()
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        try:
            super()._reduce(tensor, operation)
        except (RuntimeError, ValueError):  # broken off, or let go of by `_watch`
            self._explain()
            raise

    def _tell(self, line: str) -> None:
        for process in self.processes:
            assert process.stdin is not None
            try:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                self._explain()

    def _explain(self) -> None:
        """A connection breaks a moment before its process counts as ended."""
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            if any(process.poll() not in (None, PARTED) for process in self.processes):
                break
            time.sleep(0.01)
        self.check()


class Worker(ProcessGroup):
    """Any other process, as it sees itself."""

    def __init__(self, rank: int, size: int, said: "queue.Queue[list[Validation] | None]") -> None:
        super().__init__(rank, size)
        self._said = said

    def hear(self) -> list[Validation] | None:
        """Waits. The validations since the last step; None when it is over."""
        return self._said.get()

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        try:
            super()._reduce(tensor, operation)
        except RuntimeError as error:
            raise _PartedError from error


class _PartedError(Exception):
    """The others are gone, and process 0 says why."""


@contextmanager
def start_workers(size: int, work: Callable[[], None], spec: object, *, on_gpu: bool) -> Iterator[WorkerGroup]:
    """Start `work` in size - 1 processes, each with the same `spec`, and meet them; they end with the block.

    They are started afresh and not forked: CUDA and OpenMP do not outlive a fork. A session of their own keeps the
    terminal's Ctrl-C from them.
    """
    program = _PROGRAM.format(module=work.__module__, name=work.__name__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    rendezvous = Rendezvous(Path(tempfile.mkdtemp(prefix="ablab-")), size, on_gpu)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(1, size):
            process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
            processes.append(process)
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # noticed when it does not get ready
                process.stdin.write(pickle.dumps((rank, rendezvous, spec)))
                process.stdin.flush()
        leader = WorkerGroup(processes)
        leader.await_ready()
        rendezvous.join(0)
        if on_gpu:
            for process in processes:
                threading.Thread(target=_watch, args=(process, rendezvous), daemon=True).start()
        yield leader
        leader.dismiss()
    finally:
        for process in processes:
            process.kill()  # nothing of theirs can be lost
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()
        rendezvous.clear()
        if dist.is_initialized():  # it did not end as it should
            rendezvous.break_off()


@contextmanager
def joining() -> Iterator[tuple[Any, Callable[[], Worker]]]:
    """In a process that `start_workers` has started: its spec, and how to join once all is built that it needs."""
    orders: BinaryIO = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no reply
    try:
        rank, rendezvous, spec = pickle.load(orders)
    except EOFError:
        os._exit(PARTED)
    said: queue.Queue[list[Validation] | None] = queue.Queue()

    def part() -> None:
        rendezvous.clear()
        os._exit(PARTED)

    def listen() -> None:
        for line in orders:
            validations = json.loads(line)
            said.put(None if validations is None else [Validation(*values) for values in validations])
        part()  # process 0 is gone, whatever its end was

    def join() -> Worker:
        replies.write(READY)
        rendezvous.join(rank)
        return Worker(rank, rendezvous.size, said)

    try:
        threading.Thread(target=listen, daemon=True).start()
        yield spec, join
        dist.destroy_process_group()
        os._exit(0)  # the listener holds standard input, and Python would wait for it
    except _PartedError:
        part()
    except Exception as error:
        traceback.print_exc()
        replies.write(LOST + " ".join(f"{type(error).__name__}: {error}".split()).encode())
        sys.stderr.flush()
        os._exit(1)


def _watch(process: "subprocess.Popen[bytes]", rendezvous: Rendezvous) -> None:
    """NCCL would wait for a process that has died: let go, so that `check` can be reached."""
    if process.wait() != 0:
        rendezvous.break_off()


def _how_ended(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    reason = process.stdout.read().removeprefix(LOST).decode(errors="replace")
    code = process.returncode
    if code < 0:
        name = signal.Signals(-code).name
        return f"its process was killed by {name}" + (" (out of memory?)" if code == -signal.SIGKILL else "")
    return reason or f"its process ended with {code}"
