"""The pruning stage: choose layers or heads on validation, score them on the test set, and time the models in turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ablab.code.code import code
from ablab.code.differences import other_judge
from ablab.files import read_json, write_json
from ablab.store.records import Curve, Evaluation, Point, Record, now
from ablab.tasks import identity
from ablab.transformer.build import build_head_strategy, build_strategy, load_model, set_threads
from ablab.transformer.config.options import GreedyPruning, Pruning, RandomPruning, RulePruning, removes_heads
from ablab.transformer.config.recipe import evaluation as evaluation_of
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.prepared import prepare
from ablab.transformer.decoding.speed import ROUNDS, SENTENCES, sentences_per_second
from ablab.transformer.decoding.translator import Translator
from ablab.transformer.model.heads import attentions
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.curve_files import picture, write_artefacts
from ablab.transformer.pruning.heads import Heads, Importance, head_counts
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.pruning.strategies import Depths, Kept, targets
from ablab.transformer.pruning.surgery import prune
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.cost import parameter_count
from ablab.transformer.training.head_importance import head_importance
from ablab.transformer.translation.evaluate import Evaluator
from ablab.transformer.translation.validation import Validator

Chosen = Sequence[tuple[str, Kept | Heads]]
"""The points of all curves: the name of the curve and the kept layers or heads."""


def measure(planned: PlannedTranslation, record: Record, callbacks: Callback) -> Curve:
    """Measure the curve that the configuration asks for. Scores measured earlier are reused."""
    if (changed := other_judge(record.provenance, planned.recipe)) is not None:
        callbacks.on_message(changed)
    bench = _Bench.begin(planned, record, callbacks)
    chosen = bench.choose()
    combinations = bench.validated.combinations
    distinct = list(dict.fromkeys(kept for _, kept in chosen))
    evaluations = {kept: bench.evaluate(kept) for kept in distinct}
    with callbacks.counting("validating and timing", len(distinct) * (2 + ROUNDS)) as advance:
        scores = {}
        for kept in distinct:
            scores[kept] = (bench.validated.loss(kept), bench.validated.bleu(kept))
            advance(1)
        speeds = bench.speeds(distinct, advance)
    full = speeds[bench.whole]
    made = code("curve", {**planned.recipe, "pruning": planned.curve["pruning"]})
    return Curve(
        curve_id=planned.curve_id,
        settings=planned.curve,
        label=label(planned.config.pruning),
        test_name=bench.evaluator.name,
        combinations=combinations,
        points=[bench.point(name, kept, evaluations[kept], scores[kept], speeds[kept], full) for name, kept in chosen],
        timing={"rounds": ROUNDS, "sentences": bench.timed, "threads": torch.get_num_threads()},
        provenance_code=made.digest,
        components=dict(made.components),
        ended=now(),
    )


def label(pruning: Pruning) -> str:
    """Return the strategy's name for a legend."""
    if isinstance(pruning, RandomPruning):
        return f"random, seed {pruning.seed}"
    together = isinstance(pruning, GreedyPruning) and pruning.together and pruning.is_read("together")
    return f"{pruning.kind} together" if together else pruning.kind


