"""A look sees the runs up to its seed: what comes later changes nothing that was settled."""

from dataclasses import replace

import pytest

from ablab.judge.claims import judge
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
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
        assert claim.reason == "the first look comes at 3 seeds that both arms have, there are 2"
