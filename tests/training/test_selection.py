"""Which weights count, that none of them is thrown away too soon, and their mean."""

import math
import re

import pytest
import torch
from safetensors.torch import load_file

from ablab.store.run_folder import SELECTED
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.selection import Selection, average, why_diverged
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.validation import TranslationValidation as Validation

SELECTS = ("averaged", "averaged_last", "best_or_averaged", "best", "last")


def validations(*bleus, every=10):
    return [Validation(every * number, loss=9.0 - bleu, bleu=bleu) for number, bleu in enumerate(bleus, start=1)]


FOURTH_BEST = validations(1.0, 2.0, 3.0, 9.0, 8.0)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("averaged", [[20, 30, 40]]),
        ("averaged_last", [[36, 48, 50]]),
        ("best_or_averaged", [[40], [20, 30, 40]]),
        ("best", [[40]]),
        ("last", [[50]]),
    ],
)
def test_candidates(select, expected):
    assert Selection(select, "bleu", 3, 12).candidates(FOURTH_BEST, 50) == expected


@pytest.mark.parametrize("select", SELECTS)
def test_of_fewer_than_wanted_all_are_taken(select):
    (*_, found) = Selection(select, "bleu", 9, 20).candidates(validations(1.0, 2.0), 20)
    assert found == ([10, 20] if select in ("averaged", "best_or_averaged") else [20])


def test_the_mean_of_one_is_the_best_itself():
    assert Selection("best_or_averaged", "bleu", 1, 1).candidates(FOURTH_BEST, 50) == [[40]]
    assert Selection("best_or_averaged", "bleu", 3, 1).candidates(validations(5.0, 1.0), 20) == [[10]]


def test_equal_bleu_is_ordered_by_the_loss():
    """BLEU is 0 until four words in a row are right: the first weights are not the best for that."""
    blind = [Validation(10 * number, loss, bleu=0.0) for number, loss in enumerate((5.0, 3.0, 1.0, 2.0), start=1)]
    assert Selection("best", "bleu", 1, 1).candidates(blind, 40) == [[30]]
    assert Selection("averaged", "bleu", 2, 1).candidates(blind, 40) == [[20, 30]]
    assert Selection("best", "bleu", 1, 1).candidates([*blind, Validation(50, 9.0, bleu=0.1)], 50) == [[50]]
    assert not blind[2].better_than(Validation(1, 1.0, bleu=0.0), "bleu")
    assert not blind[2].better_than(Validation(1, 1.0, bleu=9.0), "loss")


@pytest.mark.parametrize(
    ("losses", "select", "said"),
    [
        ((2.95, 0.90), "best", None),
        ((2.95, 2.94, 2.941), "best", None),
        ((2.95, 2.941, 2.95), "best", "the best validation loss, 2.941,"),
        ((1.0, 7.0), "best", None),  # overfitting ends there too
        ((1.0, 2.94), "last", None),
        ((1.0, 2.941), "last", "the last validation loss, 2.941, .* after 1.000 at step 10: what was learnt is lost"),
        ((1.0, 7.0), "averaged_last", "is lost"),
    ],
)
def test_a_run_diverges_by_its_best_loss_or_by_its_last_where_that_counts(losses, select, said):
    found = why_diverged([Validation(10 * n, loss, 0.0) for n, loss in enumerate(losses, start=1)], 3.0, select)
    assert (found is None) if said is None else re.search(said, found)


@pytest.mark.parametrize(("end", "expected"), [(50, [30, 40, 50]), (49, [30, 40, 49]), (10, [10]), (3, [3])])
def test_snapshots_are_taken_at_multiples_and_where_training_ends(end, expected):
    """At a multiple, as fairseq averages checkpoints by update; elsewhere the end stands for the multiple to come."""
    found = Selection("averaged_last", "loss", 3, 10).candidates([Validation(end, 1.0, 1.0)], end)
    assert found == [expected]


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("every", [1, 2, 5])
def test_what_is_kept_is_all_that_can_still_be_selected(select, count, every):
    """Validated at every other step and at the end, saved whenever that is due, ended anywhere, the best anywhere."""
    selection = Selection(select, "bleu", count, every)
    for end in range(1, 11):
        at = sorted({*range(2, end, 2), end})
        for pattern in range(2 ** len(at)):
            seen: list[Validation] = []
            kept: set[int] = set()
            for step in range(1, end + 1):
                if step in at:
                    best = pattern >> at.index(step) & 1
                    seen.append(Validation(step, 1.0, float(step) if best else 0.0))
                if step in at or selection.is_snapshot(step):
                    kept = selection.worth_keeping(seen, step) & {*kept, step}
                    assert len(kept) <= 2 * count
            assert {step for steps in selection.candidates(seen, end) for step in steps} <= kept


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


