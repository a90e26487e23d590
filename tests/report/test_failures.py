"""Arms with diverged runs: compared by ranks or by shares, and never in the metric's units."""

import json
from dataclasses import replace

import pytest

from ablab.judge.comparisons import pictured, side_by_side
from ablab.judge.differences import difference_line
from ablab.judge.document import Matrices
from ablab.judge.evidence import evidence, observed
from ablab.judge.failures import RANK
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.charts import charts
from ablab.report.claim_words import hypothesis
from ablab.report.forest import forests
from ablab.report.page import page
from ablab.report.sentences import document_of
from ablab.report.tables import claims_table
from ablab.statistics.diverged import DIVERGED, Shares, compare_ranks
from ablab.statistics.interval import NotTestable
from ablab.statistics.verdict import Failures
from tests.report.synthetic import claims_of
from tests.report.test_estimates import scored
from tests.report.test_evidence import with_last_fifth
from tests.translation import MEASURES

BLEU, LOSS = MEASURES["test_bleu"], MEASURES["valid_loss"]


@pytest.fixture
def selection(reported):
    return of_study(reported.study)


def first(arm, runs):
    return ArmRuns(arm.name, arm.runs[:runs])


def failing(arm, *seeds):
    """The arm with runs that diverged under these seeds."""
    return ArmRuns(
        arm.name, [replace(run, state="diverged", evaluation=None) if run.seed in seeds else run for run in arm.runs]
    )


def bleus(arm):
    return [DIVERGED if run in arm.diverged else run.evaluation.scores["bleu"] for run in arm.runs]


@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_from_five_runs_an_arm_all_are_ranked(selection, margin):
    usual, other, *_ = selection.arms
    usual = failing(usual, 2)
    found = evidence(other, usual, BLEU, margin)
    assert found == Failures(compare_ranks(bleus(other), bleus(usual), margin), higher_is_better=True)


def test_a_lower_loss_ranks_higher(selection):
    usual, other, *_ = selection.arms
    losses = [[-run.selected.scores["loss"] for run in arm.runs] for arm in (other, usual)]
    losses[0][0] = DIVERGED
    assert observed(failing(other, 1), usual, LOSS) == Failures(compare_ranks(*losses), higher_is_better=False)


def test_fewer_are_compared_by_their_shares(selection):
    usual, other, *_ = selection.arms
    for few in ((first(usual, 4), other), (usual, first(failing(other, 1), 4))):
        found = observed(failing(few[1], 1), few[0], BLEU)
        assert isinstance(found.compared, Shares)


def test_ranks_ask_of_scores_what_means_ask(selection):
    usual, other, *_ = selection.arms
    moving = with_last_fifth(other, "bleu", 2.0)
    assert "under-trained" in str(evidence(failing(moving, 1), usual, BLEU, 0.5))
    # Shares, and a comparison with an arm that has no survivor, rest on no score.
    for one, other_ in ((first(moving, 4), first(usual, 4)), (moving, usual)):
        gone = failing(other_, *(run.seed for run in other_.runs))
        assert isinstance(evidence(one, gone, BLEU, 0.5), Failures)


def test_a_run_that_may_still_fail_is_awaited(selection):
    usual, other, *_ = selection.arms
    waiting = ArmRuns(other.name, [replace(other.runs[0], state="interrupted", record=None), *other.runs[1:]])
    found = observed(waiting, failing(usual, 1), BLEU)
    assert isinstance(found, NotTestable)
    assert "1 of 5 runs of layerdrop=0.1 are neither finished nor diverged" in str(found)


@pytest.fixture
def ranked(selection):
    """The study with one diverged run in the baseline, its claims of test BLEU, and scores far apart."""
    usual, lower, higher, _ = selection.arms
    arms = [
        failing(scored(usual, [30.0, 30.4, 30.2, 30.1, 30.3]), 3),
        scored(lower, [50.0, 50.4, 50.2, 50.1, 50.3]),
        scored(higher, [30.0, 30.4, 30.2, 30.1, 30.3]),
    ]
    claims = [claim for claim in selection.claims if claim.metric == "test_bleu" and claim.arm != "layerdrop=0.5"]
    return replace(selection, arms=arms, claims=claims)


def test_one_diverged_run_of_five_does_not_hide_twenty_points(ranked):
    line, *_ = claims_of(ranked)
    assert (line.outcome, line.difference, line.n, line.interval) == ("supported", 1.0, 5, None)
    assert line.p == pytest.approx(2 / 252)
    assert "Runs diverged, so that all runs are ranked by test BLEU, diverged ones last." in line.words
    assert "supported, also with the margin of 0.5 taken off." in line.words
    assert (
        "The difference is +1.00 of pairs, won less lost, corrected p of no difference = 0.024, 5 runs an arm."
        in line.words
    )


def test_ranks_never_find_two_arms_equal(ranked):
    same = [line for line in claims_of(ranked) if line.expect == "equal"]
    assert [line.outcome for line in same] == ["inconclusive"]


def test_no_figure_of_ranks_stands_in_the_units_of_the_metric(ranked):
    document = document_of(ranked, 1000)
    for row in claims_table(document).rows:
        figures = dict(zip(claims_table(document).columns, row, strict=True))
        assert figures["difference"].endswith("of pairs, won less lost")
        assert figures["interval"] == ""
    for line in document.differences:
        assert line.difference is None
        assert line.interval is None
    plot = forests(document).get("forest")
    assert plot is None or not any(row.estimate for row in plot.rows)


