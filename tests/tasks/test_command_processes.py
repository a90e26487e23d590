"""The process of a command: how it ends, what it says on the way, and what a kill leaves."""

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
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.sweep.progress import last_line
from ablab.tasks.command.process import execute
from ablab.tasks.command.result import CommandError, ProgressLines
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


def test_what_it_says_beyond_measure_is_left_out(folder, capsys, monkeypatch):
    monkeypatch.setattr("ablab.tasks.command.process.MOST", 1 << 16)
    script = f"print('x' * (1 << 20)); {DONE}"
    assert main(["train", *words_of(script)]) == 0
    said = capsys.readouterr().out
    assert "is left out]" in said
    assert said.count("x" * 1000) < 100


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


def test_progress_is_a_curve_and_items_are_kept(folder):
    script = (
        "place = os.path.join(os.path.dirname(out), 'progress.jsonl')\n"
        "for step in (0, 10, 20):\n"
        "    print(json.dumps({'step': step, 'loss': 3 - step / 20, 'rate': 0.1}), file=open(place, 'a'))\n"
    ) + result('{"scores": {"loss": 2}, "items": {"loss": [1, 2.5, 2.5]}}')
    assert main(["train", *words_of(script)]) == 0
    run = only_run()
    assert [(row["step"], row["loss"]) for row in run.record.validations] == [(0, 3), (10, 2.5), (20, 2), (21, 2)]
    assert run.evaluation.items == {"loss": [[1, 1], [2.5, 1], [2.5, 1]]}


def test_lines_of_one_step_are_one_point_of_the_curve(folder):
    script = (
        "place = open(os.path.join(os.path.dirname(out), 'progress.jsonl'), 'a')\n"
        "first = os.environ['ABLAB_ATTEMPT'] == '1'\n"
        "for step in (10, 20) if first else (20, 30):\n"
        "    print(json.dumps({'step': step, 'train': 4}), file=place, flush=True)\n"
        "    if first and step == 20: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    print(json.dumps({'step': step, 'loss': 3}), file=place, flush=True)\n"
        "place.close()\n"
    ) + result('{"scores": {"loss": 2}, "curve": [{"step": 50, "loss": 3}, {"step": 40, "loss": 4}]}')
    words = ["train", *words_of(script)]
    main(words)
    assert main(words) == 0
    both = {"train": 4, "loss": 3}
    assert only_run().record.validations == [
        *({"step": step, **both} for step in (10, 20, 30)),
        *({"step": 40, "loss": 4}, {"step": 50, "loss": 3}, {"step": 51, "loss": 2}),
    ]


def test_items_of_a_score_that_is_declared_later_are_kept(folder):
    words = words_of(result('{"scores": {"loss": 2, "acc": 1}, "items": {"acc": [1, 1]}}'))
    assert main(["train", *words]) == 0
    assert only_run().evaluation.items == {}
    declared = [
        word.replace("{loss: {better: lower}}", "{loss: {better: lower}, acc: {better: higher}}") for word in words
    ]
    assert main(["train", *declared]) == 0
    assert only_run().evaluation.items == {"acc": [[1, 1], [1, 1]]}


def test_a_folder_in_place_of_the_result_is_gone_at_the_next_attempt(folder, capsys):
    script = f"os.mkdir(out) if os.environ['ABLAB_ATTEMPT'] == '1' else {DONE}"
    assert main(["train", *words_of(script)]) == 1
    assert "result.json" in capsys.readouterr().err
    assert main(["train", *words_of(script)]) == 0


def test_a_line_of_progress_that_a_kill_cut_off_does_not_reach_the_next_attempt(folder):
    """A program that buffers what it writes leaves half a line."""
    script = (
        "place = open(os.path.join(os.path.dirname(out), 'progress.jsonl'), 'a')\n"
        'place.write(\'{"step": 1, "loss": 3}\\n{"step": 2, "lo\')\n'
        "place.flush()\n"
        "if os.environ['ABLAB_ATTEMPT'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "place.write('ss\": 2}\\n')\n"
        "place.close()\n"
    ) + DONE
    words = ["train", *words_of(script)]
    main(words)
    assert main(words) == 0
    assert [(row["step"], row["loss"]) for row in only_run().record.validations] == [(1, 3), (2, 2), (3, 1)]


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


def test_a_file_of_progress_that_is_begun_anew_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_text('{"step": 1, "loss": 3.25}\n')
    lines = ProgressLines(path)
    assert [point.step for point in lines.news()] == [1]
    path.write_text('{"step": 1}\n')
    assert [point.scores for point in lines.news()] == [{}]
    assert lines.news() == []


@pytest.mark.slow
def test_a_curve_of_other_scores_than_the_declared_is_drawn_where_it_has_them(folder, capsys):
    written = '{"scores": {"val_loss": loss}, "curve": [{"step": 1, "rate": 0.1}, {"step": 2, "val_loss": 3}]}'
    Path("train.py").write_text(TRAIN.replace('{"scores": {"val_loss": loss}}', written))
    assert main(["train", "-m", "experiment=lr", "logger=none"]) == 0
    assert main(["report", "experiment=lr"]) == 0
    assert Path("outputs/studies/lr/learning_curves.png").exists()
    (series,) = json.loads(Path("outputs/reports/lr/report.json").read_text())["series"]
    assert [line["x"] for line in series["lines"]] == [[2, 3], [2, 3]]


