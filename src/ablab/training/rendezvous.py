"""Rendezvous of the processes of a run, on one machine, for sums of tensors."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

PATIENCE = timedelta(hours=1)
"""Timeout of a process that waits for the others within a step; a process that dies is noticed at once."""


@dataclass(frozen=True)
class Rendezvous:
    """A local folder through which `size` processes find each other."""

    folder: Path
    size: int
    on_gpu: bool

    def join(self, rank: int) -> None:
        """Join as process `rank` and wait for the others. NCCL sums GPU tensors; Gloo, over loopback, the rest."""
        store = dist.FileStore(str(self.folder / "store"), self.size)  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if self.on_gpu else "gloo"
        with _through(_loopback()):
            dist.init_process_group(backend, store=store, rank=rank, world_size=self.size, timeout=PATIENCE)

    def clear(self) -> None:
        """Delete the folder; no process can join any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def break_off(self) -> None:
        """Leave the process group without waiting for the others."""
        if not self.on_gpu:
            return dist.destroy_process_group()
        from torch.distributed.distributed_c10d import _abort_process_group

        with suppress(Exception):  # another thread was faster
            _abort_process_group()
        return None


def _loopback() -> str | None:
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)


@contextmanager
def _through(interface: str | None) -> Iterator[None]:
    """Let Gloo use this interface; by default it resolves the machine's name, and prints a warning if it cannot."""
    key = "GLOO_SOCKET_IFNAME"
    if interface is None or key in os.environ:
        yield
        return
    os.environ[key] = interface
    try:
        yield
    finally:
        del os.environ[key]
