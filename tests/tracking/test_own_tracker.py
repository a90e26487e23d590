"""A tracker is one class and one YAML; it hears what W&B's hears, and its errors end no run."""

from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.config.compose import reopen
from ablab.errors import UserError
from ablab.study.definition import define
from ablab.tasks.plan import plan
from ablab.tracking.open import check, open_tracker, ready, tracker_of

LINES = '''
from ablab.errors import UserError
from ablab.tracking.tracker import Tracker


class Lines(Tracker):
    """Writes what it is told to a file."""

    title = "my lines"

    def __init__(self, card, folder, *, file: str = "lines.txt"):
        self.path = folder / file
        self.write("opened", card.name, *card.tags)

    @classmethod
    def check(cls, logger):
        if "/" in logger.own["file"]:
            raise UserError(f"logger.file={logger.own['file']}: allowed: a name")

    def log(self, step, values):
        if step == 13:
            raise ValueError("no thirteen")
        self.write("log", step, *values)

    def finish(self, *, failed):
        self.write("finish", failed)

    def write(self, *words):
        with self.path.open("a") as file:
            print(*words, file=file)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder with a tracker of one's own, of one file and one line of YAML."""
    monkeypatch.chdir(tmp_path)
    module = f"lines_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(LINES)
    (tmp_path / "conf" / "logger").mkdir(parents=True)
    (tmp_path / "conf" / "logger" / "lines.yaml").write_text(f"_target_: {module}.Lines\n")
    return tmp_path


def told(*words: str, steps: tuple[int, ...] = (1,)) -> tuple[list[str], list[str]]:
    """What a run's tracker wrote, and what was said."""
    planned, said = plan(compose(words)), list[str]()
    planned.folder.path.mkdir(parents=True, exist_ok=True)
    with open_tracker(planned, said.append) as tracker:
        for step in steps:
            tracker.log(step, {"train/loss": 1.0})
    return (planned.folder.path / planned.config.logger.own["file"]).read_text().splitlines(), said


def test_it_has_its_own_settings_and_those_of_every_tracker(own):
    assert told("logger=lines", "logger.tags=[draft]", "logger.file=x") == (
        ["opened baseline, seed 1 draft", "log 1 train/loss", "finish False"],
        [],
    )


def test_the_first_error_costs_a_line_and_all_that_follows(own):
    assert told("logger=lines", steps=(1, 13, 14)) == (
        ["opened baseline, seed 1", "log 1 train/loss"],
        ["my lines misses the rest (ValueError: no thirteen)"],
    )


def test_one_that_cannot_be_opened_costs_a_line(own):
    planned, said = plan(compose(["logger=lines", "logger.file=."])), list[str]()
    planned.folder.path.mkdir(parents=True)
    with open_tracker(planned, said.append) as tracker:
        tracker.log(1, {})
    (line,) = said
    assert line.startswith(f"my lines is told nothing of {planned.run_id} ([Errno 21] Is a directory")


@pytest.mark.parametrize("line", [["train"], ["train", "-m", "seed=1,2"]])
def test_what_it_refuses_is_refused_before_anything_begins(line, own, capsys):
    assert main([*line, "logger=lines", "logger.file=a/b"]) == 2
    assert capsys.readouterr().err == "error: logger.file=a/b: allowed: a name\n"
    assert not (own / "outputs").exists()


@pytest.mark.parametrize("asked", [check, ready])
def test_a_check_that_fails_by_itself_costs_a_line(asked, own, monkeypatch):
    logger, said = compose(["logger=lines"]).config.logger, list[str]()
    monkeypatch.setattr(tracker_of(logger), "check", classmethod(lambda kind, logger: logger.own["fiel"]))
    asked(logger, said.append)
    assert said == ["my lines does not check its settings (KeyError: 'fiel')"]


def test_a_sweep_names_the_run_for_it(own):
    study = define(("norm=pre,post", "seed=1", "logger=lines"))
    logger = compose(study.words_of(study.cells[1])).config.logger
    assert (logger.kind, logger.study, logger.arm) == (
        study.cells[1].planned.config.logger.kind,
        study.name,
        "norm=post",
    )


def test_another_class_is_no_tracker(own):
    (own / "plain.py").write_text("class Plain:\n    pass\n")
    (own / "conf" / "logger" / "plain.yaml").write_text("_target_: plain.Plain\n")
    with pytest.raises(UserError, match=r"_target_=plain.Plain: no tracker; allowed: a class that derives from"):
        tracker_of(compose(["logger=plain"]).config.logger)


def test_its_options_are_no_part_of_the_recipe(own):
    assert plan(compose(["logger=lines"])).run_id == plan(compose(["logger=none"])).run_id


def test_a_recorded_run_does_not_decide_where_something_is_sent(own, monkeypatch):
    """The folder may come from others; the words on the run stay, the rest is the reader's own."""
    recorded = compose(["logger=lines", "logger.file=/elsewhere", "logger.notes=mine"]).config.model_dump(
        serialize_as_any=True
    )
    again = reopen(recorded, []).logger
    assert (again.kind, again.own["file"], again.own["notes"]) == (recorded["logger"]["kind"], "lines.txt", "mine")
    (own / "elsewhere").mkdir()
    monkeypatch.chdir(own / "elsewhere")
    assert reopen(recorded, []).logger.kind == "wandb"


def test_nor_does_one_of_wandb():
    recorded = compose(["logger.mode=online", "logger.project=p"]).config.model_dump(serialize_as_any=True)
    again = reopen(recorded, []).logger
    assert (again.own["mode"], again.own["project"]) == ("offline", "p")
