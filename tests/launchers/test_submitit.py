"""Runs as jobs of a queue: pre-empted, they continue exactly; lost, it is said; Slurm is told what is typed."""

import os
import signal
import stat
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob

from ablab.config import compose
from ablab.errors import DONE, FAILED, INTERRUPTED, UserError
from ablab.store.failures import read_failure
from ablab.store.heartbeat import read_pulse
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import SELECTED, RunFolder
from ablab.sweep.launchers import task
from ablab.sweep.launchers.base import Job
from ablab.sweep.launchers.slurm import Queue, SubmititJobs, SubmittedWork
from ablab.tasks.plan import plan
from tests.run.conftest import TINY, typed
from tests.run.test_kills import left

RUN = (
    *TINY,
    *("data.train_size=300", "data.valid_size=16", "data.test_size=16", "data.vocab_size=150", "pruning=none"),
    *(
        "training.max_steps=120",
        "training.valid_every=50",
        "optim.batch_tokens=256",
        "schedule.warmup_steps=20",
        "logger=none",
    ),
)
LOCAL = Queue("local", 1, None, {"timeout_min": 5})


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(60,), (20, 60, 100)])
def test_pre_empted_a_run_ends_with_the_same_bits(tmp_path, steps):
    assert typed(*RUN, f"outputs={tmp_path / 'undisturbed'}", "trainer.progress=false").code == DONE
    planned = plan(compose([*RUN, f"outputs={tmp_path / 'queue'}"]))
    folder, sent = planned.folder, []

    def preempt():
        pulse = read_pulse(folder.pulse)
        if pulse is None or len(sent) == len(steps) or pulse.pid in sent or not folder.metrics.exists():
            return
        seen = [int(row["step"]) for row in read_metrics(folder.metrics)]
        if seen and seen[-1] >= steps[len(sent)]:
            sent.append(pulse.pid)
            os.kill(pulse.pid, signal.SIGUSR2)

    endings = SubmititJobs(LOCAL, on_poll=preempt).run([Job(folder, "x", [*RUN, f"outputs={tmp_path / 'queue'}"])])
    assert [ending.code for ending in endings] == [DONE], folder.log.read_text()
    assert len(set(sent)) == len(steps)
    assert folder.log.read_text().count("continues from step") == len(steps)
    undisturbed = RunFolder(tmp_path / "undisturbed" / "runs" / planned.run_id)
    (files, texts, curves), (their_files, their_texts, their_curves) = left(folder), left(undisturbed)
    assert files - {"log.txt"} == their_files
    assert {name for name in texts if name != "log.txt"} == set(their_texts)
    equal = texts.keys() - {"log.txt", "spent.json"}
    assert {name: texts[name] for name in equal} == {name: their_texts[name] for name in equal}
    # A stop is one more moment at which training is looked at.
    assert [row for row in curves if row["step"] % 10 == 0] == their_curves
    ours, theirs = (run.checkpoints / SELECTED for run in (folder, undisturbed))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_job_that_is_lost_is_a_failure_with_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr("submitit.local.local.LocalJob._results_timeout_s", 0)
    words = [*RUN, f"outputs={tmp_path}"]
    folder = plan(compose(words)).folder

    def kill():
        if (pulse := read_pulse(folder.pulse)) is not None:
            os.kill(pulse.pid, signal.SIGKILL)
            folder.pulse.unlink()

    launcher = SubmititJobs(LOCAL, on_poll=kill)
    (ending,) = launcher.run([Job(folder, "x", words)])
    assert ending.code != DONE
    failure = read_failure(folder.failure)
    assert failure.kind == "killed"
    assert "the job ended as" in failure.line


def test_what_keeps_a_job_from_its_run_is_an_error_with_its_message(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.log.mkdir(parents=True)
    (ending,) = SubmititJobs(LOCAL).run([Job(folder, "x", [])])
    failure = read_failure(folder.failure)
    assert (ending.code, failure.kind) == (FAILED, "error")
    assert failure.line == f"IsADirectoryError: [Errno 21] Is a directory: '{folder.log}'"


def test_pre_empted_before_it_is_planned_a_run_returns_to_the_queue(tmp_path, monkeypatch):
    monkeypatch.setattr(task, "into", lambda log: None)
    monkeypatch.setattr(task, "perform", lambda words, log: signal.raise_signal(signal.SIGUSR2))
    requeued = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGUSR2, lambda number, frame: requeued.append(number))
    try:
        assert SubmittedWork([], str(tmp_path / "log.txt"))() == INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert requeued == [signal.SIGUSR2]