def trained(folder, select, *bleus, every=1):
    """Saved after each of so many steps: the weights are the step's number."""
    checkpoints, state = Checkpoints(folder, Selection(select, "bleu", 2, every), None), TrainingState()
    for state.step, bleu in enumerate(bleus, start=1):
        state.validations.append(Validation(state.step, 1.0, bleu))
        checkpoints.save({"w": torch.full((2,), float(state.step))}, {}, state)
    return checkpoints, state


def judged(bleu):
    """A validation of the mean that finds so much."""
    return lambda weights: Validation(99, 1.0, bleu)


def test_checkpoints_choose_the_mean_and_choose_it_again(tmp_path):
    checkpoints, state = trained(tmp_path, "averaged", 1.0, 3.0, 2.0, 1.5)
    chosen = checkpoints.choose(state, judged(2.5))
    assert chosen.steps == [1, 2]
    assert chosen.weights["w"].tolist() == [1.5, 1.5]
    assert chosen.validation.bleu == 2.5
    # A run may be killed before the choice is on record.
    again = checkpoints.choose(state, judged(2.5))
    assert torch.equal(again.weights["w"], chosen.weights["w"])
    assert torch.equal(load_file(tmp_path / SELECTED)["w"], chosen.weights["w"])


@pytest.mark.parametrize(
    ("bleu", "steps", "weight"), [(3.1, [1, 2], 1.5), (3.0, [2], 2.0), (2.9, [2], 2.0), (math.nan, [2], 2.0)]
)
def test_the_mean_counts_where_it_is_better_than_the_best(bleu, steps, weight, tmp_path):
    checkpoints, state = trained(tmp_path, "best_or_averaged", 1.0, 3.0, 2.0)
    chosen = checkpoints.choose(state, judged(bleu))
    assert chosen.steps == steps
    assert load_file(tmp_path / SELECTED)["w"].tolist() == [weight, weight]
    assert chosen.validation.bleu == (bleu if len(steps) > 1 else 3.0)


def test_what_was_validated_is_not_validated_again(tmp_path):
    checkpoints, state = trained(tmp_path, "best", 1.0, 3.0, 2.0)
    assert checkpoints.choose(state, lambda _: pytest.fail("validated")).validation == state.validations[1]


def test_a_kill_before_the_state_is_written_takes_nothing_that_the_state_before_needs(tmp_path, monkeypatch):
    """After it, training goes on from step 4, and may end there: by a clock, say."""
    checkpoints, state = trained(tmp_path, "averaged_last", 1.0, 1.0, 1.0, 1.0)
    before = TrainingState.from_dict(state.as_dict(), Validation)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save_last", killed)
    state.step = 5
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save({"w": torch.zeros(2)}, {}, state)
    assert checkpoints.choose(before, judged(1.0)).steps == [3, 4]


def test_weights_are_saved_between_validations_only_where_they_may_be_selected(tmp_path):
    checkpoints = Checkpoints(tmp_path, Selection("averaged_last", "bleu", 2, 4), seconds_apart=60.0)
    saved = []
    for step in range(1, 14):
        if checkpoints.is_due(step, 61.0 if step == 9 else 59.0):
            checkpoints.save({"w": torch.zeros(2)}, {}, TrainingState(step=step))
            saved.append((step, sorted(path.name for path in tmp_path.glob("step_*"))))
    assert saved == [
        (4, ["step_4.safetensors"]),
        (8, ["step_4.safetensors", "step_8.safetensors"]),
        (9, ["step_4.safetensors", "step_8.safetensors"]),
        (12, ["step_12.safetensors", "step_4.safetensors", "step_8.safetensors"]),  # 9 may be needed once more
    ]


def test_without_minutes_only_snapshots_are_due_between_validations(tmp_path):
    selections = (Selection(select, "bleu", 2, 4) for select in SELECTS)
    due = {selection.select: Checkpoints(tmp_path, selection, None).is_due(4, 1e9) for selection in selections}
    assert due == {select: select == "averaged_last" for select in SELECTS}
