"""This machine and this process: what a record stores of them, cores, threads, place under torchrun, signals, garbage.

No part of a run's identity.
"""

import ctypes
import gc
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from math import ceil
from pathlib import Path
from typing import Any

import ablab
from ablab.code.code import code
from ablab.errors import UserError

NUMERICAL = ("torch", "pytorch-lightning", "numpy", "sentencepiece", "sacrebleu")
"""Libraries that affect numbers, their rounding, or the choice of weights."""

RECORDED = ("torch", "pytorch-lightning", "hydra-core", "omegaconf", "numpy", "sacrebleu", "sentencepiece", "wandb")
"""Libraries whose versions a record has, in its order."""

SHOWN = ("torch", "hydra-core", "sentencepiece", "sacrebleu")
"""Libraries whose versions `ablab --version` prints."""


def provenance(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return code digests, commit and uncommitted changes (in a checkout), versions, and the machine."""
    training, evaluation = code("training", recipe), code("evaluation", recipe)
    return {
        "ablab": ablab.__version__,
        "code": training.digest,
        "evaluation_code": evaluation.digest,
        "components": {"training": dict(training.components), "evaluation": dict(evaluation.components)},
        "definitions": {
            "training": dict(training.definitions),
            # Without those of training, which are most of them.
            "evaluation": dict(evaluation.definitions.items() - training.definitions.items()),
        },
        "commit": commit(),
        "diff": _git("diff", "HEAD", "--", "src", "conf") or None,
        "python": platform.python_version(),
        "versions": versions(),
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": processor(),
            "cores": os.cpu_count(),
        },
    }


def commit() -> str | None:
    """Return the commit of the checkout that this package runs from; None outside of one."""
    return _git("rev-parse", "HEAD")


@cache
def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed, by name."""
    return {name: found for name in RECORDED if (found := installed(name))}


def processor() -> str:
    """Return the processor's model name, as far as the system reports it."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def fast_bfloat16() -> bool | None:
    """Return whether this processor has bfloat16 instructions; None if the system does not report it.

    Without them PyTorch emulates bfloat16, a hundred times slower than single precision.
    """
    flags = _cpuinfo("flags").split()
    return bool({"avx512_bf16", "amx_bf16"} & set(flags)) if flags else None


def _git(*arguments: str) -> str | None:
    checkout = Path(ablab.__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def installed(package: str) -> str | None:
    """Return the version of an installed package; None of any other."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpuinfo(key: str) -> str:
    """Return the first core's entry in Linux's /proc/cpuinfo; empty on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


SPIN = "5000"
"""Turns that a thread spins at a barrier before it sleeps. GNU OpenMP's own default is far longer: with it, one busy
neighbour on two cores slowed training tenfold.
"""


def wait_politely() -> None:
    """Make threads sleep soon at barriers, unless the environment already sets a wait policy."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)


KEPT = 2**30
"""Most bytes of freed memory that a process keeps for what it computes next."""

LARGE = 2**25
"""Bytes of a block from which on the system hands it out and takes it back: GNU's C library allows no more."""


def keep_memory() -> None:
    """Keep freed memory for what is computed next. Only GNU's C library has it changed, and not where a user tells it.

    It hands freed memory back at once. A training step takes and frees the same blocks as the one before, and the
    system clears every page of them anew: a fifth of the time of a small language model.
    """
    told = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    if sys.platform != "linux" or any(name in os.environ for name in told):
        return
    with suppress(AttributeError, OSError):  # another C library
        change = ctypes.CDLL(None).mallopt
        change(-1, KEPT)  # M_TRIM_THRESHOLD
        change(-3, LARGE)  # M_MMAP_THRESHOLD, which grows to this by itself until the other is set


def cores() -> int:
    """Return the number of cores that this process may use."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quotas = [ceil(int(quota) / int(period)) for quota, period in _told_by_groups("cpu.max")]
    for quota, period in zip(_told_by_groups("cpu.cfs_quota_us"), _told_by_groups("cpu.cfs_period_us"), strict=False):
        quotas.append(ceil(int(quota[0]) / int(period[0])))
    return min([there, *(quota for quota in quotas if quota > 0)])


def memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or what its container is held to."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("memory.max", "memory.limit_in_bytes"):
        limits += [int(limit) for (limit,) in _told_by_groups(name)]
    return min(limits)


CGROUP, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def _told_by_groups(name: str) -> Iterator[list[str]]:
    """Yield the numbers in a file of each control group of Linux that holds this process; none elsewhere.

    They lie below the root of a second version, or of a controller of the first. "max": there is no limit.
    """
    try:
        lines = OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, controllers, own in (line.split(":", 2) for line in lines):
        root = CGROUP / controllers.partition(",")[0] if controllers else CGROUP
        for group in [own.strip("/"), *map(str, Path(own.strip("/")).parents)]:
            with suppress(OSError):
                words = (root / group / name).read_text(encoding="ascii").split()
                if all(word.lstrip("-").isdecimal() for word in words):
                    yield words


def settle_in() -> None:
    """Make this process the same wherever it was started: from a notebook, by a scheduler, without a terminal.

    Pictures are drawn into files. A stream that is closed leads nowhere, before a file that is opened takes its number.
    What a stream's encoding lacks is written by its code. A variable of torchrun's that is empty says nothing.
    """
    os.environ["MPLBACKEND"] = "Agg"
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    sys.stdout, sys.stderr = (
        stream if stream is not None else open(number, "w", closefd=False)  # noqa: SIM115
        for number, stream in ((1, sys.stdout), (2, sys.stderr))
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and (stream.errors == "strict" or stream.encoding.lower() != "utf-8"):
            stream.reconfigure(errors="backslashreplace")
    for name in (*TORCHRUN, "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        if os.environ.get(name) == "":
            del os.environ[name]


TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables by which torchrun tells each process of the others."""


def place() -> tuple[int, int]:
    """Return this process's rank among how many, as torchrun says, or (0, 0) without torchrun.

    One of its variables alone may stay behind from another program. UserError for what torchrun never says.
    """
    if not os.environ.keys() >= {*TORCHRUN}:
        return 0, 0
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    if not (rank.isdecimal() and size.isdecimal() and int(rank) < int(size)):
        raise UserError(f"RANK={rank}, WORLD_SIZE={size}: not torchrun's; allowed: 0 to WORLD_SIZE - 1, or both unset")
    return int(rank), int(size)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection while the block runs.

    Records are millions of small lists that live to the end: searching them for garbage is useless, and takes a third
    of the time with a thousand records.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


stopped_by: list[str] = []
"""Names of the signals that have asked this process to stop, in order."""

HANG_UP: int | None = getattr(signal, "SIGHUP", None)
"""The signal sent when a terminal or a connection closes; None on Windows."""


class StopOnce:
    """A handler for signals that a machine sends: the first raises KeyboardInterrupt, the others change nothing.

    A queue repeats its signal within milliseconds, and is not impatient. A function, unlike a signal that is blocked or
    ignored, is not passed on to child processes.
    """

    def __init__(self) -> None:
        self.is_heard = False

    def __call__(self, received: int, frame: object) -> None:
        """Handle the signal."""
        if not self.is_heard:
            self.is_heard = True
            stopped_by.append(signal.Signals(received).name)
            raise KeyboardInterrupt


@contextmanager
def within_queue() -> Iterator[None]:
    """Within the block, hear SIGTERM once if this process is in a job of Slurm, which may send it twice at once."""
    if not os.environ.get("SLURM_JOB_ID") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, StopOnce())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number: those for real time have no names."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def graceful_stop(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the first Ctrl-C, SIGTERM or SIGHUP calls `ask_to_stop`; a second one ends at once.

    A second SIGHUP is ignored: a shell passes the signal on, and then the system sends another. Under nohup, SIGHUP
    stays ignored. A `StopOnce` that handled the signal before has heard it, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread alone
        return

    def ask(received: int, frame: object) -> None:
        stopped_by.append(signal.Signals(received).name)
        ask_to_stop()
        restore()
        if isinstance(handler := before[received], StopOnce):
            handler.is_heard = True
        if HANG_UP in before:
            signal.signal(HANG_UP, signal.SIG_IGN)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if HANG_UP is not None and signal.getsignal(HANG_UP) is not signal.SIG_IGN:
        before[HANG_UP] = signal.getsignal(HANG_UP)
    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()
