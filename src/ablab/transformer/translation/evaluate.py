"""The evaluation stage: translate the test set with a run's weights or some of its layers, score it and store it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from ablab.code.code import code
from ablab.code.differences import other_judge
from ablab.code.machine import fast_bfloat16
from ablab.store.records import EvaluatedSet, Evaluation, Record, SharedSentences, now
from ablab.store.shared import StoredText, keep_text
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.corpus import SPLITS, Pair, Split
from ablab.transformer.data.keys import has_both_sides
from ablab.transformer.data.overlap import Overlap
from ablab.transformer.data.prepared import Prepared, characters, unknown_nats
from ablab.transformer.data.scoring import Scoring, looks_tokenised, score
from ablab.transformer.decoding.encodings import in_bfloat16
from ablab.transformer.decoding.speed import Timing, translations_timed
from ablab.transformer.decoding.translator import DecodingConfig, Translator
from ablab.transformer.export.translator import CTranslate2Engine
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.models import load_model, set_threads
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.translation.validation import spread_loss


def build_search(config: TranslationConfig) -> DecodingConfig:
    """Build the decoding settings for the test set."""
    decoding = config.decoding
    return DecodingConfig(decoding.beam_size, decoding.length_penalty, config.test_extra_tokens)


class OwnEngine:
    """ablab's own search, in single precision.

    `signature`: of scores that no other engine's may be compared with.
    """

    @property
    def signature(self) -> dict[str, str]:
        return {}

    def at_work(self, translator: Translator) -> AbstractContextManager[Translator]:
        """Return a context with a translator of the same model that uses the engine."""
        return nullcontext(translator)

    def timed(self, translators: Sequence[Translator], src: Sentences, search: DecodingConfig, budget: float) -> Timing:
        """Time the translators' models in turns; `budget`: in seconds."""
        return translations_timed([each.model for each in translators], src, search, budget)


class BFloat16Engine(OwnEngine):
    """ablab's own search, of models in bfloat16; scores of words are summed in single precision."""

    @property
    def signature(self) -> dict[str, str]:
        return {"engine": "own bf16"}

    def at_work(self, translator: Translator) -> AbstractContextManager[Translator]:
        return nullcontext(_in_bfloat16(translator))

    def timed(self, translators: Sequence[Translator], src: Sentences, search: DecodingConfig, budget: float) -> Timing:
        return super().timed([_in_bfloat16(each) for each in translators], src, search, budget)


def _in_bfloat16(translator: Translator) -> Translator:
    return Translator(in_bfloat16(translator.model), (translator.source, translator.target))


ENGINES: Mapping[str, Callable[[Any], CTranslate2Engine]] = {"ctranslate2": CTranslate2Engine}
"""Engines other than ours, by decoding.engine: each is made from decoding.quantization."""


def build_engine(config: TranslationConfig) -> OwnEngine | CTranslate2Engine:
    """Build what translates the test set."""
    decoding = config.decoding
    if decoding.engine == "own":
        return BFloat16Engine() if decoding.precision == "bf16" else OwnEngine()
    return ENGINES[decoding.engine](decoding.quantization)