def test_the_last_line_of_a_run_is_what_a_terminal_would_show(tmp_path):
    log = tmp_path / "log.txt"
    assert last_line(log) == ""
    for written, shown in (
        ("step 1\nstep 2\n\n", "step 2"),
        ("10 %\r20 %\r", "20 %"),
        ("\x1b[31mred\x1b[0m [1/2]", "red [1/2]"),
        ("x" * 9999, "x" * 60),
    ):
        log.write_text(written)
        assert last_line(log) == shown


@pytest.mark.slow
def test_a_study_shows_what_its_running_commands_said_last(folder, capsys):
    script = TRAIN.replace("loss = 2.0", "import time\nprint('epoch 1', flush=True)\ntime.sleep(60)\nloss = 2.0")
    Path("train.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "-m", "ablab", "train", "-m", "experiment=lr", "logger=none"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(300):
            if any("epoch 1" in log.read_text() for log in Path("outputs").glob("runs/*/log.txt")):
                break
            time.sleep(0.1)
        assert main(["study", "experiment=lr"]) == 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.endswith("epoch 1")]
    assert line.split("   ")[:2] == ["  schedule=linear, seed 1", "training"]


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


def test_a_score_on_the_way_counts_as_seen(folder):
    Path("experiments/lr.yaml").write_text(STUDY.replace("[1, 2, 3]", "[1]"))
    study = define(("experiment=lr",))
    register(study)
    run = study.cells[0].planned.folder

    def entries_after(script, metrics):
        run.path.mkdir(parents=True, exist_ok=True)
        run.metrics.write_text(metrics)
        Path("train.py").write_text(script)
        register(define(("experiment=lr",)))
        return len(json.loads((study.folder / "registered.json").read_text()))

    assert entries_after(f"{TRAIN}# edited\n", "step,valid_val_loss\n") == 2
    assert entries_after(f"{TRAIN}# edited\n", "step,valid_val_loss\n") == 2, "nothing is new"
    assert entries_after(f"{TRAIN}# edited again\n", "step,valid_val_loss\n10,2.5\n") == 2
    assert entries_after(f"{TRAIN}# edited again\n", "no metrics\n1\n") == 2


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


def test_characters_are_whole_wherever_a_stream_is_cut(monkeypatch, capsys):
    script = "import sys; sys.stdout.buffer.write(b'x' + 200_000 * 'é'.encode())"
    execute([sys.executable, "-c", script], {}, lambda: None, timeout=None, grace=1)
    assert capsys.readouterr().out == "x" + 200_000 * "é"


def test_progress_that_is_begun_anew_is_read_from_its_beginning(tmp_path):
    """However long it is by the next look; one that goes on where it was is read once."""
    path = tmp_path / "progress.jsonl"
    path.write_text('{"step": 1}\n')
    lines = ProgressLines(path)
    assert [point.step for point in lines.news()] == [1]
    path.write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(5)))
    assert [point.step for point in lines.news()] == [0, 1, 2, 3, 4]
    with path.open("a") as file:
        file.write('{"step": 7}\n{"st')
    assert [point.step for point in lines.news()] == [7]
    path.write_text('{"step": 3}\n')
    assert [point.step for point in lines.news()] == [3]
    assert lines.news() == []
    path.write_text(f'{{"step": 1{"0" * 400}}}\n{{"step": 2}}\n')
    with pytest.raises(CommandError, match="allowed: less than or equal to 9007199254740992"):
        lines.news()


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


@pytest.mark.parametrize(
    ("said", "last"),
    [
        ("Error in fit(x) : no such column\nCalls: fit\nExecution halted\n", "Error in fit(x) : no such column"),
        ("Error: x\nExecution halted\n", "Error: x"),
        ("[rank0]: ValueError: bad\nfailed at 12:00\n" + "=" * 60 + "\n", "[rank0]: ValueError: bad"),
        ("Traceback\ntorch.OutOfMemoryError: CUDA\n" + "-" * 9 + "\n" * 3, "torch.OutOfMemoryError: CUDA"),
        ("it stops here\n====\n", "it stops here"),
        ("====\n", "===="),
    ],
)
def test_the_line_of_a_failure_is_that_of_its_error(folder, said, last):
    with pytest.raises(CommandError, match="ended with exit code 1: ") as told:
        execute(
            ["python", "-c", f"import sys; sys.stderr.write({said!r}); sys.exit(1)"],
            {},
            lambda: None,
            timeout=None,
            grace=1,
        )
    assert str(told.value).endswith(f": {last}")


@pytest.mark.parametrize("told", ['"NaN"', '"NA"', "null", "NaN"])
def test_what_stands_for_no_number_in_other_languages_is_divergence(folder, told):
    assert main(["train", *words_of(result(f'{{"scores": {{"loss": {told}}}}}'))]) == 0
    assert only_run().state == "diverged"


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
