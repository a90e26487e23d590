"""Validation scores of pruned models, each computed once in the life of a run."""

from collections.abc import Callable
from pathlib import Path

from ablab.files import read_json, write_json
from ablab.transformer.model.heads import attentions
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.heads import Heads
from ablab.transformer.pruning.strategies import Depths, Kept
from ablab.transformer.pruning.surgery import prune
from ablab.transformer.training.validation import Validator


class Validated:
    """Loss and greedy BLEU by set of kept layers or heads. Values computed earlier, by any strategy, are read from the
    file.
    """

    def __init__(self, model: Transformer, validator: Validator, path: Path) -> None:
        self.model, self.validator, self.path = model, validator, path
        self._known: dict[str, dict[str, float]] = read_json(path) if path.exists() else {}
        self._asked: set[Kept | Heads] = set()
        self.progress: Callable[[int], None] = lambda _: None

    @property
    def combinations(self) -> int:
        """The number of different sets of layers or heads scored by this object."""
        return len(self._asked)

    def loss(self, kept: Kept | Heads) -> float:
        """Return the validation loss in nats per target token."""
        self._asked.add(kept)
        if "loss" not in self._of(kept):
            self._learn(kept, "loss", self.validator.loss(prune(self.model, kept)))
        return self._of(kept)["loss"]

    def bleu(self, kept: Kept | Heads) -> float:
        """Return validation BLEU of greedy search."""
        self._asked.add(kept)
        if "bleu" not in self._of(kept):
            self._learn(kept, "bleu", self.validator.bleu(prune(self.model, kept)))
        return self._of(kept)["bleu"]

    def _of(self, kept: Kept | Heads) -> dict[str, float]:
        return self._known.get(self._name(kept), {})

    def _learn(self, kept: Kept | Heads, key: str, value: float) -> None:
        self._known.setdefault(self._name(kept), {})[key] = value
        self.progress(1)
        write_json(self.path, self._known)

    def _name(self, kept: Kept | Heads) -> str:
        """Return the name of the scores; the whole model has one name, whether it lost no layers or no heads."""
        return (whole_layers(self.model) if kept == whole_heads(self.model) else kept).name


def whole_layers(model: Transformer) -> Kept:
    """Return all layers of the model."""
    return Kept.all_of(Depths(len(model.encoder.layers), len(model.decoder.layers)))


def whole_heads(model: Transformer) -> Heads:
    """Return all heads of the model."""
    return Heads.of({site: [range(each.num_heads) for each in found] for site, found in attentions(model).items()})
