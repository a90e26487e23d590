"""Where a curve has its points."""

from ablab.transformer.pruning.strategies import Depths, targets


def test_one_stack_shrinks_layer_by_layer_while_the_other_stays():
    assert targets("decoder", Depths(12, 6), None) == [Depths(12, keep) for keep in (6, 5, 4, 3, 2, 1)]
    assert targets("encoder", Depths(3, 6), None) == [Depths(keep, 6) for keep in (3, 2, 1)]


def test_both_shrink_in_proportion_and_keep_a_layer():
    found = targets("both", Depths(12, 6), None)
    assert [target.encoder for target in found] == list(range(12, 0, -1))
    assert [target.decoder for target in found] == [6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1]
    assert targets("both", Depths(1, 4), [2]) == [Depths(1, 4), Depths(1, 2)]


def test_wanted_depths_come_after_the_full_one_deepest_first_and_once():
    assert targets("decoder", Depths(6, 6), [1, 3, 1]) == [Depths(6, 6), Depths(6, 3), Depths(6, 1)]
    assert targets("decoder", Depths(6, 6), [6]) == [Depths(6, 6)]
