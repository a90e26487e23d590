"""The names of scores that experiments and commands accept are those of the one table."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from ablab.report.metrics import MEASURES
from ablab.store.scores import COSTS, SCORES
from ablab.study.experiment import Claimed, Metric
from ablab.study.prospects import ABSURD


def _accepted(kind):
    """The names that a field of this kind takes; the error lists them."""
    with pytest.raises(ValidationError) as error:
        TypeAdapter(kind).validate_python("nosuch")
    names = {*re.search(r"allowed: ([a-z_, ]+)", str(error.value))[1].strip().split(", ")}
    assert all(TypeAdapter(kind).validate_python(name) == name for name in names)
    return names


def test_a_study_is_judged_by_a_score_of_quality():
    assert _accepted(Metric) == {*SCORES}


def test_a_claim_is_about_a_score_or_a_quantity_of_its_own():
    own = ("failures", "depth", "pruned_bleu")
    assert _accepted(Claimed) == {*SCORES, *COSTS, *own}


def test_the_report_compares_by_every_score_and_speed():
    assert tuple(MEASURES) == (*SCORES, *COSTS)


def test_every_score_of_quality_has_a_difference_that_is_out_of_reach():
    assert {score.unit for score in SCORES.values()} == set(ABSURD)
