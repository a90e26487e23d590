"""So many trials in all, whatever is interrupted, fails or diverges; what is found is said, and how it was chosen."""

import csv
import json
import shlex
from types import SimpleNamespace

import pytest
from filelock import FileLock

from ablab.errors import DONE, FAILED, INTERRUPTED, UserError
from ablab.store.run_folder import RunFolder
from ablab.study.definition import define
from ablab.sweep.search_report import _next_line, known_trials
from ablab.sweep.sweep import Policy
from tests.study.searches.conftest import Fake, done, outcomes, searched


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


def test_a_search_whose_storage_is_another_says_that_it_lacks_trials(tmp_path):
    """It begins anew there, under the same name; in the former storage it goes on, and nothing is said.

    Its trials may also be gone, with the journal.
    """
    first = searched(tmp_path, trials=2)
    assert "This storage lacks" not in done(first)[2]
    other = searched(tmp_path, trials=2, storage=f"sqlite:///{tmp_path}/trials.db")
    assert other.study_name == first.study_name
    out = done(other)[2]
    assert "lacks 2 earlier trials of this search; if another has them, hydra.sweeper.storage= as it was then" in out
    assert "This storage lacks" not in done(searched(tmp_path, trials=3))[2]


def test_the_next_line_has_no_word_that_the_winner_does_not_read(tmp_path):
    space = ("optim=adam,muon", "optim.momentum=interval(0.8,0.99)")
    search = searched(tmp_path, "optim.weight_decay=0.1", space=space)
    winner = SimpleNamespace(words=("optim=adam", "optim.momentum=0.9"))
    _, _, words = _next_line(search, winner).partition(" -m ")
    assert len(define(tuple(shlex.split(words))).cells) == 3


class Interrupting(Fake):
    """Trial 1 is cancelled in its queue, or interrupted without end."""

    def __init__(self, cancels):
        super().__init__()
        self.cancels = cancels

    def __call__(self, board, cells, alone, console, on_end):
        for cell in cells:
            if cell.arm != "trial 1":
                super().__call__(board, [cell], alone, console, on_end)
                continue
            self.launched.append(cell.arm)
            if self.cancels:
                board.given_up[cell.key] = "job 17 was cancelled"
        return True


@pytest.mark.parametrize(
    ("cancels", "times", "why"), [(True, 1, "job 17 was cancelled"), (False, 5, "interrupted 5 times in a row")]
)
def test_a_trial_that_is_cancelled_or_comes_nowhere_waits_for_the_same_line(tmp_path, cancels, times, why):
    search = searched(tmp_path)
    code, launched, out = done(search, Interrupting(cancels))
    assert code == FAILED
    assert launched.count("trial 1") == times
    assert f"trial 1, seed 1: {why}" in out
    assert outcomes(search) == ["finished", None, "finished", "finished"]
    assert done(search)[:2] == (DONE, ["trial 1"])


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_trial_that_other_code_has_begun_waits_for_that_code_or_mixed(tmp_path, fail_fast):
    search = searched(tmp_path)
    done(search, Fake({"trial 1": "stop"}))
    code, launched, out = done(search, Fake({"trial 1": "refused"}), Policy(fail_fast=fail_fast))
    assert (code, launched) == (FAILED, ["trial 1"] if fail_fast else ["trial 1", "trial 2", "trial 3"])
    assert "trial 1, seed 1: x" in out
    assert "once more" not in out
    assert known_trials(search).all()[1].outcome is None
    mixed = searched(tmp_path, "mixed=true")
    assert mixed.study_name == search.study_name
    assert done(mixed)[0] == DONE
    assert outcomes(search) == ["finished"] * 4


@pytest.mark.parametrize(("kind", "times"), [("error", 1), ("killed", 2)])
def test_trials_that_share_a_run_share_its_failure(tmp_path, kind, times):
    """It is tried again as often as a run that is one trial's, and nothing else is promised."""

    class AtOnce(Fake):
        def __call__(self, board, cells, alone, console, on_end):
            return super().__call__(board, list(cells), alone, console, on_end)

    search = searched(tmp_path, space=("layerdrop=0.1,0.2",))
    code, launched, out = done(search, AtOnce({f"trial {number}": kind for number in range(4)}), jobs=4)
    runs = len({trial.words for trial in known_trials(search).all()})
    assert (code, outcomes(search)) == (FAILED, ["failed"] * 4)
    assert (len(launched), out.count("once more")) == (times * runs, (times - 1) * runs)


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


def test_a_finished_run_tells_by_its_validations_which_trials_are_poor(tmp_path):
    """Else the median would be that of the few whose runs this search has made itself."""
    first = searched(tmp_path)
    done(first)
    told = [{"step": 4.0, "loss": 0.3}, {"step": 8.0, "loss": 0.2}]
    for trial in known_trials(first).all():
        folder = RunFolder(first.outputs / "runs" / trial.run_id)
        folder.write_record(folder.record().model_copy(update={"validations": told}))
    other = searched(tmp_path, stopping="median")
    assert done(other)[1] == []
    assert [trial.scores for trial in known_trials(other).all()] == [{4: 0.3, 8: 0.2}] * 4


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


def test_a_trial_without_its_objective_fails_and_says_so(tmp_path):
    search = searched(tmp_path, objectives=["valid_loss_per_character"], trials=2)
    code, _, out = done(search)
    assert code == FAILED
    assert outcomes(search) == ["failed"] * 2
    assert out.count("failed, it has no finite valid_loss_per_character\n") == 2


def test_with_several_objectives_a_diverged_trial_is_a_failed_one_to_optuna(tmp_path):
    search = searched(tmp_path, objectives=["valid_loss", "parameters"], trials=2)
    assert done(search, Fake({"trial 0": "diverged"}))[0] == DONE
    assert [trial.state.name for trial in known_trials(search)._study.get_trials()] == ["FAIL", "COMPLETE"]
    assert (search.folder / "pareto.png").read_bytes().startswith(b"\x89PNG")


def test_values_that_make_no_run_are_a_failed_trial_with_its_reason(tmp_path, monkeypatch):
    search = searched(tmp_path)

    def refusing(words):
        raise UserError("model.num_heads=3: no")

    monkeypatch.setattr("ablab.study.search.compose", refusing)
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
