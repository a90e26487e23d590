"""When training ends, which validation is the best, and what a checkpoint gives back."""

import math

import torch

from ablab.store.records import Stretch
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.selection import Selection
from ablab.transformer.training.state import Plateau, StopCriteria, TrainingState
from ablab.transformer.training.validation import best
from ablab.transformer.translation.validation import TranslationValidation as Validation


def _course(bleus, losses=None):
    losses = losses or [5.0 - 0.1 * i for i in range(len(bleus))]
    validations = [
        Validation(10 * (i + 1), loss, bleu) for i, (bleu, loss) in enumerate(zip(bleus, losses, strict=True))
    ]
    return TrainingState(step=10 * len(bleus), seconds=100.0, tokens=1000, validations=validations, kind=Validation)


def test_best_is_the_first_of_equals_and_equal_bleu_is_ordered_by_loss():
    state = _course([1.0, 7.0, 7.0, 3.0], [4.0, 3.0, 2.0, 2.0])
    assert best(state.validations, "bleu").step == 30
    assert best(_course([7.0, 7.0], [3.0, 3.0]).validations, "bleu").step == 10
    assert best(state.validations, "loss").step == 30


def test_nan_is_never_the_best():
    state = _course([1.0, 2.0], [3.0, math.nan])
    assert best(state.validations, "loss").step == 10


ENDS = {"total_steps": None, "max_seconds": None, "patience": None, "monitor": "bleu", "schedule": None}


def test_each_end_on_its_own():
    state = _course([5.0, 4.0, 3.0])
    assert StopCriteria(**ENDS).before_validation(state) is None
    assert StopCriteria(**{**ENDS, "total_steps": 30}).before_validation(state) == "steps"
    assert StopCriteria(**{**ENDS, "total_steps": 31}).before_validation(state) is None
    assert StopCriteria(**{**ENDS, "max_seconds": 100.0}).before_validation(state) == "minutes"
    assert StopCriteria(**{**ENDS, "patience": 2}).after_validation(state) == "patience"
    assert StopCriteria(**{**ENDS, "patience": 3}).after_validation(state) is None
    stalled = _course([5.0] * 3, [3.0] * 3)
    decays = Plateau(peak=1e-3, decay=0.5, decay_patience=1, decay_monitor="loss", min_lr=5e-4)
    assert StopCriteria(**{**ENDS, "schedule": decays}).after_validation(stalled) == "learning rate"


def test_a_course_survives_a_checkpoint():
    state = _course([1.0, 2.0])
    assert TrainingState.from_dict(state.as_dict(), Validation) == state
    older = {key: value for key, value in state.as_dict().items() if key != "stretches"}
    assert TrainingState.from_dict(older, Validation) == state


def _stretch(first, **changes):
    machine = {"threads": 1, "device": "x", "devices": 1, "micro_batches": 1, "compile": False}
    plain = {"code": "a", "versions": {"torch": "1"}, **machine, "first_step": first, "last_step": first - 1}
    return Stretch(**{**plain, **changes})


def test_stretches_take_turns_and_one_that_kept_nothing_leaves_no_trace():
    state = TrainingState()
    state.begin(_stretch(1))
    assert [(s.first_step, s.last_step) for s in state.stretches_so_far()] == [(1, 0)]
    state.step = 20
    state = TrainingState.from_dict(state.as_dict())
    for code in "bc":  # killed before its first checkpoint, and another
        state.begin(_stretch(21, code=code))
    state.step = 50
    said = [(s.code, s.first_step, s.last_step) for s in TrainingState.from_dict(state.as_dict()).stretches]
    assert said == [("a", 1, 20), ("c", 21, 50)]


def test_the_last_state_loads_without_running_code(tmp_path):
    checkpoints = Checkpoints(tmp_path, Selection("last", "bleu", 1, 1), None)
    assert checkpoints.load_last() is None
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(3)
    optimizer.step()
    checkpoints.save_last({"w": parameter.detach()}, optimizer.state_dict(), _course([1.0]), {})
    loaded = checkpoints.load_last()
    assert TrainingState.from_dict(loaded["course"], Validation) == _course([1.0])
    assert loaded["optimizer"]["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
