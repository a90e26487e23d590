"""Worker processes of a run on one machine: process 0 starts and leads the others, which end when it does."""

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
"""Seconds within which a process that broke a connection, or was dismissed, must have ended."""

PARTED = 3
"""Exit code of a process that ended because another was gone."""

READY, LOST = b"+", b"-"
"""Replies of a worker: it has built everything; prefix of the reason why it ends."""

# Process 0 handles signals sent to all processes; the others ignore them, from before the imports, which take seconds.
_PROGRAM = (
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "from {module} import {name}\n"
    "{name}()\n"
)


class WorkerGroup(ProcessGroup):
    """Process 0 and its handles on the other processes, which receive orders through their standard input."""

    def __init__(self, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        super().__init__(0, 1 + len(processes))
        self.processes = processes

    def go_on(self, validations: Sequence[Validation]) -> None:
        """Tell the workers to compute another step; `validations` are those since the last one."""
        self._tell(json.dumps([astuple(validation) for validation in validations]))

    def check(self) -> None:
        """Raise LostError when a worker has ended."""
        lost = {rank: p for rank, p in enumerate(self.processes, start=1) if p.poll() is not None}
        # Workers that ended only because another did come last: they know no reason.
        for rank, process in sorted(lost.items(), key=lambda item: item[1].returncode == PARTED):
            raise LostError(f"device {rank} of {self.size}: {_how_ended(process)}; the same line continues the run")

    def await_ready(self) -> None:
        """Wait until all workers have built what they need; LostError if one ends before."""
        for process in self.processes:
            assert process.stdout is not None
            if process.stdout.read(len(READY)) != READY:
                self._explain()

    def dismiss(self) -> None:
        """End the workers: training is over, and all processes leave the group."""
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
        """Raise LostError once the process behind a broken connection has ended, which takes a moment longer."""
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            if any(process.poll() not in (None, PARTED) for process in self.processes):
                break
            time.sleep(0.01)
        self.check()


class Worker(ProcessGroup):
    """Process `rank` > 0, which process 0 leads."""

    def __init__(self, rank: int, size: int, said: "queue.Queue[list[Validation] | None]") -> None:
        super().__init__(rank, size)
        self._said = said

    def hear(self) -> list[Validation] | None:
        """Wait for process 0; return the validations since the last step, or None when training is over."""
        return self._said.get()

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        try:
            super()._reduce(tensor, operation)
        except RuntimeError as error:
            raise _PartedError from error


class _PartedError(Exception):
    """Raised in a worker when the other processes are gone; process 0 reports why."""


@contextmanager
def start_workers(size: int, work: Callable[[], None], spec: object, *, on_gpu: bool) -> Iterator[WorkerGroup]:
    """Start `work` in size - 1 processes with the same `spec`, and form a group with them; they end with the block.

    They are spawned, not forked, as CUDA and OpenMP do not survive a fork. `start_new_session` keeps the terminal's
    Ctrl-C from them.
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
            with suppress(BrokenPipeError):  # `await_ready` notices it
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
            process.kill()  # workers hold nothing that could be lost
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()
        rendezvous.clear()
        if dist.is_initialized():  # training did not end normally
            rendezvous.break_off()


@contextmanager
def joining() -> Iterator[tuple[Any, Callable[[], Worker]]]:
    """In a process that `start_workers` has started, yield its spec and a function that joins the group.

    Call that function once everything is built. The process exits at the end of the block.
    """
    orders: BinaryIO = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # output of libraries must not mix with replies
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
        part()  # process 0 is gone, for whatever reason

    def join() -> Worker:
        replies.write(READY)
        rendezvous.join(rank)
        return Worker(rank, rendezvous.size, said)

    try:
        threading.Thread(target=listen, daemon=True).start()
        yield spec, join
        dist.destroy_process_group()
        os._exit(0)  # the listening thread holds standard input, and Python would wait for it
    except _PartedError:
        part()
    except Exception as error:
        traceback.print_exc()
        replies.write(LOST + " ".join(f"{type(error).__name__}: {error}".split()).encode())
        sys.stderr.flush()
        os._exit(1)


def _watch(process: "subprocess.Popen[bytes]", rendezvous: Rendezvous) -> None:
    """Break off when the process dies, as NCCL would wait for it and `check` would not be reached."""
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
