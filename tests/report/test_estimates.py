"""A claim's difference is estimated in the declared way, shown in both, and marked where a run nearly failed."""

import json
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from ablab.judge.contrasts import independent, sharing
from ablab.judge.document import Document
from ablab.judge.estimates import beats, borrowed, by_both, conditions, lenders, nearly_failed
from ablab.judge.registration import Registered
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report import sentences
from ablab.report.sentences import OLDER_TEST, methods, notes
from ablab.statistics.moderated import VERSION, moderated
from ablab.statistics.paired import paired_difference
from ablab.study.definition import define
from ablab.study.tuning import TUNING
from tests.report.conftest import EXPERIMENT, typed
from tests.report.synthetic import claims_of
from tests.translation import MEASURES

BLEU = MEASURES["test_bleu"]


def scored(arm, scores):
    """The arm with these scores."""
    runs = [
        replace(run, state="finished", evaluation=None if run.evaluation is None else _with(run.evaluation, score))
        for run, score in zip(arm.runs, scores, strict=True)
    ]
    return ArmRuns(arm.name, runs)


def _with(evaluation, score):
    return evaluation.model_copy(update={"scores": {**evaluation.scores, "bleu": score}})


@pytest.fixture
def selection(reported):
    return of_study(reported.study)


def bleus(arm):
    return [run.evaluation.scores["bleu"] for run in arm.finished]


def of_bleu(lines):
    """The claims about differences of test BLEU."""
    return [line for line in lines if line.metric == "test_bleu" and line.title == line.about]


def test_the_other_arms_lend_and_those_with_failures_do_not(selection):
    usual, lower, higher, failing = selection.arms
    assert failing.diverged
    assert borrowed(selection, [lower, usual], BLEU) == [bleus(higher)]
    expected = moderated(bleus(lower), bleus(usual), [bleus(higher)])
    (line,) = [line for line in claims_of(selection) if (line.arm, line.metric) == (lower.name, "test_bleu")]
    assert line.test == expected.method
    assert line.p == pytest.approx(expected.p)
    assert (line.interval.low, line.interval.high) == pytest.approx(
        (expected.at(line.interval.level).low, expected.at(line.interval.level).high)
    )
    assert line.other.p == pytest.approx(paired_difference(bleus(lower), bleus(usual)).p)
    assert line.other.test == "paired t"
    assert line.other.interval.level == line.interval.level


def test_where_pairs_are_declared_to_decide_they_do(selection):
    lines = of_bleu(claims_of(replace(selection, error="paired")))
    assert lines
    for line in lines:
        paired = paired_difference(bleus(selection.arm(line.arm)), bleus(selection.arm(line.baseline)))
        assert (line.test, line.p) == ("paired t", pytest.approx(paired.p))
        assert line.other.test.startswith("moderated t")


def test_pruned_models_are_compared_by_their_pairs_alone(selection):
    lines = [line for line in claims_of(selection) if line.metric in ("depth", "pruned_bleu")]
    assert len(lines) == 2
    assert {line.test for line in lines} <= {"paired t", None}
    assert all(line.other is None for line in lines)


def test_a_study_keeps_the_way_under_which_it_was_registered(reported, tmp_path):
    outputs = reported.study.outputs
    for declared in ("moderated", "paired"):
        path = tmp_path / f"{declared}.yaml"
        path.write_text(f"{EXPERIMENT}error: {declared}\n")
        selection = of_study(replace(define((f"experiment={path}", f"outputs={outputs}")), name=reported.study.name))
        assert selection.error == declared
        assert (selection.departed is None) == (declared == "moderated")
    # A registration from before there was a choice.
    registered = outputs / "studies" / "claims" / "registered.json"
    entries = json.loads(registered.read_text())
    assert entries[0].pop("error") == "moderated"
    place = tmp_path / "older"
    place.mkdir()
    (place / "registered.json").write_text(json.dumps(entries))
    assert Registered.of(place).error == "paired"


def test_a_study_registered_under_the_first_moderated_test_is_told_of_the_present_one(selection):
    def told(error, version):
        registered = selection.registered.model_copy(update={"moderated_test": version})
        return OLDER_TEST in notes(replace(selection, error=error, registered=registered), [])

    assert selection.registered.moderated_test == VERSION
    assert told("moderated", 1)
    assert not told("moderated", VERSION)
    assert not told("paired", 1)
    assert Registered.model_validate({"claims": [], "seeds": [1], "runs_already_done": 0}).moderated_test == 1


