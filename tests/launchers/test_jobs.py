"""A run's job in the queue of Slurm: found again, adopted, shown and cancelled by another command than its launcher."""

import json
import signal

import pytest

from ablab.commands.cli import main
from ablab.errors import DONE
from ablab.study.definition import define
from ablab.study.ledger import State
from ablab.sweep.launchers import jobs, squeue, task
from ablab.sweep.launchers.slurm import Queue, SubmititJobs
from ablab.sweep.launchers.submitted import SubmittedWork
from ablab.sweep.progress import Board
from tests.launchers.conftest import job, tell
from tests.study.conftest import SMALL


@pytest.fixture
def launcher(slurm):
    """A launcher on a cluster of the name `here`, whose sbatch counts, and whose jobs are what squeue lists."""
    tell(slurm, "scontrol", "echo 'ClusterName = here'")
    tell(slurm, "sbatch", f"echo . >> {slurm}/submitted; echo Submitted batch job 20")
    made = SubmititJobs(Queue("slurm", 1, None, {"timeout_min": 9}))
    made.lines = []
    made.say = made.lines.append
    return made


def submitted(slurm):
    path = slurm / "submitted"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING"])
def test_what_waits_in_the_queue_is_not_submitted_again(slurm, launcher, state):
    """Its launcher was killed; a job that is completing may have been requeued."""
    first, second = job(slurm, 1), job(slurm, 2)
    jobs.keep(first.folder, "17_3")
    tell(slurm, "squeue", f"echo '17_3 {state} Priority'; echo '20 PENDING Priority'")
    launcher.start([first, second])
    assert submitted(slurm) == 1
    assert launcher.running == [first, second]
    reason = ", Priority" if state == "PENDING" else ""
    assert launcher.lines == [f"In the queue already: job 17_3{reason}"]
    assert json.loads(second.folder.job.read_text()) == {"job": "20", "cluster": "here"}


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"job": "17_3", "cluster": "here"}, "echo '17_3 CANCELLED None'"),  # it is wanted again
        ({"job": "17_3", "cluster": "here"}, "echo '17_4 PENDING None'"),
        ({"job": "17_3", "cluster": "there"}, "echo '17_3 PENDING None'"),  # another cluster's number
        ({"job": "17_3"}, "echo '17_3 PENDING None'"),
        ({"job": "17_3", "cluster": "here"}, "exit 1"),
        (None, "echo '17_3 PENDING None'"),
    ],
)
def test_what_is_not_in_this_queue_is_submitted(slurm, launcher, kept, said):
    one = job(slurm, 1)
    if kept is not None:
        one.folder.job.parent.mkdir(parents=True)
        one.folder.job.write_text(json.dumps(kept))
    tell(slurm, "squeue", said)
    launcher.start([one])
    assert submitted(slurm) == 1


def test_an_adopted_job_is_followed_to_its_end(slurm, launcher):
    one = job(slurm, 1)
    jobs.keep(one.folder, "17")
    tell(slurm, "squeue", f"[ -e {slurm}/over ] || echo '17 PENDING Priority'; touch {slurm}/over")
    (ending,) = launcher.run([one])
    assert (ending.job, ending.cause.line) == (one, "the job ended as TIMEOUT (job 17)")
    assert submitted(slurm) == 0
    assert not one.folder.job.exists(), "a number may be given again"


def test_a_job_with_a_result_is_forgotten(slurm, monkeypatch):
    """Another command must not follow it: squeue lists it for a while."""
    monkeypatch.setattr(task, "perform", lambda words, log: DONE)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    one, other = job(slurm, 1), job(slurm, 2)
    jobs.keep(one.folder, "17")
    jobs.keep(other.folder, "18")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    for each in (one, other):
        assert SubmittedWork([], str(each.folder.log))() == DONE
    for number, handler in before.items():
        signal.signal(number, handler)
    assert (one.folder.job.exists(), other.folder.job.exists()) == (False, True)


