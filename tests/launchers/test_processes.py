"""Every run in a process of its own: what one does to itself, or what is done to it, is its own affair."""

import os
import signal
import threading
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

from ablab.code.machine import graceful_stop
from ablab.config import compose
from ablab.errors import FAILED, INTERRUPTED, UserError
from ablab.store.failures import kind_of, read_failure, write_failure
from ablab.store.heartbeat import Heartbeat, heartbeat, read_pulse
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers import local, task
from ablab.sweep.launchers.base import Job, cause_of
from ablab.sweep.launchers.local import LocalProcesses, Places, start_server
from ablab.sweep.launchers.task import perform, work
from hydra_plugins.ablab_hydra.launchers import LocalLauncher
from tests.run.conftest import TINY


def test_a_run_hears_a_stop_once(tmp_path, monkeypatch):
    """Its launcher passes a signal on and is killed, or a queue sends it the same; who will not wait, kills."""
    asked = []

    def run(words, log):
        with graceful_stop(lambda: asked.append(1)):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)  # while it ends
        return INTERRUPTED

    for name, stand_in in {"into": lambda log: None, "_end_with": lambda server: None, "perform": run}.items():
        monkeypatch.setattr(task, name, stand_in)
    monkeypatch.setattr(os, "setpgid", lambda *_: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit) as ended:
            work([], str(tmp_path / "log.txt"), {})
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (ended.value.code, asked) == (INTERRUPTED, [1])


@pytest.mark.parametrize("raises", [True, False])
def test_the_last_line_of_a_log_names_the_signal(tmp_path, monkeypatch, capsys, raises):
    """A training ends by itself, a command with an error; the sweep repeats the line where it gives the run up."""

    def run(*_):
        if raises:
            raise KeyboardInterrupt

    monkeypatch.setattr("ablab.run.run", run)
    monkeypatch.setattr("ablab.code.machine.stopped_by", ["SIGHUP", "SIGTERM"])
    assert perform([*TINY, f"outputs={tmp_path}"], None) == INTERRUPTED
    assert capsys.readouterr().out.splitlines()[-1] == "stopped by SIGTERM"


def _sleepy(words, log, environment):
    """Stands in for a run: does what its first word says."""
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    what = words[0]
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "sleep":
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            os._exit(130)
    if what == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        folder = Path(log).parent
        folder.mkdir(parents=True)
        (folder / "deaf").touch()
        time.sleep(60)
    if what == "note":
        with open(words[1], "a", encoding="utf-8") as file:
            file.write(f"{environment} {[word for word in words if word.startswith('trainer')]}\n")
    os._exit(int(words[-3]) if what == "exit" else 0)


@pytest.fixture(scope="module", autouse=True)
def _server_of_its_own():
    """One that has imported little must not stay: runs that later tests fork from it would import all themselves."""
    yield
    forkserver._forkserver._stop()


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setattr(task, "work", _sleepy)
    monkeypatch.setattr(task, "preloaded", lambda words: ["ablab.sweep.launchers.local"])


def job(folder, *words):
    return Job(RunFolder(folder / "runs" / f"r{'-'.join(words)[:40].replace('/', '_')}"), "x", words)


def test_one_that_dies_takes_nobody_along(tmp_path):
    jobs = [job(tmp_path, *words) for words in (["exit", "0"], ["die"], ["exit", "1"], ["exit", "3"])]
    endings = LocalProcesses(Places(2, 1)).run(jobs)
    assert {ending.job.words: ending.code for ending in endings} == {
        ("exit", "0"): 0,
        ("die",): -9,
        ("exit", "1"): 1,
        ("exit", "3"): 3,
    }
    failure = read_failure(jobs[1].folder.failure)
    assert failure.kind == "killed"
    assert "SIGKILL" in failure.line
    assert read_failure(jobs[0].folder.failure) is None


