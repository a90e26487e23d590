"""Runs as jobs of a queue: pre-empted, they continue exactly; lost, it is said; Slurm is told what is typed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from omegaconf import OmegaConf

from ablab.code.machine import graceful_stop
from ablab.config import compose
from ablab.errors import DONE, FAILED, INTERRUPTED, UNSUITABLE, LostError, UserError
from ablab.store.failures import read_failure
from ablab.store.heartbeat import Pulse, read_pulse
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import SELECTED, RunFolder
from ablab.sweep.hydra import check_hydra
from ablab.sweep.launchers import slurm as slurm_launcher
from ablab.sweep.launchers import squeue, task
from ablab.sweep.launchers.base import Job, cause_of
from ablab.sweep.launchers.slurm import Queue, SubmititJobs, SubmittedWork
from ablab.tasks.plan import plan
from hydra_plugins.ablab_hydra.launchers import SubmititLauncher
from tests.launchers.conftest import job, tell
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

    launcher = SubmititJobs(LOCAL)
    launcher.on_poll = preempt
    endings = launcher.run([Job(folder, "x", [*RUN, f"outputs={tmp_path / 'queue'}"])])
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

    launcher = SubmititJobs(LOCAL)
    launcher.on_poll = kill
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


@pytest.fixture
def signalled(monkeypatch):
    """A job of Slurm whose run is told to stop twice within milliseconds; returns the list of its requeues."""
    monkeypatch.setattr(task, "into", lambda log: None)
    monkeypatch.setattr(squeue, "OWN_PAUSES", (0.0, 0.0))
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    requeued = []

    def twice(words, log):
        with graceful_stop(lambda: requeued.append("checkpoint")):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return INTERRUPTED

    def requeue(number, frame):
        requeued.append("requeued")
        raise SystemExit

    monkeypatch.setattr(task, "perform", twice)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGUSR2, requeue)
    yield requeued
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("slurm")
@pytest.mark.parametrize(
    ("says", "did"),
    [
        ("echo RUNNING 1:00", ["checkpoint", "requeued"]),  # a grace period: Slurm would let it end
        ("echo COMPLETING INVALID", ["checkpoint", "requeued"]),  # a time limit: Slurm would end it
        ("echo COMPLETING 1:00", ["checkpoint"]),  # cancelled, or pre-empted: Slurm knows whether it returns
    ],
)
def test_told_to_stop_a_job_leaves_no_result(slurm, signalled, says, did):
    """The sweep would submit the run again, beside a job that returns by itself."""
    tell(slurm, "squeue", says)
    with pytest.raises(SystemExit):
        SubmittedWork([], str(slurm / "log.txt"))()
    assert signalled == did


def test_the_signal_may_end_the_question_too(slurm, signalled):
    tell(slurm, "squeue", f"[ -e {slurm}/asked ] && echo RUNNING && exit 0; touch {slurm}/asked; kill $$")
    with pytest.raises(SystemExit):
        SubmittedWork([], str(slurm / "log.txt"))()
    assert signalled == ["checkpoint", "requeued"]


def test_a_job_that_knows_nothing_of_itself_tells_the_sweep(slurm, signalled):
    tell(slurm, "squeue", "exit 1")
    assert SubmittedWork([], str(slurm / "log.txt"))() == INTERRUPTED
    assert signalled == ["checkpoint"]


def test_so_does_one_that_may_not_return(slurm, signalled):
    def refused(number, frame):
        raise subprocess.CalledProcessError(1, "scontrol")

    signal.signal(signal.SIGUSR2, refused)
    tell(slurm, "squeue", "echo RUNNING")
    assert SubmittedWork([], str(slurm / "log.txt"))() == INTERRUPTED
    assert signalled == ["checkpoint"]


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


@pytest.mark.parametrize("answers", [True, False])
def test_stopped_waiting_jobs_end_within_seconds(slurm, monkeypatch, answers):
    """However long ago they were submitted, although they have left nothing, and whether Slurm still answers or not."""
    monkeypatch.setattr(squeue, "SILENT", 2.0)
    tell(
        slurm,
        "squeue",
        f"{'' if answers else f'[ -e {slurm}/cancelled ] && exit 1; '}[ -e {slurm}/cancelled ] || echo 12",
    )
    tell(slurm, "scancel", f"touch {slurm}/cancelled")
    tell(slurm, "sacct", "exit 1")
    began = time.monotonic()

    def stop():
        assert time.monotonic() < began + 12
        if not launcher.stopping:
            launcher.stop()

    launcher = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9}))
    launcher.on_poll = stop
    folder = RunFolder(slurm / "runs" / "r1")
    (ending,) = launcher.run([Job(folder, "x", [])])
    assert ending.code == INTERRUPTED
    assert answers or folder.job.exists(), "it may be in the queue still"


def test_a_waiting_job_that_somebody_cancelled_is_not_waited_for(slurm):
    """sacct does not know such a task of an array; it has no error file, since it never began."""
    tell(slurm, "sacct", "")
    folder = RunFolder(slurm / "runs" / "r1")
    (ending,) = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([Job(folder, "x", [])])
    assert (ending.code, ending.is_final) == (INTERRUPTED, True)
    assert ending.cause.line == "job 12 was cancelled"
    assert read_failure(folder.failure) is None


@pytest.mark.parametrize(
    ("state", "told", "is_final"),
    [("CANCELLED", "", True), ("PREEMPTED", "", False), ("FAILED", "srun: error: n1: task 0: Terminated", False)],
)
def test_what_took_a_job_away_is_told_apart(slurm, state, told, is_final):
    """Its owner does not want it now; Slurm does, also where its signal ended a process that had just begun."""
    tell(slurm, "squeue", f"echo '{told}' > {slurm}/submitit/12_0_log.err; echo 12 {state} None")
    folder = RunFolder(slurm / "runs" / "r1")
    (ending,) = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([Job(folder, "x", [])])
    assert (ending.code, ending.is_final) == (INTERRUPTED, is_final)
    assert "job 12" in ending.cause.line
    assert read_failure(folder.failure) is None


def test_a_job_that_is_back_in_the_queue_was_never_gone(monkeypatch):
    """A requeue takes it out for a moment; however rarely Slurm is asked, it takes ten seconds of absence."""
    seen = iter([{"1", "2"}, {"2"}, {"1", "2"}, {"2"}, {"2"}, {"2"}])
    clock = [1000.0]
    monkeypatch.setattr(squeue, "jobs", lambda: dict.fromkeys(next(seen), squeue.InQueue("RUNNING")))
    monkeypatch.setattr(squeue.time, "monotonic", lambda: clock[0])
    followed, told = squeue.Queued(), []
    for wait in (60, 60, 60, 60, 6, 6):
        clock[0] += wait
        told.append(followed.gone(["1", "2"], stopping=False))
    assert told == [{}, {}, {}, {}, {}, {"1": None}]


@pytest.mark.parametrize(("state", "stopping", "after"), [("CANCELLED", True, 0), ("CANCELLED", False, 11)])
def test_a_job_that_squeue_lists_as_ended_has_ended(monkeypatch, state, stopping, after):
    """Its result may still be on its way, unless nobody asks for it."""
    clock = [1000.0]
    monkeypatch.setattr(squeue, "jobs", lambda: {"1": squeue.InQueue(state), "2": squeue.InQueue("COMPLETING")})
    monkeypatch.setattr(squeue.time, "monotonic", lambda: clock[0])
    followed = squeue.Queued()
    found = followed.gone(["1", "2"], stopping=stopping)
    if after:
        assert found == {}
        clock[0] += after
        found = followed.gone(["1", "2"], stopping=stopping)
    assert found == {"1": state}


def test_a_job_without_memory_says_so_in_the_words_of_slurm(slurm):
    tell(slurm, "sacct", "echo FAILED")
    said = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0.\nsrun: error: n3: task 0: Out Of Memory\n"
    tell(slurm, "squeue", f"printf '{said}' > {slurm}/submitit/12_0_log.err")
    folder = RunFolder(slurm / "runs" / "r1")
    (ending,) = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([Job(folder, "x", [])])
    assert ending.cause.kind == "memory"
    assert ending.cause.line.startswith("the job ended as FAILED (job 12): n3: task 0: Out Of Memory; see ")


def test_a_controller_that_is_away_is_tried_again(slurm, monkeypatch):
    monkeypatch.setattr(slurm_launcher, "RETRY", 0.0)
    away = "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' >&2; exit 1"
    back = f"echo . >> {slurm}/tries; [ $(wc -l < {slurm}/tries) -gt 3 ] && echo Submitted batch job 12 && exit 0"
    tell(slurm, "sbatch", f"{back}; {away}")
    launcher, told = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})), []
    launcher.say = told.append
    (ending,) = launcher.run([job(slurm, 1)])
    assert ending.cause.kind == "timeout", "it was submitted in the end"
    (line,) = told
    assert line.startswith("Slurm does not answer (sbatch: error: ")
    assert line.endswith("; submissions are tried again for 10 minutes")


def test_one_that_stays_away_is_an_error_of_the_machine(slurm, monkeypatch):
    monkeypatch.setattr(slurm_launcher, "AWAY", -1.0)
    tell(slurm, "sbatch", "echo 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2; exit 1")
    with pytest.raises(LostError, match=r"Slurm does not answer: .*the same line, typed again, goes on"):
        SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([job(slurm, 1)])


def test_arrays_are_no_larger_than_the_cluster_takes(slurm):
    tell(slurm, "scontrol", "echo 'MaxArraySize            = 3'")
    tell(slurm, "sbatch", f"grep -h -- --array $1 >> {slurm}/arrays; echo Submitted batch job 12")
    tell(slurm, "squeue", "echo 12_0; echo 12_1; echo 12_2; echo 12_3")
    launcher = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9}))
    launcher.start([job(slurm, number) for number in range(7)])
    sizes = [line.partition("=0-")[2].partition("%")[0] for line in (slurm / "arrays").read_text().splitlines()]
    assert sizes == ["2", "2"], "the seventh is no array"
    assert len(launcher.running) == 7


def test_more_jobs_than_the_user_may_submit_wait_for_places(slurm, monkeypatch, capfd):
    monkeypatch.setattr(slurm_launcher, "RETRY", 0.0)
    refusal = "sbatch: error: AssocMaxSubmitJobLimit"
    # No array, and one job at a time, which ends as soon as another is refused for it.
    there = f"if [ -e {slurm}/there ]; then rm {slurm}/there; echo '{refusal}' >&2; exit 1; fi"
    tell(
        slurm,
        "sbatch",
        f"if grep -q -- --array $1; then echo '{refusal}' >&2; exit 1; fi\n{there}\n"
        f"touch {slurm}/there; echo . >> {slurm}/taken; echo Submitted batch job 12",
    )
    endings = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([job(slurm, number) for number in range(4)])
    assert len(endings) == 4
    assert len((slurm / "taken").read_text().split()) == 4
    assert capfd.readouterr().err == "", "each refusal was retried, none is told"


@pytest.mark.parametrize(("minutes", "delay"), [(3, 120), (2, 120), (1, 30), (2, 60)])
def test_a_time_limit_without_a_step_is_refused(slurm, minutes, delay):
    with pytest.raises(UserError, match=f"timeout_min={minutes}: .* no time is left for a step; allowed: "):
        Queue("slurm", 1, None, {"timeout_min": minutes, "signal_delay_s": delay})
    Queue("slurm", 1, None, {"timeout_min": -(-(delay + 120) // 60), "signal_delay_s": delay})


def test_what_submitit_says_after_a_run_is_not_the_runs_last_line(tmp_path, monkeypatch, capfd):
    def fails(words, log):
        sys.stderr.write("error: trainer.accelerator=gpu: torch finds no GPU here\n")
        return UNSUITABLE

    monkeypatch.setattr(task, "perform", fails)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    try:
        assert SubmittedWork([], str(tmp_path / "log.txt"))() == UNSUITABLE
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.stdout.write("submitit INFO - Exiting after successful completion\n")
    sys.stdout.flush()
    first, last = (tmp_path / "log.txt").read_text().splitlines()
    assert first == "job 7 of Slurm on this node"
    assert cause_of(UNSUITABLE, tmp_path / "log.txt").line == last.removeprefix("error: ")
    assert "Exiting" in capfd.readouterr().out


@pytest.mark.parametrize("word", ["additional_parameters={mail-user: a@b.c}", "additional_parameters.mail-user=a@b.c"])
def test_other_options_of_sbatch_are_typed_under_their_own_names(slurm, word):
    """Hydra knows none of them, and would want a `+`; the line is refused for its last word alone."""
    words = ["hydra/launcher=submitit_slurm", f"hydra.launcher.{word}"]
    check_hydra(words, [])
    with pytest.raises(UserError, match=r"^hydra.launcher.jbos=1: no such setting"):
        check_hydra([*words, "hydra.launcher.jbos=1"], [])


@pytest.mark.parametrize(
    ("others", "line"), [({}, "requeue"), ({"no-requeue": True}, "no-requeue"), ({"nice": 5}, "requeue")]
)
def test_a_job_may_return_to_the_queue_unless_it_is_forbidden(slurm, others, line):
    """Whatever the cluster's default is."""
    queue = Queue("slurm", 1, None, {"timeout_min": 9, "additional_parameters": others})
    SubmititJobs(queue).start([job(slurm, 1)])
    script = (slurm / "script").read_text().splitlines()
    assert [each for each in script if each.endswith("requeue")] == [f"#SBATCH --{line}"]