def test_the_methods_name_the_test_that_decides(reported, selection):
    said = " ".join(reported.data["methods"])
    assert "over seeds were judged by moderated t (after Smyth 2004) and paired t, the test set fixed." in said
    assert "The risk of false verdicts is at most 5 % over 7 claims (Holm), if seeds are independent" in said
    two = " ".join(methods(selection, ["Welch's"]))
    assert "over seeds were judged by Welch's t (no other arm lends noise), the test set fixed." in two
    paired = " ".join(methods(replace(selection, error="paired"), ["paired"]))
    assert "Differences over seeds were judged by paired t, the test set fixed." in paired
    assert "over 7 claims (Holm), if seeds are independent, and differences near normal." in paired


def test_the_methods_are_some_80_words_of_what_was_used(reported, selection):
    assert len(" ".join(reported.data["methods"]).split()) <= 94  # this study has diverged arms of both kinds
    assert not any("Margins" in said or "verdict" in said for said in methods(replace(selection, claims=[]), []))
    whole = [arm for arm in selection.arms if not arm.diverged]
    ranks, shares = sentences.OF_DIVERGED
    assert {ranks, shares} <= set(sentences.tests(Document.model_validate(reported.data)))
    for used, told in (([shares], shares), ([ranks, shares], f"{ranks} and {shares}")):
        assert f"Diverged arms were compared by {told}." in list(methods(selection, used))
    assert not any("iverged" in said for said in methods(replace(selection, arms=whole), []))
    assert not any("judged by" in said for said in methods(selection, []))


