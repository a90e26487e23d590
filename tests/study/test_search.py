"""A search as a command: so many trials in all, whatever is killed; what is poor is stopped; the winner meets seeds."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock

from ablab.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.exits import DONE, FAILED, INTERRUPTED, STOPPED
from ablab.failure import write_failure
from ablab.launching.task import perform
from ablab.plan import plan
from ablab.screen import Screen
from ablab.search.settings import of_hydra
from ablab.store import RunFolder
from ablab.study.definition import define, define_search
from ablab.study.registry import register
from ablab.study.searches.story import known_trials, open_trials, search_trials
from ablab.study.sweep import Policy
from tests.run.conftest import TINY
from tests.study.test_definition import pretend

ROOT = Path(__file__).parents[2]
SPACE = ("optim.lr=tag(log,interval(1e-3,1e-1))", "layerdrop=interval(0,0.4)")
WORDS = tuple(word for word in (*TINY, "smoke=true", "logger=none") if not word.startswith(("layerdrop", "optim.lr")))


def searched(folder, *words, space=SPACE, **settings):
    return define_search((*WORDS, *space, *words, f"outputs={folder}"), of_hydra({"trials": 4, **settings}))


def loss_of(cell):
    return cell.planned.config.layerdrop + cell.planned.config.optim.lr


class Fake:
    """A launcher that trains nothing: how each run ends, by the number of its trial."""

    def __init__(self, endings=None):
        self.endings, self.launched = endings or {}, []

    def __call__(self, board, cells, alone, screen, on_end):
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
                write_failure(cell.planned.folder.failure, kind, "x", None, "now")
            if (line := on_end(board.of(cell.key), None)) is not None:
                screen.say(line)
        return True


@pytest.fixture(autouse=True)
def _no_evaluations(monkeypatch):
    monkeypatch.setattr(RunFolder, "evaluation", lambda *_: None)


def done(search, fake=None, policy=None, jobs=1):
    screen = Screen(bars=False)
    screen.console.file = io.StringIO()
    fake = fake or Fake()
    code = search_trials(search, fake, policy or Policy(), screen, jobs=jobs)
    return code, fake.launched, screen.console.file.getvalue()


def outcomes(search):
    return [trial.outcome for trial in known_trials(search).all()]


def test_so_many_trials_in_all_over_interruptions(tmp_path):
    undisturbed = searched(tmp_path / "a")
    assert done(undisturbed)[0] == DONE
    search = searched(tmp_path / "b")
    code, launched, out = done(search, Fake({"trial 1": "stop"}))
    assert (code, launched) == (INTERRUPTED, ["trial 0", "trial 1"])
    assert "continues from there" in out
    code, launched, _ = done(search)
    assert (code, launched) == (DONE, ["trial 1", "trial 2", "trial 3"])  # the one that was left goes first
    assert outcomes(search) == ["finished"] * 4
    assert [t.words for t in known_trials(search).all()] == [t.words for t in known_trials(undisturbed).all()]
    assert done(search)[1] == []
    more = searched(tmp_path / "b", trials=6)
    assert more.study_name == search.study_name
    assert done(more)[1] == ["trial 4", "trial 5"]


def test_a_finished_run_costs_nothing(tmp_path):
    space = ("layerdrop=0.1,0.2", "model.dropout=0,0.1")
    search = searched(tmp_path, space=space, trials=12)
    code, launched, _ = done(search)
    assert code == DONE
    assert outcomes(search) == ["finished"] * 12
    assert len(launched) == len({trial.words for trial in known_trials(search).all()}) <= 4
    other = searched(tmp_path, space=space, trials=12, seed=2)
    assert other.name != search.name
    assert len(done(other)[1]) + len(launched) <= 4


def test_what_failed_or_diverged_is_counted_and_told(tmp_path):
    search = searched(tmp_path, trials=5)
    endings = {"trial 0": "error", "trial 1": "diverged", "trial 2": "killed", "trial 3": "finished"}
    code, launched, out = done(search, Fake(endings))
    assert code == DONE
    assert outcomes(search) == ["failed", "diverged", "failed", "finished", "finished"]
    assert launched.count("trial 2") == 2  # a kill deserves another attempt, an error does not
    assert launched.count("trial 0") == 1
    states = [trial.state.name for trial in known_trials(search)._study.get_trials()]
    assert states == ["FAIL", "PRUNED", "FAIL", "COMPLETE", "COMPLETE"]
    assert "2 failed" in out
    assert done(searched(tmp_path / "x", trials=1), Fake({"trial 0": "diverged"}))[0] == FAILED


def test_with_several_objectives_a_diverged_trial_is_a_failed_one_to_optuna(tmp_path):
    search = searched(tmp_path, objectives=["valid_loss", "parameters"], trials=2)
    assert done(search, Fake({"trial 0": "diverged"}))[0] == DONE
    assert [trial.state.name for trial in known_trials(search)._study.get_trials()] == ["FAIL", "COMPLETE"]
    assert (search.folder / "pareto.png").read_bytes().startswith(b"\x89PNG")


def test_values_that_make_no_run_are_a_failed_trial_with_its_reason(tmp_path, monkeypatch):
    search = searched(tmp_path)

    def refusing(words):
        raise UserError("model.num_heads=3: no")

    monkeypatch.setattr("ablab.study.searches.story.compose", refusing)
    code, launched, out = done(search)
    assert (code, launched) == (FAILED, [])
    assert out.count("no run can have these values: model.num_heads=3: no") == 4


def test_fail_fast_asks_for_no_more(tmp_path):
    code, launched, _ = done(searched(tmp_path), Fake({"trial 0": "error"}), Policy(fail_fast=True))
    assert (code, launched) == (FAILED, ["trial 0"])


def test_trials_are_not_made_anew(tmp_path):
    search = searched(tmp_path)
    with pytest.raises(UserError, match="keeps its trials"):
        done(search, policy=Policy(rerun=True))
    assert done(search)[0] == DONE
    assert done(search, policy=Policy(rerun=True))[:2] == (DONE, [])


def test_one_command_at_a_time(tmp_path):
    search = searched(tmp_path)
    search.folder.mkdir(parents=True)
    with FileLock(search.folder / "search.lock"), pytest.raises(UserError, match="being searched by another command"):
        done(search)


def test_the_files_say_what_was_found_and_how_it_was_chosen(tmp_path):
    search = searched(tmp_path, stopping="median")
    _, _, out = done(search)
    with (search.folder / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    best = min(rows, key=lambda row: float(row["valid_loss"]))
    content = json.loads((search.folder / "search.json").read_text())
    assert content["best"]["trial"] == int(best["trial"])
    assert content["chosen_by"]["valid_loss"]["of"] == "validation"
    assert set(content["space"]) == {"optim.lr", "layerdrop"}
    assert f"optim.lr={best['optim.lr']} layerdrop={best['layerdrop']} seed=101,102,103" in out
    assert (search.folder / "history.png").read_bytes().startswith(b"\x89PNG")


def test_the_name_says_what_the_trials_depend_on(tmp_path):
    one = searched(tmp_path)
    same = [
        searched(tmp_path, trials=9),
        searched(tmp_path, space=SPACE[::-1]),
        searched(tmp_path, "trainer.micro_batches=2"),
        searched(tmp_path / "elsewhere"),
    ]
    others = [
        searched(tmp_path, space=(SPACE[0], "layerdrop=interval(0,0.5)")),
        searched(tmp_path, space=(SPACE[0], "layerdrop=0,0.4")),
        searched(tmp_path, "norm=post"),
        searched(tmp_path, "seed=2"),
        searched(tmp_path, seed=2),
        searched(tmp_path, sampler="random"),
        searched(tmp_path, stopping="median"),
        searched(tmp_path, objectives=["valid_bleu"]),
    ]
    assert {search.study_name for search in same} == {one.study_name}
    assert len({search.study_name for search in [one, *others]}) == 1 + len(others)


FILE = """
question: Which values are best?
common: [smoke=true, logger=none, model.d_model=16, model.num_heads=2, model.encoder_layers=2, model.decoder_layers=1]
search:
  space: {optim.lr: {low: 0.001, high: 0.1, log: true}, layerdrop: {low: 0, high: 0.4}}
  trials: 3
