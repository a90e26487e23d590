"""Searches whose runs take no time, and how to make one and see how it went."""

import io

import pytest

from ablab.search.settings import of_hydra
from ablab.store.failures import write_failure
from ablab.store.run_folder import RunFolder
from ablab.study.search import define_search
from ablab.sweep.search_report import known_trials
from ablab.sweep.search_sweep import search_trials
from ablab.sweep.sweep import Policy
from ablab.tasks.registry import task_named
from ablab.tracking.console import Console
from tests.run.conftest import TINY
from tests.study.pretend import pretend

SPACE = ("optim.lr=tag(log,interval(1e-3,1e-1))", "layerdrop=interval(0,0.4)")
WORDS = tuple(word for word in (*TINY, "smoke=true", "logger=none") if not word.startswith(("layerdrop", "optim.lr")))


def searched(folder, *words, space=SPACE, **settings):
    asked = of_hydra({"trials": 4, **settings}, task_named())
    return define_search((*WORDS, *space, *words, f"outputs={folder}"), asked)


def loss_of(cell):
    return cell.planned.config.layerdrop + cell.planned.config.optim.lr


class Fake:
    """A launcher that trains nothing: how each run ends, by the number of its trial."""

    def __init__(self, endings=None):
        self.endings, self.launched = endings or {}, []

    def __call__(self, board, cells, alone, console, on_end):
        for cell in cells:
            self.launched.append(cell.arm)
            kind = self.endings.get(cell.arm, "finished")
            if kind == "stop":
                return False
            if kind in ("finished", "diverged"):
                pretend(cell, loss_of(cell), kind)
                folder, settings = cell.planned.folder, cell.planned.evaluation_id
                (folder.path / "evaluations").mkdir(exist_ok=True)
                (folder.path / "evaluations" / f"{settings}.json").write_text("{}")
            else:
                write_failure(cell.planned.folder.failure, kind, "x", None)
            if (line := on_end(board.of(cell.key), None)) is not None:
                console.say(line)
        return True


@pytest.fixture(autouse=True)
def _no_evaluations(monkeypatch):
    monkeypatch.setattr(RunFolder, "evaluation", lambda *_: None)


def done(search, fake=None, policy=None, jobs=1):
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    fake = fake or Fake()
    code = search_trials(search, fake, policy or Policy(), console, jobs=jobs)
    return code, fake.launched, console.rich.file.getvalue()


def outcomes(search):
    return [trial.outcome for trial in known_trials(search).all()]
