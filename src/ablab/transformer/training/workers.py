"""Processes that share a run's steps: process 0 leads, and starts the others unless torchrun has started them all."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import _abort_process_group
from torch.distributed.rendezvous import rendezvous

from ablab.code.machine import place
from ablab.errors import FAILED, LostError
from ablab.transformer.training.distributed import ProcessGroup
from ablab.transformer.training.validation import Validation

PATIENCE, FOREVER = timedelta(hours=1), timedelta(days=30)
"""Timeouts: for the others within a step, where one that dies is noticed at once; for process 0 between two steps."""

GRACE = 10.0
"""Seconds within which a process must have met the others, or have ended once it broke a connection."""

PARTED = 3
"""Exit code of a worker that ended because another process was gone."""


Order = Sequence[float]
"""What process 0 tells the others after a step, in numbers: a pickled object would take four times as long.

First 1 after a validation, 0 without one, -1 when training is over; then the validation, whose scores may decide the
learning rate.
"""

MOST_NUMBERS = 16
"""Numbers of an order, which always has as many: the others do not know beforehand what comes."""


class _Member(ProcessGroup):
    """A process that has joined the group. NCCL sums GPU tensors, Gloo the rest."""

    def __init__(self, store: Store, rank: int, size: int, *, on_gpu: bool) -> None:
        super().__init__(rank, size)
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
        self._orders = dist.new_group(backend="gloo", timeout=FOREVER)

    def _on_broken(self, error: Exception) -> NoReturn:
        _leave(PARTED)  # process 0 reports why

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        try:
            super()._reduce(tensor, operation)
        except (RuntimeError, ValueError) as error:  # a connection broke, or `_watch` has aborted the group
            self._on_broken(error)

    def _broadcast(self, order: Order = ()) -> Order:
        """Return the order of process 0."""
        tensor = torch.zeros(MOST_NUMBERS, dtype=torch.float64)
        tensor[: len(order)] = torch.tensor(order, dtype=torch.float64)
        try:
            dist.broadcast(tensor, src=0, group=self._orders)
        except (RuntimeError, ValueError) as error:
            self._on_broken(error)
        found: list[float] = tensor.tolist()
        return found


class Worker(_Member):
    """Process `rank` > 0, which process 0 leads."""

    def hear(self, kind: type[Validation]) -> list[Validation] | None:
        """Wait for process 0; return the validations since the last step, or None when training is over."""
        validated, *numbers = self._broadcast()
        return None if validated < 0 else [kind.of_numbers(numbers)] * int(validated)


class WorkerGroup(_Member):
    """Process 0, once all workers have built what they need. `processes`: the workers that it has started itself."""

    def __init__(
        self, store: Store, size: int, processes: Sequence["subprocess.Popen[bytes]"], *, on_gpu: bool
    ) -> None:
        self._store, self.size, self.processes = store, size, processes
        while not store.check([f"ready {rank}" for rank in range(1, size)]):
            if self._reason() is not None:
                self._on_broken()
            time.sleep(0.01)
        super().__init__(store, 0, size, on_gpu=on_gpu)

    def go_on(self, validation: Validation | None) -> None:
        """Tell the workers to compute another step; `validation` is the one since the last step."""
        self._broadcast([0.0] if validation is None else [1.0, *validation.numbers])

    def check(self) -> None:
        """Raise LostError when a worker has ended, of those that this process has started."""
        if any(process.poll() is not None for process in self.processes):
            self._on_broken()

    def dismiss(self) -> None:
        """Tell the workers that training is over, and leave the group."""
        with suppress(LostError):  # too late to matter
            self._broadcast([-1.0])
        dist.destroy_process_group()

    def _on_broken(self, error: Exception | None = None) -> NoReturn:
        """Raise LostError with the reason, which may come a moment later than the broken connection."""
        deadline = time.monotonic() + (GRACE if self.processes else 1)
        while (reason := self._reason()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        reason = reason or f"one of {self.size} devices was lost: {str(error or 'it ended').splitlines()[0]}"
        raise LostError(f"{reason}; the same line continues the run") from error

    def _reason(self) -> str | None:
        """Return which worker has ended and why; one that ended because another did is not to blame."""
        if self._store.check(["lost"]):
            return self._store.get("lost").decode()
        for rank, process in enumerate(self.processes, start=1):
            if (code := process.poll()) not in (None, PARTED):
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
                doubt = " (out of memory?)" if code == -signal.SIGKILL else ""
                return f"device {rank} of {self.size}: its process {how}{doubt}"
        return None


@contextmanager
def lead(size: int, spec: object, *, on_gpu: bool) -> Iterator[WorkerGroup]:
    """Give all workers the same `spec` and form a group with them; workers started here end with the block."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        if place() == (0, size):
            store = _met()
        else:
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            _start(processes, size, store.port)
        store.set("spec", pickle.dumps(spec))  # type: ignore[arg-type]
        leader = WorkerGroup(store, size, processes, on_gpu=on_gpu)
        for process in processes if on_gpu else ():
            threading.Thread(target=_watch, args=(process, dist.group.WORLD), daemon=True).start()
        yield leader
        leader.dismiss()
    finally:
        for process in processes:
            process.kill()  # workers hold nothing that could be lost
            process.wait()
        _break_off()