seeds: [101, 102]
claims: [{arm: best, expect: greater}]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "find.yaml").write_text(FILE)
    define.cache_clear()
    return tmp_path


def test_a_declared_search_ends_with_its_winner_on_fresh_seeds(place, capsys):
    words = ("experiment=find",)
    with pytest.raises(UserError, match="its search comes first"):
        define(words)
    search = define_search(words)
    assert main(["study", *words]) == 0
    assert "0 of 3 trials told; 3 left" in capsys.readouterr().out
    assert not search.folder.exists()
    assert done(search)[0] == DONE
    (registered,) = json.loads((search.folder / "registered.json").read_text())
    assert registered["claims"][0]["arm"] == "best"
    study = define(words)
    register(study, already_done=0)
    assert len(json.loads((search.folder / "registered.json").read_text())) == 1  # before any trial, and unchanged
    assert [arm.name for arm in study.arms] == ["usual", "best"]
    assert {cell.seed for cell in study.cells} == {101, 102}
    best = min(known_trials(search).all(), key=lambda trial: trial.values)
    assert study.arms[1].words == best.words
    assert study.folder == search.folder
    assert main(["study", *words]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 trials told: 3 finished" in out
    assert "4 runs: 4 planned" in out
    assert main(["study", *words, "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == 0


def test_another_space_under_the_same_name_is_another_search(place):
    assert done(define_search(("experiment=find",)))[0] == DONE
    path = place / "experiments" / "find.yaml"
    path.write_text(FILE.replace("high: 0.4", "high: 0.5"))
    changed = define_search(("experiment=find",))
    assert changed.winner() is None
    assert done(changed)[1] == ["trial 0", "trial 1", "trial 2"]


BAD = {
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[test_bleu]": "never on the test set",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[valid_bleu,parameters] "
    "hydra.sweeper.stopping=median": "allowed with valid_bleu, parameters: none",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[parameters] hydra.sweeper.stopping=median": "none",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.trials=0": "hydra.sweeper.trials=0",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.sampler=tp": "hydra.sweeper.sampler=tp",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.trails=3": "did you mean trials?",
    "hydra/sweeper=optuna layerdrop=0,0.1 seed=1,2": "one seed for all trials",
    "hydra/sweeper=optuna layerdrop=0.1": "nothing varies",
    "hydra/sweeper=optuna layerdrop=0,0.1 experiment=find": "declares its search itself",
    "layerdrop=interval(0,1)": "hydra/sweeper=optuna searches it",
    "experiment=find layerdrop=0.3": "layerdrop varies in experiment=find",
    "experiment=find seed=1,2": "search.training_seed",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_no_search_is_said_in_one_line(line, place, capsys):
    assert main(["train", "-m", *line.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert BAD[line] in err
    assert [path.name for path in place.iterdir()] == ["experiments"]


FILES = {
    FILE.replace("layerdrop: {", "layerdop: {"): "did you mean layerdrop?",
    FILE.replace("high: 0.4", "high: 1.4"): "layerdrop=1.4",
    FILE.replace("high: 0.4", "hi: 0.4"): "allowed: low, high, log, step",
    FILE.replace("{low: 0, high: 0.4}", "3"): "a list of levels, or {low, high, log, step}",
    FILE.replace("{low: 0, high: 0.4}", "[0.1]"): "two levels that differ",
    FILE.replace("trials: 3", "trials: 3\n  objectives: [test_chrf]"): "never on the test set",
    FILE.replace("trials: 3", "sampler: tpe"): "search.trials: missing",
    FILE.replace("trials: 3", "trials: 3\n  stoping: median"): "stoping",
    FILE.replace("[101, 102]", "[1, 2]"): "seeds: 1 is search.training_seed",
    FILE + "tune: {values: [1, 2], seeds: [3]}\n": "tune: ",
    FILE.replace("arm: best", "arm: bset"): "did you mean best?",
    FILE.replace("common: [", "common: [layerdrop=0.1, "): "layerdrop: the search varies it",
}


@pytest.mark.parametrize("content", FILES)
def test_a_bad_block_is_named_with_what_is_wrong(content, place, capsys):
    (place / "experiments" / "find.yaml").write_text(content)
    with pytest.raises(UserError) as refusal:
        define_search(("experiment=find",))
    assert FILES[content] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_poor_run_is_stopped_by_its_own_process_and_can_be_finished_alone(tmp_path, capsys):
    """Others have been far better after as many steps; the search is told by the storage, whoever launched the run."""
    search = searched(tmp_path, stopping="median", trials=9)
    trials = open_trials(search)
    for _ in range(5):
        one = trials.ask()
        trial_id = trials._study.get_trials()[one.number]._trial_id
        trials._storage.set_trial_intermediate_value(trial_id, 4, 0.1)
        trials.tell(one.number, "finished", [0.1], steps=8, total_steps=8)
    search_folder = search.folder
    from ablab.study.searches.story import _door

    _door(search).write(search_folder)
    poor = trials.ask()
    words = search.words(poor.number, poor.words)
    folder = plan(compose(words)).folder
    assert perform(words, None) == STOPPED
    assert "stopped by the search (median) at step 4" in capsys.readouterr().out
    assert folder.record() is None
    assert (folder.checkpoints / "last.pt").exists()
    assert perform(words, None) == STOPPED  # whoever launches it again: the word stays
    search = searched(tmp_path, stopping="median", trials=6)
    code, launched, out = done(search)
    assert (code, launched) == (DONE, [])
    assert f"trial {poor.number}, {','.join(poor.words)}: stopped at step 4 of 8" in out
    assert "1 trial stopped early: 4 of 48 steps saved, 8 %" in out
    assert perform(words[:-1], None) == DONE
    assert folder.record().state == "finished"


def start(folder, *words):
    line = [sys.executable, str(ROOT / "train.py"), "-m", "hydra/sweeper=optuna", "hydra.sweeper.trials=3"]
    return subprocess.Popen(
        [*line, "hydra.launcher.jobs=2", *WORDS, *SPACE, *words, f"outputs={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def test_killed_with_all_its_processes_it_goes_on_where_it_was(tmp_path):
    search = searched(tmp_path, trials=3)
    process = start(tmp_path)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, KeyError):
            if (trials := known_trials(search)) is not None and any(trial.scores for trial in trials.all()):
                break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)  # its runs end with their launcher
    process.communicate()
    left = {trial.number: trial.words for trial in known_trials(search).all()}
    assert any(trial.outcome is None for trial in known_trials(search).all())
    process = start(tmp_path)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (DONE, ""), out
    found = known_trials(search).all()
    assert outcomes(search) == ["finished"] * 3
    assert {trial.number: trial.words for trial in found if trial.number in left} == left
    assert len({trial.run_id for trial in found}) == 3
    for trial in found:
        assert sorted(trial.scores) == [4, 8]
        record = RunFolder(tmp_path / "smoke" / "runs" / trial.run_id).record()
        assert trial.values == (record.selected.loss,)
