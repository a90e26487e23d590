"""A validation score that chose the weights is marked where it is compared, and judges no arm that chose otherwise."""

from dataclasses import replace

import pytest

from ablab.judge.evidence import observed
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.columns import page_table
from ablab.report.latex import column_table
from ablab.report.sentences import document_of, methods
from ablab.report.tables import arms_table
from ablab.statistics.interval import NotTestable
from tests.report.synthetic import claims_of
from tests.translation import MEASURES

LOSS = MEASURES["valid_loss"]


def selecting(arm, method, monitor="loss"):
    """The arm, had its weights been selected in this way."""
    recipe = {"training.select": method, "training.monitor": monitor}
    return ArmRuns(arm.name, [replace(run, recipe={**run.recipe, **recipe}) for run in arm.runs])


@pytest.fixture
def selection(reported):
    return of_study(reported.study)


def judged(selection, *ways, metric="valid_loss"):
    """The claim that the second arm's loss is the lower one, of two arms that select in these ways."""
    arms = [selecting(arm, *way) for arm, way in zip(selection.arms, ways, strict=False)]
    claim = selection.claims[0].model_copy(update={"metric": metric, "expect": "less", "margin": 0.0})
    (line,) = claims_of(replace(selection, arms=arms, claims=[claim]))
    return line


@pytest.mark.parametrize(
    ("method", "monitor", "metric", "is_chosen"),
    [
        ("best", "loss", "valid_loss", True),
        ("best_or_averaged", "loss", "valid_loss", True),
        ("best", "bleu", "valid_bleu", True),
        ("best", "bleu", "valid_loss", False),  # chosen by another score
        ("best", "loss", "test_bleu", False),
        ("averaged", "loss", "valid_loss", False),  # validated after they were chosen
        ("last", "loss", "valid_loss", False),
        ("averaged_last", "loss", "valid_loss", False),
    ],
)
def test_only_the_score_that_chose_among_several_is_marked(selection, method, monitor, metric, is_chosen):
    line = judged(selection, (method, monitor), (method, monitor), metric=metric)
    assert line.outcome != "not testable"
    assert (line.chosen is not None) == is_chosen
    assert ("The weights were chosen by the same score: the best of 10 validations" in line.words) == is_chosen


@pytest.mark.parametrize(
    "other", [("last", "loss"), ("averaged", "loss"), ("best", "bleu"), ("best_or_averaged", "loss")]
)
def test_arms_that_choose_otherwise_by_that_score_are_not_judged_by_it(selection, other):
    for ways in ((("best", "loss"), other), (other, ("best", "loss"))):
        line = judged(selection, *ways)
        assert line.outcome == "not testable"
        assert line.reason == "layerdrop=0.1 and layerdrop=0 select weights differently, and by validation loss itself"
        assert judged(selection, *ways, metric="test_bleu").outcome != "not testable"


def test_arms_that_choose_by_no_such_score_may_choose_otherwise(selection):
    assert judged(selection, ("last", "loss"), ("averaged", "bleu")).outcome != "not testable"


def test_so_are_ranks_but_not_shares_of_failures(selection):
    usual, other = (selecting(arm, way) for arm, way in zip(selection.arms, ("best", "last"), strict=False))
    failed = ArmRuns(other.name, [replace(other.runs[0], state="diverged"), *other.runs[1:]])
    assert isinstance(observed(failed, usual, LOSS), NotTestable)
    few = [ArmRuns(arm.name, arm.runs[:4]) for arm in (failed, usual)]
    assert not isinstance(observed(*few, LOSS), NotTestable)


def test_other_numbers_of_validations_are_said(selection):
    arms = [selecting(arm, "best") for arm in selection.arms[:2]]
    short = [
        replace(run, record=run.record.model_copy(update={"validations": run.record.validations[5:]}))
        for run in arms[0].runs
    ]
    line = judged(replace(selection, arms=[ArmRuns(arms[0].name, short), arms[1]]), ("best",), ("best",))
    assert line.chosen == "the best of 10 (baseline 5) validations"


def test_the_methods_say_so(selection):
    chosen = replace(selection, metric="valid_loss", arms=[selecting(arm, "best") for arm in selection.arms])
    said = [
        any("validation loss chose the weights" in method for method in methods(one, [])) for one in (chosen, selection)
    ]
    assert said == [True, False]


def test_a_score_of_validation_is_of_no_test_set_and_stands_in_the_table_that_it_decides(reported, selection):
    document = document_of(replace(selection, metric="valid_loss", claims=[]), 1000)
    assert document.test_set is None
    assert " on test" not in column_table(document)
    assert "validation loss" in [column.title for column in page_table(arms_table(document)).columns]
    assert reported.data["test_set"] == "test"
