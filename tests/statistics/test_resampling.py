"""The crossed bootstrap and approximate randomisation, on test sets made up."""

import numpy as np
import pytest

from ablab.statistics.interval import NotTestable
from ablab.statistics.paired import of_differences
from ablab.statistics.products import BLOCK, exact
from ablab.statistics.resampling import Resamples, Swaps, crossed, crossed_bootstrap
from ablab.transformer.data.scoring import corpus_bleu
from benchmarks.calibration.noise import Noise
from benchmarks.calibration.noise import simulated as simulate


def simulated(rng, seeds, sentences, gap=0.0):
    return simulate(rng, seeds, sentences, Noise(), gap)


def mean(sums):
    """A metric without curvature: its exact variances are known."""
    return sums[..., 0] / sums[..., 1]


def generator():
    return np.random.default_rng(7)


def test_difference_is_that_of_the_corpus_scores():
    arm, baseline = simulated(generator(), 4, 300)
    expected = corpus_bleu(arm.sum(1)).mean() - corpus_bleu(baseline.sum(1)).mean()
    found = crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=50)
    assert found.difference == pytest.approx(expected)


def test_draws_are_shared_and_scored_side_by_side():
    """What a report does, once for all its arms, is what the bootstrap of one pair does."""
    arm, baseline = simulated(generator(), 4, 300)
    draws = Resamples(300, 2 * BLOCK + 50, generator())
    shared = crossed(draws.scores(arm, corpus_bleu), draws.scores(baseline, corpus_bleu), sentences=300)
    assert shared == crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=2 * BLOCK + 50)


def test_counts_are_summed_without_rounding():
    """Half the width, and still the very scores; what is not whole, or could grow too large, keeps its width."""
    arm, _ = simulated(generator(), 3, 250)
    assert exact(arm).dtype == np.float32
    assert exact(arm + 0.5).dtype == exact(arm * 2**20).dtype == np.float64
    small, large = (Resamples(250, 100, generator()).scores(arm * factor, lambda s: s[..., 0]) for factor in (1, 2**20))
    np.testing.assert_array_equal(small.drawn * 2**20, large.drawn)


def test_draws_of_another_test_set_are_refused():
    arm, _ = simulated(generator(), 3, 250)
    with pytest.raises(ValueError, match="300 sentences"):
        Resamples(300, 10, generator()).scores(arm, corpus_bleu)


def test_seed_part_is_the_paired_standard_error():
    arm, baseline = simulated(generator(), 5, 300)
    paired = of_differences(corpus_bleu(arm.sum(1)) - corpus_bleu(baseline.sum(1)))
    crossed = crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=200)
    assert crossed.from_seeds == pytest.approx(paired.standard_error**2)
    assert crossed.standard_error >= paired.standard_error


def test_parts_are_those_of_the_analysis_of_variance():
    """For a mean, two-way ANOVA without replication gives the parts in closed form."""
    rng, seeds, count = generator(), 6, 400
    gaps = rng.normal(0, 1, (seeds, 1)) * 0.05 + rng.normal(0, 1, (1, count)) + rng.normal(0, 2, (seeds, count))
    arm = np.stack([gaps, np.ones_like(gaps)], axis=-1)
    baseline = np.stack([np.zeros_like(gaps), np.ones_like(gaps)], axis=-1)
    crossed = crossed_bootstrap(arm, baseline, rng, mean, resamples=20_000)
    residual = gaps - gaps.mean(0) - gaps.mean(1, keepdims=True) + gaps.mean()
    interaction = (residual**2).sum() / ((seeds - 1) * (count - 1))
    sentences = gaps.mean(0).var(ddof=1) - interaction / seeds
    assert crossed.from_sentences == pytest.approx(sentences / count, rel=0.05)


def test_swapping_the_arms_negates():
    arm, baseline = simulated(generator(), 3, 250)
    one, other = (
        crossed_bootstrap(a, b, generator(), corpus_bleu, resamples=300) for a, b in ((arm, baseline), (baseline, arm))
    )
    assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))
    assert one.p == pytest.approx(other.p)
    one, other = (
        Swaps(a.shape[1], 300, generator()).judge(a, b, corpus_bleu) for a, b in ((arm, baseline), (baseline, arm))
    )
    assert one == pytest.approx(other)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_interval_and_p_are_of_one_method(level):
    arm, baseline = simulated(generator(), 4, 300)
    found = crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=300, level=level)
    again = crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=300, level=1 - found.p)
    assert min(abs(again.interval.low), abs(again.interval.high)) == pytest.approx(0, abs=1e-7)
    assert found.interval.excludes(0.0) == (found.p < 1 - level)


