"""Faults of the choice of layers, of surgery, and of what is read off a model."""

from benchmarks.mutants.fault import Fault

STRATEGIES = ("pruning/test_strategies.py",)

PRUNING = [
    Fault(
        "every other: counts from 0",
        "transformer/pruning/strategies.py",
        "return tuple(layer - 1 for layer in range(1, depth + 1) if layer % stride)",
        "return tuple(layer for layer in range(depth) if layer % stride)",
        STRATEGIES,
    ),
    Fault(
        "every other: p in floating point",
        "transformer/pruning/strategies.py",
        "papers_every_other(depth, Fraction(depth - keep, depth))",
        "papers_every_other(depth, Fraction(1 - keep / depth))",
        STRATEGIES,
    ),
    Fault(
        "evenly spaced: rounds down",
        "transformer/pruning/strategies.py",
        "(2 * i * (depth - 1) + gaps) // (2 * gaps)",
        "i * (depth - 1) // gaps",
        STRATEGIES,
    ),
    Fault(
        "data driven: keeps what is dropped most",
        "transformer/pruning/strategies.py",
        "key=lambda layer: (rates[layer], layer)",
        "key=lambda layer: (-rates[layer], layer)",
        STRATEGIES,
    ),
    Fault(
        "random: both stacks make one draw",
        "transformer/pruning/strategies.py",
        'derive(self.seed, "pruning", stack, depth, keep)',
        'derive(self.seed, "pruning", depth, keep)',
        STRATEGIES,
    ),
    Fault(
        "search: the quality of the finalists is ignored",
        "transformer/pruning/search.py",
        "finalists]\n        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.quality)",
        "finalists]\n        return finalists[0]",
        STRATEGIES,
    ),
    Fault(
        "search: takes the worst finalist",
        "transformer/pruning/search.py",
        "finalists]\n        return finalists[0] if len(finalists) == 1 else max(finalists, key=self.judge.quality)",
        "finalists]\n        return finalists[0] if len(finalists) == 1 else min(finalists, key=self.judge.quality)",
        STRATEGIES,
    ),
    Fault(
        "search: the encoder is judged beside a decoder already cut",
        "transformer/pruning/search.py",
        "encoder = self._best(full, Depths(target.encoder, full.decoder)).encoder",
        "encoder = self._best(full, target).encoder",
        STRATEGIES,
    ),
    Fault(
        "surgery: drop rates are those of the lowest layers",
        "transformer/model/layerdrop.py",
        "LayerDrop([self.drop_probs[index] for index in kept])",
        "LayerDrop(self.drop_probs[: len(kept)])",
        ("pruning/test_surgery.py", "model/test_layerdrop.py"),
    ),
    Fault(
        "importance of heads: the mask scales the others",
        "transformer/analysis/inspect.py",
        "return outputs.index_fill(1, torch.tensor([head], device=outputs.device), 0.0)",
        "rest = outputs.index_fill(1, torch.tensor([head], device=outputs.device), 0.0)\n"
        "        return rest * outputs.size(1) / (outputs.size(1) - 1)",
        ("analysis/test_analysis.py",),
    ),
    Fault(
        "importance of heads: one mask for all rows where documents are read apart",
        "transformer/language_model/curve.py",
        "one = 1 if apart else None",
        "one = None",
        ("language_model/test_importance.py",),
    ),
]
