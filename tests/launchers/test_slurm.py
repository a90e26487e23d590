"""Sweeps on a real Slurm of two nodes, with accounts and without: what leaves the queue is seen, whoever took it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.store.failures import read_failure
from ablab.store.heartbeat import read_pulse
from ablab.store.run_folder import RunFolder
from tests.launchers.slurm_cluster import cluster, is_possible
from tests.run.conftest import TINY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_possible(), reason="needs root, slurm-wlm and munge"),
]
ROOT = Path(__file__).parents[2]
LONG = (*TINY, "training.max_steps=100000", "logger=none", "pruning=none")
SLOW = (*LONG, "model.d_model=128", "model.d_ff=512", "optim.batch_tokens=4096")
SHORT = (*TINY, "drophead=none", "training.max_steps=30", "logger=none", "pruning=none")


@pytest.fixture(scope="module", params=["plain", "accounts"])
def slurm(request, tmp_path_factory):
    accounts = request.param == "accounts"
    if not is_possible(accounts=accounts):
        pytest.skip("needs slurmdbd and mariadb-server, too")
    with cluster(tmp_path_factory.mktemp("slurm"), accounts=accounts) as made:
        yield made


@pytest.fixture
def start(slurm, tmp_path):
    """A function that starts a sweep of these words on the cluster; it is killed afterwards, and so are its jobs."""
    started = []

    def sweep(*words):
        out = (tmp_path / f"out{len(started)}.txt").open("w")
        line = [sys.executable, str(ROOT / "train.py"), "-m", *words, f"outputs={tmp_path / 'outputs'}"]
        environment = {**os.environ, **slurm.environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with out:
            started.append(
                subprocess.Popen(
                    [*line, "hydra/launcher=submitit_slurm"], stdout=out, stderr=out, cwd=tmp_path, env=environment
                )
            )
        return started[-1]

    yield sweep
    for process in started:
        process.kill()
        process.wait()
    slurm.said("scancel", "--user=root")
    slurm.until(lambda: not slurm.jobs(), 60)


def said(tmp_path):
    return "\n".join(path.read_text() for path in sorted(tmp_path.glob("out*.txt")))


def test_a_sweep_ends_with_its_last_run(start, tmp_path):
    own = "hydra.launcher.additional_parameters={nice: 5}"
    assert start(*SHORT, "norm=pre,post", "seed=1", own).wait(150) == 0, said(tmp_path)
    (script,) = (tmp_path / "outputs" / "submitit").glob("*_submission.sh")
    assert "#SBATCH --nice=5\n" in script.read_text()
    assert f"#SBATCH --job-name={next((tmp_path / 'outputs' / 'studies').iterdir()).name}\n" in script.read_text()
    assert "accounting" not in said(tmp_path)
    folders = [RunFolder(path) for path in (tmp_path / "outputs" / "runs").glob("r*")]
    assert [folder.record() is not None for folder in folders] == [True, True]
    assert all(folder.log.read_text().startswith("job ") for folder in folders)


def test_ctrl_c_ends_what_waits(slurm, start, tmp_path):
    process = start(*LONG, "seed=1,2", "hydra.launcher.partition=down")
    slurm.until(lambda: len(slurm.jobs()) == 2, 60)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait(60) != 0
    assert time.monotonic() - began < 30
    assert not slurm.jobs()


@pytest.mark.parametrize("partition", ["main", "grace"])
def test_pre_empted_a_run_is_saved_and_its_one_job_returns(slurm, start, tmp_path, partition):
    """Without a grace period Slurm sends two signals within milliseconds; with one, it lets the job end for good."""
    process = start(*SLOW, "seed=1", f"hydra.launcher.partition={partition}", "training.valid_every=100000")
    runs = tmp_path / "outputs" / "runs"
    slurm.until(lambda: list(runs.glob("r*/metrics.csv")), 60)
    (folder,), (job,) = map(RunFolder, runs.glob("r*")), slurm.jobs()
    assert not folder.continues, "only a stop can have saved it"
    taking = slurm.preempt()
    slurm.until(lambda: slurm.jobs().get(job) != "RUNNING", 60)
    slurm.until(lambda: slurm.jobs().get(job) == "PENDING", 30)
    assert folder.continues, folder.log.read_text()
    assert "Traceback" not in folder.log.read_text()
    assert not folder.pulse.exists()
    time.sleep(3)
    assert set(slurm.jobs()) == {job, taking}, said(tmp_path)
    assert process.poll() is None, said(tmp_path)


def test_a_job_that_pre_emption_cancelled_is_submitted_again(slurm, start, tmp_path):
    """Its partition cancels: no account of it is left, and submitit would wait for its return."""
    process = start(*LONG, "seed=1", "hydra.launcher.partition=cancelling")
    slurm.until(lambda: "RUNNING" in slurm.jobs().values(), 60)
    first = set(slurm.jobs())
    taking = slurm.preempt()
    slurm.until(lambda: not first & set(slurm.jobs()), 60)
    slurm.said("scancel", taking)
    slurm.until(lambda: set(slurm.jobs()) - first - {taking} or process.poll() is not None, 90)
    assert process.poll() is None, said(tmp_path)


def test_a_job_that_its_owner_cancels_is_left_and_the_others_go_on(slurm, start, tmp_path):
    words = (*SHORT, "norm=pre,post", "seed=1", "hydra.launcher.partition=down")
    process = start(*words)
    slurm.until(lambda: len(slurm.jobs()) == 2, 60)
    cancelled, left = sorted(slurm.jobs())
    slurm.said("scancel", cancelled)
    slurm.said("scontrol", "update", f"JobId={left}", "Partition=main")
    assert process.wait(120) == 1
    lines = said(tmp_path).splitlines()
    assert sum(line.endswith(f"seed 1: job {cancelled} was cancelled; the others go on") for line in lines) == 1
    assert "Next: the same line, which begins them again" in lines
    assert any(line.startswith("2 runs: 1 planned  1 ") for line in lines), lines


def test_a_job_that_is_pre_empted_as_it_begins_is_made_in_the_end(slurm, start, tmp_path):
    """Nothing of it can handle the signal yet."""
    process = start(*SHORT, "seed=1", "hydra.launcher.partition=grace")
    slurm.until(lambda: "RUNNING" in slurm.jobs().values(), 60)
    taking = slurm.preempt()
    slurm.until(lambda: slurm.jobs().get(taking) == "RUNNING", 60)
    slurm.said("scancel", taking)
    assert process.wait(240) == 0, said(tmp_path)


def test_a_job_that_dies_without_a_word_is_a_failure(slurm, start, tmp_path):
    """Nothing is left of it: no result, no account, no signal that it could have heard."""
    start(*LONG, "seed=1")
    runs = tmp_path / "outputs" / "runs"
    slurm.until(lambda: list(runs.glob("r*/metrics.csv")), 60)
    (folder,), (job,) = map(RunFolder, runs.glob("r*")), slurm.jobs()
    pulse = read_pulse(folder.pulse)
    assert pulse is not None
    os.kill(pulse.pid, signal.SIGKILL)
    slurm.until(lambda: read_failure(folder.failure), 60)
    failure = read_failure(folder.failure)
    assert (failure.kind, failure.attempts) == ("killed", 1)
    assert f"the job ended as FAILED (job {job}): n" in failure.line, "with what srun said of it"
    assert "Killed; see " in failure.line
    slurm.until(lambda: set(slurm.jobs()) - {job}, 20)  # not after a minute, in which its heart would count as alive