def test_places_bound_what_runs_at_a_time(tmp_path):
    running, most = [], []
    launcher = LocalProcesses(Places(2, 1))
    launcher.on_end = lambda ending: running.remove(ending.job)
    start = launcher.start

    def counting(jobs):
        running.extend(jobs)
        most.append(len(running))
        start(jobs)

    launcher.start = counting
    launcher.run([job(tmp_path, "exit", str(code)) for code in range(5)])
    assert max(most) == 2
    assert not running


def test_the_next_job_is_asked_for_when_there_is_room(tmp_path):
    ended = []
    launcher = LocalProcesses(Places(1, 1))
    launcher.on_end = ended.append

    def jobs():
        for code in range(3):
            assert len(ended) == code
            yield job(tmp_path, "exit", str(code))

    launcher.run(jobs())
    assert [ending.code for ending in ended] == [0, 1, 2]


def test_asked_twice_it_kills(tmp_path):
    launcher = LocalProcesses(Places(1, 1))
    asked = iter([launcher.stop, lambda: None, launcher.stop])
    running = job(tmp_path, "stubborn", "1")

    def look():
        if launcher.running and (running.folder.path / "deaf").exists():
            next(asked, lambda: None)()

    launcher.on_poll = look
    (ending,) = launcher.run([running])
    assert ending.code == -signal.SIGKILL
    assert read_failure(running.folder.failure) is None  # a person did that, not the run


