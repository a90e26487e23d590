"""What tuning found, and what it makes of the verdicts at usual settings."""

from dataclasses import replace

import pytest

from ablab.judge.claims import judge
from ablab.judge.registration import Registered
from ablab.judge.selection_of_study import of_study
from ablab.judge.tuned import _by_value, _change, _curves, _line, _sensitivity, are_shown, together, with_tuning
from ablab.report.pictures import curves
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of
from ablab.report.tables import _best_of_half
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import Moderated, moderated_contrast
from ablab.statistics.paired import of_differences
from ablab.study.definition import define
from ablab.study.design import Arm
from ablab.study.study import names_of
from ablab.study.tuning import Tuned, TuningTrial
from benchmarks.calibration.tuning import BY_INTERVALS, BY_TEST, BY_VERDICTS, over_tuning
from tests.report.synthetic import corpus, translated, write
from tests.translation import TRANSLATION

EXPERIMENT = """
question: Does LayerDrop help, also against a tuned baseline?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1]}
seeds: [1, 2, 3, 4, 5]
error: paired
claims: [{arm: layerdrop=0.1, expect: greater, margin: 1}]
tune:
  space: {optim.lr: {low: 0.0001, high: 0.1, log: true}}
  trials: 4
  seeds: [101]
  metric: bleu
"""


def made_study(tmp_path, errors):
    """A study after tuning. errors: of each arm, as it is and at the best of the rates that were tried, the third."""
    (tmp_path / "t.yaml").write_text(EXPERIMENT)
    words = (f"experiment={tmp_path / 't.yaml'}", f"outputs={tmp_path / 'outputs'}")
    trials = define(words)
    name, references = corpus(trials.outputs)

    def made(cell, error):
        write(cell, translated(references, error, (cell.arm, cell.seed)), references, name, pruned=False)

    for number, cell in enumerate(trials.cells):
        usual, best = errors[cell.arm.partition(",")[0]]
        made(cell, {0: usual, 2: best}.get(number % 4, 0.6))
    study = define(words)
    for cell in study.cells:
        first = names_of(cell.arm)[0]
        made(cell, errors[first.removesuffix(", tuned")][first.endswith("tuned")])
    return study


def tuned_study(tmp_path, errors):
    """Its report."""
    return document_of(of_study(made_study(tmp_path, errors)), resamples=1000)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        # Planted: the arm is better than a baseline that was never tuned, and no better than one that was.
        ({"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.2, 0.2)}, "only when untuned"),
        pytest.param({"layerdrop=0": (0.4, 0.35), "layerdrop=0.1": (0.15, 0.1)}, "the same", marks=pytest.mark.slow),
        ({"layerdrop=0": (0.4, 0.1), "layerdrop=0.1": (0.2, 0.19)}, "reversed"),
        pytest.param(
            {"layerdrop=0": (0.4, 0.39), "layerdrop=0.1": (0.4, 0.1)}, "only when tuned", marks=pytest.mark.slow
        ),
    ],
)
def test_a_verdict_is_said_to_stand_or_fall_with_tuning(errors, expected, tmp_path):
    document = tuned_study(tmp_path, errors)
    assert [claim.tuning for claim in document.claims] == [expected, expected], [c.words for c in document.claims]
    tuned, usual = document.claims
    assert document.within == "tuning"
    assert " no LayerDrop" in plain_words(tuned, document.metric)
    assert ", both tuned" in plain_words(tuned, document.metric)
    how = ", too." if expected == "the same" else f": {expected}, and the two differences differ."
    assert usual.words.endswith(f"With tuned settings the verdict is {tuned.outcome}{how}")
    assert tuned.words.endswith(f"At the usual settings the verdict is {usual.outcome}{how}")


@pytest.mark.parametrize(
    ("usual", "tuned", "expected"),
    [
        ("supported", "inconclusive", "only when untuned"),
        ("equivalent", "supported", "only when tuned"),
        ("inconclusive", "real, but smaller than matters", "only when tuned"),
        ("refuted", "supported", "reversed"),
        ("refuted", "inconclusive", "not the same"),
    ],
)
def test_verdicts_that_differ_are_said_to_only_where_the_differences_do(usual, tuned, expected):
    assert together(usual, tuned, is_shown=True) == expected
    assert together(usual, tuned, is_shown=False) == "open"


