"""Stand-ins of Slurm's commands, and jobs that nobody makes."""

import os
import stat

import pytest

from ablab.store.heartbeat import JOB
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers import squeue
from ablab.sweep.launchers.base import Job


@pytest.fixture(autouse=True)
def no_job_of_ours():
    """A job that was executed here says so in the environment, which other tests share."""
    yield
    os.environ.pop(JOB, None)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm that takes a script, and says that the job has failed."""
    monkeypatch.setattr(squeue, "MISSING", 0.0)
    squeue._cluster.cache_clear()
    said = {
        "srun": "",
        "scancel": "",
        "sbatch": f"cp $1 {tmp_path}/script; echo Submitted batch job 12",
        "sacct": "echo TIMEOUT",
        "squeue": "",
        "scontrol": "",
    }
    for name, lines in said.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    yield tmp_path
    squeue._cluster.cache_clear()


def tell(folder, name, lines):
    """Let a command of the stand-in do something else."""
    (folder / "bin" / name).write_text(f"#!/bin/sh\n{lines}\n")


def job(folder, number):
    return Job(RunFolder(folder / "runs" / f"r{number}"), "x", [f"seed={number}"])
