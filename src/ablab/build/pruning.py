"""Builds the pruning strategy that the configuration names."""

from collections.abc import Callable

from ablab.config.options import Pruning
from ablab.model.transformer import Transformer
from ablab.pruning.head_search import HeadJudge, HeadSearch
from ablab.pruning.heads import Heads, HeadStrategy, Importance, Removal, at_random, by_importance
from ablab.pruning.search import Judge, SearchStrategy
from ablab.pruning.strategies import DataDriven, EvenlySpaced, EveryOther, First, Last, Random, Strategy


def build_strategy(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    """Build the pruning strategy that the configuration names, ready to choose the layers to keep."""
    return STRATEGIES[pruning.kind](pruning, model, judge)


def _data_driven(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    return DataDriven({"encoder": model.encoder.layerdrop.rates(), "decoder": model.decoder.layerdrop.rates()})


def _search(pruning: Pruning, model: Transformer, judge: Judge) -> Strategy:
    own = {name: pruning.own[name] for name in ("exhaustive", "beam", "budget", "finalists", "together")}
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


def build_head_strategy(
    pruning: Pruning, full: Heads, importance: Callable[[], Importance], judge: HeadJudge
) -> HeadStrategy:
    """Build the strategy that chooses the heads to keep. `importance` is asked only where the strategy needs it."""
    return HEAD_STRATEGIES[pruning.kind](pruning, full, importance, judge)


def _head_search(pruning: Pruning, full: Heads, importance: Callable[[], Importance], judge: HeadJudge) -> HeadStrategy:
    sizes = {"beam": 1, "finalists": 1, **pruning.own}
    own = {name: sizes[name] for name in ("beam", "budget", "finalists")}
    return HeadSearch(judge, by_importance(full, importance()), **own)


HEAD_STRATEGIES: dict[str, Callable[[Pruning, Heads, Callable[[], Importance], HeadJudge], HeadStrategy]] = {
    "importance": lambda _, full, importance, __: Removal(by_importance(full, importance())),
    "random": lambda pruning, full, *_: Removal(at_random(full, pruning.own["seed"])),
    "greedy": _head_search,
    "search": _head_search,
}
"""Builders of strategies for heads by their name in conf/pruning."""
