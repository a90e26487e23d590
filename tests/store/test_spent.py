"""Every second of a run belongs to one part of it, whoever asks when."""

import json

import pytest

from ablab.store.heartbeat import Heartbeat
from ablab.store.spent import PARTS, Spent, read_spent
from ablab.transformer.stages.callbacks import TimeCallback
from ablab.transformer.training.state import TrainingState


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless told."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr("ablab.store.spent.time.perf_counter", clock)
    return clock


def test_seconds_go_to_the_part_that_goes_on_unless_told(clock, tmp_path):
    spent = Spent(tmp_path / "spent.json", began=95.0)
    spent.begin("train")
    clock.now += 7
    assert spent.book("validate") == 7
    clock.now += 2
    spent.begin("curve")
    clock.now += 1
    spent.keep()
    told = read_spent(tmp_path / "spent.json")
    assert told == {**dict.fromkeys(PARTS, 0.0), "prepare": 5, "validate": 7, "train": 2, "curve": 1}
    assert sum(told.values()) == clock.now - 95, "no second is lost, and none counts twice"


def test_waiting_for_another_process_is_no_preparation(clock):
    spent = Spent(began=80.0, waited=15.0)
    spent.book()
    assert (spent.seconds["prepare"], spent.seconds["wait"]) == (5.0, 15.0)


def test_the_processes_of_a_run_add_up(clock, tmp_path):
    path = tmp_path / "spent.json"
    for _ in range(3):
        spent = Spent(path)
        clock.now += 4
        spent.begin("train")
        clock.now += 10
        spent.keep()
        spent.keep()
    assert {part: each for part, each in read_spent(path).items() if each} == {"prepare": 12, "train": 30}


def test_a_run_that_was_set_aside_leaves_no_time_behind(clock, tmp_path):
    path = tmp_path / "run" / "spent.json"
    path.parent.mkdir()
    Spent(path).keep()
    spent = Spent(path)
    clock.now += 3
    path.unlink()  # rerun=true moves it away before anything begins
    spent.keep()
    assert read_spent(path)["prepare"] == 3


def test_a_refused_run_gets_no_folder(tmp_path):
    Spent(tmp_path / "run" / "spent.json").keep()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps(dict.fromkeys(PARTS, "much"))])
def test_an_account_that_cannot_be_read_is_none(content, tmp_path):
    path = tmp_path / "spent.json"
    path.write_text(content)
    assert read_spent(path) is None
    assert read_spent(tmp_path / "none.json") is None


def test_stages_of_a_heartbeat_begin_parts(clock, tmp_path):
    beating = Heartbeat(tmp_path / "pulse")
    for stage, seconds in (("training", 1), ("evaluating", 2), ("pruning", 4)):
        clock.now += seconds
        beating.tell(stage=stage)
    clock.now += 5
    beating.tell(stage="what a task of one's own calls it")
    clock.now += 3
    beating.spent.keep()
    told = beating.spent.seconds
    assert [told[part] for part in ("prepare", "train", "evaluate", "curve")] == [1, 2, 4, 8]


def test_steps_validations_and_checkpoints_of_a_training_are_told_apart(clock):
    """As the loop calls: a step, its log, the validation, the checkpoint, and a checkpoint without a validation."""
    spent, state = Spent(), TrainingState()
    spent.begin("train")
    told = TimeCallback(spent)
    told.on_fit_start(state)

    def step(seconds, saved=0.0):
        clock.now += seconds + saved
        state.seconds += seconds + saved
        state.train_seconds += seconds
        told.on_step(state, None)

    def validate(seconds, saving):
        clock.now += seconds
        told.on_validation(None, None, False)
        clock.now += saving
        state.seconds += seconds + saving
        told.stops([], None)

    step(1.0)
    step(1.0)
    validate(0.25, 0.5)
    step(1.0)
    step(1.0, saved=2.0)  # the loop saved after the step before, as so much time had passed
    step(1.0)
    clock.now += 0.75  # it is asked to stop, and saves
    state.seconds += 0.75
    told.on_fit_end()
    parts = {part: each for part, each in spent.seconds.items() if each}
    assert parts == pytest.approx({"train": 5.0, "validate": 0.25, "save": 3.25})


def test_weights_are_chosen_after_training_also_where_that_was_over(clock):
    spent = Spent()
    spent.begin("train")
    TimeCallback(spent).on_over(TrainingState())
    clock.now += 2
    assert spent.book() == spent.seconds["save"] == 2
