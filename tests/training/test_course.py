"""When training ends, which validation is the best, and what a checkpoint gives back."""

import math

import pytest
import torch
from safetensors.torch import load_file

from ablab.record import Stretch
from ablab.store import SELECTED
from ablab.training.averaging import average, selected_steps, steps_worth_keeping
from ablab.training.checkpoints import Checkpoints
from ablab.training.course import Course, Ends, Plateau
from ablab.training.schedules import plateau
from ablab.training.validation import Validation, best


def _course(bleus, losses=None):
    losses = losses or [5.0 - 0.1 * i for i in range(len(bleus))]
    validations = [
        Validation(10 * (i + 1), loss, bleu) for i, (bleu, loss) in enumerate(zip(bleus, losses, strict=True))
    ]
    return Course(step=10 * len(bleus), seconds=100.0, tokens=1000, validations=validations)


def test_best_is_the_first_of_equals_by_the_monitored_score():
    course = _course([1.0, 7.0, 7.0, 3.0], [4.0, 3.0, 2.0, 2.0])
    assert best(course.validations, "bleu").step == 20
    assert best(course.validations, "loss").step == 30


def test_nan_is_never_the_best():
    course = _course([1.0, 2.0], [3.0, math.nan])
    assert best(course.validations, "loss").step == 10


ENDS = {"total_steps": None, "max_seconds": None, "patience": None, "monitor": "bleu", "plateau": None}


def test_each_end_on_its_own():
    course = _course([5.0, 4.0, 3.0])
    assert Ends(**ENDS).before_validation(course) is None
    assert Ends(**{**ENDS, "total_steps": 30}).before_validation(course) == "steps"
    assert Ends(**{**ENDS, "total_steps": 31}).before_validation(course) is None
    assert Ends(**{**ENDS, "max_seconds": 100.0}).before_validation(course) == "minutes"
    assert Ends(**{**ENDS, "patience": 2}).after_validation(course) == "patience"
    assert Ends(**{**ENDS, "patience": 3}).after_validation(course) is None
    stalled = _course([5.0] * 3, [3.0] * 3)
    decays = Plateau(peak=1e-3, decay=0.5, patience=0, min_rate=5e-4)
    assert Ends(**{**ENDS, "plateau": decays}).after_validation(stalled) == "learning rate"


def test_plateau_decays_after_each_stall():
    options = {"peak": 1.0, "decay": 0.5, "patience": 1}
    assert plateau([], **options) == 1.0
    assert plateau([3, 2, 1], **options) == 1.0
    assert plateau([3, 3], **options) == 1.0
    assert plateau([3, 3, 3], **options) == 0.5
    # The wait starts anew after a decay, and a new lowest loss ends it.
    assert plateau([3, 3, 3, 3], **options) == 0.5
    assert plateau([3, 3, 3, 2, 2, 2], **options) == 0.25


def test_a_course_survives_a_checkpoint():
    course = _course([1.0, 2.0])
    assert Course.from_dict(course.as_dict()) == course
    assert Course.from_dict({key: value for key, value in course.as_dict().items() if key != "stretches"}) == course


def _stretch(first, **changes):
    machine = {"threads": 1, "device": "x", "devices": 1, "micro_batches": 1, "compile": False}
    plain = {"code": "a", "versions": {"torch": "1"}, **machine, "first_step": first, "last_step": first - 1}
    return Stretch(**{**plain, **changes})


def test_stretches_take_turns_and_one_that_kept_nothing_leaves_no_trace():
    course = Course()
    course.begin(_stretch(1))
    assert [(s.first_step, s.last_step) for s in course.stretches_so_far()] == [(1, 0)]
    course.step = 20
    course = Course.from_dict(course.as_dict())
    for code in "bc":  # killed before its first checkpoint, and another
        course.begin(_stretch(21, code=code))
    course.step = 50
    said = [(s.code, s.first_step, s.last_step) for s in Course.from_dict(course.as_dict()).stretches]
    assert said == [("a", 1, 20), ("c", 21, 50)]


STEPS = [10, 20, 30, 40, 50]


@pytest.mark.parametrize(("select", "expected"), [("averaged", [20, 30, 40]), ("best", [40]), ("last", [50])])
def test_selected_steps_end_at_the_best(select, expected):
    assert selected_steps(STEPS, 40, select=select, average_last=3) == expected


def test_fewer_steps_than_wanted_are_all_taken():
    assert selected_steps([10, 20], 20, select="averaged", average_last=5) == [10, 20]


@pytest.mark.parametrize("select", ["averaged", "best", "last"])
@pytest.mark.parametrize("count", [1, 3])
def test_what_is_kept_is_all_that_can_still_be_selected(select, count):
    """Walk through every sequence of which validation leads: what is selected was never thrown away."""
    for pattern in range(2**6):
        kept: set[int] = set()
        steps: list[int] = []
        leader = 0
        for i in range(7):
            steps.append(i)
            kept.add(i)
            if i == 0 or pattern >> (i - 1) & 1:
                leader = i
            chosen = selected_steps(steps, leader, select=select, average_last=count)
            assert set(chosen) <= kept
            kept = steps_worth_keeping(steps, leader, select=select, average_last=count)
            assert set(chosen) <= kept
            assert len(kept) <= 2 * count


def test_the_mean_is_taken_in_float64_and_keeps_types():
    weights = [
        {"w": torch.tensor([value]), "n": torch.tensor([count])} for value, count in ((1e8, 3), (1.0, 5), (-1e8, 4))
    ]
    mean = average(weights)
    assert mean["w"].dtype is torch.float32
    assert mean["n"].dtype is torch.int64
    # In single precision 1e8 + 1 - 1e8 is 0.
    assert mean["w"].tolist() == pytest.approx([1 / 3])
    assert mean["n"].tolist() == [4]


def test_averaging_equal_checkpoints_changes_nothing():
    weights = {"w": torch.randn(50)}
    assert torch.equal(average([weights] * 5)["w"], weights["w"])


def test_checkpoints_choose_the_mean_and_choose_it_again(tmp_path):
    checkpoints = Checkpoints(tmp_path, "bleu", "averaged", 2)
    course = Course()
    for i, bleu in enumerate([1.0, 3.0, 2.0, 1.5]):
        course.step = i + 1
        course.validations.append(Validation(i + 1, 1.0, bleu))
        checkpoints.save_validated({"w": torch.full((2,), float(i + 1))}, course)
    weights, steps = checkpoints.choose(course)
    assert steps == [1, 2]
    assert weights["w"].tolist() == [1.5, 1.5]
    # A run may be killed before the choice is on record.
    again, _ = checkpoints.choose(course)
    assert torch.equal(again["w"], weights["w"])
    assert torch.equal(load_file(tmp_path / SELECTED)["w"], weights["w"])


def test_the_last_state_loads_without_running_code(tmp_path):
    checkpoints = Checkpoints(tmp_path, "bleu", "last", 1)
    assert checkpoints.load_last() is None
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(3)
    optimizer.step()
    checkpoints.save_last({"w": parameter.detach()}, optimizer.state_dict(), _course([1.0]))
    loaded = checkpoints.load_last()
    assert Course.from_dict(loaded["course"]) == _course([1.0])
    assert loaded["optimizer"]["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