def test_gpus_are_counted_among_those_that_the_launcher_sees(monkeypatch):
    """As torch counts them; a machine's owner may have given it the others' numbers, or their names."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-8f6e")
    places = Places.of(None, 1, [0, 1], 1).environments()
    assert [place["CUDA_VISIBLE_DEVICES"] for place in places] == ["2", "GPU-8f6e"]
    with pytest.raises(UserError, match="gpus: 2 is not in CUDA_VISIBLE_DEVICES=2,GPU-8f6e; allowed: 0 to 1, "):
        Places.of(None, 1, [2, 3], 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="gpus: 0 is not in CUDA_VISIBLE_DEVICES=; allowed: none"):
        Places.of(None, 1, [0], 1)
    assert Places.of(2, 1, [], 1).environments() == [{}, {}]


def test_threads_and_devices_are_divided(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("ablab.sweep.launchers.local.cores", lambda: 8)
    assert Places.of(4, None, [], 1).threads == 2
    assert Places.of(None, None, [], 1).jobs == 1
    gpus = Places.of(None, 1, [0, 1], 2)
    assert gpus.jobs == 4
    assert [place["CUDA_VISIBLE_DEVICES"] for place in gpus.environments()] == ["0", "1", "0", "1"]
    note = tmp_path / "note"
    LocalProcesses(Places(1, 3, (5,), 1)).run([job(tmp_path, "note", str(note))])
    assert "'CUDA_VISIBLE_DEVICES': '5'" in note.read_text()
    assert "trainer.threads=3" in note.read_text()


def test_asked_to_stop_it_asks_the_runs(tmp_path):
    launcher = LocalProcesses(Places(1, 1))
    timer = threading.Timer(3.0, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    before = signal.getsignal(signal.SIGINT)
    endings = launcher.run([job(tmp_path, "sleep", "1"), job(tmp_path, "sleep", "2")])
    assert [ending.code for ending in endings] == [130]  # the second never began
    assert launcher.interrupted
    assert signal.getsignal(signal.SIGINT) is before


def test_a_heart_beats_while_the_block_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("ablab.store.heartbeat.BEAT", 0.01)
    path = tmp_path / ".r1.pulse"
    with heartbeat(path) as beating:
        beating.tell(stage="training", step=7, total_steps=9)
        deadline = time.monotonic() + 10
        while (pulse := read_pulse(path)) is None or pulse.step != 7:
            assert time.monotonic() < deadline
    assert pulse.stage == "training"
    assert pulse.pid == os.getpid()
    assert pulse.is_here
    assert pulse.is_fresh
    assert list(tmp_path.iterdir()) == []


def test_a_pulse_that_cannot_be_written_ends_nothing(tmp_path):
    Heartbeat(tmp_path / "nowhere" / ".r1.pulse").beat()


def test_failures_count_attempts(tmp_path):
    path = tmp_path / "failure.json"
    for attempt in (1, 2):
        assert write_failure(path, "error", "x", None).attempts == attempt
    path.write_text("{")
    assert read_failure(path) is None


def test_words_that_mean_another_run_by_now_train_nothing(tmp_path):
    """As where the code of a part was changed while the run waited."""
    folder = RunFolder(tmp_path / "runs" / "rplanned")
    folder.path.mkdir(parents=True)
    assert perform((*TINY, f"outputs={tmp_path}", "logger=none"), str(folder.log)) == FAILED
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["rplanned"]
    assert "its words now mean r" in read_failure(folder.failure).line


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "memory"),
        (ValueError("x"), "error"),
    ],
)
def test_memory_is_told_from_other_errors(error, kind):
    assert kind_of(error) == kind


def test_the_server_imports_ahead_what_the_runs_will(monkeypatch):
    monkeypatch.setattr(forkserver, "ensure_running", lambda: None)
    monkeypatch.setattr(forkserver._forkserver, "_preload_modules", [])
    start_server(["json"])
    assert forkserver._forkserver._preload_modules == ["json"]


def test_later_runs_never_make_the_launcher_deaf(tmp_path, monkeypatch):
    """Starting the server is, to a SIGTERM in that moment."""
    started = []
    monkeypatch.setattr(local, "start_server", started.append)
    LocalProcesses(Places(1, 1)).run([job(tmp_path, "exit", code) for code in ("0", "1", "3")])
    assert started == [task.preloaded([])]


def test_gpus_are_held_only_where_some_run_trains_on_one():
    cpu, gpu = (compose([f"trainer={name}"]).config for name in ("cpu", "gpu"))
    launcher = LocalLauncher(None, None, [0, 1], 1)
    for configs in ([gpu], [cpu, gpu]):
        launcher.check(configs)
    with pytest.raises(UserError, match="train on the CPU"):
        launcher.check([cpu, cpu])
    LocalLauncher(2, None, [], 1).check([cpu])


def test_a_run_on_several_gpus_is_refused_where_each_run_gets_one():
    one, two, cores = (
        compose(["trainer=ddp", *words]).config
        for words in (["trainer.devices=1"], ["trainer.devices=2"], ["trainer.devices=2", "trainer.accelerator=cpu"])
    )
    launcher = LocalLauncher(None, None, [0, 1], 1)
    launcher.check(iter([one, cores]))
    with pytest.raises(UserError, match=r"each run gets one GPU, and trainer\.devices=2; allowed: "):
        launcher.check(iter([one, two]))
    LocalLauncher(1, None, [], 1).check([two])


def test_a_server_that_is_killed_interrupts_its_runs(tmp_path):
    """They go on to their checkpoint: none has failed, and their logs say nothing of it."""
    launcher = LocalProcesses(Places(1, 1))
    running = job(tmp_path, "sleep", "1")
    running.folder.path.mkdir(parents=True)
    running.folder.log.write_text("epoch 3, loss 1.2\n")
    launcher.start([running])
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
    pid = next(iter(launcher._running.values())).process.pid
    try:
        endings = []
        while not endings:
            endings = list(launcher.ended())
    finally:
        os.kill(pid, signal.SIGKILL)
    assert [(one.code, one.cause.kind) for one in endings] == [(INTERRUPTED, "killed")]
    assert "server of its process was killed" in endings[0].cause.line


def test_what_an_earlier_attempt_wrote_is_no_cause(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("stopped by SIGINT\n")
    written = log.stat().st_size
    assert cause_of(1, log, written).line == f"the process ended with 1, and wrote nothing into {log}"
    log.write_text("stopped by SIGINT\nerror: no disk\n")
    assert cause_of(1, log, written).line == "no disk"
