"""Arms that were not made alike say so wherever they are compared, and their speeds are not compared at all."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ablab.code.differences import joined
from ablab.judge.arms import arm_line
from ablab.judge.document import Document
from ablab.judge.evidence import evidence
from ablab.judge.lines import ClaimLine
from ablab.judge.origins import odd, unlike
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.page import page
from ablab.statistics.interval import NotTestable
from ablab.store.records import Stretch
from tests.report.synthetic import claims_of
from tests.translation import MEASURES

MACHINE = {"device": "x", "devices": 1, "micro_batches": 1, "compile": False}


def stretch(first=1, last=9, **changes):
    plain = {"code": "2:a", "versions": {"torch": "1"}, "threads": 1, **MACHINE}
    return Stretch(**{**plain, "first_step": first, "last_step": last, **changes})


def trained(arm, *stretches, provenance=None, only=None):
    """The arm, its runs under the seeds `only` or under all trained in these stretches."""

    def changed(run):
        if run.record is None or (only is not None and run.seed not in only):
            return run
        update = {"stretches": list(stretches), "provenance": {**run.record.provenance, **(provenance or {})}}
        return replace(run, record=run.record.model_copy(update=update))

    return ArmRuns(arm.name, [changed(run) for run in arm.runs])


@pytest.fixture
def arms(reported):
    return of_study(reported.study).arms[:2]


def test_arms_that_were_made_alike_are_not_marked(arms):
    usual, other = arms
    assert unlike(usual, other) is None
    assert unlike(trained(usual, stretch()), trained(other, stretch(last=20))) is None
    halves = (stretch(last=4), stretch(first=5))
    assert unlike(trained(usual, stretch()), trained(other, *halves)) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"code": "2:b"}, "code"),
        ({"threads": 2, "device": "y"}, "threads, device"),
        ({"versions": {"torch": "2"}}, "library versions"),
        ({"versions": {"torch": "1", "wandb": "2"}}, None),
    ],
)
def test_what_differs_between_arms_is_named(arms, changes, said):
    usual, other = arms
    assert unlike(trained(usual, stretch()), trained(other, stretch(**changes))) == said


def test_a_run_that_was_mixed_differs_from_one_that_was_not(arms):
    usual, other = arms
    mixed = trained(trained(other, stretch()), stretch(last=4), stretch(first=5, code="2:b"), only={1})
    assert unlike(trained(usual, stretch()), mixed) == "code"
    assert [odd(run) for run in mixed.runs[:2]] == ["mixed: code changed during training", None]


def test_seeds_made_elsewhere_in_both_arms_are_no_difference_between_them(arms):
    usual, other = (trained(trained(arm, stretch()), stretch(code="2:b"), only={4, 5}) for arm in arms)
    assert unlike(usual, other) is None


def test_digests_that_are_proved_to_be_one_are_no_difference(arms, monkeypatch):
    monkeypatch.setattr("ablab.code.differences.equals", lambda _: joined([{"digests": ["2:a", "2:b"]}]))
    usual, other = arms
    assert unlike(trained(usual, stretch()), trained(other, stretch(code="2:b"))) is None


def test_curves_by_other_code_are_marked(arms):
    def measured(arm, code):
        curve = SimpleNamespace(provenance_code=code, components={}, of_heads=False)
        return ArmRuns(arm.name, [replace(run, curve=curve) for run in arm.runs])

    usual, other = arms
    assert unlike(measured(usual, "2:a"), measured(other, "2:a")) is None
    assert unlike(measured(usual, "2:a"), measured(other, "2:b")) == "curve code"


@pytest.mark.slow
def test_an_evaluation_by_later_code_is_marked(arms):
    usual, other = arms
    later = [replace(run, evaluation=run.evaluation.model_copy(update={"provenance_code": "z"})) for run in other.runs]
    assert unlike(usual, ArmRuns(other.name, later)) == "evaluation code"
    (run,) = trained(ArmRuns("x", later[:1]), stretch(), provenance={"evaluation_code": "abc"}).runs
    assert odd(run) == "judged by other code than when it was trained"


@pytest.mark.parametrize("metric", ["training_speed", "decoding_speed"])
def test_speeds_of_arms_that_were_not_made_alike_are_not_compared(arms, metric):
    usual, other = (trained(arm, stretch(threads=threads)) for arm, threads in zip(arms, (1, 2), strict=True))
    found = evidence(other, usual, MEASURES[metric], 0.0)
    assert isinstance(found, NotTestable)
    assert "differ in threads" in str(found)
    assert not isinstance(evidence(other, usual, MEASURES["test_bleu"], 0.5), NotTestable)


@pytest.mark.parametrize(("name", "shown"), [("test_bleu", 0), ("seconds", 1)])
def test_runs_show_the_metric_once_and_another_loss_in_its_digits(reported, name, shown):
    data = {**reported.data, "loss": {"name": name, "title": "told", "digits": 1}}
    data["arms"] = [{**arm, "runs": [{**arm["runs"][0], "loss": 1.54321}]} for arm in data["arms"]]
    rendered = page(Document.model_validate(data))
    assert rendered.count('<th scope="col">told</th>') == shown * len(data["arms"])
    assert re.findall(r'data-label="told">([^<]*)<', rendered) == ["1.5"] * shown * len(data["arms"])


def test_a_claim_and_its_arm_say_so(reported, tmp_path):
    selection = of_study(reported.study)
    before = claims_of(selection)
    assert not any(isinstance(claim, ClaimLine) and claim.unlike for claim in before)
    first, second, *rest = selection.arms
    arms = [trained(first, stretch()), trained(second, stretch(code="2:b")), *rest]
    apart = replace(selection, arms=arms)
    claim = claims_of(apart)[0]
    assert claim.unlike == "code"
    assert claim.words.endswith("The arms were not made alike: they differ in code.")
    assert (claim.outcome, claim.difference) == (before[0].outcome, before[0].difference)
    line = arm_line(apart, arms[1], tmp_path)
    assert "not made like the baseline: code" in line.notes
