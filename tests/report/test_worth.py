"""What an arm's own curve says of its worth: only what is shown, of an arm that is shown to be better."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ablab.judge.document import Document
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.judge.worth import worth_lines
from ablab.report.tables import TIMES, worth_table
from ablab.statistics.worth import Worth
from tests.report.conftest import EXPERIMENT
from tests.report.synthetic import fill
from tests.report.test_effects import changed
from tests.report.test_evidence import with_vocabulary
from tests.translation import MEASURES

BETTER, ALIKE, WORSE = "layerdrop=0.1", "layerdrop=0.2", "layerdrop=0.5"
ERRORS = {"layerdrop=0": 0.5, BETTER: 0.3, ALIKE: 0.5, WORSE: 0.7}


@pytest.fixture(scope="module")
def selection(tmp_path_factory):
    place = tmp_path_factory.mktemp("worth")
    (place / "x.yaml").write_text(EXPERIMENT[: EXPERIMENT.index("claims:")] + "error: paired\n")
    return of_study(fill((f"experiment={place / 'x.yaml'}",), ERRORS, outputs=place))


def with_curves(arm, curve, key="bleu"):
    """The arm with these validations, by step; `curve`: of a seed."""

    def told(run):
        points = [{"step": float(step), key: value} for step, value in curve(run.seed).items()]
        return replace(run, record=run.record.model_copy(update={"validations": points}))

    return ArmRuns(arm.name, [told(run) for run in arm.runs])


def at_least(selection, arm=BETTER):
    return next((line.at_least for line in worth_lines(selection) if line.arm == arm), None)


def scatter(name, seed):
    return random.Random(f"{name} {seed}").gauss(0, 0.01)


def flat(value, steps=range(100, 1001, 100)):
    """A curve that scatters over seeds, and comes to `value` in the middle of training."""
    return lambda seed: {step: value - 100 * (step < 500) + scatter(value, seed) for step in steps}


def test_only_an_arm_that_is_better_has_a_bound(selection):
    assert [line.arm for line in worth_lines(selection)] == [BETTER]
    assert [line.arm for line in worth_lines(replace(selection, error="moderated"))] == [BETTER]


def test_it_is_the_earliest_validation_from_which_on_every_paired_t_test_shows_it(selection):
    baseline = selection.baseline_row
    rng = np.random.default_rng(5)
    curves = np.linspace(0, 3, 10) + rng.normal(0, 0.7, (5, 10))
    steps = range(100, 1001, 100)
    found = changed(
        selection, lambda arm: with_curves(arm, lambda seed: dict(zip(steps, curves[seed - 1], strict=True))), BETTER
    )
    ends = np.array([1.0, 1.3, 0.8, 1.1, 0.9])
    found = changed(found, lambda arm: with_curves(arm, lambda seed: {1000: ends[seed - 1]}), baseline.name)
    shown = stats.ttest_1samp(curves - ends[:, None], 0.0, alternative="greater").pvalue < 0.025
    earliest = len(shown) - int(np.argmin(shown[::-1]))
    assert 0 < earliest < len(shown) - 1
    assert at_least(found) == pytest.approx(1000 / steps[earliest], rel=1e-12)


def test_a_curve_that_falls_back_counts_from_where_it_stays(selection):
    """The first validation that is as good may be so by luck."""

    def curve(seed):
        late = flat(40.0, (500, 700, 1000))(seed)
        return {100: late[1000], 300: late[1000] - 30, **late}

    found = changed(selection, lambda arm: with_curves(arm, curve), BETTER)
    assert at_least(changed(found, lambda arm: with_curves(arm, flat(30.0)), "layerdrop=0")) == 1000 / 500


@pytest.mark.parametrize("name", [ALIKE, WORSE])
def test_a_curve_far_ahead_says_nothing_of_an_arm_that_is_not_shown_to_be_better(selection, name):
    """Validation stands in for the test set, and may not contradict it."""
    ahead = changed(selection, lambda arm: with_curves(arm, flat(90.0)), name)
    assert at_least(ahead, name) is None


def test_a_curve_that_is_not_ahead_says_nothing_of_an_arm_that_is_better(selection):
    behind = changed(selection, lambda arm: with_curves(arm, flat(5.0)), BETTER)
    assert at_least(behind) is None
    assert at_least(changed(selection, lambda arm: with_curves(arm, lambda seed: {}), BETTER)) is None
    assert at_least(changed(selection, lambda arm: with_curves(arm, lambda seed: {}), "layerdrop=0")) is None


def test_seeds_that_stopped_early_are_looked_at_where_all_have_a_validation(selection):
    def curve(seed):
        return flat(60.0, range(100, 1001 - 100 * seed, 100))(seed)

    stopped = changed(selection, lambda arm: with_curves(arm, curve), BETTER)
    assert at_least(stopped) == 1000 / 500
    stopped = changed(
        stopped, lambda arm: with_curves(arm, lambda seed: flat(30.0)(seed) | {1000 + seed: 1.0}), "layerdrop=0"
    )
    assert at_least(stopped) == pytest.approx(1003 / 500), "of the baseline's mean length"


def test_of_a_loss_less_is_better(selection):
    named = {run.folder.run_id: arm.name for arm in selection.arms for run in arm.runs}

    def value(run):
        name = named[run.folder.run_id]
        return {BETTER: 1.0, ALIKE: 3.0}.get(name, 2.0) + scatter(name, run.seed)

    def towards(end):
        return lambda seed: {500: end + 2, 600: end + scatter(end, seed), 1000: end + scatter(-end, seed)}

    loss = replace(MEASURES["valid_loss"], value=value)
    found = replace(selection, metric="valid_loss", measures={**selection.measures, "valid_loss": loss})
    for name, curve in ((BETTER, towards(1.0)), (ALIKE, towards(1.0)), ("layerdrop=0", towards(2.0))):
        found = changed(found, lambda arm, curve=curve: with_curves(arm, curve, "loss"), name)
    assert at_least(found) == pytest.approx(1000 / 600)
    assert at_least(found, ALIKE) is None, "its curve is ahead, and its loss is not"


def test_arms_that_cannot_be_compared_have_no_line(selection):
    by_loss = replace(selection, metric="test_loss")
    value = replace(MEASURES["test_bleu"], scale=MEASURES["test_loss"].scale)
    scaled = replace(by_loss, measures={**selection.measures, "test_loss": value})
    assert [line.arm for line in worth_lines(scaled)] == [BETTER]
    assert worth_lines(with_vocabulary(scaled, BETTER)) == []
    failed = changed(
        selection,
        lambda arm: ArmRuns(arm.name, [replace(run, state="diverged") for run in arm.runs]),
        selection.baseline_row.name,
    )
    assert worth_lines(failed) == []
    without = replace(MEASURES["test_bleu"], progress=None)
    assert worth_lines(replace(selection, measures={**selection.measures, selection.metric: without})) == []


def test_what_older_reports_said_of_curves_is_left_out(reported):
    """There, an arm was worth more where its curve first came to the baseline's end."""
    known = {"factor": 1.2, "low": 1.1, "high": 1.3, "saturated": False, "bent": True, "refused": None, "n": 3}
    gone = {"bound": 1.3, "bound_interval": None}
    nothing = dict.fromkeys(("factor", "low", "high"))
    worth = [{"arm": "a", "baseline": "b", **known, **gone}, {"arm": "c", "baseline": "b", **known, **nothing, **gone}]
    (line,) = Document.model_validate({**reported.data, "worth": worth}).worth
    assert (line.arm, line.factor, line.at_least) == ("a", 1.2, None)


