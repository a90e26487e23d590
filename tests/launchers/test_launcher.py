"""What every launcher promises, on one that needs neither processes nor a cluster."""

import signal

import pytest

from ablab.errors import DONE, FAILED, INTERRUPTED, UNSUITABLE
from ablab.store.failures import read_failure
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers.base import Cause, Ending, Job, Launcher


class Instant(Launcher):
    """A job ends at the first look after its start."""

    def __init__(self, rooms, **hears):
        super().__init__(**hears)
        self.rooms, self.now, self.kills = rooms, [], []

    @property
    def running(self):
        return self.now

    @property
    def room(self):
        return self.rooms - len(self.now)

    def start(self, jobs):
        assert len(jobs) <= self.room
        self.now.extend(jobs)

    def ended(self):
        assert self.now, "nothing runs: a cluster would be asked to wait for no task at all"
        while self.now:
            yield Ending(self.now.pop(), INTERRUPTED if self.kills else DONE)

    def end(self, *, kill):
        self.kills.append(kill)


def jobs(folder, count):
    for number in range(count):
        yield Job(RunFolder(folder / f"r{number}"), str(number), [])


@pytest.mark.parametrize(
    ("sent", "kills"),
    [
        ((signal.SIGINT, signal.SIGINT), [False, True]),
        ((signal.SIGTERM, signal.SIGTERM), [False]),
        ((signal.SIGINT, signal.SIGTERM), [False]),
        ((signal.SIGTERM, signal.SIGINT), [False, True]),
    ],
)
def test_a_second_ctrl_c_kills_and_a_queue_that_repeats_its_signal_does_not(sent, kills):
    launcher = Instant(1)
    with launcher._interruptible():
        for number in sent:
            signal.raise_signal(number)
    assert (launcher.kills, launcher.interrupted) == (kills, True)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("rooms", [1, 2, 3])
def test_every_job_once_and_no_waiting_for_nothing(tmp_path, count, rooms):
    endings = Instant(rooms).run(jobs(tmp_path, count))
    assert sorted(ending.job.key for ending in endings) == [str(number) for number in range(count)]


def test_the_next_job_is_asked_for_when_there_is_room(tmp_path):
    over: list[Ending] = []
    asked = []

    def watched():
        for job in jobs(tmp_path, 5):
            asked.append(len(over))
            yield job

    launcher = Instant(2)
    launcher.on_end = over.append
    launcher.run(watched())
    assert asked == [0, 0, 2, 2, 4]


def test_nothing_is_started_after_a_stop(tmp_path):
    launcher = Instant(1)
    launcher.on_end = lambda _: launcher.stop()
    endings = launcher.run(jobs(tmp_path, 5))
    assert [ending.code for ending in endings] == [DONE]
    assert launcher.kills == [False]


class NoGpu(Instant):
    """Each job hears the same of the machine."""

    def ended(self):
        while self.now:
            yield Ending(self.now.pop(), UNSUITABLE, Cause("error", "no GPU"))


def test_what_the_machine_lacks_is_heard_once_and_is_no_failure_of_the_runs(tmp_path):
    launcher = NoGpu(2)
    endings = launcher.run(jobs(tmp_path, 5))
    assert launcher.refused == "no GPU"
    assert len(endings) == 2
    assert launcher.kills == [False]  # whatever runs elsewhere may write a checkpoint
    assert not any(ending.job.folder.failure.exists() for ending in endings)


class Nodes(Instant):
    """Each job ends with a code of its own, and none of them on the machine of another."""

    def __init__(self, rooms, *codes):
        super().__init__(rooms)
        self.codes, self.one_machine = codes, False

    def ended(self):
        while self.now:
            job = self.now.pop(0)
            code = self.codes[int(job.key)]
            yield Ending(job, code, Cause("error", f"no GPU for {job.key}") if code == UNSUITABLE else None)


@pytest.mark.parametrize("rooms", [2, 5])
@pytest.mark.parametrize("bad", [0, 1, 3])
def test_one_bad_node_fails_its_run_and_no_other(tmp_path, rooms, bad):
    codes = [UNSUITABLE if number == bad else DONE for number in range(5)]
    launcher = Nodes(rooms, *codes)
    endings = launcher.run(jobs(tmp_path, 5))
    assert launcher.refused is None
    assert not launcher.kills
    assert sorted((ending.job.key, ending.code) for ending in endings) == [
        (str(number), FAILED if number == bad else DONE) for number in range(5)
    ]
    (failed,) = [ending.job for ending in endings if ending.job.folder.failure.exists()]
    assert read_failure(failed.folder.failure).line == f"no GPU for {bad}"


@pytest.mark.parametrize("other", [UNSUITABLE, FAILED])
@pytest.mark.parametrize("rooms", [1, 2, 3])
def test_where_no_node_is_suitable_the_sweep_ends_and_no_run_has_failed_by_it(tmp_path, rooms, other):
    launcher = Nodes(rooms, UNSUITABLE, other, UNSUITABLE, UNSUITABLE, UNSUITABLE)
    endings = launcher.run(jobs(tmp_path, 5))
    assert launcher.refused == "no GPU for 0"
    assert len(endings) == rooms
    assert not any(ending.job.folder.failure.exists() for ending in endings)