def test_an_unknown_way_is_refused(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(EXPERIMENT + "error: pooled\n")
    code, _, err = typed(f"experiment={path}", f"outputs={tmp_path}")
    assert code == 2
    assert "error=pooled" in err
    assert err.count("\n") == 1


def judged_with(selection, *scores):
    """The lines of claims about BLEU by arm, where the first three arms have these scores."""
    arms = [scored(arm, values) for arm, values in zip(selection.arms, scores, strict=False)]
    claims = [claim for claim in selection.claims if claim.metric == "test_bleu" and claim.arm != "layerdrop=0.5"]
    return arms, {line.arm: line for line in claims_of(replace(selection, arms=arms, claims=claims))}


USUAL, HIGHER = [30.0, 30.4, 30.2, 30.1, 30.3], [30.1, 30.6, 30.2, 30.3, 30.0]


def test_a_run_that_nearly_failed_is_named(selection):
    _, lower, higher, _ = selection.arms
    arms, lines = judged_with(selection, USUAL, [31.0, 30.5, 30.8, 30.9, 5.0], HIGHER)
    found = nearly_failed(replace(selection, arms=arms), BLEU)
    assert {name: run.seed for name, run in found.items()} == {lower.name: 5}
    assert lines[lower.name].near_failures == [f"seed 5 of {lower.name}"]
    assert f"Nearly failed: seed 5 of {lower.name}." in lines[lower.name].words
    assert lines[higher.name].near_failures == []


def test_a_run_better_than_every_run_of_the_baseline_never_nearly_failed(selection):
    _, lower, *_ = selection.arms
    for worst, named in ((30.39, [f"seed 5 of {lower.name}"]), (30.41, [])):
        arms, lines = judged_with(selection, USUAL, [45.0, 44.5, 44.8, 44.9, worst], HIGHER)
        assert lower.name in nearly_failed(replace(selection, arms=arms), BLEU)
        assert lines[lower.name].near_failures == named


def test_arms_of_another_level_of_within_lend_nothing(selection):
    """Whatever they were trained on: their scores may be of another size. Usual and tuned arms lend to each other."""
    usual, lower, higher, _ = [arm.name for arm in selection.arms]
    apart = {usual: usual, lower: usual, higher: higher}
    for within, lent in (("corpus", []), (TUNING, [bleus(selection.arms[2])]), (None, [bleus(selection.arms[2])])):
        found = replace(selection, within=within, baselines=apart)
        assert borrowed(found, [selection.arms[1], selection.arms[0]], BLEU) == lent
    together = replace(selection, within="corpus", baselines=dict.fromkeys(apart, usual))
    assert borrowed(together, [selection.arms[1], selection.arms[0]], BLEU) == [bleus(selection.arms[2])]


def test_of_arms_that_share_runs_one_lends(selection):
    """As of arms that differ by decoding: as two they would pass for other runs."""
    greedy = [
        replace(run, evaluation=run.evaluation.model_copy(update={"evaluation_id": "greedy"}))
        for run in selection.arms[2].runs
    ]
    both = replace(selection, arms=[*selection.arms, replace(selection.arms[2], name="greedy", runs=greedy)])
    assert len(both.rows) == len(selection.rows) + 1
    assert borrowed(both, selection.arms[:2], BLEU) == borrowed(selection, selection.arms[:2], BLEU)


def decoded(arm, name, score):
    """The same runs, evaluated in another way."""
    runs = [
        replace(
            run, evaluation=run.evaluation.model_copy(update={"evaluation_id": name, "scores": {"bleu": score + n}})
        )
        for n, run in enumerate(arm.runs)
    ]
    return replace(arm, name=name, runs=runs)


def test_which_of_them_lends_does_not_depend_on_their_order(selection):
    """It is the one that is evaluated as the compared arms are; of others, the first by name."""
    first, second, own, last = selection.arms
    greedy, sampled = decoded(own, "greedy", 3.0), decoded(own, "sampled", 4.0)

    def lending(*several):
        arms = [first, second, *several, last]
        return [arm.name for arm in lenders(replace(selection, arms=arms), [first, second], BLEU)]

    assert {*map(tuple, map(sorted, (lending(own, greedy), lending(greedy, own))))} == {tuple(sorted(lending(own)))}
    assert lending(sampled, greedy) == lending(greedy, sampled) == lending(greedy)


def test_arms_that_share_something_are_one_group_in_every_order():
    for several in permutations([{1, "v1"}, {2, "v2"}, {2, "v1"}, {3}]):
        groups = sharing(several)
        assert sorted(map(len, groups)) == [1, 3]
        assert [several.index({3})] in groups


def test_an_arm_that_scatters_wildly_is_named_and_lends_nothing(selection):
    _, lower, higher, _ = selection.arms
    wild = [31.0, 12.0, 30.8, 41.0, 22.0]
    arms, lines = judged_with(selection, USUAL, wild, HIGHER)
    assert [one.kind for one in lines[lower.name].conditions] == ["wide"]
    assert f"The scores of {lower.name} scatter" in lines[lower.name].words
    assert lines[higher.name].conditions == []
    assert borrowed(replace(selection, arms=arms), [arms[2], arms[0]], BLEU) == [wild]
    assert lines[higher.name].test == moderated(HIGHER, USUAL).method
    assert lines[lower.name].near_failures == []


def test_what_seeds_share_is_said_where_the_other_test_would_see_more(selection):
    """Runs that vary together call for pairs, runs that vary in opposite directions for caution."""
    _, lower, *_ = selection.arms
    steps, rest = np.array([0.0, 4.0, 1.0, 3.0, 2.0]), np.array([0.1, 0.0, -0.1, 0.0, 0.1])
    for sign, kind, words in ((1, "together", "`error: paired` would see"), (-1, "opposed", "errs more often")):
        _, lines = judged_with(selection, 30 + steps, 30 + sign * steps + rest, 31 + sign * steps - rest)
        (found,) = lines[lower.name].conditions
        assert found.kind == kind
        assert found.figure == pytest.approx(sign, abs=0.02)
        assert words in lines[lower.name].words
    _, lines = judged_with(replace(selection, error="paired"), 30 + steps, 30 + steps + rest, 31 + steps - rest)
    assert lines[lower.name].conditions == []


@pytest.mark.parametrize(
    ("shift", "margin", "expect", "outcome", "is_narrow"),
    [
        (0.05, 8.0, "equal", "supported", True),
        (9.0, 2.0, "equal", "refuted", False),
        (2.0, 2.0, "equal", "inconclusive", False),
        (0.05, 8.0, "greater", "equivalent", True),
        (9.0, 0.5, "greater", "supported", False),
    ],
)
def test_the_interval_on_which_the_verdict_rests_is_shown(selection, shift, margin, expect, outcome, is_narrow):
    usual, lower, higher, _ = selection.arms
    steady = [30.0, 30.4, 30.2, 30.1, 30.3]
    arms = [scored(arm, [score + more for score in steady]) for arm, more in ((usual, 0.0), (higher, 1.0))]
    arms.append(scored(lower, [score + shift for score in reversed(steady)]))
    (claim,) = [claim for claim in selection.claims if (claim.arm, claim.metric) == (lower.name, "test_bleu")]
    claim = claim.model_copy(update={"margin": margin, "expect": expect})
    (line,) = claims_of(replace(selection, arms=arms, claims=[claim]))
    assert line.outcome == outcome
    assert line.interval.level == pytest.approx(0.9 if is_narrow else 0.95)
    assert f"{100 * line.interval.level:.4g} % interval" in line.words
    assert (line.other.p is None) == is_narrow


@pytest.mark.parametrize(
    ("value", "higher", "expected"),
    [
        (1.3, True, True),
        (1.2, True, False),
        (1.05, True, False),
        (0.9, False, True),
        (1.0, False, False),
        (1.3, False, False),
    ],
)
def test_a_run_beats_an_arm_that_is_worse_in_every_run(value, higher, expected):
    measure = SimpleNamespace(value=lambda run: run, higher_is_better=higher)
    arm = SimpleNamespace(once=lambda key, made: made(), finished=[1.0, 1.1, 1.2, None])
    assert beats(value, arm, measure) == expected
    assert not beats(None, arm, measure)


def test_arms_of_the_same_runs_are_one_arm_under_two_names(selection):
    """Arms that differ by pruning alone: as two they would halve the variance of a mean over them."""
    usual, lower, *_ = selection.arms
    copies = [ArmRuns(f"{arm.name},pruning=none", arm.runs) for arm in (usual, lower)]
    both = replace(selection, arms=[*selection.arms, *copies])
    differences = [one - other for one, other in zip(bleus(lower), bleus(usual), strict=True)]
    one = by_both(selection, [lower, usual], [1.0, -1.0], BLEU, differences)
    halves = by_both(both, [lower, usual, copies[1], copies[0]], [0.5, -0.5, 0.5, -0.5], BLEU, differences)
    assert (halves.decisive.p, halves.decisive.df) == pytest.approx((one.decisive.p, one.decisive.df))
    assert independent(copies, [1.0, -1.0], [bleus(usual), bleus(lower)])[0] == [1.0, -1.0]
    assert independent([usual, copies[0]], [1.0, -1.0], [bleus(usual)] * 2) == ([], [])


def test_what_seeds_share_is_read_off_runs_with_the_same_seeds(selection):
    usual, lower, other, *_ = selection.arms
    differences = [one - another for one, another in zip(bleus(lower), bleus(usual), strict=True)]
    found = by_both(selection, [lower, usual], [1.0, -1.0], BLEU, differences)
    assert found.beside == [bleus(other)]
    first = [ArmRuns(arm.name, arm.runs[:-1]) for arm in (lower, usual)]
    fewer = by_both(replace(selection, arms=[*first, other]), first, [1.0, -1.0], BLEU, differences[:-1])
    assert fewer.beside == [bleus(other)[:-1]]
    assert fewer.others == [bleus(other)]
    lacking = replace(selection, arms=[usual, lower, ArmRuns(other.name, other.runs[1:])])
    assert by_both(lacking, [lower, usual], [1.0, -1.0], BLEU, differences).beside == []


def test_an_arm_scatters_widely_beside_those_of_its_level(selection):
    """Two languages have two noises, of which a mean over both is made."""
    usual, lower, higher, _ = selection.arms
    loud = [30.0, 31.0, 28.0, 34.0, 25.0]
    arms = [scored(arm, scores) for arm, scores in ((lower, HIGHER), (usual, USUAL), (higher, loud))]
    apart = {usual.name: usual.name, lower.name: usual.name, higher.name: higher.name}
    for within, kinds in (("corpus", []), (None, ["wide"])):
        found = by_both(
            replace(selection, arms=arms, within=within, baselines=apart), arms, [1.0, -0.5, -0.5], BLEU, bleus(arms[0])
        )
        signs = conditions(found, [arm.name for arm in arms], 0.95)
        assert [sign.kind for sign in signs if sign.kind == "wide"] == kinds


def test_an_arm_nearly_failed_beside_those_of_its_level(selection):
    usual, lower, higher, _ = selection.arms
    scattered = [scored(higher, [30.0, 60.0, 90.0, 10.0, 120.0]), scored(usual, USUAL)]
    arms = [scattered[1], scored(lower, [31.0, 30.5, 30.8, 30.9, 20.0]), scattered[0]]
    apart = {usual.name: usual.name, lower.name: usual.name, higher.name: higher.name}
    found = replace(selection, arms=arms, within="corpus", baselines=apart)
    assert [*nearly_failed(found, BLEU)] == [lower.name]
