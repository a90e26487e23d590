"""The evaluation stage: how well a run's weights, or some of its layers, predict the test text."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ablab.code.code import code
from ablab.code.differences import other_judge
from ablab.store.records import EvaluatedSet, Evaluation, Record, SharedSentences, now
from ablab.transformer.data.documents.prepared import PreparedText, lost, overlaps, read_tests, told_overlap
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.tokenizers import TextTokenizer
from ablab.transformer.language_model.build import load_language_model
from ablab.transformer.language_model.schema import NAME, PlannedLanguageModel
from ablab.transformer.language_model.scoring import Predicted, predicted
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.models import set_threads
from ablab.transformer.training.callbacks import Callback


class TextEvaluator:
    """The test text of a configuration, ready to evaluate models, whole or pruned."""

    def __init__(self, planned: PlannedLanguageModel, tokenizer: TextTokenizer, callbacks: Callback) -> None:
        self.planned, self.callbacks = planned, callbacks
        found = read_tests(planned.config.data)
        self.sets = [(name, Shard.of(tokenizer, documents)) for name, documents in found]
        self.name = " + ".join(name for name, _ in self.sets)
        every = [document for _, documents in found for document in documents]
        self.overlap, self.lost = self._overlap(every), lost(tokenizer, every)

    def evaluate(self, model: Any, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        """Predict the test text, and add one evaluation to the run."""
        began = time.perf_counter()
        tokens = sum(len(shard.tokens) for _, shard in self.sets)
        with self.callbacks.counting(f"predicting {self.name}", tokens) as advance:
            each = [predicted(model, shard, self.planned.config.model.context, advance) for _, shard in self.sets]
        seconds = time.perf_counter() - began
        whole = Predicted(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
        made = code("evaluation", self.planned.recipe)
        evaluation = Evaluation(
            evaluation_id=evaluation_id,
            settings=settings,
            test_name=self.name,
            sentences=len(whole.nats),
            scores=whole.scores,
            signatures={} if self.lost is None else {"text": self.lost},
            seconds=seconds,
            sentences_per_second=len(whole.nats) / seconds,
            overlap=self._shared(),
            items=whole.items,
            provenance_code=made.digest,
            components=dict(made.components),
            ended=now(),
            test_sets=self._named() if len(self.sets) > 1 else None,
        )
        self.planned.folder.write_evaluation(evaluation, None)
        return evaluation

    def _overlap(self, documents: Sequence[str]) -> Mapping[Literal["train", "valid"], Mapping[str, int]] | None:
        """Count the test documents that the run was trained on or validated with; None if that is not known."""
        record = self.planned.folder.record()
        corpus = "" if record is None else str(record.data.get("corpus", ""))
        return overlaps(PreparedText(self.planned.outputs / "corpora" / corpus), documents)

    def _shared(self) -> dict[Literal["train", "valid"], SharedSentences] | None:
        """Return the overlap as it is recorded; a document has no second side."""
        if self.overlap is None:
            return None
        counts = self.overlap.items()
        return {
            split: SharedSentences(of=n["of"], pairs=n["same"], sources=n["same"], near=n["near"])
            for split, n in counts
        }

    def tell(self) -> None:
        """Say what the test text shares with training, and what of it the tokenizer loses."""
        if self.lost is not None:
            self.callbacks.on_message(f"{self.name}: scored on the text {self.lost}: bits per byte are too few")
        if self.overlap is not None and (told := told_overlap(self.overlap["train"], "test")) is not None:
            self.callbacks.on_message(f"{self.name}: {told}")

    def _named(self) -> list[EvaluatedSet]:
        return [EvaluatedSet(name=name, sentences=len(shard)) for name, shard in self.sets]


def evaluate(planned: PlannedLanguageModel, record: Record, callbacks: Callback) -> Evaluation:
    """Predict the test text with the selected weights, and store how well."""
    callbacks.on_stage("evaluating")
    if (changed := other_judge(record.provenance, planned.recipe)) is not None:
        callbacks.on_message(changed)
    model, tokenizer = load_language_model(of_run(planned.folder, record, NAME), set_threads(planned.config.trainer))
    evaluator = TextEvaluator(planned, tokenizer, callbacks)
    evaluator.tell()
    return evaluator.evaluate(model, planned.evaluation_id, planned.evaluation)