@pytest.mark.parametrize(("typed_name", "name"), [({}, "norms"), ({"name": "mine"}, "mine")])
def test_jobs_are_named_after_the_study(slurm, typed_name, name):
    launcher = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9, **typed_name}))
    launcher.study = "norms"
    launcher.start([job(slurm, 1)])
    assert f"#SBATCH --job-name={name}\n" in (slurm / "script").read_text()


def test_a_run_is_started_as_submitit_would(slurm):
    """In a container, between lines of one's own; the lists as Hydra gives them."""
    lists = {"setup": ["module load x"], "teardown": ["date"], "srun_args": ["--container-image=a b"]}
    parameters = {"timeout_min": 9, "python": "apptainer exec i.sif python", **lists}
    SubmititLauncher("slurm", 1, None, **OmegaConf.create(parameters)).make(None).start([job(slurm, 1)])
    lines = (slurm / "script").read_text().splitlines()
    (call,) = [number for number, line in enumerate(lines) if line.startswith("srun ")]
    assert "'--container-image=a b' apptainer exec i.sif python -u -m submitit" in lines[call]
    assert lines.index("module load x") < call < lines.index("date")


@pytest.mark.parametrize(("memory", "line"), [(0.001, "1MB"), (0.5, "512MB"), (2, "2GB")])
def test_memory_may_be_less_than_a_gigabyte(slurm, memory, line):
    SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9, "mem_gb": memory})).start([job(slurm, 1)])
    assert f"#SBATCH --mem={line}\n" in (slurm / "script").read_text()