def test_within_a_job_of_slurm_lightning_keeps_to_its_run(tmp_path, monkeypatch):
    """It would take the checkpoint that another job has left where both began, and count tasks as ranks."""
    for key, value in {
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "4",
        "SLURM_JOB_NAME": "ablab",
        "SLURM_PROCID": "0",
    }.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hpc_ckpt_1.ckpt").write_text("another job's")
    assert typed(*RUN, "training.max_steps=30", f"outputs={tmp_path / 'runs'}", "trainer.progress=false").code == DONE


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm that takes a script, and says that the job has failed."""
    monkeypatch.setattr(SlurmJob, "watcher", SlurmInfoWatcher(delay_s=600))  # submitit's remembers other tests' jobs
    said = {
        "srun": "",
        "scancel": "",
        "sbatch": f"cp $1 {tmp_path}/script; echo Submitted batch job 12",
        "sacct": "echo 'JobID|State|NodeList'; echo '12|TIMEOUT|n1'",
    }
    for name, lines in said.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_slurm_is_told_what_is_typed(slurm, monkeypatch):
    monkeypatch.setattr("submitit.slurm.slurm.SlurmJob._results_timeout_s", 0)
    parameters = {"timeout_min": 90, "partition": "long", "gpus_per_node": 1, "signal_delay_s": 60}
    folder = RunFolder(slurm / "runs" / "r1")
    (ending,) = SubmititJobs(Queue("slurm", 3, None, parameters)).run([Job(folder, "x", ["seed=1"])])
    script = (slurm / "script").read_text()
    for line in ("--time=90", "--partition=long", "--gpus-per-node=1", "--cpus-per-task=3", "--signal=USR2@60"):
        assert f"#SBATCH {line}\n" in script
    assert ending.cause.kind == "timeout"
    assert read_failure(folder.failure).line == "the job ended as TIMEOUT (job 12)"


def test_stopped_waiting_jobs_end_within_seconds(slurm, monkeypatch):
    """However long ago they were submitted, and although they have left nothing."""
    state = f"if [ -e {slurm}/cancelled ]; then echo '12|CANCELLED by 7|'; else echo '12|PENDING|'; fi"
    (slurm / "bin" / "sacct").write_text(f"#!/bin/sh\necho 'JobID|State|NodeList'\n{state}\n")
    (slurm / "bin" / "scancel").write_text(f"#!/bin/sh\ntouch {slurm}/cancelled\n")
    began = time.monotonic()

    def stop():
        assert time.monotonic() < began + 12
        if not launcher.stopping:
            monkeypatch.setattr(SlurmJob.watcher, "_start_time", time.time() - 7200)
            launcher.stop()

    launcher = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9}), on_poll=stop)
    (ending,) = launcher.run([Job(RunFolder(slurm / "runs" / "r1"), "x", [])])
    assert ending.code == INTERRUPTED
    assert time.monotonic() < began + 12


def test_what_slurm_does_not_take_is_one_line(slurm):
    queue = Queue("slurm", 1, None, {"timeout_min": 9, "partiton": "long"})
    with pytest.raises(UserError, match="partiton"):
        queue.executor(str(slurm / "jobs"))


def test_jobs_that_slurm_refuses_are_one_line(tmp_path, monkeypatch):
    class Refusing:
        @staticmethod
        @contextmanager
        def batch():
            yield
            raise RuntimeError("sbatch: error: invalid partition specified: typo\nsbatch: error: Batch job failed")

        submit = staticmethod(lambda work: work)

    monkeypatch.setattr(Queue, "executor", lambda *_: Refusing)
    with pytest.raises(UserError, match="the jobs were refused: sbatch: error: invalid partition specified: typo"):
        SubmititJobs(LOCAL).start([Job(RunFolder(tmp_path / "runs" / "rabc"), "x", [])])


def test_without_slurm_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no Slurm here"):
        replace(LOCAL, cluster="slurm")


@pytest.mark.parametrize(
    "changes", [{"threads": 0}, {"jobs": 0}, {"parameters": {"timeout_min": 0}}, {"parameters": {"mem_gb": -1}}]
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(UserError, match="allowed: 1 and more"):
        replace(LOCAL, **changes)
