"""One contract for every strategy, and what each promises of its own."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.transformer.pruning.search import SearchStrategy, all_combinations
from ablab.transformer.pruning.strategies import (
    DataDriven,
    Depths,
    EvenlySpaced,
    EveryOther,
    First,
    Kept,
    Last,
    Random,
    papers_every_other,
)


class Importance:
    """A judge by the layers' own worth and one interaction that single removals cannot see; notes what it is asked."""

    def __init__(self, depths: Depths) -> None:
        self.worth = {
            (stack, layer): ((7 * layer + 3 * len(stack)) % 11) / 11
            for stack, depth in zip(("encoder", "decoder"), depths, strict=True)
            for layer in range(depth)
        }
        self.losses: dict[Kept, float] = {}
        self.bleus: dict[Kept, float] = {}

    def loss(self, kept: Kept) -> float:
        value = 10 - sum(self.worth["encoder", i] for i in kept.encoder)
        value -= sum(self.worth["decoder", i] for i in kept.decoder)
        if 0 in kept.decoder and 2 in kept.decoder:
            value -= 0.5
        self.losses[kept] = value
        return value

    def quality(self, kept: Kept) -> float:
        self.bleus[kept] = 50 - self.loss(kept)
        return self.bleus[kept]


def search(depths: Depths, **options: object) -> SearchStrategy:
    settings = {"exhaustive": 100, "beam": 3, "budget": 200, "finalists": 2, "together": False}
    return SearchStrategy(Importance(depths), **{**settings, **options})


STRATEGIES = {
    "every_other": lambda depths: EveryOther(),
    "evenly_spaced": lambda depths: EvenlySpaced(),
    "first": lambda depths: First(),
    "last": lambda depths: Last(),
    "random": lambda depths: Random(seed=1),
    "data_driven": lambda depths: DataDriven(
        {
            stack: [0.1 * ((3 * i) % 7) for i in range(depth)]
            for stack, depth in zip(Depths._fields, depths, strict=True)
        }
    ),
    "search": lambda depths: search(depths),
    "search together": lambda depths: search(depths, together=True),
    "beam search": lambda depths: search(depths, exhaustive=0),
    "greedy removal": lambda depths: search(depths, exhaustive=0, beam=1, finalists=1),
}
FULL = [Depths(1, 1), Depths(4, 6), Depths(12, 6), Depths(3, 8)]
any_strategy = pytest.mark.parametrize("name", STRATEGIES)


@any_strategy
@pytest.mark.parametrize("full", FULL, ids=lambda depths: f"{depths[0]}+{depths[1]}")
def test_the_contract(name, full):
    strategy = STRATEGIES[name](full)
    targets = {Depths(full.encoder, d) for d in range(1, full.decoder + 1)}
    targets |= {Depths(e, full.decoder) for e in range(1, full.encoder + 1)}
    targets |= {Depths(min(d, full.encoder), min(d, full.decoder)) for d in range(1, max(full) + 1)}
    for target in sorted(targets):
        kept = strategy(full, target)
        assert kept.depths == target
        for layers, depth in zip(kept, full, strict=True):
            assert all(a < b for a, b in pairwise(layers))
            assert 0 <= layers[0] <= layers[-1] < depth
        assert STRATEGIES[name](full)(full, target) == kept, "the same question has the same answer"
    assert strategy(full, full) == Kept.all_of(full)


def one_based(layers: tuple[int, ...]) -> list[int]:
    return [layer + 1 for layer in layers]


