"""The laws of pruning strategies."""

from ablab.build import build_model, build_strategy
from ablab.config import Config
from ablab.contracts.laws import Law, require
from ablab.pruning.strategies import Depths, Kept, targets

VOCAB = 24


class EvenJudge:
    """Scores that favour even layers; no model is run."""

    def loss(self, kept: Kept) -> float:
        return 5.0 - sum(0.1 for layers in kept for layer in layers if layer % 2 == 0)

    def bleu(self, kept: Kept) -> float:
        return 10.0 - self.loss(kept)


def choices(config: Config) -> None:
    """Shrink either stack, and both, to every depth."""
    model = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB)
    strategy = build_strategy(config.pruning, model, EvenJudge())
    full = Depths(config.model.encoder_layers, config.model.decoder_layers)
    for curve in ("encoder", "decoder", "both"):
        for target in targets(curve, full, None):
            kept = strategy(full, target)
            require(kept == strategy(full, target), f"from {full} to {target}, a second choice is another")
            for stack, layers, count, depth in zip(Kept._fields, kept, target, full, strict=True):
                right = len(layers) == count and list(layers) == sorted({*layers} & {*range(depth)})
                require(right, f"{stack}: layers {layers} are no {count} of {depth}, ascending from 0")


LAWS = (Law("a choice has as many layers as asked, in order, and stays", choices),)