class Evaluator:
    """The test set of a configuration, ready to evaluate models, whole or pruned."""

    def __init__(self, planned: PlannedTranslation, callbacks: Callback) -> None:
        config = planned.config
        data = config.data
        splits = [Split(each.name, data.as_read(each.pairs[: data.test_pairs])) for each in data.test_splits()]
        pairs = [pair for split in splits for pair in split.pairs]
        self.planned, self.callbacks, self.name = planned, callbacks, data.test_name
        self.sets = [EvaluatedSet(name=split.name, sentences=len(split.pairs)) for split in splits]
        self.sources, self.references = ([pair[side] for pair in pairs] for side in (0, 1))
        self.text = keep_text(planned.outputs, self.name, StoredText(self.sources, self.references))
        self.search: DecodingConfig = build_search(config)
        self.engine = build_engine(config)
        if config.decoding.precision == "bf16" and config.trainer.accelerator == "cpu" and fast_bfloat16() is False:
            callbacks.on_message("decoding.precision=bf16: this processor emulates bfloat16, far slower than fp32")
        self.overlap = self._overlap(pairs)
        if looks_tokenised(self.references):
            callbacks.on_message(
                f"{self.name} looks tokenised (full stops stand apart): its scores are not those of plain text"
            )

    def evaluate(self, translator: Translator, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        """Translate and score the test set, and add one evaluation to the run."""
        count = self.planned.config.decoding.n_best
        with (
            self.engine.at_work(translator) as engine,
            self.callbacks.counting(f"translating {self.name}", len(self.sources)) as advance,
        ):
            began = time.perf_counter()
            encoded: Sentences = translator.encode(self.sources)
            if count == 1:
                ids, n_best = engine.ids(encoded, self.search, advance), None
                hypotheses = translator.target.decode(ids)
            else:
                found = engine.hypotheses(encoded, self.search, advance)
                ids = [list(beams[0].ids) for beams in found]
                n_best = [translator.texts(beams[:count]) for beams in found]
                hypotheses = [beams[0][1] for beams in n_best]
            seconds = time.perf_counter() - began
        losses = self._losses(translator, encoded)
        scores = score(hypotheses, self.references, Scoring(**settings.get("scoring", {})))
        made = code("evaluation", {**self.planned.recipe, "decoding": settings["decoding"]})
        evaluation = Evaluation(
            evaluation_id=evaluation_id,
            settings=settings,
            test_name=self.name,
            sentences=len(self.sources),
            scores={"bleu": scores.bleu, "chrf": scores.chrf, **losses},
            signatures={**scores.signatures, **self.engine.signature},
            at_limit=self.search.cut(encoded.lengths - 1, ids),
            overlap=self._shared(),
            brevity_penalty=scores.brevity_penalty,
            length_ratio=scores.length_ratio,
            seconds=seconds,
            sentences_per_second=len(self.sources) / seconds,
            references=self.text,
            items={"bleu": scores.sentences},
            provenance_code=made.digest,
            components=dict(made.components),
            ended=now(),
            test_sets=self.sets if len(self.sets) > 1 else None,
        )
        self.planned.folder.write_evaluation(evaluation, hypotheses, n_best)
        return evaluation

    def _overlap(self, pairs: Sequence[Pair]) -> dict[Literal["train", "valid"], Overlap] | None:
        """Count the test pairs that the run was trained on or validated with; None if that is not known."""
        record = self.planned.folder.record()
        corpus = "" if record is None else str(record.data.get("corpus", ""))
        return Prepared(self.planned.outputs / "corpora" / corpus).overlaps(pairs)

    def _shared(self) -> dict[Literal["train", "valid"], SharedSentences] | None:
        if self.overlap is None:
            return None
        return {split: SharedSentences(**vars(overlap)) for split, overlap in self.overlap.items()}

    def overlap_lines(self) -> Iterator[str]:
        """Yield what the test set shares with training and validation."""
        for split, overlap in (self.overlap or {}).items():
            if (told := overlap.told("test", SPLITS[split])) is not None:
                yield f"{self.name}: {told}"

    def _losses(self, translator: Translator, sources: Sentences) -> dict[str, float]:
        """Return the loss on the references as on validation, per token and per character: over the pairs with two
        sides; nothing without any.
        """
        pairs = zip(self.sources, self.references, strict=True)
        kept = [row for row, pair in enumerate(pairs) if has_both_sides(pair)]
        if not kept:
            return {}
        texts = [self.references[row] for row in kept]
        references = Sentences.of(translator.target.encode(texts))
        loss = spread_loss(translator.model, sources.chosen(kept), references)
        nats = loss * len(references.tokens) + unknown_nats(translator.target, references, texts)
        return {"loss": loss, "loss_per_character": nats / characters(texts)}


def evaluate(planned: PlannedTranslation, record: Record, callbacks: Callback) -> Evaluation:
    """Translate the test set with the selected weights, score it, and store the evaluation."""
    callbacks.on_stage("evaluating")
    if (changed := other_judge(record.provenance, planned.recipe)) is not None:
        callbacks.on_message(changed)
    device = set_threads(planned.config.trainer)
    translator = Translator(*load_model(of_run(planned.folder, record), device))
    evaluator = Evaluator(planned, callbacks)
    for line in evaluator.overlap_lines():
        callbacks.on_message(line)
    return evaluator.evaluate(translator, planned.evaluation_id, planned.evaluation)