class Validated:
    """Loss and greedy BLEU on validation by set of kept layers or heads, each computed once in the life of a run.

    Values computed earlier, by any strategy, are read from the file.
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
    return Kept.all_of(Depths(len(model.encoder.layers), len(model.decoder.layers)))


def whole_heads(model: Transformer) -> Heads:
    return Heads.of({site: [range(each.num_heads) for each in found] for site, found in attentions(model).items()})


@dataclass
class _Bench:
    """A trained model with its validation scores and its test set, kept apart."""

    planned: PlannedTranslation
    callbacks: Callback
    translator: Translator
    validator: Validator
    validated: Validated
    evaluator: Evaluator

    @classmethod
    def begin(cls, planned: PlannedTranslation, record: Record, callbacks: Callback) -> "_Bench":
        device = set_threads(planned.config.trainer)
        translator = Translator(*load_model(of_run(planned.folder, record), device))
        prepared = prepare(planned.config.data, planned.outputs / "corpora", callbacks.on_message, callbacks.counting)
        validator = Validator(prepared, planned.config.valid_extra_tokens)
        validated = Validated(translator.model, validator, planned.folder.validated_layers)
        return cls(planned, callbacks, translator, validator, validated, Evaluator(planned, callbacks))

    @property
    def whole(self) -> Kept | Heads:
        """What remains of the full model, in terms of what is removed."""
        model = self.translator.model
        return whole_heads(model) if removes_heads(self.planned.config.pruning) else whole_layers(model)

    @property
    def timed(self) -> int:
        """The number of sentences translated to measure speed."""
        return min(SENTENCES, len(self.evaluator.sources))

    def choose(self) -> Chosen:
        """Choose the layers or heads of each point, on validation if the strategy uses scores."""
        pruning, whole = self.planned.config.pruning, self.whole
        if isinstance(whole, Heads):
            return self._choose_heads(pruning, whole)
        assert isinstance(pruning, RulePruning)
        full = whole.depths
        wanted = [
            (name, target) for name in dict.fromkeys(pruning.curves) for target in targets(name, full, pruning.depths)
        ]
        strategy = build_strategy(pruning, self.translator.model, self.validated)
        with self.callbacks.counting("combinations looked at", None) as advance:
            self.validated.progress = advance
            return [(name, strategy(full, target)) for name, target in wanted]

    def _choose_heads(self, pruning: Pruning, whole: Heads) -> Chosen:
        strategy = build_head_strategy(pruning, whole, self._importance, self.validated)
        with self.callbacks.counting("combinations looked at", None) as advance:
            self.validated.progress = advance
            return [("heads", kept) for kept in strategy(whole, head_counts(whole, pruning.own["heads"]))]

    def _importance(self) -> Importance:
        """Return the importance of the heads, which is computed once in the life of a run."""
        path = self.planned.folder.head_importance
        if not path.exists():
            src, tgt = self.validator.src, self.validator.tgt
            with self.callbacks.counting("importance of heads", len(src)) as advance:
                write_json(path, head_importance(self.translator.model, src, tgt, advance))
        importance: Importance = read_json(path)
        return importance

    def evaluate(self, kept: Kept | Heads) -> Evaluation:
        """Evaluate the model with these layers or heads on the test set, as an evaluation of its own."""
        settings = evaluation_of(self.planned.config, None if kept == self.whole else kept.settings)
        evaluation_id = identity.evaluation_id(settings)
        known = self.planned.folder.evaluation(evaluation_id)
        return known or self.evaluator.evaluate(self._pruned(kept), evaluation_id, settings)

    def speeds(self, distinct: Sequence[Kept | Heads], progress: Callable[[int], None]) -> dict[Kept | Heads, float]:
        """Return sentences per second of each model, measured together."""
        models = [prune(self.translator.model, kept) for kept in distinct]
        src = self.translator.encode(self.evaluator.sources[: self.timed])
        rates = sentences_per_second(models, src, self.evaluator.search, progress)
        return dict(zip(distinct, rates, strict=True))

    def point(
        self,
        name: str,
        kept: Kept | Heads,
        evaluation: Evaluation,
        scores: tuple[float, float],
        speed: float,
        full: float,
    ) -> Point:
        model = prune(self.translator.model, kept)
        layers = whole_layers(self.translator.model) if isinstance(kept, Heads) else kept
        return Point.model_validate(
            {
                "curve": name,
                "encoder": list(layers.encoder),
                "decoder": list(layers.decoder),
                "parameters": parameter_count(model),
                "bytes": sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values()),
                "valid": {"loss": scores[0], "bleu": scores[1]},
                "evaluation_id": evaluation.evaluation_id,
                "scores": {name: evaluation.scores[name] for name in ("bleu", "chrf")},
                "sentences_per_second": speed,
                "speed_ratio": speed / full,
                "heads": kept.sites if isinstance(kept, Heads) else None,
            }
        )

    def _pruned(self, kept: Kept | Heads) -> Translator:
        source, target = self.translator.source, self.translator.target
        return Translator(prune(self.translator.model, kept), (source, target))


def prune_curve(planned: PlannedTranslation, record: Record, callbacks: Callback) -> Curve:
    """Measure quality against depth, or heads, as the configuration asks, and draw it with the run's other curves."""
    callbacks.on_stage("pruning")
    curve = measure(planned, record, callbacks)
    write_artefacts(planned.folder, curve, record.name)
    callbacks.on_curve(record.cost.steps, curve, picture(planned.folder, curve))
    # Last, so that a curve that can be read has been drawn.
    planned.folder.write_curve(curve)
    return curve