def test_with_seeds_alone_it_is_the_paired_t_interval():
    """The same gap on every sentence: nothing is left for the sentences to vary by."""
    gaps = np.repeat(generator().normal(0, 1, (5, 1)), 300, axis=1)
    arm, baseline = (np.stack([g, np.ones_like(gaps)], axis=-1) for g in (gaps, np.zeros_like(gaps)))
    crossed = crossed_bootstrap(arm, baseline, generator(), mean, resamples=100)
    paired = of_differences(gaps[:, 0])
    assert crossed.p == pytest.approx(paired.p)
    expected = paired.at(0.95)
    assert (crossed.interval.low, crossed.interval.high) == pytest.approx((expected.low, expected.high))


def test_order_of_seeds_changes_nothing():
    arm, baseline = simulated(generator(), 4, 250)
    order = [2, 0, 3, 1]
    one, other = (
        crossed_bootstrap(a, b, generator(), corpus_bleu, resamples=300)
        for a, b in ((arm, baseline), (arm[order], baseline[order]))
    )
    assert (one.p, one.from_sentences) == pytest.approx((other.p, other.from_sentences))


def test_a_planted_gap_is_found_and_equal_generators_give_equal_answers():
    arm, baseline = simulated(generator(), 5, 600, gap=0.08)
    one, other = (crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=500) for _ in range(2))
    assert one == other
    assert one.interval.low > 0
    assert Swaps(arm.shape[1], 999, generator()).judge(arm, baseline, corpus_bleu) == 1 / 1000


def test_randomisation_by_hand():
    """Two sentences, gaps of 3 and 1: of the swaps, |4|, |2|, |-2|, |-4| are equally likely, so p tends to 1/2."""
    arm = np.array([[[3.0, 1.0], [1.0, 1.0]]])
    baseline = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    assert Swaps(arm.shape[1], 4000, generator()).judge(arm, baseline, mean) == pytest.approx(0.5, abs=0.03)


def test_the_unit_of_the_scores_changes_nothing():
    rng = generator()
    arm, baseline = (np.stack([rng.normal(m, 1, (3, 300)), np.ones((3, 300))], axis=-1) for m in (0.1, 0.0))
    unit = np.array([1e-7, 1.0])
    one, other = (
        Swaps(a.shape[1], 999, generator()).judge(a, b, mean)
        for a, b in ((arm, baseline), (arm * unit, baseline * unit))
    )
    assert one == other < 1
    wide, narrow = (
        crossed_bootstrap(a, b, generator(), mean, resamples=100).p
        for a, b in ((arm, baseline), (arm * unit**2, baseline * unit**2))
    )
    assert wide == pytest.approx(narrow)


@pytest.mark.parametrize(("seeds", "sentences", "missing"), [(2, 400, "3 seeds"), (5, 100, "200 test items")])
def test_refused_where_coverage_is_not_shown(seeds, sentences, missing):
    arm, baseline = simulated(generator(), seeds, sentences)
    with pytest.raises(NotTestable, match=missing):
        crossed_bootstrap(arm, baseline, generator(), corpus_bleu, resamples=10)


def test_equal_systems_have_nothing_to_tell():
    arm, _ = simulated(generator(), 3, 250)
    with pytest.raises(NotTestable, match="no noise"):
        crossed_bootstrap(arm, arm, generator(), corpus_bleu, resamples=10)
    with pytest.raises(NotTestable, match="nothing to swap"):
        Swaps(arm.shape[1], 10, generator()).judge(arm, arm, corpus_bleu)


def test_statistics_of_unlike_seeds_or_sentences_are_refused():
    arm, baseline = simulated(generator(), 3, 250)
    with pytest.raises(ValueError, match="same seeds and sentences"):
        crossed_bootstrap(arm, baseline[:, :-1], generator(), corpus_bleu)