def test_the_cells_of_differences_have_their_units(reported, selection):
    document = document_of(selection, 1000)
    # More pairs won are better, and more failures worse.
    assert [line.higher_is_better for line in document.claims][3:5] == [True, False]
    table = claims_table(document)
    units = [row[table.columns.index("difference")].partition(" ")[2] for row in table.rows]
    pairs = "of pairs, won less lost"
    assert units == ["BLEU", "BLEU", "BLEU", pairs, "share of runs", "layers", "BLEU"]


def test_the_table_of_differences_says_it_in_words(ranked):
    usual, other, _ = ranked.arms
    line = difference_line(ranked, other, usual, None)
    counts = "0 of 5 runs diverged, 1 of 5 in the baseline"
    assert line.refused == f"{counts} (ranked last: 100 % of pairs won, 0 % lost, p = 0.0079)"
    turned = difference_line(ranked, usual, other, None)
    assert "(ranked last: 0 % of pairs won, 100 % lost, p = 0.0079)" in turned.refused
    few = difference_line(ranked, first(other, 4), first(usual, 4), None)
    assert few.refused == "0 of 4 runs diverged, 1 of 4 in the baseline (Boschloo p = 0.727)"


@pytest.mark.parametrize(
    ("expect", "shift", "margin", "strength"),
    [
        ("greater", 3.0, 2.0, "above the margin"),
        ("greater", 3.0, 2.9, "above 0, not shown to exceed the margin"),
        ("greater", 3.0, 0.0, None),
        ("less", -3.0, 2.0, "below 0 by more than the margin"),
        ("less", -3.0, 2.9, "below 0, not shown to exceed the margin"),
        ("greater", -3.0, 2.0, "below 0 by more than the margin"),
        ("equal", 0.0, 2.0, "within the margin"),
    ],
)
def test_a_verdict_says_whether_it_exceeds_its_margin(selection, expect, shift, margin, strength):
    usual, lower, higher, _ = selection.arms
    steady = [30.0, 30.4, 30.2, 30.1, 30.3]
    arms = [scored(usual, steady), scored(higher, steady), scored(lower, [score + shift for score in steady[::-1]])]
    claim = next(claim for claim in selection.claims if (claim.arm, claim.metric) == (lower.name, "test_bleu"))
    claim = claim.model_copy(update={"margin": margin, "expect": expect})
    (line,) = claims_of(replace(selection, arms=arms, claims=[claim]))
    assert line.strength == strength
    assert line.verdict == f"exploratory: {line.outcome}" + (f", {strength}" if strength else "")
    said = line.verdict.removeprefix("exploratory: ").replace("the margin", f"the margin of {margin:g}")
    assert line.words.startswith(f"Exploratory: {line.claimed}: {said}. The difference is ")
    claim = f"The claim was: {line.claimed}. " if line.outcome == "refuted" else ""
    assert line.judged.startswith(f"{said.capitalize()}. {claim}The difference is ")


MARK = "3 of 5 runs: 2 diverged"


@pytest.fixture
def survived(selection):
    """The study with two diverged runs in its second arm, one of them the first that both arms would have shared."""
    usual, other, *rest = selection.arms
    return replace(selection, arms=[usual, failing(other, 1, 4), *rest])


def test_means_over_survivors_are_marked_and_leave_the_others_out(survived):
    arm = survived.arms[1]
    loss = next(series for series in pictured(survived) if series.key == "valid_loss")
    assert [line.mark for line in loss.lines] == ["", MARK, "", "4 of 5 runs: 1 diverged"]
    depth = next(series for series in pictured(survived) if series.key == "decoder_depth")
    line = next(line for line in depth.lines if line.arm == arm.name)
    assert (line.mark, line.marked) == (MARK, f"{arm.name} ({MARK})")
    whole = [max(run.curve.points, key=lambda point: len(point.decoder)).scores["bleu"] for run in arm.finished]
    assert line.mean[-1] == pytest.approx(sum(whole) / 3, abs=1e-6)
    for picture in side_by_side(survived):
        panels = picture.panels if isinstance(picture, Matrices) else picture.panels[0].lines
        assert {panel.mark for panel in panels if panel.arm == arm.name} == {MARK}


def test_where_every_run_diverged_their_curves_are_drawn_as_such(selection):
    usual, other, *rest = selection.arms
    gone = failing(other, *(run.seed for run in other.runs))
    loss = next(s for s in pictured(replace(selection, arms=[usual, gone, *rest])) if s.key == "valid_loss")
    assert loss.lines[1].marked == f"{other.name} (5 of 5 runs: 5 diverged)"


def test_the_page_draws_no_survivors_mean_without_its_mark(survived):
    name = survived.arms[1].name
    document = document_of(survived, 1000)
    html = page(document)
    legends = html.count("</svg>" + name + "</li>"), html.count(f"</svg>{name} ({MARK})</li>")
    assert legends[0] == 0
    assert legends[1] >= 2  # of curves, and of artefacts
    (group,) = [group for group in document.differing if group.arm == name]
    assert group.seed == 2
    assert f"<summary>{name} ({MARK}) against layerdrop=0, seed 2</summary>" in html
    assert f"{name} ({MARK})<br>" in json.dumps(charts(document))


@pytest.mark.parametrize(
    ("expect", "outcome", "of"),
    [
        ("greater", "supported", "no difference"),
        ("less", "inconclusive", "no difference"),
        ("not_worse", "supported", "being worse by 2 or more, by ranks"),
        ("not_worse", "refuted", "being worse by less than 2, or better, by ranks"),
        ("not_worse", "inconclusive", ""),
        ("equal", "refuted", "a difference within 2, by ranks"),
    ],
)
def test_a_p_of_ranks_beside_a_margin_says_what_it_is_of(ranked, expect, outcome, of):
    line = next(line for line in claims_of(ranked) if line.title == RANK.title)
    assert hypothesis(line.model_copy(update={"expect": expect, "outcome": outcome, "margin": 2.0})) == of
