"""The process of a command: how it ends, and what a kill leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.api import open as open_store
from ablab.code.machine import signal_name
from ablab.commands.cli import main
from ablab.store.run_folder import RunFolder
from ablab.tasks.command.process import execute
from ablab.tasks.command.result import CommandError
from tests.tasks.commands import DONE, STUDY, TRAIN, only_run, result, words_of


def test_a_command_that_never_ends_is_ended_with_its_children(folder, capsys):
    script = "import subprocess; subprocess.Popen(['sleep', '987.6']); time.sleep(60)"
    assert main(["train", *words_of(script, "task.timeout=0.02", "task.grace=0.2")]) == 1
    assert "the command had not ended after 1.2 seconds (timeout)" in capsys.readouterr().err
    time.sleep(0.2)
    assert not _runs("987.6")


def test_children_that_it_leaves_behind_are_ended(folder):
    script = f"import subprocess; subprocess.Popen(['sleep', '986.5']); {DONE}"
    assert main(["train", *words_of(script)]) == 0
    time.sleep(0.2)
    assert not _runs("986.5")


def _runs(word):
    return any(
        word.encode() in path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid()) and path.exists()
    )


@pytest.mark.parametrize("daemon", ["sleep 600", "yes"])
def test_a_daemon_that_keeps_its_streams_open_is_not_waited_for(folder, capsys, daemon):
    start = f"print(subprocess.Popen({daemon.split()}, start_new_session=True).pid, file=open('pid', 'w'))"
    began = time.monotonic()
    try:
        assert main(["train", *words_of(f"import subprocess\n{start}\nprint('its own last words')\n{DONE}")]) == 0
    finally:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - began < 60
    assert "its own last words" in capsys.readouterr().out


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_next_attempt_goes_on_in_the_same_folder(folder, sent):
    script = f"""
kept = os.path.join(os.path.dirname(out), "kept")
if os.environ["ABLAB_ATTEMPT"] == "1":
    signal.signal(signal.SIGTERM, lambda *_: (open(kept, "w").write(seed), sys.exit(3)))
    open("ready", "w").close()
    time.sleep(60)
