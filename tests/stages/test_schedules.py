"""The schedules that are drawn are those that training follows, and the line of the issue draws them."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.config.groups import groups
from ablab.transformer.model.place import Place
from ablab.transformer.stages import schedules as drawn
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.stages.schedules import schedules
from ablab.transformer.training.state import TrainingState

LINE = ("schedule=true", "drophead=vshape", "schedule=cosine")
STEPS = ("training.max_steps=60", "schedule.warmup_steps=20")


@pytest.mark.parametrize("drophead", groups()["drophead"])
@pytest.mark.parametrize(
    ("schedule", "task"), [("noam", "translation"), ("cosine", "translation"), ("wsd", "language_model")]
)
def test_each_step_has_the_rates_of_training(schedule, task, drophead):
    config = compose((f"task={task}", f"schedule={schedule}", f"drophead={drophead}", *STEPS)).config
    objective = build_objective(config, TrainingState())
    found = list(schedules(config).rows())
    assert [step for step, _, _ in found] == list(range(1, 61))
    for step, rate, drop in found:
        assert rate == objective.learning_rate(step)
        assert drop == objective.drophead_rate(step, Place("decoder", 2, "cross_attention"))


@pytest.mark.parametrize("schedule", ["plateau", "valdecay"])
def test_plateaus_are_the_rate_of_training_until_validation_stalls(schedule):
    config = compose((f"schedule={schedule}", "optim.lr=3e-4", "training.max_steps=600")).config
    found = schedules(config)
    objective = build_objective(config, TrainingState())
    assert [rate for _, rate, _ in found.rows()] == [objective.learning_rate(step) for step in range(1, 601)]
    assert "depends on validation" in found.notes[0]


def test_a_place_is_one_of_the_stacks_that_there_are():
    """A language model has one, and no encoder."""
    for task, stack in (("translation", "encoder"), ("language_model", "decoder")):
        assert drawn._place(compose((f"task={task}",)).config)["stack"] == stack


def test_a_long_training_has_its_last_step(monkeypatch):
    monkeypatch.setattr(drawn, "MOST_ROWS", 7)
    steps = [step for step, *_ in schedules(compose(STEPS).config).rows()]
    assert steps == [1, 10, 19, 28, 37, 46, 55, 60]


def analyse(capsys, *words):
    code = main(["analyse", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_line_as_typed_draws_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = analyse(capsys, *LINE)
    assert code == 0
    picture, table = (Path(path) for path in out.splitlines()[-1].removeprefix("Results: ").split(", "))
    assert picture.read_bytes().startswith(b"\x89PNG")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    config = compose(LINE[1:]).config
    expected = [(step, rate, drop) for step, rate, drop in schedules(config).rows()]
    assert [tuple(map(float, row.values())) for row in rows] == expected
    assert len(rows) == config.training.max_steps
    written = {path: path.stat().st_mtime_ns for path in Path("outputs").rglob("*")}
    code, out, _ = analyse(capsys, *reversed(LINE))
    assert code == 0
    assert "nothing is drawn again" in out
    assert {path: path.stat().st_mtime_ns for path in Path("outputs").rglob("*")} == written
    analyse(capsys, *LINE, "drophead.p=0.3")
    assert len(list(Path("outputs").rglob("*.png"))) == 2


BAD = {
    "schedule=true run=x": "run=x: not with schedule=true",
    "schedule=yes run=x": "run=x: not with schedule=true",
    "schedule=true heads=true": "heads=true: not with schedule=true",
    "run=x schedule=cosine": "schedule=cosine: a finished run keeps its schedule; allowed: with schedule=true",
    "schedule=true schedule=cosin": "cosin",
    "schedule=true training.max_steps=null training.max_epochs=2": "training.max_steps=null: schedules are drawn",
    "schedule=true drophead=vshape drophead.warmup_steps=9999": "must be below drophead.total_steps",
    "schedule=true layerdop=1": "layerdop",
}


@pytest.mark.parametrize("line", BAD)
def test_what_cannot_be_drawn_is_said_in_one_line(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, err = analyse(capsys, *line.split())
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert BAD[line] in err
    assert not list(tmp_path.iterdir())


def test_torch_is_not_needed(tmp_path):
    program = (
        "import sys; from ablab.commands.cli import main\n"
        f"main(['analyse', *{LINE!r}]); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)