def test_the_view_asks_the_queue_now_and_then(slurm, monkeypatch, tmp_path):
    study = define((*SMALL, "seed=1,2", f"outputs={tmp_path}"))
    board = Board(study)
    first, second = study.cells
    asked = []
    monkeypatch.setattr(squeue, "jobs", lambda: asked.append(1) or {"17": squeue.InQueue("PENDING", "Resources")})
    assert [entry.state for entry in board.shown().values()] == [State.PLANNED] * 2
    assert not asked, "no run has a job"
    jobs.keep(first.planned.folder, "17")
    monkeypatch.setattr(jobs, "ASK_EVERY", 0.0)
    for _ in range(2):
        shown = board.shown()
        assert (shown[first.key].state, shown[first.key].job) == (State.QUEUED, "job 17, Resources")
        assert shown[second.key].state is State.PLANNED
        monkeypatch.setattr(jobs, "ASK_EVERY", 60.0)
    assert len(asked) == 1
    assert board.entries[first.key].state is State.PLANNED, "a sweep begins it"


def test_study_shows_and_cancels_what_is_queued(slurm, capsys, tmp_path):
    words = [*SMALL, "seed=1,2", f"outputs={tmp_path}"]
    first, _ = define(tuple(words)).cells
    jobs.keep(first.planned.folder, "17_1")
    tell(slurm, "squeue", "echo '17_1 PENDING QOSMaxJobsPerUserLimit'; echo '18 PENDING None'")
    tell(slurm, "scancel", f"echo $* > {slurm}/cancelled")
    assert main(["study", *words]) == 0
    out = capsys.readouterr().out
    assert "2 runs: 1 planned  1 queued" in out
    assert f"  {first.arm}, seed 1   queued (job 17_1, QOSMaxJobsPerUserLimit)\n" in out
    assert main(["study", *words, "format=json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["states"] == {"queued": 1, "planned": 1}
    assert [run["job"] for run in told["runs"]] == ["job 17_1, QOSMaxJobsPerUserLimit", None]
    assert main(["study", *words, "cancel=true"]) == 0
    assert (slurm / "cancelled").read_text() == "17_1\n"
    assert "1 job of " in capsys.readouterr().out
    tell(slurm, "scancel", "echo 'scancel: error: Access denied' >&2; exit 1")
    assert main(["study", *words, "cancel=true"]) == 1
    assert "scancel 17_1: scancel: error: Access denied" in capsys.readouterr().err
    tell(slurm, "squeue", "")
    assert main(["study", *words, "cancel=true"]) == 0
    assert "is in a queue of Slurm here" in capsys.readouterr().out
    tell(slurm, "squeue", "exit 1")
    assert main(["study", *words, "cancel=true"]) == 1
    assert "squeue does not answer, so that nobody knows which jobs are in the queue" in capsys.readouterr().err


def test_a_cluster_that_did_not_say_its_name_is_asked_again(slurm, tmp_path):
    first, second = define((*SMALL, "seed=1,2", f"outputs={tmp_path}")).cells
    tell(slurm, "squeue", "echo '17_1 PENDING None'; echo '17_2 PENDING None'")
    tell(slurm, "scontrol", "exit 1")
    jobs.keep(first.planned.folder, "17_1")
    tell(slurm, "scontrol", "echo ClusterName = ours")
    jobs.keep(second.planned.folder, "17_2")
    folders = {cell.seed: cell.planned.folder for cell in (first, second)}
    assert {number: waiting.id for number, waiting in jobs.in_queue(folders).items()} == {1: "17_1", 2: "17_2"}
    squeue._cluster.cache_clear()
    tell(slurm, "scontrol", "echo ClusterName = another")
    assert list(jobs.in_queue(folders)) == [1]


def test_cancelling_is_done_alone(capsys, tmp_path):
    assert main(["study", *SMALL, f"outputs={tmp_path}", "cancel=true", "watch=true"]) == 2
    assert "cancel=true: allowed without check=, watch= and close=" in capsys.readouterr().err