assert open(kept).read() == seed
{DONE}
"""
    words = words_of(script)
    process = subprocess.Popen([sys.executable, "-m", "ablab", "train", *words])
    while not Path("ready").exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(sent)
    assert process.wait(30) == 130
    assert main(["train", *words]) == 0
    assert only_run().state == "finished"


def _wait_for(name, process):
    """Wait until a process, which must not end before, has written a file."""
    while not Path(name).exists() or not Path(name).read_text():
        time.sleep(0.05)
        assert process.poll() is None


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_command_ends_with_a_killed_run(folder, wrapped):
    """Also what a shell or a launcher has started: the next attempt would work beside it in the same folder."""
    words = words_of("open('ready', 'w').write(str(os.getpid())); time.sleep(60)")
    if wrapped:
        Path("run.sh").write_text('"$@"; echo done\n')
        words = [word.replace("task.command=[", "task.command=[sh,run.sh,") for word in words]
    process = subprocess.Popen([sys.executable, "-m", "ablab", "train", *words])
    _wait_for("ready", process)
    process.kill()
    process.wait()
    command = Path(f"/proc/{Path('ready').read_text()}")
    for _ in range(50):
        if not command.exists():
            return
        time.sleep(0.1)
    pytest.fail("the command outlives its run")


@pytest.mark.parametrize("moment", ["imports", "command"])
def test_ctrl_c_ends_a_check_with_what_it_tries(folder, moment):
    """A terminal sends it to the whole group: the server of processes, which imports for a second, and the command."""
    Path("train.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    checked = STUDY.replace('--seed, "{seed}"', '--seed, "{seed}{epochs}"') + "common: [epochs=5]\ncheck: {epochs: 1}\n"
    Path("experiments/lr.yaml").write_text(checked)
    line = [sys.executable, "-u", "-m", "ablab", "train", "-m", "experiment=lr", "logger=none"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert "2 arms" in process.stdout.readline()
    while not (_runs("forkserver") if moment == "imports" else Path("pid").exists() and Path("pid").read_text()):
        time.sleep(0.05)
        assert process.poll() is None
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said, wrong = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (said, wrong) == ("", "stopped\n")
    if moment == "command":
        assert not Path(f"/proc/{Path('pid').read_text()}").exists()


def test_a_folder_in_place_of_the_result_is_gone_at_the_next_attempt(folder, capsys):
    script = f"os.mkdir(out) if os.environ['ABLAB_ATTEMPT'] == '1' else {DONE}"
    assert main(["train", *words_of(script)]) == 1
    assert "result.json" in capsys.readouterr().err
    assert main(["train", *words_of(script)]) == 0


@pytest.mark.parametrize(("goes_on", "low", "high"), [(True, 1.5, 60), (False, 0, 1.5)])
def test_the_time_of_an_attempt_counts_if_the_next_one_goes_on_from_it(folder, capsys, goes_on, low, high):
    script = (
        "first = os.environ['ABLAB_ATTEMPT'] == '1'\n"
        f"steps = (1, 2) if first else (2,) if {goes_on} else (1, 2)\n"
        "if first: time.sleep(1.5)\n"
        "place = open(os.path.join(os.path.dirname(out), 'progress.jsonl'), 'a')\n"
        "for step in steps: place.write(json.dumps({'step': step, 'loss': 3}) + '\\n')\n"
        "place.flush()\n"
        "if first: os.kill(os.getpid(), signal.SIGKILL)\n"
    ) + DONE
    words = ["train", *words_of(script)]
    main(words)
    capsys.readouterr()
    assert main(words) == 0
    assert "had come to step 2\n" in capsys.readouterr().out
    assert low <= only_run().record.cost.seconds < high


def test_a_result_that_was_read_before_a_kill_is_the_runs_own(folder, monkeypatch):
    """A second one would be a step more than other runs have."""

    def killed(*_):
        raise KeyboardInterrupt

    words = ["train", *words_of(f"open('count', 'a').write('x'); {DONE}")]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_record", killed)
        main(words)
    assert main(words) == 0
    assert Path("count").read_text() == "x"
    assert [row["step"] for row in only_run().record.validations] == [1]
    assert only_run().scores["loss"] == 1


@pytest.mark.slow
def test_an_input_may_be_mended_until_a_run_has_told_a_score(folder, capsys):
    """A launch that ended no run has shown nothing, so that claims stay what they were; later edits show."""
    Path("experiments/lr.yaml").write_text(STUDY.replace("[1, 2, 3]", "[1]"))
    place = Path("outputs/studies/lr/registered.json")

    def launched(script):
        Path("train.py").write_text(script)
        main(["train", "-m", "experiment=lr", "logger=none"])
        assert main(["report", "experiment=lr"]) in (0, 2)
        return len(json.loads(place.read_text()))

    assert launched("raise SystemExit('no data')") == 1
    assert launched(TRAIN) == 2
    assert launched(TRAIN) == 2
    assert "exploratory by now" not in capsys.readouterr().out
    report = json.loads(Path("outputs/reports/lr/report.json").read_text())
    assert not any("exploratory" in note or "settings differ" in note for note in report["notes"])
    assert report["claims"][0]["exploratory"] is None
    departed = "Its settings (inputs.train.py) differ from those of the first launch"
    assert main(["study", "experiment=lr"]) == 0
    assert departed not in capsys.readouterr().out
    Path("train.py").write_text(f"{TRAIN}# edited\n")
    assert main(["study", "experiment=lr"]) == 0
    assert departed in capsys.readouterr().out
    assert launched(f"{TRAIN}# edited\n") == 2, "what was registered stands once a run has ended"
    (later,) = Path("outputs/reports").glob("lr-*/report.json")
    exploratory = json.loads(later.read_text())["claims"][0]["exploratory"]
    assert exploratory == "settings (inputs.train.py) differ from those of the first launch"
    assert f"lr: {exploratory}: its claims are exploratory by now" in capsys.readouterr().out


def test_a_wait_ends_with_its_command(monkeypatch):
    """Looks at a command are far apart here, and it is over before the next."""
    monkeypatch.setattr("ablab.tasks.command.process.POLL", 30.0)
    began = time.monotonic()
    execute([sys.executable, "-c", "pass"], {}, lambda: None, timeout=None, grace=1.0)
    assert time.monotonic() - began < 20


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_a_sweep_that_is_killed_goes_on_to_the_same_store(folder, number):
    """Whatever moment it is: the same line, typed again, ends with the scores of a sweep that nothing has killed."""
    script = TRAIN.replace("loss = 2.0", "import time; time.sleep(0.3)\nloss = 2.0")
    Path("train.py").write_text(script)
    line = [sys.executable, "-m", "ablab", "train", "-m", "experiment=lr", "logger=none"]
    assert subprocess.run([*line, "outputs=whole"], stdout=subprocess.DEVNULL).returncode == 0
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(2 + number)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert subprocess.run(line, stdout=subprocess.DEVNULL).returncode == 0
    scores = [{run.id: run.scores["val_loss"] for run in open_store(store).runs()} for store in ("outputs", "whole")]
    assert scores[0] == scores[1]
    assert len(scores[0]) == 6


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 77", "ended with exit code 77"),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("kill -KILL $$", "was killed by SIGKILL"),
        ("kill -PIPE $$", "was killed by SIGPIPE"),
        ("kill -INT $$", "was killed by SIGINT"),
    ],
)
def test_it_ends_as_its_command_does(script, said):
    with pytest.raises(CommandError, match=said):
        execute(["sh", "-c", script], {}, lambda: None, timeout=None, grace=1)


def test_a_pipe_that_its_reader_leaves_ends_quietly():
    """A signal ends what writes to it, as at a prompt; Python ignores the signal, and its children would, too."""
    execute(["sh", "-c", "yes | head -n 1 > /dev/null; kill -l > /dev/null"], {}, lambda: None, timeout=None, grace=1)
    script = "import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', 'yes | head -n 1']).returncode)"
    execute([sys.executable, "-c", script], {}, lambda: None, timeout=None, grace=1)


def test_a_reader_that_leaves_ends_no_command(monkeypatch):
    """As where a pager is closed: what is said is lost, and nothing else."""

    class Closed:
        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr(sys, "stdout", Closed())
    script = "for n in range(20000): print('a line that is longer than the one before it', flush=n % 99 == 0)"
    execute([sys.executable, "-c", script], {}, lambda: None, timeout=None, grace=1)


def test_a_signal_without_a_name_has_its_number():
    assert signal_name(9) == "SIGKILL"
    with pytest.raises(CommandError, match="was killed by signal 40"):
        execute([sys.executable, "-c", "import os; os.kill(os.getpid(), 40)"], {}, lambda: None, timeout=None, grace=1)


def test_the_memory_of_a_run_is_that_of_its_command(folder):
    assert main(["train", *words_of(f"held = bytearray(400 * 2**20)\n{DONE}")]) == 0
    assert only_run().record.cost.peak_memory_bytes > 400 * 2**20


SAVES = """import signal, sys, time
def save(*_):
    time.sleep(1)
    open("saved", "w").close()
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
open("ready", "w").close()
time.sleep(60)
"""


@pytest.mark.parametrize(
    "words", [["python", "saves.py"], ["bash", "run.sh"], ["sh", "-c", "python saves.py; echo done"]]
)
def test_what_a_shell_has_started_has_the_grace_too(folder, words):
    """The shell itself ends at once."""
    Path("saves.py").write_text(SAVES)
    Path("run.sh").write_text("python saves.py\necho done\n")

    def watch():
        if Path("ready").exists():
            raise RuntimeError

    with pytest.raises(RuntimeError):
        execute(words, {}, watch, timeout=None, grace=30)
    assert Path("saved").exists()


WORKER = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
LAUNCHER = f"""import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {WORKER!r}, "worker"], start_new_session=True)
time.sleep(60)
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_workers_with_a_session_of_their_own_are_ended(folder, is_killed):
    """As those of torchrun: with their launcher, and with a killed ablab."""
    Path("launch.py").write_text(LAUNCHER)
    asked = "from ablab.tasks.command.process import execute\n"
    line = "execute(['python', 'launch.py'], {}, lambda: None, timeout=None, grace=0.5)"
    process = subprocess.Popen([sys.executable, "-c", asked + line])
    _wait_for("worker", process)
    process.send_signal(signal.SIGKILL if is_killed else signal.SIGTERM)
    process.wait(30)
    worker = Path(f"/proc/{Path('worker').read_text()}")
    for _ in range(50):
        if not worker.exists():
            return
        time.sleep(0.1)
    pytest.fail("a worker outlives its launcher")


