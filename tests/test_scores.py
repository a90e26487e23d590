"""The names of scores that experiments and commands accept are those of the one table."""

from typing import get_args

from ablab.report.metrics import MEASURES
from ablab.store.scores import COSTS, SCORES
from ablab.study.experiment import Claimed, Metric
from ablab.study.prospects import ABSURD


def test_a_study_is_judged_by_a_score_of_quality():
    assert get_args(Metric) == tuple(SCORES)


def test_a_claim_is_about_a_score_or_a_quantity_of_its_own():
    own = ("failures", "depth", "pruned_bleu")
    assert get_args(Claimed) == (*SCORES, *COSTS, *own)


def test_the_report_compares_by_every_score_and_speed():
    assert tuple(MEASURES) == (*SCORES, *COSTS)


def test_every_score_of_quality_has_a_difference_that_is_out_of_reach():
    assert {score.unit for score in SCORES.values()} == set(ABSURD)
