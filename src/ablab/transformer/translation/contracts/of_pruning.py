"""The laws of pruning strategies."""

from itertools import chain

from ablab.transformer.config.options import removes_heads
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.pruning.heads import Heads, head_counts
from ablab.transformer.pruning.search import build_head_strategy, build_strategy
from ablab.transformer.pruning.strategies import Depths, Kept, check_choice, targets
from ablab.transformer.translation.contracts.laws import Law, require
from ablab.transformer.translation.contracts.of_model import built

SHAPES = (Depths(4, 4), Depths(6, 6), Depths(12, 2))
"""Models of other depths than the one that is checked: a rule is used with any."""


class EvenJudge:
    """Scores that favour even layers, or heads; no model is run."""

    def loss(self, kept: Kept | Heads) -> float:
        numbers = (each.head for each in kept.each) if isinstance(kept, Heads) else chain(*kept)
        return 5.0 - sum(0.1 for number in numbers if number % 2 == 0)

    def quality(self, kept: Kept | Heads) -> float:
        return 10.0 - self.loss(kept)


def choices(config: TranslationConfig) -> None:
    """Shrink either stack, and both, to every depth; or remove heads, down to one in each attention."""
    if removes_heads(config.pruning):
        _of_heads(config)
        return
    for full in dict.fromkeys((Depths(config.model.encoder_layers, config.model.decoder_layers), *SHAPES)):
        shape = {f"{stack}_layers": depth for stack, depth in full._asdict().items()}
        of_shape = config.model_copy(update={"model": config.model.model_copy(update=shape)})
        strategy = build_strategy(config.pruning, built(of_shape), EvenJudge())
        for curve in ("encoder", "decoder", "both"):
            for target in targets(curve, full, None):
                kept = strategy(full, target)
                require(kept == strategy(full, target), f"from {full} to {target}, a second choice is another")
                check_choice(kept, full, target)


def _of_heads(config: TranslationConfig) -> None:
    model = config.model
    full = Heads.all_of(model.encoder_layers, model.decoder_layers, model.num_heads)
    importance = {site: [[1.0 / (1 + head) for head in heads] for heads in at] for site, at in full.sites.items()}
    strategy = build_head_strategy(config.pruning, full, lambda: importance, EvenJudge())
    counts = head_counts(full, config.pruning.own["heads"])
    chosen = strategy(full, counts)
    require(chosen == strategy(full, counts), "a second choice of heads is another")
    for kept, count in zip(chosen, counts, strict=True):
        right = kept.total == count and set(kept.each) <= set(full.each) and all(heads for at in kept for heads in at)
        require(right, f"{kept.name}: no {count} of {full.total} heads with one in each attention")


LAWS = (Law("a choice has as many layers or heads as asked, in order, and stays", choices),)
