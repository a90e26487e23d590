"""What a command says on the way: its lines of progress, its curve, and the line that stands for the rest."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.sweep.progress import last_line
from ablab.tasks.command.process import execute
from ablab.tasks.command.result import CommandError, ProgressLines
from tests.tasks.commands import DONE, STUDY, TRAIN, only_run, result, words_of


def test_what_it_says_beyond_measure_is_left_out(folder, capsys, monkeypatch):
    monkeypatch.setattr("ablab.tasks.command.process.MOST", 1 << 16)
    script = f"print('x' * (1 << 20)); {DONE}"
    assert main(["train", *words_of(script)]) == 0
    said = capsys.readouterr().out
    assert "is left out]" in said
    assert said.count("x" * 1000) < 100


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
