"""A look sees the runs up to its seed: what comes later changes nothing that was settled."""

import re
from copy import copy
from dataclasses import replace

import pytest

from ablab.judge.arms import arm_line
from ablab.judge.claims import judge
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.drawing import path_drawing
from ablab.study.definition import define
from tests.report.test_extending import EXPERIMENT, swept

PLAIN, SETTLED, OPEN = "layerdrop=0", "layerdrop=0.1", "layerdrop=0.2"


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A study of two claims: one is settled before the last look, and the other is not even then."""
    folder = tmp_path_factory.mktemp("looks")
    (folder / "seq.yaml").write_text(EXPERIMENT.format(to=6, more="", expect="greater"))
    words = (f"experiment={folder / 'seq.yaml'}", f"outputs={folder / 'outputs'}")
    swept(words)
    return of_study(define(words))


def with_run(selection, arm, seed, **changed):
    """The selection, in which the run of an arm under a seed is another."""
    arms = [
        ArmRuns(one.name, [replace(run, **changed) if (one.name, run.seed) == (arm, seed) else run for run in one.runs])
        for one in selection.arms
    ]
    return replace(selection, arms=arms)


def as_settled(selection):
    first, _ = judge(selection)
    return first.model_dump()


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "diverged", "evaluation": None},
        {"state": "failed"},
        {"recipe": {"data.digest": "other text"}},
    ],
)
def test_what_was_settled_stands_whatever_later_seeds_bring(ended, changed):
    before = as_settled(ended)
    assert (before["outcome"], before["followed"]["state"]) == ("supported", "settled")
    later = with_run(ended, PLAIN, before["n"] + 1, **changed)
    assert as_settled(later) == before
    assert judge(later)[1] != judge(ended)[1]


def test_a_run_that_diverged_leaves_ranks_at_the_last_look(ended):
    _, second = judge(with_run(ended, OPEN, 2, state="diverged", evaluation=None))
    assert second.title == "ranks of all runs"
    assert (second.n, second.followed.state) == (6, "spent")
    begun = with_run(ended.up_to(4), OPEN, 2, state="diverged", evaluation=None)
    _, second = judge(replace(begun, ended=None))
    assert (second.outcome, second.reason) == ("provisional", "runs diverged: judged once, at 6 seeds")
    _, second = judge(replace(begun, ended="its runs took 9 hours"))
    assert (second.outcome, second.reason) == ("not testable", "runs diverged: judged once, at 6 seeds")


def test_a_study_that_ends_before_the_first_look_has_tested_nothing(ended):
    for claim in judge(replace(ended.up_to(2), ended="runs were given up")):
        assert claim.outcome == "not testable"
        assert claim.reason == "the first look comes at 3 seeds that both arms have without a gap, not 2"


def test_the_path_of_looks_names_its_axes_and_marks_intervals_that_go_beyond(ended):
    _, second = judge(ended)
    drawn = path_drawing(second)
    assert "rotate(-90)" in drawn
    assert ">difference, BLEU</text>" in drawn
    shapes = re.findall(r'class="interval" d="([^"]*)"', drawn)
    # A cap is a level stroke, an arrow has two slanted ones; the first intervals are too wide for the frame.
    assert [("h8" in shape, "L" in shape) for shape in (shapes[0], shapes[-1])] == [(False, True), (True, False)]


@pytest.mark.parametrize(("bounds", "ends"), [((0.0, 100.0), (0.0, 100.0)), (None, None)])
def test_an_interval_of_a_bounded_score_ends_at_its_bounds(bounds, ends, ended, tmp_path):
    wide = replace(ended, task=copy(ended.task))
    wide.task.bounds = {} if bounds is None else {ended.metric: bounds}
    pair = zip(ended.arms[0].runs[:2], (1, 99), strict=True)
    arm = ArmRuns("wide", [replace(run, evaluation=_scored(run, score)) for run, score in pair])
    found = arm_line(replace(wide, arms=[arm], baseline="wide"), arm, tmp_path).interval
    assert (found.low, found.high) == ends if ends else found.low < 0 < 100 < found.high


def _scored(run, score):
    return run.evaluation.model_copy(update={"scores": {**run.evaluation.scores, "bleu": float(score)}})