def as_first(work: Callable[[], int]) -> int:
    """As rank 0 under torchrun, do `work`; end the workers with its exit code, whether they have trained or not."""
    code = FAILED
    try:
        code = work()
        return code
    finally:
        with suppress(dist.DistError):  # of others there are none: torchrun's variables were left behind
            store = _meet()[0]
            store.set("code", str(code))
            store.set("spec", pickle.dumps(None))  # type: ignore[arg-type]


def follow(work: Callable[[Any, Callable[[bool], Worker]], None]) -> NoReturn:
    """In a worker, do `work` with the spec and a function that joins the group (on GPUs?); exit as process 0 does.

    `work` calls that function once everything is built, and returns when training is over.
    """
    try:
        store, rank, size = _meet()
    except dist.DistError:
        _leave(PARTED)
    try:

        def join(on_gpu: bool) -> Worker:
            store.set(f"ready {rank}", "")
            return Worker(store, rank, size, on_gpu=on_gpu)

        if (spec := pickle.loads(_await(store, "spec"))) is not None:
            work(spec, join)
            dist.destroy_process_group()
        _leave(int(_await(store, "code")))
    except dist.DistNetworkError:
        _leave(PARTED)
    except Exception as error:
        traceback.print_exc()
        store.set("lost", f"device {rank} of {size}: {' '.join(f'{type(error).__name__}: {error}'.split())}")
        os._exit(FAILED)


@cache
def _meet() -> tuple[Store, int, int]:
    """Return the store of torchrun's environment variables, the rank of this process, and the number of them."""
    store, rank, size = next(rendezvous("env://", timeout=timedelta(seconds=GRACE)))
    store.set_timeout(FOREVER)
    return store, rank, size


def _met() -> Store:
    """Return the store, as process 0. LostError where the others do not come."""
    try:
        return _meet()[0]
    except dist.DistError as error:
        raise LostError(
            f"torchrun's other processes did not come ({str(error).splitlines()[0]}); where torchrun did not start "
            "this, unset RANK and WORLD_SIZE"
        ) from None


def _await(store: Store, key: str) -> bytes:
    """Wait until process 0 sets the key. Meanwhile torchrun may end this process, as it does when another fails."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    value = store.get(key)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    return value


def _leave(code: int) -> NoReturn:
    """Exit without waiting for threads of a broken group, but not before the process that torchrun is to name."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # by which torchrun ends the others then
    time.sleep(2 if code else 0)
    os._exit(code)


def _start(processes: list["subprocess.Popen[bytes]"], size: int, port: int) -> None:
    """Start the workers as torchrun would, on this machine and over its loopback interface.

    They are not forked, as CUDA and OpenMP do not survive it. Signals are blocked in them from before their imports.
    """
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):  # by default Gloo resolves the machine's name, and warns if it cannot
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    command = [sys.executable, "-m", "ablab", "train"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        for rank in map(str, range(1, size)):
            # Without process 0, C++ would print its stack for every connection that is refused.
            environment = {"TORCH_CPP_LOG_LEVEL": "FATAL", **os.environ, **path, **group}
            environment.update(RANK=rank, LOCAL_RANK=rank)
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(process: "subprocess.Popen[bytes]", group: dist.ProcessGroup | None) -> None:
    """Break off when the process dies, as NCCL would wait for it and `check` would not be reached."""
    if process.wait() != 0:
        _break_off(group)


def _break_off(group: dist.ProcessGroup | None = None) -> None:
    """Leave the group, by default that of all, without waiting for the others; nothing happens if it has ended."""
    with suppress(Exception):
        _abort_process_group(group)
