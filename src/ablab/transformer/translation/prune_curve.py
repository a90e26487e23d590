"""The pruning curve of a translation run: BLEU of greedy search chooses, and decoding is timed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from ablab.code.differences import other_origin
from ablab.store.records import Curve, Evaluation, Record
from ablab.transformer.config.recipe import evaluation as evaluation_of
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.prepared import prepare
from ablab.transformer.decoding.encodings import Encodings
from ablab.transformer.decoding.speed import SENTENCES, Timing
from ablab.transformer.decoding.translator import Translator
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.heads import Importance
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.models import load_model, set_threads
from ablab.transformer.stages.pruning_curve import Bench, Validated, measure_on
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.head_importance import head_importance
from ablab.transformer.translation.evaluate import Evaluator
from ablab.transformer.translation.validation import Validator, batches_of_pairs


class TranslationBench(Bench):
    """A trained model with its validation pairs and its test set."""

    tested: ClassVar[tuple[str, ...]] = ("bleu", "chrf")

    def __init__(self, planned: PlannedTranslation, record: Record, callbacks: Callback) -> None:
        self.translator = Translator(*load_model(of_run(planned.folder, record), set_threads(planned.config.trainer)))
        prepared = prepare(planned.config.data, planned.outputs / "corpora", callbacks.on_message, callbacks.counting)
        self.validator = Validator(prepared, planned.config.valid_extra_tokens)
        share = Encodings(self.translator.model).share
        measures: dict[str, Callable[[Transformer], float]] = {
            "loss": lambda model: self.validator.loss(share(model)),
            "bleu": lambda model: self.validator.bleu(share(model)),
        }
        validated = Validated(self.translator.model, measures, planned.folder.validated_layers, finally_by="bleu")
        super().__init__(planned, callbacks, self.translator.model, validated)
        if record.selected is not None and _would_validate_alike(planned, record):
            validated.know(self.whole, record.selected.scores)
        self.evaluator, self.share = Evaluator(planned, callbacks), share

    @property
    def test_name(self) -> str:
        return self.evaluator.name

    @property
    def timed(self) -> int:
        return min(SENTENCES, len(self.evaluator.sources))

    def settings(self, kept: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
        return evaluation_of(self.planned.config, kept)

    def tested_anew(self, model: Transformer, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        return self.evaluator.evaluate(self._translator(self.share(model)), evaluation_id, settings)

    def timing(self, models: Sequence[Transformer], budget: float) -> Timing:
        translators = [self._translator(model) for model in models]
        src = self.translator.encode(self.evaluator.sources)
        return self.evaluator.engine.timed(translators, src, self.evaluator.search, budget)

    def _translator(self, model: Transformer) -> Translator:
        return Translator(model, (self.translator.source, self.translator.target))

    def importance_of_heads(self) -> Importance:
        src, tgt = self.validator.src, self.validator.tgt
        with self.callbacks.counting("importance of heads", len(src)) as advance:
            return head_importance(self.translator.model, batches_of_pairs(src, tgt), advance)


def _would_validate_alike(planned: PlannedTranslation, record: Record) -> bool:
    """Return whether validation would give the bits on record: with the same code and threads, on a CPU."""
    alike = record.runtime.get("device") == "cpu" and record.runtime.get("threads") == torch.get_num_threads()
    on_cpu = planned.config.trainer.accelerator == "cpu"
    return alike and on_cpu and other_origin(record.provenance, planned.recipe, record.stretches) is None


def measure(planned: PlannedTranslation, record: Record, callbacks: Callback) -> Curve:
    """Measure the curve that the configuration asks for. Scores measured earlier are reused."""
    return measure_on(TranslationBench(planned, record, callbacks), record)
