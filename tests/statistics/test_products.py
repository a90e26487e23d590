"""Products that leave out what follows from other columns are those of all columns, bit for bit."""

import numpy as np
import pytest

from ablab.statistics.products import BLOCK, Plan, exact, products


def bleu_statistics(rng, seeds, sentences, shortest):
    """Statistics of BLEU as sacrebleu counts them: [sentences, seeds * 10]."""
    references = rng.integers(shortest, 30, size=sentences)
    runs = []
    for _ in range(seeds):
        words = np.maximum(shortest, references + rng.integers(-3, 4, size=sentences))
        totals = [np.maximum(0, words - order) for order in range(4)]
        runs += [words, references, *(rng.binomial(total, 0.6 ** (1 + n)) for n, total in enumerate(totals)), *totals]
    return exact(np.stack(runs, axis=1))


@pytest.mark.parametrize("shortest", [0, 1, 3, 8])
@pytest.mark.parametrize("seeds", [1, 3])
def test_products_of_counts_are_exact(seeds, shortest):
    rng = np.random.default_rng(shortest)
    columns = bleu_statistics(rng, seeds, 250, shortest)
    rows = rng.integers(0, 6, size=(BLOCK + 40, 250)).astype(np.uint8)
    found = np.concatenate(list(products(rows, columns)))
    assert found.dtype == columns.dtype
    assert (found == rows.astype(np.int64) @ columns.astype(np.int64)).all()


def test_products_of_any_whole_numbers_and_signs_are_exact():
    rng = np.random.default_rng(1)
    columns = rng.integers(-9, 10, size=(300, 12)).astype(np.float32)
    columns[:, 3] = columns[:, 2] + 5
    columns[:, 4] = columns[:, 3]
    columns[:, 5] = columns[:, 4] - 2
    columns[7, 5] += 100
    columns[:, 8] = 0
    signs = (rng.integers(2, size=(70, 300)) * 2 - 1).astype(np.int8)
    (found,) = products(signs, columns)
    assert (found == signs.astype(np.int64) @ columns.astype(np.int64)).all()
    assert len(Plan.of(columns).at) == 9  # without those at 3, 4 and 5


def test_half_of_the_columns_of_bleu_follow_from_others():
    columns = bleu_statistics(np.random.default_rng(1), 3, 1000, shortest=4)
    assert len(Plan.of(columns).at) == 5 * 3 + 1


def test_products_of_other_numbers_are_those_of_numpy():
    rng = np.random.default_rng(1)
    columns, rows = rng.normal(size=(300, 5)), rng.integers(0, 4, size=(20, 300))
    (found,) = products(rows, columns)
    assert (found == rows.astype(float) @ columns).all()
