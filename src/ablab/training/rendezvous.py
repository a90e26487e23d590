"""How the processes of a run find each other, within one machine, to add up tensors."""

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
"""How long a process waits for the others within a step; one that dies is noticed at once."""


@dataclass(frozen=True)
class Rendezvous:
    """Where processes find each other: a folder of this machine."""

    folder: Path
    size: int
    on_gpu: bool

    def join(self, rank: int) -> None:
        """Waits for the others. NCCL adds what is on GPUs, Gloo the rest, and that never leaves the machine."""
        store = dist.FileStore(str(self.folder / "store"), self.size)  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if self.on_gpu else "gloo"
        with _through(_loopback()):
            dist.init_process_group(backend, store=store, rank=rank, world_size=self.size, timeout=PATIENCE)

    def clear(self) -> None:
        """Nobody comes any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def break_off(self) -> None:
        """Leave without waiting for the others."""
        if not self.on_gpu:
            return dist.destroy_process_group()
        from torch.distributed.distributed_c10d import _abort_process_group

        with suppress(Exception):  # somebody was faster
            _abort_process_group()
        return None


def _loopback() -> str | None:
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)


@contextmanager
def _through(interface: str | None) -> Iterator[None]:
    """Left to itself, Gloo resolves the machine's name, and says so when it cannot."""
    key = "GLOO_SOCKET_IFNAME"
    if interface is None or key in os.environ:
        yield
        return
    os.environ[key] = interface
    try:
        yield
    finally:
        del os.environ[key]