@pytest.mark.parametrize(
    ("found", "told", "words"),
    [
        ((0.5, 0.4, 2.0), (0.5, False, 0.0, 2.0), ("0.50", "[0, 2.00]")),
        ((2.0, 0.5, 2.1), (2.0, False, 0.5, None), ("2.00", "[0.50, no end]")),
        ((2.1, 2.05, 2.2), (2.0, True, 2.0, None), ("above 2", "[2.00, no end]")),
        ((0.4, 0.3, 0.45), (0.5, True, 0.0, 0.5), ("below 0.5", "[0, 0.50]")),
        ((1e44, 64.0, math.inf), (2.0, True, 2.0, None), ("above 2", "[2.00, no end]")),
    ],
)
def test_beyond_the_trained_lengths_no_factor_is_told(selection, reported, monkeypatch, found, told, words):
    monkeypatch.setattr("ablab.judge.worth._fitted", lambda *_: (Worth(*found, saturated=False), None))
    line = next(line for line in worth_lines(selection) if line.arm == BETTER)
    assert (line.factor, line.beyond, line.low, line.high) == told
    table = worth_table(Document.model_validate({**reported.data, "worth": [line.model_dump()]}))
    row = dict(zip(table.columns, *table.rows, strict=True))
    assert (row[TIMES], row["95 % interval"]) == words
