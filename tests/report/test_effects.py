"""Main effects and interactions pass by the checks that claims and differences pass, and no others."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from ablab.judge.claims import judge
from ablab.judge.effects import _steps, effect_lines
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.tables import effects_table
from ablab.statistics.interval import NotTestable
from tests.report.conftest import EXPERIMENT
from tests.report.synthetic import fill
from tests.report.test_evidence import with_last_fifth, with_vocabulary
from tests.translation import MEASURES

BLEU = MEASURES["test_bleu"]


@pytest.fixture(scope="module")
def selection(tmp_path_factory):
    place = tmp_path_factory.mktemp("factorial")
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, post]"
    )
    (place / "x.yaml").write_text(text[: text.index("claims:")])
    errors = {f"layerdrop={d},norm={n}": 0.3 + d + 0.1 * (n == "post") for d in (0, 0.1) for n in ("pre", "post")}
    return of_study(fill((f"experiment={place / 'x.yaml'}",), errors, outputs=place))


def changed(selection, change, *names):
    """The selection, with these arms changed."""
    return replace(selection, arms=[change(arm) if arm.name in names else arm for arm in selection.arms])


def on_other_text(arm):
    """The arm, as if scored against other references."""
    runs = [
        replace(run, evaluation=run.evaluation.model_copy(update={"references": "fedcba9876543210"}))
        for run in arm.runs
    ]
    return ArmRuns(arm.name, runs)


def stopped_by_the_clock(arm):
    return ArmRuns(
        arm.name, [replace(run, record=run.record.model_copy(update={"time_limited": True})) for run in arm.runs]
    )


def by_what(lines):
    return {line.what.partition(":")[0] if line.kind == "main effect" else "both": line for line in lines}


def test_cells_that_can_be_compared_have_figures(selection):
    lines = effect_lines(selection, BLEU, {})
    assert [line.kind for line in lines] == ["main effect", "main effect", "interaction"]
    assert all(line.refused is None and line.interval is not None for line in lines)
    assert "notes" not in effects_table_columns(lines)


def effects_table_columns(lines):
    class Of:
        effects, digits, unit = lines, 2, "BLEU"

    return effects_table(Of).columns


def test_levels_of_within_have_no_effect(selection):
    """As no claim may compare them; the other factor's is their mean, and an interaction compares effects."""
    found = by_what(effect_lines(replace(selection, within="layerdrop"), BLEU, {}))
    assert found["layerdrop"].refused == "levels of layerdrop, as of within, are not compared with each other"
    assert (found["norm"].refused, found["both"].refused) == (None, None)


def test_an_effect_across_test_sets_is_none(selection):
    """As of a language: the effect of another factor within each language is one, and so is the interaction."""
    other = changed(selection, on_other_text, "layerdrop=0,norm=post", "layerdrop=0.1,norm=post")
    found = by_what(effect_lines(other, BLEU, {}))
    plain = by_what(effect_lines(selection, BLEU, {}))
    assert found["norm"].refused.startswith("references differ between layerdrop=0,norm=post and layerdrop=0,norm=pre")
    assert (found["norm"].difference, found["norm"].interval, found["norm"].p) == (None, None, None)
    assert found["layerdrop"] == plain["layerdrop"]
    assert found["both"] == plain["both"]
    assert "notes" in effects_table_columns(found.values())


def test_runs_without_a_score_are_said(selection):
    """Of a metric that older evaluations lack."""
    measure = replace(BLEU, progress=None, value=lambda run: None if run.seed == 1 else BLEU.value(run))
    with pytest.raises(NotTestable, match="r25ac409ad75 has no test BLEU"):
        effect_lines(selection, measure, {})


def test_two_seeds_are_enough_and_one_is_not(selection):
    def few(count):
        return replace(selection, arms=[ArmRuns(arm.name, arm.runs[:count]) for arm in selection.arms])

    assert all(line.refused is None for line in effect_lines(few(2), BLEU, {}))
    with pytest.raises(NotTestable, match="its cells have not 2 finished seeds in common"):
        effect_lines(few(1), BLEU, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (stopped_by_the_clock, "training ended by the clock"),
        (lambda arm: with_last_fifth(arm, "bleu", 5.0), "is under-trained"),
    ],
)
def test_one_cell_that_proves_nothing_takes_its_effects_with_it(selection, change, reason):
    found = effect_lines(changed(selection, change, "layerdrop=0.1,norm=post"), BLEU, {})
    assert len(found) == 3
    assert all(reason in line.refused for line in found)


def test_effects_within_a_vocabulary_have_a_mean_but_are_not_weighed_against_each_other(selection):
    """In nats per token: the same gain per sentence is another one per token of another vocabulary."""
    arms = with_vocabulary(selection, "layerdrop=0.1,norm=pre", "layerdrop=0.1,norm=post")
    per_token, per_character = (
        {line.what: line.refused for line in effect_lines(arms, MEASURES[f"valid_loss{of}"], {})}
        for of in ("", "_per_character")
    )
    of_layerdrop, of_norm, of_both = per_token.values()
    assert of_norm is None
    assert all("the vocabularies differ" in refused for refused in (of_layerdrop, of_both))
    assert set(per_character.values()) == {None}
    assert all(line.refused is None for line in effect_lines(selection, MEASURES["valid_loss"], {}))


def test_an_effect_steps_between_the_levels_that_it_compares_and_no_others():
    cells = {levels: "".join(levels) for levels in product("abc", "xyz")}
    effect = SimpleNamespace(axes=(0, 1), levels=(("b", "a"), ("y", "x")))
    assert list(_steps(cells, effect, 0)) == [("bx", "ax"), ("by", "ay")]
    assert list(_steps(cells, effect, 1)) == [("ay", "ax"), ("by", "bx")]


def test_an_effect_has_the_figures_of_its_own_claim_however_alike_another_is(tmp_path):
    """Both factors change the same words here, and scores may be as small as they are: what is compared decides."""
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, post]"
    )
    claimed = "claims:\n  - {effect: norm=post, expect: less}\n"
    (tmp_path / "x.yaml").write_text(text[: text.index("claims:")] + claimed)
    errors = {f"layerdrop={d},norm={n}": 0.3 + d + 0.1 * (n == "post") for d in (0, 0.1) for n in ("pre", "post")}
    selection = of_study(fill((f"experiment={tmp_path / 'x.yaml'}",), errors, outputs=tmp_path))
    (claim,) = judge(selection)
    alike = claim.model_copy(
        update={"per_seed": [one.model_copy(update={"difference": 1e-12}) for one in claim.per_seed]}
    )
    for of_claim in (claim, alike):
        found = by_what(effect_lines(selection, BLEU, [of_claim]))
        assert {what: line.claim for what, line in found.items()} == {"layerdrop": None, "norm": 0, "both": None}


def test_an_effect_is_told_against_the_level_of_the_baseline(selection):
    """As its claim is: each has one interval to quote."""
    usual = {line.what: line for line in effect_lines(selection, BLEU)}
    turned = effect_lines(replace(selection, baseline="layerdrop=0.1,norm=pre"), BLEU)
    (drop,) = [line for line in turned if line.what.startswith("layerdrop: ") and " x " not in line.what]
    assert "0 instead of 0.1" in drop.what
    (before,) = [line for what, line in usual.items() if what.startswith("layerdrop: ") and " x " not in what]
    assert "0.1 instead of 0" in before.what
    assert drop.difference == pytest.approx(-before.difference)
