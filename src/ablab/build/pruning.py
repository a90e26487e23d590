"""Builds the pruning strategy that the configuration names."""

from collections.abc import Callable

from ablab.config.options import Pruning
from ablab.model.transformer import Transformer
from ablab.pruning.search import Judge, SearchStrategy
from ablab.pruning.strategies import DataDriven, EvenlySpaced, EveryOther, First, Last, Random, Strategy


def build_strategy(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    """Build the pruning strategy that the configuration names, ready to choose the layers to keep."""
    return STRATEGIES[pruning.kind](pruning, model, judge)


def _data_driven(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    return DataDriven({"encoder": model.encoder.layerdrop.rates(), "decoder": model.decoder.layerdrop.rates()})


def _search(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    own = {name: value for name, value in pruning.own.items() if name not in ("curves", "depths")}
    return SearchStrategy(judge, **own)


STRATEGIES: dict[str, Callable[[Pruning, Transformer, Judge], Strategy]] = {
    "every_other": lambda *_: EveryOther(),
    "evenly_spaced": lambda *_: EvenlySpaced(),
    "first": lambda *_: First(),
    "last": lambda *_: Last(),
    "random": lambda pruning, *_: Random(pruning.own["seed"]),
    "data_driven": _data_driven,
    "search": _search,
    "greedy": lambda pruning, model, judge: SearchStrategy(
        judge, exhaustive=0, beam=1, budget=1, finalists=1, together=pruning.own["together"]
    ),
}
"""Builders of pruning strategies by their name in conf/pruning."""
