"""What validation says of the model with some of its layers, remembered in the run's folder."""

from collections.abc import Callable
from pathlib import Path

from ablab.files import read_json, write_json
from ablab.model.transformer import Transformer
from ablab.pruning.kept import Kept
from ablab.pruning.surgery import prune
from ablab.training.validation import Validator


class Validated:
    """Loss and greedy BLEU per set of kept layers. What was computed once, by any strategy, is read from then on."""

    def __init__(self, model: Transformer, validator: Validator, path: Path) -> None:
        self.model, self.validator, self.path = model, validator, path
        self._known: dict[str, dict[str, float]] = read_json(path) if path.exists() else {}
        self._asked: set[Kept] = set()
        self.progress: Callable[[int], None] = lambda _: None

    @property
    def combinations(self) -> int:
        """How many different sets of layers this one has been asked about."""
        return len(self._asked)

    def loss(self, kept: Kept) -> float:
        """Nats per target token."""
        self._asked.add(kept)
        if "loss" not in self._of(kept):
            self._learn(kept, "loss", self.validator.loss(prune(self.model, kept)))
        return self._of(kept)["loss"]

    def bleu(self, kept: Kept) -> float:
        """Of greedy search."""
        self._asked.add(kept)
        if "bleu" not in self._of(kept):
            self._learn(kept, "bleu", self.validator.bleu(prune(self.model, kept)))
        return self._of(kept)["bleu"]

    def _of(self, kept: Kept) -> dict[str, float]:
        return self._known.get(kept.name, {})

    def _learn(self, kept: Kept, key: str, value: float) -> None:
        self._known.setdefault(kept.name, {})[key] = value
        self.progress(1)
        write_json(self.path, self._known)