@pytest.mark.parametrize("is_shown", [True, False])
@pytest.mark.parametrize(
    ("usual", "tuned", "expected"),
    [
        ("supported", "supported", "the same"),
        ("supported", "real, but smaller than matters", "the same"),
        ("refuted", "refuted", "the same"),
        ("inconclusive", "inconclusive", None),
        ("supported", "not testable", None),
        ("provisional", "supported", None),
    ],
)
def test_of_verdicts_that_are_the_same_or_open_no_more_is_said(usual, tuned, expected, is_shown):
    assert together(usual, tuned, is_shown) == expected


def test_a_claim_of_tuned_arms_alone_has_no_other_verdict_to_stand_by(tmp_path):
    selection = of_study(made_study(tmp_path, {"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.2, 0.2)}))
    for line in judge(selection):
        assert with_tuning(selection, [line]) == [line]


def test_differences_of_differences_are_a_family():
    """One in two has half of the error, on both sides of the edge; one that cannot be tested keeps its place."""

    def change(p):
        return Moderated(n=3, difference=1.0, standard_error=1.0, df=4.0, p=p)

    assert are_shown([change(0.024), change(0.06)]) == [True, False]
    assert are_shown([change(0.026), change(0.06)]) == [False, False]
    assert are_shown([change(0.026), None]) == [False, False]
    assert are_shown([change(0.024), change(0.049)]) == [True, True]
    assert are_shown([]) == []


def test_the_change_is_the_tuned_difference_less_the_usual_one(tmp_path):
    """By the paired test, which this study declares: of the differences under each seed."""
    errors = {"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.2, 0.19)}
    selection = of_study(made_study(tmp_path, errors))
    lines = judge(selection)
    tuned, usual = ({one.seed: one.difference for one in line.per_seed} for line in lines)
    expected = of_differences([tuned[seed] - usual[seed] for seed in tuned])
    assert _change(selection, lines, usual=1, tuned=0) == expected
    arm, baseline = ([f"layerdrop={level}{end}" for end in ("", ", tuned")] for level in ("0.1", "0"))
    found = _change(replace(selection, error="moderated"), lines, usual=1, tuned=0)
    measure = selection.measure_of(selection.claims[0])
    scores = {row.name: measure.values(row.finished) for row in selection.rows}
    four = [scores[arm[1]], scores[baseline[1]], scores[arm[0]], scores[baseline[0]]]
    assert found == moderated_contrast(four, [1, -1, -1, 1])
    seeds = sorted(tuned)[:-1]
    asked = Registered(
        claims=selection.claims, seeds=seeds, runs_already_done=0, arms=[arm.name for arm in selection.arms]
    )
    first = _change(replace(selection, registered=asked), lines, usual=1, tuned=0)
    assert first == of_differences([tuned[seed] - usual[seed] for seed in seeds])
    assert _change(replace(selection, looks=Looks(3, 5)), lines, usual=1, tuned=0) is None


def test_a_gain_that_is_the_same_both_ways_is_seldom_said_to_depend_on_tuning():
    """One verdict supported and the other open is no difference: taken for one, half of all studies would err."""
    rates = rates_of("a true gain of 1.5 sd both ways, 4 claims", 3)
    assert rates[BY_TEST] <= 0.05
    assert rates[BY_VERDICTS] > 0.3


def test_a_gain_that_tuning_takes_away_is_found_more_often_than_by_intervals_apart():
    rates = rates_of("a true gain of 3 sd that tuning takes away, 1 claim", 5)
    assert rates[BY_TEST] > rates[BY_INTERVALS] + 0.2


def rates_of(scenario, n):
    (job,) = (job for job in over_tuning() if (job.scenario, job.n) == (scenario, n))
    return {row.method: row.rate for row in job.rows(0.1)}


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """The report of a study whose arms are both better when tuned."""
    return tuned_study(tmp_path_factory.mktemp("tried"), {"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.3, 0.25)})


def test_the_report_says_what_was_tried_and_found(tried):
    baseline, arm = tried.tuning
    assert (baseline.arm, arm.arm) == ("layerdrop=0", "layerdrop=0.1")
    assert baseline.settings.startswith("optim.lr=")
    assert baseline.settings == arm.settings
    assert baseline.usual < baseline.best
    assert baseline.worst <= baseline.usual
    assert (baseline.trials, baseline.diverged) == (4, 0)
    assert baseline.expected == sorted(baseline.expected)
    assert baseline.expected[-1] == pytest.approx(baseline.best)


def test_the_best_of_half_the_trials_is_that_of_all_choices_or_none():
    def line(*costs):
        trials = [TuningTrial((f"optim.lr={number}",), cost) for number, cost in enumerate(costs)]
        return _line(Tuned(Arm("a", ()), trials, trials[0]), TRANSLATION.scores["valid_loss"])

    assert _best_of_half(line(1.0, 2.0, 3.0, 4.0)) == pytest.approx((3 * 1 + 2 * 2 + 3) / 6)
    assert _best_of_half(line(1.0, 2.0, 3.0, None)) == pytest.approx((3 * 1 + 2 * 2 + 3) / 6)
    assert _best_of_half(line(1.0, 2.0, None, None)) is None


def test_every_trial_is_drawn_where_several_have_one_value():
    words = [("model.dropout=0.1", f"optim.lr={rate}") for rate in (0.1, 0.2, 0.3)]
    trials = [TuningTrial(word, cost) for word, cost in zip(words, (1.9, 1.5, 4.0), strict=True)]
    by_dropout, *_ = _sensitivity([Tuned(Arm("a", ()), trials, trials[1])], "loss", 1.0)
    (line,) = by_dropout.lines
    assert (list(line.x), list(line.mean)) == ([0.1, 0.1, 0.1], [1.5, 1.9, 4.0])
    assert not by_dropout.is_joined


def test_the_report_draws_what_each_arm_does_at_other_settings(tried):
    by_rate, curve, *others = tried.series
    assert (by_rate.key, by_rate.x, by_rate.title) == ("tuning_1", "optim.lr", "Validation BLEU by optim.lr")
    assert by_rate.is_log
    assert by_rate.is_joined
    assert [line.arm for line in by_rate.lines] == ["layerdrop=0", "layerdrop=0.1"]
    assert all(len(line.x) == 4 and line.x == sorted(line.x) for line in by_rate.lines)  # the usual rate among them
    for line, about in zip(by_rate.lines, tried.tuning, strict=True):
        rate = float(about.settings.partition("=")[2])
        assert dict(zip(line.x, line.mean, strict=True))[rate] == max(line.mean) == pytest.approx(about.best)
    assert curve.key == "tuning_curve"
    assert all(line.x == [1, 2, 3, 4] and line.mean == sorted(line.mean) for line in curve.lines)
    assert [line.mean[-1] for line in curve.lines] == pytest.approx([about.best for about in tried.tuning])
    assert not any(one.key == "tuning_bands" for one in others)  # three draws bound nothing


def test_the_axis_names_the_rates_that_were_tried(tried):
    from matplotlib.figure import Figure

    picture = next(one for one in curves(tried) if one.key == "tuning_1")
    axes = Figure().subplots()
    picture.draw(axes)
    (rates,) = {tuple(line.x) for line in tried.series[0].lines}
    assert list(axes.get_xticks()) == list(rates)
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{rate:g}" for rate in rates]
    assert not len(axes.get_xticks(minor=True))


def test_bands_are_drawn_where_the_draws_bound_them():
    words = [(), *((f"optim.lr={number}",) for number in range(1, 17))]
    trials = [TuningTrial(word, float(number)) for number, word in enumerate(words)]
    arm = Tuned(Arm("a", ()), trials, trials[0])
    listed = Tuned(Arm("b", ()), trials[1:], trials[1])
    *_, bands = _curves([arm, listed], "Validation loss", 1.0)
    (line,) = bands.lines
    assert (bands.key, line.arm, line.x) == ("tuning_bands", "a", [1, 2])
    assert all(low < mean < high for low, mean, high in zip(line.low, line.mean, line.high, strict=True))


def test_the_usual_setting_is_a_point_of_the_figure_too():
    """Its value is that of its runs, and it comes once where a draw has hit upon it."""
    usual = TuningTrial((), 0.5, is_usual=True, of_runs={"optim.lr": 0.1})
    drawn = [TuningTrial((f"optim.lr={lr}",), cost, of_runs={"optim.lr": lr}) for lr, cost in ((0.01, 2.0), (0.1, 0.5))]
    line = _by_value(Tuned(Arm("pre", ()), [usual, *drawn], usual), "optim.lr", -1.0)
    assert (line.x, line.mean) == ([0.01, 0.1], [-2.0, -0.5])
