"""Claims about effects, interactions and levels: their figures, their families, and the checks they pass."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ablab.api.judging import judge_frame
from ablab.judge.claims import judge
from ablab.judge.contrasts import readings, shared_scores
from ablab.judge.effects import effect_lines
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.claim_words import answers
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import moderated_contrast
from ablab.statistics.verdict import Case, verdicts
from ablab.study.claims import ContrastTerm
from ablab.study.definition import define
from tests.report.conftest import EXPERIMENT, typed
from tests.report.synthetic import claims_of, fill
from tests.report.test_effects import changed, on_other_text, stopped_by_the_clock
from tests.report.test_evidence import with_last_fifth
from tests.translation import MEASURES

BLEU = MEASURES["test_bleu"]
CLAIMS = """
claims:
  - {effect: norm=post, expect: less}
  - {interaction: [layerdrop, norm], expect: equal, margin: 9}
  - {arm: post, expect: not_worse, margin: 40}
  - {arm: layerdrop=0.1, expect: not_worse, margin: 0.1, metric: valid_loss}
  - {arm: layerdrop=0.1, expect: less, secondary: true}
  - {arm: layerdrop=0.1, expect: equal, metric: memory, margin: 8, secondary: true}
"""
CELLS = [f"layerdrop={d},norm={n}" for d in ("0", "0.1") for n in ("pre", "post")]


def words(place, claims=CLAIMS, name="x"):
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, post]"
    )
    (place / f"{name}.yaml").write_text(text[: text.index("claims:")] + claims)
    return (f"experiment={place / f'{name}.yaml'}",)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("contrasts")
    errors = {cell: 0.3 + 0.1 * ("0.1" in cell) + 0.1 * ("post" in cell) for cell in CELLS}
    fill(words(place), errors, outputs=place)
    return place


@pytest.fixture
def selection(place):
    return of_study(define((*words(place), f"outputs={place}")))


def test_effects_and_interactions_are_those_of_the_table(selection):
    lines = claims_of(selection)
    table = {line.kind + line.what: line.difference for line in effect_lines(selection, BLEU, {})}
    assert lines[0].difference == pytest.approx(table["main effectnorm: post instead of pre"])
    assert lines[1].difference == pytest.approx(
        table["interactionlayerdrop: 0.1 instead of 0 x norm: post instead of pre"]
    )
    assert [line.n for line in lines[:2]] == [5, 5]


def test_a_contrast_is_judged_by_the_moderated_error_of_its_arms(selection):
    claim, line = selection.claims[0], claims_of(selection)[0]
    arms = [selection.arm(name) for name in claim.weights]
    expected = moderated_contrast(shared_scores(arms, BLEU), list(claim.weights.values()))
    assert (line.p, line.test) == (pytest.approx(expected.p), expected.method)
    assert line.outcome == "supported"
    assert line.words.startswith("Exploratory: norm=post, mean over layerdrop below norm=pre in test BLEU: supported")


def test_not_worse_knows_which_way_its_metric_goes(selection):
    lines = claims_of(selection)
    assert [lines[2].outcome, lines[3].outcome] == ["supported", "supported"]
    assert lines[2].interval.low > -40
    assert lines[3].interval.high < 0.1
    assert (
        "not worse than layerdrop=0,norm=pre in test BLEU: supported, below 0 by less than the margin of 40. "
        in lines[2].words
    )


def test_secondary_claims_are_a_family_of_their_own(selection):
    lines, alone = claims_of(selection), judge(replace(selection, claims=[c for c in selection.claims if c.secondary]))
    assert [line.secondary for line in lines] == [False] * 4 + [True] * 2
    assert [line.corrected for line in lines[4:]] == [line.corrected for line in alone]
    assert "corrected p" in lines[0].words
    assert "4 primary claims and 2 secondary claims share an error rate of 5 % each, and the share" in answers(lines)
    primary = judge(replace(selection, claims=[c for c in selection.claims if not c.secondary]))
    assert [line.corrected for line in lines[:4]] == [line.corrected for line in primary]


def test_memory_is_compared_in_mebibytes(selection):
    line = judge(selection)[-1]
    assert (line.about, line.unit) == ("peak memory of training", "MiB")
    assert "noise is not so regular" in line.reason  # as if made: each run took 1 GB


def test_one_cell_that_proves_nothing_takes_its_contrasts_with_it(selection):
    lines = judge(changed(selection, stopped_by_the_clock, CELLS[3]))
    assert [line.outcome for line in lines[:2]] == ["not testable"] * 2
    assert all("training ended by the clock" in line.reason for line in lines[:2])
    assert lines[2].outcome == "supported"


def of_compute(selection, weights=(0.07, -0.16)):
    """The selection with one claim, about the first arms at three lengths, weighed as a claim about a factor is."""
    baseline, *others = CELLS
    parts = [
        ContrastTerm(arm=arm, baseline=baseline, weight=weight, is_of_length=True)
        for arm, weight in zip(others, (1.0, *weights), strict=True)
    ]
    claim = selection.claims[0].model_copy(
        update={"baseline": f"{baseline} with 1.2 times its compute", "parts": parts}
    )
    return replace(selection, claims=[claim])


def test_what_so_much_compute_gives_asks_for_no_convergence_but_for_whole_training(selection):
    asked = of_compute(selection)
    moving = partial(with_last_fifth, key="bleu", gain=2.0)
    (line,) = judge(changed(asked, moving, *CELLS))
    baseline, arm, half, double = np.array(shared_scores([asked.arm(name) for name in CELLS], BLEU)).mean(axis=1)
    assert line.difference == pytest.approx(arm - 0.91 * baseline + 0.07 * half - 0.16 * double)
    assert line.outcome != "not testable"
    assert "under-trained" in judge(changed(selection, moving, *CELLS))[0].reason
    (stopped,) = judge(changed(asked, stopped_by_the_clock, CELLS[2]))
    assert "training ended by the clock" in stopped.reason


@pytest.mark.parametrize(
    ("weights", "is_told"), [((0, -1), True), ((-1, 0), True), ((0, -1.01), False), ((-2.3, 0), False)]
)
def test_a_claim_beyond_the_trained_lengths_that_was_registered_is_not_testable(selection, weights, is_told):
    (line,) = judge(of_compute(selection, weights))
    assert (line.outcome != "not testable") is is_told
    assert is_told or line.reason.startswith("the baseline was trained at half and at twice its length")


def test_a_claim_about_compute_cannot_be_read_as_differences_of_others(selection):
    parts = of_compute(selection).claims[0].parts
    assert list(readings(parts)) == [parts]


def diverged(arm):
    """The arm, as if its first run had diverged."""
    first, *others = arm.runs
    return ArmRuns(arm.name, [replace(first, state="diverged"), *others])


def test_seeds_are_not_added_for_what_diverged_runs_leave_untestable(selection):
    looking = replace(selection, looks=Looks(3, 12), error="paired")
    effect, *_ = judge(changed(looking, diverged, CELLS[3]))
    assert (effect.outcome, effect.followed.state) == ("not testable", "hopeless")
    assert "a share of failures has no mean over arms" in effect.reason


def test_diverged_runs_have_no_mean_over_arms(selection):
    effect, interaction, *_ = judge(changed(selection, diverged, CELLS[3]))
    assert (effect.outcome, interaction.outcome) == ("not testable", "not testable")
    assert "a share of failures has no mean over arms" in effect.reason


def in_each_level(place, claims="claims:\n  - {arm: layerdrop=0.1, expect: less}\n"):
    return words(place, f"within: norm\n{claims}", name="within")


def test_within_levels_that_cannot_be_compared_effects_can(place, selection):
    """As of languages: the claims in each and their mean stand; a difference between them is never shown."""
    found = of_study(define((*in_each_level(place), f"outputs={place}")))
    apart = changed(found, on_other_text, "layerdrop=0,norm=post", "layerdrop=0.1,norm=post")
    lines = judge(apart)
    assert [line.arm for line in lines] == [
        "layerdrop=0.1,norm=pre",
        "layerdrop=0.1,norm=post",
        "layerdrop=0.1, mean over norm",
    ]
    assert [line.outcome for line in lines] == ["supported"] * 3
    assert lines[2].difference == pytest.approx(np.mean([line.difference for line in lines[:2]]))
    said = plain_words(lines[2], "test_bleu")
    assert ("on average over norm" in said, "mean over" in said) == (True, False), said


def test_an_interaction_needs_cells_that_compare_along_one_factor(selection):
    apart = changed(selection, on_other_text, CELLS[1], CELLS[3])
    effect, interaction, *_ = judge(apart)
    assert "references differ" in effect.reason
    assert interaction.difference == judge(selection)[1].difference


def test_the_two_readings_of_an_interaction_have_the_same_weights(selection):
    claim = selection.claims[1]
    one, other = readings(claim.parts)
    assert claim.model_copy(update={"parts": other}).weights == claim.weights
    assert {(part.arm, part.baseline) for part in one}.isdisjoint((part.arm, part.baseline) for part in other)
    assert list(readings(selection.claims[0].parts)) == [selection.claims[0].parts]


@pytest.mark.usefixtures("undrawn")
def test_the_report_compares_each_arm_with_the_baseline_of_its_level(place):
    code, _, err = typed(*in_each_level(place), f"outputs={place}", "resamples=1000")
    assert (code, err) == (0, "")
    data = json.loads((place / "reports" / "within" / "report.json").read_text())
    assert data["within"] == "norm"
    assert {(line["arm"], line["baseline"]) for line in data["differences"]} == {
        ("layerdrop=0.1,norm=pre", "layerdrop=0,norm=pre"),
        ("layerdrop=0.1,norm=post", "layerdrop=0,norm=post"),
    }
    assert [arm["name"] for arm in data["arms"] if arm["is_baseline"]] == [CELLS[0], CELLS[1]]
    assert set(data["arms"][3]["differs"]) == {"layerdrop.encoder", "layerdrop.decoder", "layerdrop.rates"}
    page = (place / "reports" / "within" / "report.html").read_text()
    assert "Differences from the baseline of each norm" in page
    assert "LayerDrop 0.1 with PostNorm against PostNorm without LayerDrop, seed 1" in page


def test_one_family_is_judged_as_verdicts_judges_it(selection):
    """What the report adds to the statistics is which claims share an error rate, and nothing else."""
    shown = judge(replace(selection, claims=selection.claims[:1]))[0]
    claim = selection.claims[0]
    arms = [selection.arm(name) for name in claim.weights]
    evidence = moderated_contrast(shared_scores(arms, BLEU), list(claim.weights.values()))
    (expected,) = verdicts([Case("less", 0.0, evidence)])
    assert (shown.outcome, shown.corrected) == (expected.outcome, expected.corrected)


@pytest.mark.usefixtures("undrawn")
def test_a_baseline_that_is_typed_is_that_of_all_arms(place):
    typed_baseline = "layerdrop=0.1,norm=pre"
    words = (*in_each_level(place), f"outputs={place}", f"baseline={typed_baseline}", "resamples=1000")
    assert typed(*words)[0] == 0
    (folder,) = (place / "reports").glob("within-against-*")
    data = json.loads((folder / "report.json").read_text())
    assert data["within"] is None
    assert [arm["name"] for arm in data["arms"] if arm["is_baseline"]] == [typed_baseline]
    assert len(data["differences"]) == 3


def test_an_effect_that_is_claimed_has_the_interval_of_its_claim(selection):
    document = document_of(selection, 1000)
    by_claim = {line.claim: line for line in document.effects if line.claim is not None}
    # norm=post under any layerdrop, and the interaction; the other claims are about arms or other metrics.
    assert {document.claims[place].arm.partition(",")[0] for place in by_claim} >= {"norm=post"}
    for place, line in by_claim.items():
        own = document.claims[place]
        assert (line.interval, line.p, line.test) == (own.interval, own.corrected, own.test)
        assert line.other.test == "paired t"


def test_one_that_is_not_has_the_interval_that_would_decide(selection):
    document = document_of(replace(selection, claims=[]), 1000)
    effect = next(line for line in document.effects if line.what.startswith("norm"))
    cells = {name: selection.arm(name) for name in CELLS}
    weights = {name: 0.5 if "post" in name else -0.5 for name in CELLS}
    expected = moderated_contrast(shared_scores(list(cells.values()), BLEU), list(weights.values()))
    assert (effect.claim, effect.test, effect.p) == (None, expected.method, pytest.approx(expected.p))
    assert effect.interval.low == pytest.approx(expected.at(0.95).low)
    paired = document_of(replace(selection, claims=[], error="paired"), 1000)
    assert {line.test for line in paired.effects} == {"paired t"}
    interaction = next(line for line in document.effects if line.kind == "interaction")
    assert interaction.difference == pytest.approx(
        np.mean(np.array([1.0, -1.0, -1.0, 1.0]) @ np.array(shared_scores([cells[name] for name in CELLS], BLEU)))
    )


def judged(arms, *claims):
    rows = [
        {"arm": arm, "seed": seed, "metric": "acc", "value": value}
        for arm, values in arms.items()
        for seed, value in enumerate(values, 1)
    ]
    return judge_frame(rows, "acc", claims=claims)


def test_a_factor_that_changes_nothing_makes_no_effect_surer():
    """Copies of runs are no further runs: neither in the mean of a level, nor as arms that lend their scatter."""
    usual, other = [10.0, 11.0, 12.5], [12.0, 14.0, 14.6]
    alone = judged({"n=a": usual, "n=b": other}, {"arm": "n=b", "expect": "greater"}).verdicts[0]
    copied = {"n=a,d=0": usual, "n=b,d=0": other, "n=a,d=1": usual, "n=b,d=1": other}
    for claim in ({"effect": "n=b", "expect": "greater"}, {"arm": "n=b", "expect": "greater"}):
        (found,) = judged(copied, claim).verdicts
        assert (found.p, found.interval) == (pytest.approx(alone.p), alone.interval)


def test_the_methods_say_when_the_error_rate_of_effects_holds():
    arms = {f"n={n},d={d}": [n + d, n + 2, n * d + 3.5] for n in (1, 2) for d in (3, 4)}
    effect, arm = {"effect": "n=2", "expect": "greater"}, {"arm": "n=2", "expect": "greater"}
    said = [" ".join(judged(arms, claim).document.methods) for claim in (effect, arm)]
    assert ["for effects no more alike within a level than between" in each for each in said] == [True, False]
