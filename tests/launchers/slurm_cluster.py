"""A private Slurm of two nodes on this machine's loopback, each with a host name and a boot id of its own.

It needs root, and the daemons of slurm-wlm and munge; for accounts also slurmdbd and MariaDB. Nothing of it outlives
the block: the daemons are its children.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol", "squeue", "scancel", "unshare")
OF_ACCOUNTS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr", "sacct")
NODES = ("n1", "n2")
UP = 30.0
"""Seconds within which the cluster must be up."""

CONF = """
ClusterName=ablabtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldTimeout=30
SlurmdTimeout=60
MinJobAge=300
KillWait=15
MaxArraySize=4
JobRequeue=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{accounts}
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE PriorityTier=10 GraceTime=0 PreemptMode=REQUEUE State=UP
PartitionName=grace Nodes=n1,n2 MaxTime=INFINITE PriorityTier=10 GraceTime=60 PreemptMode=REQUEUE State=UP
PartitionName=cancelling Nodes=n1,n2 MaxTime=INFINITE PriorityTier=10 GraceTime=0 PreemptMode=CANCEL State=UP
PartitionName=high Nodes=n1,n2 MaxTime=INFINITE PriorityTier=100 PreemptMode=OFF State=UP
PartitionName=down Nodes=n1,n2 MaxTime=INFINITE State=DOWN
"""


WITHOUT = "AccountingStorageType=accounting_storage/none"
WITH = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket"""
DBD = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=root
StorageLoc=accounts
"""


def is_possible(*, accounts: bool = False) -> bool:
    """Return whether a cluster can be started here, with accounts or without."""
    needed = (*NEEDED, *OF_ACCOUNTS) if accounts else NEEDED
    return os.geteuid() == 0 and all(map(shutil.which, needed)) and may_unshare()


def may_unshare() -> bool:
    """Return whether a process may have host names and mounts of its own."""
    return subprocess.run(["unshare", "--uts", "--mount", "true"], capture_output=True, check=False).returncode == 0


class Cluster:
    """A cluster that is up. `environment`: of processes that are to use it."""

    def __init__(self, folder: Path, *, accounts: bool = False) -> None:
        self.folder, self.conf, self.accounts = folder, folder / "slurm.conf", accounts
        self.environment = {"SLURM_CONF": str(self.conf)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start munge, the controller and the nodes; RuntimeError if they are not up in time."""
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir()
        *ports, port, database = free_ports(3 + len(NODES))
        accounts = WITH.format(port=port, folder=self.folder) if self.accounts else WITHOUT
        of_host = {"host": socket.gethostname(), "ports": ports, "folder": self.folder}
        self.conf.write_text(CONF.format(**of_host, accounts=accounts))
        self._start_munge()
        if self.accounts:
            self._start_accounts(port, database)
        self.start_controller()
        for node in NODES:
            boot = self.folder / f"boot.{node}"
            boot.write_text(f"{uuid.uuid4()}\n")
            bound = (
                f"mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname {node} && exec slurmd -D -N {node}"
            )
            self._spawn(node, ["unshare", "--uts", "--mount", "sh", "-c", bound])
        self.until(lambda: self.said("sinfo", "-h", "-N", "-p", "main", "-o", "%T").split() == ["idle"] * len(NODES))

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        named = {"socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "munge.seed"}
        options = [f"--{option}={self.folder / name}" for option, name in named.items()]
        self._spawn("munge", ["munged", "--foreground", "--force", f"--key-file={key}", *options])
        self.until((self.folder / "munge.socket").exists)

    def _start_accounts(self, port: int, database: int) -> None:
        """Start a database of its own and slurmdbd, and enter the cluster."""
        data, path = self.folder / "database", self.folder / "slurmdbd.conf"
        made = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"]
        subprocess.run(made, capture_output=True, timeout=60, check=True)
        own = (f"--datadir={data}", f"--socket={data}/socket", f"--pid-file={data}/pid", "--user=root")
        on_loopback = ("--bind-address=127.0.0.1", f"--port={database}", "--skip-grant-tables")
        self._spawn("database", ["mariadbd", "--no-defaults", *own, *on_loopback])
        self.until((data / "socket").exists)
        path.write_text(DBD.format(folder=self.folder, port=port, database=database))
        path.chmod(0o600)
        self._spawn("accounts", ["slurmdbd", "-D"])
        self.until(lambda: "Cluster" in self.said("sacctmgr", "-i", "add", "cluster", "ablabtest"))

    def start_controller(self) -> None:
        """Start the controller; it goes on from where it was stopped."""
        self._spawn("controller", ["slurmctld", "-D"])

    def stop_controller(self) -> None:
        """Stop the controller, as for a restart."""
        self._end("controller")

    def said(self, *words: str) -> str:
        """Return what a command of Slurm says, also when it fails."""
        told = subprocess.run(words, env=self._env, capture_output=True, text=True, timeout=30, check=False)
        return told.stdout + told.stderr

    def jobs(self) -> dict[str, str]:
        """Return the state of each job that has not ended, by its id."""
        lines = self.said("squeue", "-h", "-r", "-o", "%i %T").splitlines()
        return dict(line.split() for line in lines)

    def until(self, holds: Callable[[], object], seconds: float = UP) -> None:
        """Wait until it holds; RuntimeError with the daemons' logs if it does not in time."""
        late = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > late:
                logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.log"))
                raise RuntimeError(f"not within {seconds:g} seconds\n{self.said('squeue', '-t', 'all')}\n{logs}")
            time.sleep(0.1)

    def preempt(self) -> str:
        """Submit a job that takes both nodes from those of lower partitions; return its id."""
        taking = ("-p", "high", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 300")
        return self.said("sbatch", "--parsable", *taking).strip()

    def stop(self) -> None:
        """End all jobs and daemons."""
        with suppress(subprocess.TimeoutExpired, RuntimeError, ValueError):  # a step would outlive its daemon
            self.said("scancel", "--signal=KILL", "--full", "--user=root")
            self.said("scancel", "--user=root")
            self.until(lambda: not self.jobs(), 10)
        for name in reversed(list(self._processes)):
            self._end(name)

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _spawn(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            self._processes[name] = subprocess.Popen(
                words, env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_ports(number: int) -> list[int]:
    """Return so many ports of the loopback that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def cluster(folder: Path, *, accounts: bool = False) -> Iterator[Cluster]:
    """Run a cluster in this folder while the block runs."""
    made = Cluster(folder, accounts=accounts)
    try:
        made.start()
        yield made
    finally:
        made.stop()
