"""Trials: what is suggested depends on the words alone, whatever was killed; what is told is kept."""

import math
from types import SimpleNamespace

import pytest

from ablab.errors import UserError
from ablab.search.sampling import StatelessSampler, stopping_rule
from ablab.search.settings import ValueRange, objectives_now
from ablab.search.space import Levels, Range, Space
from ablab.search.stopping import Stopping, TrialHandle
from ablab.search.storage import JOURNAL, open_storage
from ablab.search.trials import Trials, best_of, front_of, of_asked, saved_line
from ablab.store.pack import STORAGE

SPACE = Space(
    (
        Range("optim.lr", ValueRange(low=1e-4, high=1e-1, log=True)),
        Levels("layerdrop", ("0", "0.1", "0.2")),
        Range("model.d_ff", ValueRange(low=16, high=64, step=16), whole=True),
    )
)


OBJECTIVES = objectives_now()

TRIALS = 14
"""Beyond the random start of TPE, and the first generation of NSGA-II."""


def opened(folder, sampler="tpe", objectives=("valid_loss",), rule="none", seed=1):
    return Trials(
        "study",
        SPACE,
        {name: OBJECTIVES[name] for name in objectives},
        open_storage(None, folder),
        StatelessSampler(sampler, seed, several_at_a_time=False),
        stopping_rule(rule, first_step=10, last_step=50),
    )


def loss(trial):
    """A bowl."""
    rate, drop, width = (float(word.partition("=")[2]) for word in trial.words)
    return (math.log10(rate) + 2) ** 2 + drop + width / 1000


def tell(trials, trial):
    values = [loss(trial), float(trial.words[2].partition("=")[2])][: len(trials.names)]
    return trials.tell(trial.number, "finished", values, steps=50, total_steps=50)


def test_of_equal_values_the_lowest_loss_is_best(tmp_path):
    trials = opened(tmp_path, "random", ("valid_bleu",))
    for bleu, loss_of_it in ((0.0, 5.0), (0.0, 3.0), (0.0, 4.0)):
        trials.tell(trials.ask().number, "finished", [bleu], steps=50, loss=loss_of_it)
    assert best_of(trials.all(), trials.objectives).number == 1
    trials.tell(trials.ask().number, "finished", [0.1], steps=50, loss=9.0)
    assert best_of(trials.all(), trials.objectives).number == 3


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2"])
@pytest.mark.parametrize("objectives", [("valid_loss",), ("valid_loss", "parameters")], ids=len)
def test_a_search_is_a_function_of_its_words_however_often_killed(sampler, objectives, tmp_path):
    undisturbed = opened(tmp_path / "a", sampler, objectives)
    for _ in range(TRIALS):
        tell(undisturbed, undisturbed.ask())
    for number in range(TRIALS):
        trials = opened(tmp_path / "b", sampler, objectives)  # as after a kill
        if number % 3 == 0:
            trial = trials.ask()
        else:  # killed between the trial and its values
            trials._storage.create_new_trial(trials._study._study_id)
            if number % 3 == 1:
                from optuna import Trial as Suggesting

                key, distribution = next(iter(SPACE.distributions().items()))
                Suggesting(trials._study, trials._study.get_trials()[-1]._trial_id)._suggest(key, distribution)
            (trial,) = opened(tmp_path / "b", sampler, objectives).running()
        tell(opened(tmp_path / "b", sampler, objectives), trial)
    found, expected = opened(tmp_path / "b", sampler, objectives).all(), undisturbed.all()
    assert [trial.words for trial in found] == [trial.words for trial in expected]
    assert len({trial.words for trial in found}) > TRIALS / 2


def test_seeds_make_other_searches(tmp_path):
    one, other = opened(tmp_path / "a", seed=1), opened(tmp_path / "b", seed=2)
    assert one.ask().words != other.ask().words


def test_tpe_looks_where_values_are_good(tmp_path):
    trials = opened(tmp_path)
    told = [tell(trials, trials.ask()) for _ in range(30)]
    early, late = told[:10], told[-10:]
    assert sum(map(loss, late)) < sum(map(loss, early))
    assert best_of(trials.all(), trials.objectives).values[0] == min(map(loss, told))


def test_several_objectives_have_a_front(tmp_path):
    trials = opened(tmp_path, "nsga2", ("valid_loss", "parameters"))
    told = [tell(trials, trials.ask()) for _ in range(12)]
    best = front_of(told, trials.objectives)
    leader = best_of(told, trials.objectives)
    assert leader in best
    assert leader.values[0] == min(trial.values[0] for trial in told)
    assert {trial.number for trial in best} == {trial.number for trial in trials._study.best_trials}


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_journal_that_was_cut_off_is_healed(cut, tmp_path):
    trials = opened(tmp_path)
    for _ in range(3):
        tell(trials, trials.ask())
    path = tmp_path / JOURNAL
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    before = [trial.words for trial in trials.all()]
    again = opened(tmp_path)
    for trial in again.running():
        tell(again, trial)
    tell(again, again.ask())
    found = opened(tmp_path).all()
    assert [trial.words for trial in found][:3] == before
    assert [trial.outcome for trial in found] == ["finished"] * 4


def test_a_journal_that_is_cut_off_while_it_is_open_is_healed_too(tmp_path):
    """Another process was killed while it wrote."""
    trials = opened(tmp_path)
    tell(trials, trials.ask())
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"op_code": 4, "wor')
    tell(trials, trials.ask())
    assert len(opened(tmp_path).all()) == 2


