"""Builds the pruning strategy that the configuration names."""

from collections.abc import Callable

from ablab.code.load import construct
from ablab.config.kinds import chosen_part
from ablab.transformer.config.options import Pruning
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.pruning.heads import Heads, HeadStrategy, Importance, Removal, at_random, by_importance
from ablab.transformer.pruning.search import HeadJudge, HeadSearch, Judge
from ablab.transformer.pruning.strategies import STACKS, Strategy


def build_strategy(pruning: Pruning, model: TokenModel, judge: Judge) -> Strategy:
    """Build the pruning strategy that the configuration names, ready to choose the layers to keep."""
    depths = {f"{stack}_layers": len(model.stacks.get(stack, ())) for stack in STACKS}
    rates = {stack: getattr(model, stack).layerdrop.rates() if stack in model.stacks else [] for stack in STACKS}
    facts = {**depths, "judge": judge, "rates": rates}
    strategy: Strategy = construct(chosen_part(pruning), {**facts, **pruning.own})
    return strategy


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
