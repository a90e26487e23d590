"""The pruning stage: choose layers on validation, score them on the test set, and time the models in turns."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from ablab import identity
from ablab.build import build_strategy, load_model, set_threads
from ablab.config.options import Pruning, RandomPruning, RulePruning, SearchPruning
from ablab.data.prepared import prepare
from ablab.decoding.speed import ROUNDS, SENTENCES, sentences_per_second
from ablab.decoding.translator import Translator
from ablab.files import read_json, write_json
from ablab.model.transformer import Transformer
from ablab.plan import Planned
from ablab.provenance import code_digest, other_judge
from ablab.pruning.curve_files import PICTURE, write_artefacts
from ablab.pruning.strategies import Depths, Kept, targets
from ablab.pruning.surgery import prune
from ablab.stages.evaluate import Evaluator
from ablab.store.records import Curve, Evaluation, Point, Record, now
from ablab.store.saved_model import of_run
from ablab.training.callbacks import Callback
from ablab.training.cost import parameter_count
from ablab.training.validation import Validator


class Validated:
    """Loss and greedy BLEU by set of kept layers. Values computed earlier, by any strategy, are read from the file."""

    def __init__(self, model: Transformer, validator: Validator, path: Path) -> None:
        self.model, self.validator, self.path = model, validator, path
        self._known: dict[str, dict[str, float]] = read_json(path) if path.exists() else {}
        self._asked: set[Kept] = set()
        self.progress: Callable[[int], None] = lambda _: None

    @property
    def combinations(self) -> int:
        """The number of different sets of layers scored by this object."""
        return len(self._asked)

    def loss(self, kept: Kept) -> float:
        """Return the validation loss in nats per target token."""
        self._asked.add(kept)
        if "loss" not in self._of(kept):
            self._learn(kept, "loss", self.validator.loss(prune(self.model, kept)))
        return self._of(kept)["loss"]

    def bleu(self, kept: Kept) -> float:
        """Return validation BLEU of greedy search."""
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


Chosen = list[tuple[str, Kept]]
"""The points of all curves: the name of the curve and the kept layers."""


def measure(planned: Planned, record: Record, callbacks: Callback) -> Curve:
    """Measure the curve that the configuration asks for. Scores measured earlier are reused."""
    if (changed := other_judge(record.provenance)) is not None:
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
    full = speeds[Kept.all_of(bench.full)]
    return Curve(
        curve_id=planned.curve_id,
        settings=planned.curve,
        label=label(planned.config.pruning),
        test_name=bench.evaluator.name,
        combinations=combinations,
        points=[bench.point(name, kept, evaluations[kept], scores[kept], speeds[kept], full) for name, kept in chosen],
        timing={"rounds": ROUNDS, "sentences": bench.timed, "threads": torch.get_num_threads()},
        provenance_code=code_digest("curve"),
        ended=now(),
    )


def label(pruning: Pruning) -> str:
    """Return the strategy's name for a legend."""
    if isinstance(pruning, RandomPruning):
        return f"random, seed {pruning.seed}"
    return "search together" if isinstance(pruning, SearchPruning) and pruning.together else pruning.kind


@dataclass
class _Bench:
    """A trained model with its validation scores and its test set, kept apart."""

    planned: Planned
    callbacks: Callback
    translator: Translator
    validated: Validated
    evaluator: Evaluator

    @classmethod
    def begin(cls, planned: Planned, record: Record, callbacks: Callback) -> "_Bench":
        device = set_threads(planned.config.trainer)
        translator = Translator(*load_model(of_run(planned.folder, record), device))
        prepared = prepare(planned.config.data, planned.outputs / "corpora", callbacks.on_message)
        validated = Validated(translator.model, Validator(prepared), planned.folder.validated_layers)
        return cls(planned, callbacks, translator, validated, Evaluator(planned, callbacks))

    @property
    def full(self) -> Depths:
        model = self.translator.model
        return Depths(len(model.encoder.layers), len(model.decoder.layers))

    @property
    def timed(self) -> int:
        """The number of sentences translated to measure speed."""
        return min(SENTENCES, len(self.evaluator.sources))

    def choose(self) -> Chosen:
        """Choose the layers of each point, on validation if the strategy uses scores."""
        pruning = self.planned.config.pruning
        assert isinstance(pruning, RulePruning)
        wanted = [
            (name, target)
            for name in dict.fromkeys(pruning.curves)
            for target in targets(name, self.full, pruning.depths)
        ]
        strategy = build_strategy(pruning, self.translator.model, self.validated)
        with self.callbacks.counting("combinations looked at", None) as advance:
            self.validated.progress = advance
            return [(name, strategy(self.full, target)) for name, target in wanted]

    def evaluate(self, kept: Kept) -> Evaluation:
        """Evaluate the model with these layers on the test set; the run stores it as an evaluation of its own."""
        whole = kept == Kept.all_of(self.full)
        settings = identity.evaluation(self.planned.config, None if whole else kept.layers)
        evaluation_id = identity.evaluation_id(settings)
        known = self.planned.folder.evaluation(evaluation_id)
        return known or self.evaluator.evaluate(self._pruned(kept), evaluation_id, settings)

    def speeds(self, distinct: list[Kept], progress: Callable[[int], None]) -> dict[Kept, float]:
        """Return sentences per second of each model, measured together."""
        models = [prune(self.translator.model, kept) for kept in distinct]
        src = self.translator.encode(self.evaluator.sources[: self.timed])
        rates = sentences_per_second(models, src, self.evaluator.search, progress)
        return dict(zip(distinct, rates, strict=True))

    def point(
        self, name: str, kept: Kept, evaluation: Evaluation, scores: tuple[float, float], speed: float, full: float
    ) -> Point:
        model = prune(self.translator.model, kept)
        return Point.model_validate(
            {
                "curve": name,
                "encoder": list(kept.encoder),
                "decoder": list(kept.decoder),
                "parameters": parameter_count(model),
                "bytes": sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values()),
                "valid_loss": scores[0],
                "valid_bleu": scores[1],
                "evaluation_id": evaluation.evaluation_id,
                "bleu": evaluation.bleu,
                "chrf": evaluation.chrf,
                "sentences_per_second": speed,
                "speed_ratio": speed / full,
            }
        )

    def _pruned(self, kept: Kept) -> Translator:
        source, target = self.translator.source, self.translator.target
        return Translator(prune(self.translator.model, kept), (source, target))


def prune_curve(planned: Planned, record: Record, callbacks: Callback) -> Curve:
    """Measure quality against depth as the configuration asks, and draw it with the run's other curves."""
    callbacks.on_stage("pruning")
    curve = measure(planned, record, callbacks)
    write_artefacts(planned.folder, curve, record.name)
    callbacks.on_curve(record.cost.steps, curve, planned.folder.artefacts / PICTURE)
    # Last, so that a curve that can be read has been drawn.
    planned.folder.write_curve(curve)
    return curve