@pytest.mark.parametrize("where", [0, 2, -1])
@pytest.mark.parametrize("line", [b"garbled", b"\xff\x00", b"", b"{}", b"null", b'{"op_code": 4, "worker_id": "x"}'])
def test_a_journal_that_says_something_else_is_named_in_one_line(line, where, tmp_path):
    trials = opened(tmp_path)
    for _ in range(2):
        tell(trials, trials.ask())
    path = tmp_path / JOURNAL
    lines = path.read_bytes().splitlines()
    lines[where] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(UserError, match="cannot be read as the trials of a search") as refusal:
        opened(tmp_path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def validations(*losses):
    return [SimpleNamespace(step=10 * (n + 1), scores={"loss": loss, "bleu": 1.0}) for n, loss in enumerate(losses)]


@pytest.fixture
def stopping(tmp_path):
    """Six good trials, and one that is asked for."""
    trials = opened(tmp_path, rule="median")
    TrialHandle("study", None, "median", "valid_loss", 10, 50, "loss").write(tmp_path)
    assert (tmp_path / STORAGE).stat().st_mode & 0o077 == 0
    for _ in range(6):
        trial = trials.ask()
        early_stop = Stopping(f"{tmp_path}:{trial.number}")
        assert early_stop(validations(3.0, 2.0, 1.0), 50) is None
        trials.tell(trial.number, "finished", [1.0], steps=50, total_steps=50)
    return tmp_path, trials, trials.ask()


def test_a_trial_that_has_come_to_its_end_is_not_stopped(stopping):
    """A kill between its last validation and its evaluation would make it one that was stopped early."""
    folder, trials, trial = stopping
    early_stop = Stopping(f"{folder}:{trial.number}")
    assert early_stop(validations(9.0, 1.9, 1.8, 1.7, 1.6), 50) is None
    assert not early_stop.has_stopped
    assert trials.running()[0].to_stop is None


def test_a_trial_of_another_length_is_judged_after_a_third_of_its_own_steps(stopping):
    folder, _, trial = stopping
    early_stop = Stopping(f"{folder}:{trial.number}")
    assert early_stop(validations(9.0, 1.9, 1.8), 100) is None
    assert early_stop(validations(9.0), 28) is not None


def test_a_good_trial_goes_on_and_a_poor_one_is_stopped(stopping):
    folder, trials, trial = stopping
    early_stop = Stopping(f"{folder}:{trial.number}")
    assert early_stop(validations(9.0), 50) is None  # too early to judge
    assert not early_stop.has_stopped
    assert early_stop(validations(9.0, 1.9), 50) is None
    assert "stopped by the search (median) at step 30" in early_stop(validations(9.0, 1.9, 1.8), 50)
    (left,) = trials.running()
    assert left.to_stop == (30, 50)
    told = trials.tell(left.number, "stopped", steps=30, total_steps=50)
    assert told.values == (1.8,)
    assert saved_line(trials.all()) == "1 trial stopped early: 20 of 350 steps saved, 6 %"
    assert best_of(trials.all(), trials.objectives).number == 0


def test_a_verdict_stays_and_nothing_is_reported_twice(stopping):
    """The run was killed between the word and its end: warnings are errors here, and Optuna warns of repetitions."""
    folder, _, trial = stopping
    assert Stopping(f"{folder}:{trial.number}")(validations(9.0, 9.0), 50)
    again = Stopping(f"{folder}:{trial.number}")
    assert again.has_stopped
    assert again(validations(9.0, 9.0), 50)


def test_what_a_run_did_before_it_was_a_trial_is_reported(stopping):
    folder, trials, trial = stopping
    Stopping(f"{folder}:{trial.number}")(validations(2.0, 1.5), 50)
    assert trials.running()[0].scores == {10: 2.0, 20: 1.5}


def test_a_score_that_a_validation_lacks_is_not_reported(stopping):
    folder, trials, trial = stopping
    said: list[str] = []
    without = [SimpleNamespace(step=10, scores={"bleu": 1.0}), *validations(9.0, 2.0)[1:]]
    assert Stopping(f"{folder}:{trial.number}", said.append)(without, 50) is None
    assert (trials.running()[0].scores, said) == ({20: 2.0}, [])


def test_a_storage_out_of_reach_costs_no_training(stopping, monkeypatch):
    folder, _, trial = stopping
    said = []
    early_stop = Stopping(f"{folder}:{trial.number}", said.append)
    monkeypatch.setattr(early_stop._storage, "get_trial", lambda _: 1 / 0)
    assert early_stop(validations(9.0), 50) is None
    assert "the run goes on" in said[0]


@pytest.mark.parametrize("rule", ["none", "median", "hyperband"])
def test_every_rule_spares_the_best(rule, tmp_path):
    """Trials that differ from their first validation on: whoever is stopped is not the one that would have won."""
    trials = opened(tmp_path, "random", rule=rule)
    TrialHandle("study", None, rule, "valid_loss", 10, 50, "loss").write(tmp_path)
    losses, stopped = {}, set()
    for _ in range(TRIALS):
        trial = trials.ask()
        early_stop, losses[trial.number] = Stopping(f"{tmp_path}:{trial.number}"), loss(trial)
        for steps in range(1, 6):
            if early_stop(validations(*[loss(trial) + 1 / step for step in range(1, steps + 1)]), 50):
                trials.tell(trial.number, "stopped", steps=10 * steps, total_steps=50)
                stopped.add(trial.number)
                break
        else:
            trials.tell(trial.number, "finished", [loss(trial)], steps=50, total_steps=50)
    assert bool(stopped) == (rule != "none")
    assert min(losses, key=losses.get) not in stopped


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 of 2 trials"), (2, "2 of 2 trials"), (3, "3 trials, for 2 that are asked for,")]
)
def test_more_trials_than_are_asked_for_by_now_are_no_part_of_them(count, said):
    assert of_asked(count, 2) == said
    assert of_asked(0, 1) == "0 of 1 trial"
