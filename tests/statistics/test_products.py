"""Products that leave out what follows from other columns are those of all columns, bit for bit."""

from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from ablab.statistics.products import BLOCK, Plan, exact, products


def bleu_statistics(rng, seeds, sentences, shortest):
    """Statistics of BLEU as sacrebleu counts them: [seeds, sentences, 10]."""
    references = rng.integers(shortest, 30, size=sentences)
    runs = []
    for _ in range(seeds):
        words = np.maximum(shortest, references + rng.integers(-3, 4, size=sentences))
        totals = [np.maximum(0, words - order) for order in range(4)]
        matches = [rng.binomial(total, 0.6 ** (1 + n)) for n, total in enumerate(totals)]
        runs.append(np.stack([words, references, *matches, *totals], axis=1))
    return exact(np.stack(runs))


def sums_of(rows, statistics):
    """Return the products of all blocks, [b, seeds, k]."""
    return np.concatenate(list(products(rows, statistics, lambda sums: sums)))


def whole(rows, statistics):
    """Return the sums as numpy computes them from every column, [b, seeds, k]."""
    return np.einsum("bn,snk->bsk", rows, statistics)


@pytest.mark.parametrize("shortest", [0, 1, 3, 8])
@pytest.mark.parametrize("seeds", [1, 3])
def test_products_of_counts_are_exact(seeds, shortest):
    rng = np.random.default_rng(shortest)
    statistics = bleu_statistics(rng, seeds, 250, shortest)
    rows = rng.integers(0, 6, size=(BLOCK + 40, 250)).astype(np.uint8)
    found = sums_of(rows, statistics)
    assert found.dtype == statistics.dtype
    assert (found == whole(rows.astype(np.int64), statistics.astype(np.int64))).all()


def test_products_of_any_whole_numbers_and_signs_are_exact():
    rng = np.random.default_rng(1)
    columns = rng.integers(-9, 10, size=(300, 12)).astype(np.float32)
    columns[:, 3] = columns[:, 2] + 5
    columns[:, 4] = columns[:, 3]
    columns[:, 5] = columns[:, 4] - 2
    columns[7, 5] += 100
    columns[:, 8] = 0
    signs = (rng.integers(2, size=(70, 300)) * 2 - 1).astype(np.int8)
    found = sums_of(signs, columns[None])
    assert (found == whole(signs.astype(np.int64), columns[None].astype(np.int64))).all()
    assert len(Plan.of(columns).at) == 9  # without those at 3, 4 and 5


def test_half_of_the_columns_of_bleu_follow_from_others():
    statistics = bleu_statistics(np.random.default_rng(1), 3, 1000, shortest=4)
    columns = statistics.transpose(1, 2, 0).reshape(1000, 30)
    assert len(Plan.of(columns, 3).at) == 5 * 3 + 1


def test_products_of_other_numbers_are_those_of_numpy():
    rng = np.random.default_rng(1)
    statistics, rows = rng.normal(size=(2, 300, 5)), rng.integers(0, 4, size=(20, 300))
    found = sums_of(rows, statistics)
    assert found == pytest.approx(whole(rows.astype(float), statistics))


def test_each_statistic_lies_by_itself_in_memory():
    statistics = bleu_statistics(np.random.default_rng(1), 3, 250, shortest=3)
    (found,) = products(np.ones((20, 250), np.uint8), statistics, lambda sums: sums)
    assert found.shape == (20, 3, 10)
    assert np.moveaxis(found, 2, 0).transpose(0, 2, 1).flags.c_contiguous


def test_each_block_has_a_thread_of_its_own_and_all_are_there_again():
    blas = ThreadpoolController().select(user_api="blas")
    before = [library.num_threads for library in blas.lib_controllers]
    rows, statistics = np.ones((5 * BLOCK, 20), np.uint8), np.ones((1, 20, 1), np.float32)
    seen = list(products(rows, statistics, lambda _: [library.num_threads for library in blas.lib_controllers]))
    assert seen == [[1] * len(before)] * 5
    assert [library.num_threads for library in blas.lib_controllers] == before


def test_as_many_blocks_are_computed_at_once_as_a_product_would_have_threads():
    number = max(library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers)
    rows, statistics = np.ones((number * BLOCK, 20), np.uint8), np.ones((1, 20, 1), np.float32)
    together = Barrier(number, timeout=60)  # nobody goes on until all are at work
    assert sorted(products(rows, statistics, lambda _: together.wait())) == [*range(number)]


def test_what_fails_in_a_block_comes_through():
    rows, statistics = np.ones((3 * BLOCK, 20), np.uint8), np.ones((1, 20, 1), np.float32)
    with pytest.raises(ZeroDivisionError):
        list(products(rows, statistics, lambda _: 1 // 0))
