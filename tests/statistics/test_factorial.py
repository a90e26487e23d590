"""Main effects and interactions."""

import numpy as np
import pytest
from scipy import stats

from ablab.statistics.anova import effects
from ablab.statistics.paired import of_differences, paired_difference

NORMS = ("pre", "post", "scale")
DROPS = ("0", "0.2")
FACTORS = {"norm": NORMS, "layerdrop": DROPS}


def scores(interaction=0.0, noise=0.3, seeds=6, shape=(3, 2)):
    """Norms are worth 0, -1 and 0.5; layerdrop 2; post with layerdrop besides so much."""
    rng = np.random.default_rng(3)
    cells = np.array([0.0, -1.0, 0.5])[:, None] + np.array([0.0, 2.0])[None, :]
    cells[1, 1] += interaction
    return 30 + cells[..., None] + rng.normal(0, 2, seeds) + noise * rng.normal(size=(*shape, seeds))


def paired(effect):
    return of_differences(effect.differences)


def named(found):
    return {tuple(zip(effect.factors, effect.levels, strict=True)): paired(effect) for effect in found}


def test_a_noiseless_design_gives_its_own_numbers():
    found = named(effects(scores(0.6, noise=1e-6), FACTORS))
    expected = {
        (("norm", ("post", "pre")),): -1 + 0.3,
        (("norm", ("scale", "pre")),): 0.5,
        (("layerdrop", ("0.2", "0")),): 2 + 0.2,
        (("norm", ("post", "pre")), ("layerdrop", ("0.2", "0"))): 0.6,
        (("norm", ("scale", "pre")), ("layerdrop", ("0.2", "0"))): 0.0,
    }
    assert {key: one.difference for key, one in found.items()} == pytest.approx(expected, abs=1e-5)


def test_two_by_two_interaction_is_the_anova_with_seeds_as_blocks():
    """F of a contrast with one degree of freedom is t squared; here each effect is tested against its own error."""
    values = scores()[:2]
    found = named(effects(values, {"norm": NORMS[:2], "layerdrop": DROPS}))
    interaction = values[1, 1] - values[0, 1] - values[1, 0] + values[0, 0]
    expected = stats.ttest_1samp(interaction, 0).pvalue
    assert found[("norm", ("post", "pre")), ("layerdrop", ("0.2", "0"))].p == pytest.approx(expected)


def test_one_factor_is_the_paired_difference():
    values = scores()[:, 0]
    found = effects(values, {"norm": NORMS})
    assert [paired(effect) for effect in found] == [paired_difference(values[i], values[0]) for i in (1, 2)]


def test_what_is_constant_within_a_seed_changes_nothing():
    one = effects(scores(), FACTORS)
    other = effects(scores() + np.random.default_rng(0).normal(0, 9, 6), FACTORS)
    for before, after in zip(one, other, strict=True):
        assert paired(after).p == pytest.approx(paired(before).p)


def test_three_factors_have_three_main_effects_and_three_interactions():
    values = np.random.default_rng(1).normal(size=(2, 2, 2, 4))
    found = effects(values, {"a": DROPS, "b": DROPS, "c": DROPS})
    assert [effect.factors for effect in found] == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]


def test_incomplete_designs_are_refused():
    with pytest.raises(ValueError, match="shape"):
        effects(scores()[:2], FACTORS)
    hole = scores()
    hole[1, 1, 2] = np.nan
    with pytest.raises(ValueError, match="every cell"):
        effects(hole, FACTORS)
    with pytest.raises(ValueError, match="two levels"):
        effects(scores()[:1], {"norm": NORMS[:1], "layerdrop": DROPS})
