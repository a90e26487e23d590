"""The pruning stage: choose layers or heads on validation, score them on the test set, and time the models in turns."""

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ablab.code.code import code
from ablab.code.differences import other_judge
from ablab.files import read_json, write_json
from ablab.store.records import Curve, Evaluation, Point, Record, now
from ablab.tasks import identity
from ablab.tasks.plan import PlannedRun
from ablab.transformer.config.options import GreedyPruning, Pruning, RandomPruning, RulePruning, removes_heads
from ablab.transformer.decoding.speed import SHARE, Timing
from ablab.transformer.model.heads import attentions
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.pruning.curve_files import picture, write_artefacts
from ablab.transformer.pruning.heads import Heads, Importance, head_counts
from ablab.transformer.pruning.search import build_head_strategy, build_strategy
from ablab.transformer.pruning.strategies import STACKS, Depths, Kept, check_choice, curves_of, targets
from ablab.transformer.pruning.surgery import prune
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.cost import parameter_count

Chosen = Sequence[tuple[str, Kept | Heads]]
"""The points of all curves: the name of the curve and the kept layers or heads."""


def label(pruning: Pruning) -> str:
    """Return the strategy's name for a legend."""
    if isinstance(pruning, RandomPruning):
        return f"random, seed {pruning.seed}"
    together = isinstance(pruning, GreedyPruning) and pruning.together and pruning.is_read("together")
    return f"{pruning.kind} together" if together else pruning.kind


class Validated:
    """Scores on validation by set of kept layers or heads, each computed once in the life of a run.

    `measures`: by name, `loss` among them, what scores a model. `finally_by`: the one, the higher the better, that
    decides among finalists; the loss where there is none. Values computed earlier, by any strategy, are read from the
    file.
    """

    def __init__(
        self, model: TokenModel, measures: Mapping[str, Callable[[Any], float]], path: Path, finally_by: str = ""
    ) -> None:
        self.model, self.measures, self.path, self.finally_by = model, measures, path, finally_by
        self._known: dict[str, dict[str, float]] = read_json(path) if path.exists() else {}
        self._asked: set[Kept | Heads] = set()
        self.progress: Callable[[int], None] = lambda _: None

    def know(self, kept: Kept | Heads, scores: Mapping[str, float]) -> None:
        """Take scores that were measured elsewhere in the same way, if there are all of them."""
        if self.measures.keys() <= scores.keys():
            self._known.setdefault(self._name(kept), {key: scores[key] for key in self.measures})

    @property
    def combinations(self) -> int:
        """The number of different sets of layers or heads scored by this object."""
        return len(self._asked)

    def scores(self, kept: Kept | Heads) -> dict[str, float]:
        """Return every score."""
        return {key: self._score(key, kept) for key in self.measures}

    def loss(self, kept: Kept | Heads) -> float:
        """Return the validation loss in nats per predicted token."""
        return self._score("loss", kept)

    def quality(self, kept: Kept | Heads) -> float:
        """Return what decides among finalists; the higher the better."""
        return self._score(self.finally_by, kept) if self.finally_by else -self.loss(kept)

    def _score(self, key: str, kept: Kept | Heads) -> float:
        self._asked.add(kept)
        known = self._known.setdefault(self._name(kept), {})
        if key not in known:
            known[key] = self.measures[key](prune(self.model, kept))
            self.progress(1)
            write_json(self.path, self._known)
        return known[key]

    def _name(self, kept: Kept | Heads) -> str:
        """Return the name of the scores; the whole model has one name, whether it lost no layers or no heads."""
        return (whole_layers(self.model) if kept == whole_heads(self.model) else kept).name


def whole_layers(model: TokenModel) -> Kept:
    return Kept.all_of(Depths(*(len(model.stacks.get(stack, ())) for stack in STACKS)))


def whole_heads(model: TokenModel) -> Heads:
    found = attentions(model)
    return Heads.of({site: [range(each.num_heads) for each in found.get(site, ())] for site in Heads._fields})


