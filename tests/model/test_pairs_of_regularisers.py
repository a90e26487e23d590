"""Each regulariser draws what it draws, whatever else is switched on."""

import re
from collections.abc import Mapping
from functools import cache
from itertools import combinations, permutations
from typing import Any, NamedTuple

import pytest
import torch

from ablab.transformer.model.streams import reseed
from tests.model.arms import build, source, target
from tests.model.recording import Drawn, record

DEPTH = 4
STEPS, MICRO_BATCHES = (1, 2), (0, 1)
BATCH = source(7, 4, 7, 5, 6), target(6, 7, 3, 7, 7)
STACKS = {"model.encoder_layers": DEPTH, "model.decoder_layers": DEPTH}
NONE = {f"model.{kind}dropout": 0.0 for kind in ("", "embedding_", "attention_", "activation_", "word_")}
LAYERDROP = {"layerdrop_encoder": 0.4, "layerdrop_decoder": 0.4}


class Regulariser(NamedTuple):
    """What switches it on, how the names of its sites end, and how many it has."""

    changes: Mapping[str, Any]
    sites: str
    number: int

    def of(self, drawn: Drawn) -> Drawn:
        """What its own sites drew. LayerDrop at rate 0 draws too, and lets every layer run."""
        return {site: draws for site, draws in drawn.items() if re.search(f"{self.sites}$", site)}


REGULARISERS = {
    "dropout": Regulariser({"model.dropout": 0.3}, r"\.around_\w+\.dropout", 5 * DEPTH),
    "embedding dropout": Regulariser({"model.embedding_dropout": 0.3}, r"_input\.dropout", 2),
    "attention dropout": Regulariser({"model.attention_dropout": 0.3}, r"\.(self|cross)_attention\.dropout", 3 * DEPTH),
    "activation dropout": Regulariser({"model.activation_dropout": 0.3}, r"\.feed_forward\.dropout", 2 * DEPTH),
    "word dropout": Regulariser({"model.word_dropout": 0.3}, "word_dropout", 1),
    "layerdrop": Regulariser(LAYERDROP, r"\.layerdrop", 2),
    "learned layerdrop": Regulariser({**LAYERDROP, "layerdrop_rates": "learned"}, r"\.layerdrop", 2),
    "drophead": Regulariser({}, r"\.drophead", 3 * DEPTH),
}
ALL = tuple(REGULARISERS)


def drawn_at(regularisers: tuple[str, ...], *moments: tuple[int, int]) -> dict[tuple[int, int], Drawn]:
    """What every site draws at these moments, one after the other."""
    changes = {key: value for name in regularisers for key, value in REGULARISERS[name].changes.items()}
    model = build("pre", {**STACKS, **NONE, **changes}, drophead=0.3 if "drophead" in regularisers else 0.0).train()
    drawn = record(model)
    found = {}
    for step, micro_batch in moments:
        reseed(model, 1, step=step, micro_batch=micro_batch)
        model(*BATCH)
        found[step, micro_batch] = drawn.copy()
        drawn.clear()
    return found


@cache
def passes(*regularisers: str) -> dict[tuple[int, int], Drawn]:
    return drawn_at(regularisers, *((step, micro_batch) for step in STEPS for micro_batch in MICRO_BATCHES))


def equal(ours: list, theirs: list) -> bool:
    return len(ours) == len(theirs) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize(("one", "other"), list(permutations(ALL, 2)))
def test_switching_one_on_moves_no_draw_of_another(one, other):
    of, with_other = REGULARISERS[one].of, passes(*sorted((one, other), key=ALL.index))
    for moment, drawn in passes(one).items():
        alone, together = of(drawn), of(with_other[moment])
        in_both = alone.keys() & together.keys()
        assert in_both
        assert in_both == alone.keys() or "layerdrop" in other
        assert all(equal(alone[site], together[site]) for site in in_both)


@pytest.mark.parametrize("one", ALL)
def test_switching_all_others_on_moves_no_draw_of_one(one):
    of = REGULARISERS[one].of
    for moment, drawn in passes(one).items():
        alone, together = of(drawn), of(passes(*ALL)[moment])
        in_both = alone.keys() & together.keys()
        assert in_both
        assert all(equal(alone[site], together[site]) for site in in_both)


@pytest.mark.parametrize("one", ALL)
def test_all_its_sites_draw_and_each_its_own(one):
    """No two alike, of whatever index; both passes of word dropout (source and target) count."""
    drawn = REGULARISERS[one].of(passes(one)[STEPS[0], 0])
    assert len(drawn) == REGULARISERS[one].number
    draws = [draw for site in drawn.values() for draw in site]
    if "layerdrop" not in one:  # two subsets of four layers may well be one
        assert not any(equal([a], [b]) for a, b in combinations(draws, 2))


@pytest.mark.parametrize("one", [name for name in ALL if "layerdrop" not in name])
def test_micro_batches_and_steps_draw_anew(one):
    moments = [REGULARISERS[one].of(drawn) for drawn in passes(one).values()]
    for earlier, later in combinations(moments, 2):
        assert not any(equal(draws, later[site]) for site, draws in earlier.items())


@pytest.mark.parametrize("one", ["layerdrop", "learned layerdrop"])
def test_layerdrop_draws_anew_in_each_step_and_not_in_each_micro_batch(one):
    drawn = {moment: REGULARISERS[one].of(draws) for moment, draws in passes(one).items()}
    first, second = ([drawn[step, micro_batch] for micro_batch in MICRO_BATCHES] for step in STEPS)
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert first[0] != second[0]


def test_a_resumed_run_draws_what_it_would_have_drawn():
    moment = STEPS[-1], MICRO_BATCHES[-1]
    straight, resumed = passes(*ALL)[moment], drawn_at(ALL, moment)[moment]
    assert straight.keys() == resumed.keys()
    assert all(equal(draws, resumed[site]) for site, draws in straight.items())