@pytest.mark.parametrize(
    ("depth", "p", "kept"),
    [
        (6, Fraction(1, 2), [1, 3, 5]),
        (6, Fraction(1, 3), [1, 2, 4, 5]),
        (6, Fraction(1, 6), [1, 2, 3, 4, 5]),
        (4, Fraction(1, 4), [1, 2, 3]),
        (5, Fraction(2, 5), [1, 3, 5]),  # two fifths asked, two of five gone: floor(5/2) = 2
        (10, Fraction(2, 5), [1, 3, 5, 7, 9]),  # two fifths asked, half gone
        (6, Fraction(51, 100), []),
        (6, Fraction(3, 4), []),
        (6, Fraction(1), []),
        (6, Fraction(1, 7), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_papers_rule_by_hand(depth, p, kept):
    assert one_based(papers_every_other(depth, p)) == kept


@pytest.mark.parametrize(
    ("depth", "keep", "kept"),
    [
        (6, 3, [1, 3, 5]),
        (6, 4, [1, 2, 4, 5]),  # in floating point 1 / (1 - 4/6) is 2.9999999999999996 and three remain
        (6, 5, [1, 2, 3, 4, 5]),
        (12, 8, [1, 2, 4, 5, 7, 8, 10, 11]),  # in floating point six remain
        (12, 11, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),  # in floating point the stride is 11 and the last one stays
        (12, 6, [1, 3, 5, 7, 9, 11]),
        # Where the rule misses the number asked for: evenly spaced, both ends kept.
        (12, 3, [1, 7, 12]),
        (6, 2, [1, 6]),
        (6, 1, [1]),
        (8, 5, [1, 3, 5, 6, 8]),  # the rule would keep 4
        (12, 7, [1, 3, 5, 7, 8, 10, 12]),  # the rule would keep 6
        (16, 10, [1, 3, 4, 6, 8, 9, 11, 13, 14, 16]),  # the rule would keep 8
    ],
)
def test_every_other_by_hand(depth, keep, kept):
    assert one_based(EveryOther().layers(depth, keep, "decoder")) == kept


@given(st.integers(1, 64).flatmap(lambda depth: st.tuples(st.just(depth), st.integers(1, depth))))
def test_every_other_is_the_papers_rule_exactly_where_that_hits_the_number(case):
    depth, keep = case
    layers = EveryOther().layers(depth, keep, "decoder")
    dropped = depth - keep
    # In whole numbers alone: d falls where d * dropped is within the multiples of floor(depth / dropped).
    ruled = [d for d in range(depth) if dropped == 0 or (d + 1) % (depth // dropped)]
    assert list(layers) == (ruled if len(ruled) == keep else list(EvenlySpaced().layers(depth, keep, "decoder")))
    assert len(layers) == keep


@given(st.integers(1, 64).flatmap(lambda depth: st.tuples(st.just(depth), st.integers(1, depth))))
def test_evenly_spaced_layers_have_gaps_that_differ_by_at_most_one_and_keep_both_ends(case):
    depth, keep = case
    layers = EvenlySpaced().layers(depth, keep, "decoder")
    gaps = {b - a for a, b in pairwise(layers)}
    assert len(layers) == keep
    assert layers[0] == 0
    assert keep == 1 or layers[-1] == depth - 1
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_first_last_and_random():
    assert First().layers(6, 2, "decoder") == (0, 1)
    assert Last().layers(6, 2, "decoder") == (4, 5)
    draws = {Random(seed).layers(6, 3, stack) for seed in range(40) for stack in ("encoder", "decoder")}
    assert len(draws) > 12  # of the twenty there are


def test_random_draws_each_stack_apart():
    kept = [Random(seed)(Depths(6, 6), Depths(3, 3)) for seed in range(40)]
    assert sum(encoder == decoder for encoder, decoder in kept) < 10  # two are expected


def test_data_driven_keeps_what_is_dropped_least():
    strategy = DataDriven({"encoder": [0.2, 0.2, 0.2], "decoder": [0.5, 0.1, 0.3, 0.1]})
    assert strategy(Depths(3, 4), Depths(2, 2)) == Kept((0, 1), (1, 3))


@pytest.mark.parametrize("target", [Depths(4, 2), Depths(2, 6), Depths(2, 3)])
def test_an_exhaustive_search_finds_the_best_and_asks_for_the_bleu_of_finalists_alone(target):
    full = Depths(4, 6)
    found = search(full, exhaustive=10_000, together=True, finalists=3)
    kept = found(full, target)
    losses = {candidate: Importance(full).loss(candidate) for candidate in all_combinations(full, target)}
    assert losses[kept] == min(losses.values())
    assert set(found.judge.losses) == set(losses)
    assert sorted(losses[finalist] for finalist in found.judge.bleus) == sorted(losses.values())[:3]


def test_finalists_are_judged_by_bleu():
    class Contrary(Importance):
        def quality(self, kept: Kept) -> float:
            return self.loss(kept)

    full, target = Depths(4, 6), Depths(4, 3)
    settings = {"exhaustive": 100, "beam": 1, "budget": 1, "together": True}
    ranking = sorted(all_combinations(full, target), key=Importance(full).loss)
    assert SearchStrategy(Contrary(full), finalists=1, **settings)(full, target) == ranking[0]
    assert SearchStrategy(Contrary(full), finalists=4, **settings)(full, target) == ranking[3]


def test_greedy_removal_takes_one_layer_at_a_time_and_its_choices_are_nested():
    full = Depths(4, 6)
    greedy = search(full, exhaustive=0, beam=1, finalists=1)
    stacks = [set(greedy(full, Depths(4, keep)).decoder) for keep in range(6, 0, -1)]
    for more, fewer in pairwise(stacks):
        assert fewer < more
        candidates = [more - {layer} for layer in more]
        losses = [Importance(full).loss(Kept.all_of(full)._replace(decoder=tuple(sorted(c)))) for c in candidates]
        assert fewer == candidates[losses.index(min(losses))]


def test_a_wider_beam_is_never_worse_here_and_the_budget_narrows_it():
    full, target = Depths(12, 6), Depths(6, 3)
    losses, asked = [], []
    for beam, budget in ((1, 10**6), (4, 10**6), (32, 10**6), (32, 400), (32, 1)):
        found = search(full, exhaustive=0, beam=beam, budget=budget, finalists=1, together=True)
        losses.append(found.judge.loss(found(full, target)))
        asked.append(len(found.judge.losses))
    assert losses[0] >= losses[1] >= losses[2]
    assert asked[0] < asked[1] < asked[2]
    assert asked[3] <= 400
    assert asked[4] == asked[0]  # never narrower than greedy


def test_separate_searches_see_one_stack_shrink_at_a_time():
    full, target = Depths(4, 6), Depths(2, 3)
    found = search(full)
    found(full, target)
    assert all(len(kept.encoder) == 4 or len(kept.decoder) == 6 for kept in found.judge.losses)
    together = search(full, together=True, exhaustive=10_000)
    together(full, target)
    assert {kept.depths for kept in together.judge.losses} == {target}