def test_a_diverged_run_needs_no_scores_and_others_may_lack_one(folder):
    assert main(["train", *words_of(result('{"status": "diverged"}'))]) == 0
    assert only_run().state == "diverged"
    assert main(["train", *words_of(result('{"scores": {"loss": 1.5, "auc": null}}'), "outputs=o")]) == 0
    (run,) = open_store("o").runs()
    assert run.state == "finished"


def test_a_script_that_may_not_be_executed_is_told_so(folder, capsys):
    Path("run.sh").write_text("echo\n")
    assert (
        main(
            [
                "train",
                "task=command",
                "task.command=[./run.sh,'{seed}','{result}']",
                "task.scores={loss: {better: lower}}",
            ]
        )
        == 2
    )
    assert "./run.sh: may not be executed; allowed: chmod +x, or its interpreter before it" in capsys.readouterr().err


def test_a_programs_user_says_its_threads(folder, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    script = "open('threads', 'w').write(os.environ['OMP_NUM_THREADS'])\n" + DONE
    assert main(["train", *words_of(script, "trainer.threads=2")]) == 0
    assert Path("threads").read_text() == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert main(["train", *words_of(script, "trainer.threads=2", "rerun=true")]) == 0
    assert Path("threads").read_text() == "1"


@pytest.mark.parametrize("rerun", ["true", "false"])
def test_a_rerun_that_was_stopped_is_not_typed_again_as_it_is(folder, monkeypatch, capsys, rerun):
    """It would be moved away, and begin anew each time."""
    monkeypatch.setattr("ablab.run._completed", lambda *_: None)
    assert main(["train", *words_of(DONE, f"rerun={rerun}")]) == 130
    said = "Type it without rerun=, which would move this run, too, and begin anew"
    assert (said in capsys.readouterr().out) == (rerun == "true")
