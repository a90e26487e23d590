"""Which metric sees best: of the same arms for all metrics, none of them failing."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import pytest
from scipy import stats

from ablab.errors import UserError
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.judge.sensitivity import metric_lines, seeds_to_tell
from ablab.report.tables import next_metric
from ablab.statistics.power import Layout
from ablab.transformer.translation.scores import NATS, SCORES
from tests.report.test_evidence import with_vocabulary

ONE_VOCABULARY = {name for name, score in SCORES.items() if score.unit != NATS}


@pytest.fixture(scope="module")
def selection(reported):
    return of_study(reported.study)


def changed(selection, arm, number, **figures):
    """The selection with other figures in the evaluation of one run."""

    def told(runs):
        run = runs[number]
        scores = {name: value for name, value in (run.evaluation.scores | figures).items() if value is not None}
        evaluation = run.evaluation.model_copy(update={"scores": scores})
        return [*runs[:number], replace(run, evaluation=evaluation), *runs[number + 1 :]]

    return replace(
        selection,
        arms=[ArmRuns(one.name, told(one.runs)) if one.name == arm else one for one in selection.arms],
    )


def test_every_metric_is_judged_by_the_arms_without_diverged_runs(selection):
    lines = metric_lines(selection)
    assert {line.metric for line in lines} == ONE_VOCABULARY
    assert {(line.arms, line.runs) for line in lines} == {(3, 15)}
    assert [line.metric for line in lines if line.declared] == ["test_bleu"]
    values = [[run.evaluation.scores["bleu"] for run in arm.runs] for arm in selection.arms if not arm.diverged]
    (bleu,) = (line for line in lines if line.metric == "test_bleu")
    assert bleu.f == pytest.approx(stats.f_oneway(*values).statistic)
    assert bleu.ratio == pytest.approx(bleu.between / bleu.within)
    level = 0.05 / len(selection.claims)  # claims share the error rate
    assert [line.seeds for line in lines] == [seeds_to_tell(one.between, one.within, 1, level) for one in lines]
    assert [line.seeds for line in lines] != [seeds_to_tell(one.between, one.within, 1) for one in lines]
    secondary = [
        *selection.claims[:1],
        *(claim.model_copy(update={"secondary": True}) for claim in selection.claims[1:]),
    ]
    alone = replace(selection, claims=secondary, registered=None)
    assert [line.seeds for line in metric_lines(alone)] == [seeds_to_tell(one.between, one.within, 1) for one in lines]


def test_the_baseline_at_other_lengths_is_no_arm_whose_difference_is_usual(selection):
    name = selection.arms[1].name
    lengths = SimpleNamespace(arms=[SimpleNamespace(name=name)])
    rest = [arm for arm in selection.arms if arm.name != name]
    assert metric_lines(replace(selection, lengths=lengths)) == metric_lines(replace(selection, arms=rest))


def test_nothing_is_said_of_smoke_runs(selection):
    """Their scores mean nothing, and so does a number of seeds for a next study."""

    def smoke(run):
        return replace(run, record=run.record.model_copy(update={"config": {**run.record.config, "smoke": True}}))

    arms = [ArmRuns(one.name, list(map(smoke, one.runs))) for one in selection.arms]
    assert metric_lines(replace(selection, arms=arms)) == []


def test_the_best_stands_first(selection):
    f = [line.f for line in metric_lines(selection)]
    assert f == sorted(f, reverse=True)
    ratios = [line.ratio for line in metric_lines(selection)]
    assert ratios == sorted(ratios, reverse=True)


def test_a_run_that_nearly_failed_takes_its_arm_out_for_every_metric(selection):
    lines = metric_lines(changed(selection, "layerdrop=0.1", 2, bleu=1.0))
    assert {(line.arms, line.runs) for line in lines} == {(2, 10)}


def test_a_metric_that_fails_is_left_out(selection):
    """One of the user's own, in a report on others."""

    def fails(run):
        raise UserError("no number")

    broken = replace(selection.measures["test_chrf"], value=fails)
    lines = metric_lines(replace(selection, measures={**selection.measures, "mine": broken}))
    assert {line.metric for line in lines} == ONE_VOCABULARY


def test_a_metric_that_a_run_lacks_is_left_out(selection):
    lines = metric_lines(changed(selection, "layerdrop=0.1", 2, loss=None))
    assert {line.metric for line in lines} == ONE_VOCABULARY - {"test_loss"}
    assert {line.arms for line in lines} == {3}


def test_losses_per_token_of_several_vocabularies_give_way_to_those_per_character(selection):
    lines = metric_lines(with_vocabulary(selection, "layerdrop=0.1"))
    assert {line.metric for line in lines} == {name for name, score in SCORES.items() if score.unit != "nats per token"}
    assert {line.arms for line in lines} == {3}


def test_one_arm_or_one_seed_says_nothing(selection):
    assert metric_lines(replace(selection, arms=selection.arms[:1])) == []
    single = [ArmRuns(arm.name, arm.runs[:1]) for arm in selection.arms]
    assert metric_lines(replace(selection, arms=single)) == []


def test_another_metric_of_the_report_is_not_the_declared_one(selection):
    lines = metric_lines(replace(selection, metric="test_chrf"))
    assert [line.metric for line in lines if line.declared] == ["test_bleu"]


def test_every_format_has_the_table_and_its_warning(reported):
    first = reported.data["metrics"][0]
    with (reported.folder / "metrics.csv").open() as file:
        row = next(csv.DictReader(file))
    assert row["metric"].removesuffix(" (declared)") == first["title"]
    assert float(row["F"]) == pytest.approx(first["f"])
    for name in ("report.md", "report.tex", "report.html"):
        text = reported.text(name)
        assert "which metric sees best (exploratory)" in text.lower()
        assert f"{first['f']:,.2f}" in text


def line_of(title, seeds, *, declared=False):
    return SimpleNamespace(title=title, seeds=seeds, declared=declared)


def test_seeds_to_a_verdict_are_the_fewest_that_see_a_usual_difference():
    seeds = seeds_to_tell(between=0.8, within=0.5, others=2, level=0.025)

    def power(count):
        return Layout((1.0, -1.0), 2).power("greater", 2**0.5 * 0.8, 0.5, count, 0.025)

    assert power(seeds - 1) < 0.8 <= power(seeds)
    assert seeds_to_tell(between=0.0, within=0.5, others=2) is None
    assert seeds_to_tell(between=1e-9, within=0.5, others=2) is None, "more than can be planned"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [line_of("test BLEU", 17, declared=True), line_of("test loss", 4)],
            "test loss sees most: 4 seeds of each arm",
        ),
        ([line_of("test BLEU", 17, declared=True), line_of("test loss", 4)], "declared, takes 17 seeds. To choose"),
        ([line_of("test BLEU", None, declared=True), line_of("loss", 4)], "declared, takes more than can be planned"),
        ([line_of("test BLEU", 4, declared=True), line_of("loss", 9)], "difference that is usual here. To choose"),
    ],
)
def test_the_metric_that_needs_fewest_seeds_is_proposed(lines, said):
    assert said in next_metric(SimpleNamespace(metrics=lines))


def test_where_nothing_differs_no_metric_is_proposed():
    assert not next_metric(SimpleNamespace(metrics=[line_of("test BLEU", None, declared=True)]))
