"""The pruning curve of a language model: bits per byte against its layers or heads, and the speed of generation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ablab.store.records import Curve, Evaluation, Record
from ablab.transformer.data.documents.prepared import SPELT_OUT, prepare
from ablab.transformer.decoding.sampling import continuations
from ablab.transformer.decoding.speed import Timing, in_turns
from ablab.transformer.language_model.build import load_language_model
from ablab.transformer.language_model.evaluate import TextEvaluator
from ablab.transformer.language_model.schema import NAME, PlannedLanguageModel
from ablab.transformer.language_model.schema import evaluation as evaluation_of
from ablab.transformer.language_model.scores import bits_per_byte
from ablab.transformer.language_model.scoring import predicted, windows_of
from ablab.transformer.model.attention import SelfAttention
from ablab.transformer.model.language_model import LanguageModel, reads_apart
from ablab.transformer.pruning.heads import Heads, Importance
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.pruning.strategies import Kept
from ablab.transformer.stages.models import set_threads
from ablab.transformer.stages.pruning_curve import Bench, Validated, measure_on
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.head_importance import head_importance

TEXTS, TOKENS = 16, 32
"""Texts that are generated at once to measure speed, and the tokens of each."""


class TextBench(Bench):
    """A trained language model with its validation and its test text."""

    tested: ClassVar[tuple[str, ...]] = ("bits_per_byte", "loss")

    def __init__(self, planned: PlannedLanguageModel, record: Record, callbacks: Callback) -> None:
        saved = of_run(planned.folder, record, NAME)
        model, tokenizer = load_language_model(saved, set_threads(planned.config.trainer))
        prepared = prepare(planned.config.data, planned.outputs / "corpora", callbacks.on_message, callbacks.counting)
        self.text, self.context, self.end = prepared.valid, planned.config.model.context, tokenizer.end
        measures = {"loss": lambda model: predicted(model, self.text, self.context).scores["loss"]}
        super().__init__(planned, callbacks, model, Validated(model, measures, planned.folder.validated_layers))
        self.evaluator = TextEvaluator(planned, tokenizer, callbacks)

    @property
    def test_name(self) -> str:
        return self.evaluator.name

    @property
    def timed(self) -> int:
        return TEXTS

    def settings(self, kept: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
        return evaluation_of(self.planned.config, kept)

    def tested_anew(self, model: LanguageModel, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        return self.evaluator.evaluate(model, evaluation_id, settings)

    def timing(self, models: Sequence[LanguageModel], budget: float) -> Timing:
        def generating(model: LanguageModel) -> Callable[[], object]:
            return lambda: continuations(model, [self.end], None, self.context, samples=TEXTS, max_tokens=TOKENS)

        device = next(self.model.parameters()).device
        return in_turns([generating(model) for model in models], device, budget)

    def importance_of_heads(self) -> Importance:
        with self.callbacks.counting("importance of heads", None) as advance:
            apart = any(isinstance(each, SelfAttention) and reads_apart(each) for each in self.model.modules())
            one = 1 if apart else None  # a head's mask is that of its row
            batches = (window.packed for window in windows_of(self.text, self.context, one))
            return head_importance(self.model, batches, advance)

    def valid(self, kept: Kept | Heads) -> dict[str, float]:
        """Return loss and bits per byte, one of which follows from the other."""
        loss = self.validated.loss(kept)
        nats = loss * len(self.text.tokens) + SPELT_OUT * float(self.text.unknown.sum())
        return {"loss": loss, "bits_per_byte": float(bits_per_byte(nats, float(self.text.sizes.sum())))}


def measure(planned: PlannedLanguageModel, record: Record, callbacks: Callback) -> Curve:
    """Measure the curve that the configuration asks for. Scores measured earlier are reused."""
    return measure_on(TextBench(planned, record, callbacks), record)
