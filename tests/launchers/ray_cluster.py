"""A Ray cluster on this machine: a head without room for runs, and two nodes that have a boot id of their own each.

By it ablab takes them for machines, so that what a lost one leaves looks as it does on a real cluster. It needs root.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.launchers.slurm_cluster import free_ports, may_unshare

UP = 60.0
"""Seconds within which each part of the cluster must be up."""


def is_possible() -> bool:
    """Return whether nodes can have a boot id of their own here."""
    return sys.platform == "linux" and os.geteuid() == 0 and may_unshare()


class Cluster:
    """A cluster that is up. `environment`: of processes that are to use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
        self.address = ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the head, and then one node after the other."""
        (port,) = free_ports(1)
        self._spawn("head", f"--head --num-cpus 0 --include-dashboard false --port {port} --temp-dir {self.folder}/ray")
        said = (self.folder / "head.out").read_text()
        self.address = said.partition("ray start --address='")[2].partition("'")[0]
        for node in ("n1", "n2"):
            self._spawn(node, f"--address {self.address} --num-cpus 1")

    def _spawn(self, name: str, options: str) -> None:
        boot, out = self.folder / f"boot.{name}", self.folder / f"{name}.out"
        boot.write_text(f"{uuid.uuid4()}\n")
        bound = f"mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname {name} && exec"
        start = f"{Path(sys.executable).parent / 'ray'} start --block --object-store-memory 100000000 {options}"
        with out.open("wb") as file:
            self._processes[name] = subprocess.Popen(
                ["unshare", "--uts", "--mount", "sh", "-c", f"{bound} {start}"],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        late = time.monotonic() + UP
        while "Ray runtime started" not in out.read_text():
            if time.monotonic() > late or self._processes[name].poll() is not None:
                raise RuntimeError(f"{name} is not up:\n{out.read_text()[-3000:]}")
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """Kill all processes of a part of the cluster at once, runs too, as where a machine loses power."""
        process = self._processes.pop(name)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none sees another end
            for pid in _sharing(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        process.wait()

    def stop(self) -> None:
        """Kill what is left of the cluster."""
        for name in list(self._processes)[::-1]:
            self.kill(name)


def _sharing(pid: int) -> list[int]:
    """Return the processes with the host name of this one; this one alone as long as it has none of its own."""
    found = {int(path.parts[2]): _name_space(path) for path in Path("/proc").glob("[0-9]*/ns/uts")}
    own = found.get(pid)
    if own is None or own == found[os.getpid()]:
        return [pid]
    return [each for each, space in found.items() if space == own]


def _name_space(path: Path) -> str | None:
    try:
        return os.readlink(path)
    except OSError:  # it has ended
        return None


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a cluster while the block runs. The paths of its sockets have 107 bytes at most."""
    with TemporaryDirectory(prefix="ray.", dir="/tmp", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.stop()