class Bench(abc.ABC):
    """A trained model with its validation and its test set, kept apart. A task says how it scores and times models.

    `tested`: the scores of a point, of those of its evaluation.
    """

    tested: ClassVar[tuple[str, ...]]

    def __init__(self, planned: PlannedRun[Any], callbacks: Callback, model: TokenModel, validated: Validated) -> None:
        self.planned, self.callbacks, self.model, self.validated = planned, callbacks, model, validated

    @property
    @abc.abstractmethod
    def test_name(self) -> str:
        """Name of the test set."""

    @property
    @abc.abstractmethod
    def timed(self) -> int:
        """The number of items on which speed is measured."""

    @abc.abstractmethod
    def settings(self, kept: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
        """Return the settings of an evaluation of what remains; None: of the whole model."""

    @abc.abstractmethod
    def tested_anew(self, model: Any, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        """Evaluate a model on the test set, and add the evaluation to the run."""

    @abc.abstractmethod
    def timing(self, models: Sequence[Any], budget: float) -> Timing:
        """Time what the models make of the timed items, in turns; `budget`: in seconds."""

    @abc.abstractmethod
    def importance_of_heads(self) -> Importance:
        """Return the importance of the heads on validation."""

    def valid(self, kept: Kept | Heads) -> dict[str, float]:
        """Return the validation scores of a point."""
        return self.validated.scores(kept)

    @property
    def whole(self) -> Kept | Heads:
        """What remains of the full model, in terms of what is removed."""
        return whole_heads(self.model) if removes_heads(self.planned.config.pruning) else whole_layers(self.model)

    def choose(self) -> Chosen:
        """Choose the layers or heads of each point, on validation if the strategy uses scores."""
        pruning, whole = self.planned.config.pruning, self.whole
        with self.callbacks.counting("combinations looked at", None) as advance:
            self.validated.progress = advance
            if isinstance(whole, Heads):
                heads = build_head_strategy(pruning, whole, self._importance, self.validated)
                return [("heads", kept) for kept in heads(whole, head_counts(whole, pruning.own["heads"]))]
            assert isinstance(pruning, RulePruning)
            full = whole.depths
            wanted = [
                (name, target)
                for name in curves_of(pruning.curves, full)
                for target in targets(name, full, pruning.depths)
            ]
            strategy = build_strategy(pruning, self.model, self.validated)
            chosen = [(name, strategy(full, target), target) for name, target in wanted]
        for _, kept, target in chosen:
            check_choice(kept, full, target)
        return [(name, kept) for name, kept, _ in chosen]

    def _importance(self) -> Importance:
        """Return the importance of the heads, which is computed once in the life of a run."""
        path = self.planned.folder.head_importance
        if not path.exists():
            write_json(path, self.importance_of_heads())
        importance: Importance = read_json(path)
        return importance

    def evaluate(self, kept: Kept | Heads) -> Evaluation:
        """Evaluate the model with these layers or heads on the test set, as an evaluation of its own."""
        settings = self.settings(None if kept == self.whole else kept.settings)
        evaluation_id = identity.evaluation_id(settings)
        known = self.planned.folder.evaluation(evaluation_id)
        return known or self.tested_anew(prune(self.model, kept), evaluation_id, settings)

    def point(
        self, name: str, kept: Kept | Heads, evaluation: Evaluation, valid: dict[str, float], speed: float, full: float
    ) -> Point:
        model = prune(self.model, kept)
        layers = whole_layers(self.model) if isinstance(kept, Heads) else kept
        return Point.model_validate(
            {
                "curve": name,
                "encoder": list(layers.encoder),
                "decoder": list(layers.decoder),
                "parameters": parameter_count(model),
                "bytes": sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values()),
                "valid": valid,
                "evaluation_id": evaluation.evaluation_id,
                "scores": {name: evaluation.scores[name] for name in self.tested},
                "sentences_per_second": speed,
                "speed_ratio": speed / full,
                "heads": kept.sites if isinstance(kept, Heads) else None,
            }
        )


def measure_on(bench: Bench, record: Record) -> Curve:
    """Measure the curve that the configuration asks for. Scores measured earlier are reused."""
    planned, callbacks = bench.planned, bench.callbacks
    if (changed := other_judge(record.provenance, planned.recipe)) is not None:
        callbacks.on_message(changed)
    chosen = bench.choose()
    combinations = bench.validated.combinations
    distinct = list(dict.fromkeys(kept for _, kept in chosen))
    evaluations = {kept: bench.evaluate(kept) for kept in distinct}
    with callbacks.counting("validating", len(distinct)) as advance:
        valid = {}
        for kept in distinct:
            valid[kept] = bench.valid(kept)
            advance(1)
    with callbacks.counting("timing", None):
        timing = bench.timing([prune(bench.model, kept) for kept in distinct], SHARE * record.cost.train_seconds)
    speeds = {kept: bench.timed / seconds for kept, seconds in zip(distinct, timing.seconds, strict=True)}
    full = speeds[bench.whole]
    chosen_by: dict[str, Any] = {key: planned.curve[key] for key in ("pruning", "decoding") if key in planned.curve}
    made = code("curve", {**planned.recipe, **chosen_by})
    return Curve(
        curve_id=planned.curve_id,
        settings=planned.curve,
        label=label(planned.config.pruning),
        test_name=bench.test_name,
        combinations=combinations,
        points=[bench.point(name, kept, evaluations[kept], valid[kept], speeds[kept], full) for name, kept in chosen],
        timing={**timing.told, "sentences": bench.timed, "threads": 1},
        provenance_code=made.digest,
        components=dict(made.components),
        ended=now(),
    )


def prune_curve(
    measure: Callable[[Any, Record, Callback], Curve], planned: PlannedRun[Any], record: Record, callbacks: Callback
) -> Curve:
    """Measure quality against depth, or heads, as the configuration asks, and draw it with the run's other curves."""
    callbacks.on_stage("pruning")
    curve = measure(planned, record, callbacks)
    write_artefacts(planned.folder, curve, record.name)
    callbacks.on_curve(record.cost.steps, curve, picture(planned.folder, curve))
    # Last, so that a curve that can be read has been drawn.
    planned.folder.write_curve(curve)
    return curve
