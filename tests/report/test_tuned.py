"""What tuning found, and what it makes of the verdicts at usual settings."""

import pytest

from ablab.judge.selection_of_study import of_study
from ablab.judge.tuned import _curves, _line, _sensitivity, together
from ablab.report.pictures import curves
from ablab.report.plain_words import plain_words
from ablab.report.sentences import document_of
from ablab.report.tables import _best_of_half
from ablab.statistics.interval import Interval
from ablab.statistics.verdict import Verdict
from ablab.study.definition import define
from ablab.study.design import Arm
from ablab.study.study import names_of
from ablab.study.tuning import Tuned, TuningTrial
from benchmarks.calibration.tuning import BY_INTERVALS, BY_VERDICTS, over_tuning
from tests.report.synthetic import corpus, translated, write
from tests.report.test_plain_words import claim
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


def tuned_study(tmp_path, errors):
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
    return document_of(of_study(study), resamples=1000)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        # Planted: the arm is better than a baseline that was never tuned, and no better than one that was.
        ({"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.2, 0.2)}, "only when untuned"),
        pytest.param({"layerdrop=0": (0.4, 0.35), "layerdrop=0.1": (0.15, 0.1)}, "robust", marks=pytest.mark.slow),
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
    assert usual.words.endswith(f"With tuned settings the verdict is {tuned.outcome}: {expected}.")
    assert tuned.words.endswith(f"At the usual settings the verdict is {usual.outcome}: {expected}.")


ABOVE, LOW, ABOUT, BELOW = (Interval(*ends, 0.95, "t") for ends in ((2.0, 3.0), (0.1, 1.0), (-0.2, 2.1), (-3.0, -2.0)))


@pytest.mark.parametrize(
    ("usual", "tuned", "expected"),
    [
        (Verdict("supported", interval=ABOVE), Verdict("inconclusive", interval=ABOUT), "open"),
        (Verdict("inconclusive", interval=ABOUT), Verdict("supported", interval=ABOVE), "open"),
        (Verdict("supported", interval=ABOVE), Verdict("inconclusive", interval=LOW), "only when untuned"),
        (Verdict("equivalent", interval=LOW), Verdict("supported", interval=ABOVE), "only when tuned"),
        (Verdict("refuted", interval=BELOW), Verdict("supported", interval=LOW), "reversed"),
        (Verdict("supported", interval=ABOVE), Verdict("refuted"), "open"),  # ranks have no interval of the metric
        (Verdict("refuted", interval=BELOW), Verdict("inconclusive", interval=ABOUT), "not the same"),
        (Verdict("refuted", interval=LOW), Verdict("inconclusive", interval=ABOUT), "open"),
        (Verdict("supported", interval=LOW), Verdict("real, but smaller than matters", interval=ABOVE), "robust"),
        (Verdict("refuted", interval=BELOW), Verdict("refuted", interval=LOW), "robust"),
        (Verdict("inconclusive", interval=LOW), Verdict("inconclusive", interval=ABOVE), None),
        (Verdict("supported", interval=ABOVE), Verdict("not testable"), None),
    ],
)
def test_verdicts_differ_only_where_their_intervals_have_no_value_in_common(usual, tuned, expected):
    assert together(usual, tuned) == expected


def test_a_gain_that_is_the_same_both_ways_is_seldom_said_to_depend_on_tuning():
    """One verdict supported and the other open is no difference: taken for one, half of all studies would err."""
    (job,) = (job for job in over_tuning() if (job.scenario, job.n) == ("a true gain of 1.5 sd both ways, 4 claims", 3))
    rates = {row.method: row.rate for row in job.rows(0.1)}
    assert rates[BY_INTERVALS] <= 0.05
    assert rates[BY_VERDICTS] > 0.3


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


@pytest.mark.parametrize("outcome", ["provisional", "not testable"])
def test_nothing_is_said_of_tuning_while_one_side_has_no_verdict(outcome):
    usual, tuned = claim(outcome="supported"), claim(outcome=outcome)
    assert together(usual, tuned) is None
    assert together(tuned, usual) is None


def test_the_report_draws_what_each_arm_does_at_other_settings(tried):
    by_rate, curve, *others = tried.series
    assert (by_rate.key, by_rate.x, by_rate.title) == ("tuning_1", "optim.lr", "Validation BLEU by optim.lr")
    assert by_rate.is_log
    assert by_rate.is_joined
    assert [line.arm for line in by_rate.lines] == ["layerdrop=0", "layerdrop=0.1"]
    assert all(len(line.x) == 3 and line.x == sorted(line.x) for line in by_rate.lines)
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