@pytest.mark.parametrize("memory", [0.0009, 0, -1])
def test_memory_of_nothing_is_refused(slurm, memory):
    """For Slurm 0 is all of the node's."""
    with pytest.raises(UserError, match=f"mem_gb={memory:g}: allowed: 0.001 and more"):
        Queue("slurm", 1, None, {"timeout_min": 9, "mem_gb": memory})


def test_a_store_in_whose_path_slurm_would_read_a_pattern_is_refused(slurm):
    """Its logs would lie elsewhere, which submitit would notice once the jobs were submitted."""
    with pytest.raises(UserError, match=r"outputs: .*50%a/submitit: Slurm replaces what follows %"):
        SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).start(
            [job(slurm / "50%a", 1), job(slurm / "50%a", 2)]
        )
    assert not (slurm / "script").exists()


def test_the_heart_of_a_dead_job_is_not_waited_for(slurm):
    """On another machine it would count as alive for a minute; that of another process is left alone."""
    ours, other = job(slurm, 1), job(slurm, 2)
    tell(slurm, "sbatch", "echo Submitted batch job 12; echo . >&2")
    pulse = Pulse(host="n1", machine="another", job="12_0", pid=1, began=0, updated=time.time())
    for each, its in ((ours, "12_0"), (other, "7")):
        each.folder.pulse.parent.mkdir(parents=True, exist_ok=True)
        each.folder.pulse.write_text(pulse.model_copy(update={"job": its}).model_dump_json())
    SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9})).run([ours, other])
    assert (ours.folder.pulse.exists(), other.folder.pulse.exists()) == (False, True)


def test_what_slurm_does_not_take_is_one_line(slurm):
    queue = Queue("slurm", 1, None, {"timeout_min": 9, "partiton": "long"})
    with pytest.raises(UserError, match="partiton"):
        queue.executor(str(slurm / "jobs"), "norms")


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


@pytest.mark.parametrize("changes", [{"threads": 0}, {"jobs": 0}, {"parameters": {"timeout_min": 0}}])
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(UserError, match="allowed: 1 and more"):
        replace(LOCAL, **changes)


def test_local_jobs_do_not_share_the_first_gpu():
    with pytest.raises(
        UserError, match=r"submitit_local puts every job on the first GPUs; allowed: hydra\.launcher\.gpus"
    ):
        Queue("local", 1, None, {"gpus_per_node": 1})


def test_a_process_of_this_machine_in_an_allocation_is_no_job_of_slurm(monkeypatch):
    """It would be requeued where it is told to stop, and all runs would be one job."""
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    assert squeue.own_job() == "4711"
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    assert squeue.own_job() is None
