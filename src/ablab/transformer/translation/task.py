"""The task translation: an encoder-decoder Transformer, trained on sentence pairs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ablab.config import Composed
from ablab.store.heartbeat import Heartbeat
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import RunFolder
from ablab.tasks.score import Recipe, Scores
from ablab.tasks.task import Chart, Example, OfCurve
from ablab.tracking.console import Console
from ablab.tracking.tracker import Tracker
from ablab.transformer.config.options import removes_heads
from ablab.transformer.config.recipe import curve, evaluation, recipe
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig
from ablab.transformer.pruning.measures import CHARTS, OF_CURVES, check_measured, of_curve
from ablab.transformer.pruning.plot import draw, lines_of
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.task import TransformerTask
from ablab.transformer.translation import planning, said, texts
from ablab.transformer.translation.scores import (
    COSTS,
    NATS,
    SCORES,
    TOKEN_NATS,
    VALID_BLEU,
    VALID_LOSS,
    VALID_LOSS_PER_CHARACTER,
    chosen_by,
)
from ablab.transformer.translation.verbs.translate import translated

if TYPE_CHECKING:
    from ablab.transformer.stages.train import Work
    from ablab.transformer.training.callbacks import Callbacks


class Translation(TransformerTask):
    """A run trains a model on sentence pairs, selects its weights on validation, and translates a test set."""

    name: ClassVar[str] = "translation"
    scores: Scores = SCORES
    costs: ClassVar[Scores] = COSTS
    primary: str = "test_bleu"
    loss: str = VALID_LOSS
    listed: Sequence[str] = ("test_bleu", "test_chrf", VALID_LOSS)
    curves: ClassVar[Sequence[str]] = ("bleu", "loss", "perplexity")
    methods: ClassVar[Sequence[str]] = (
        "Seeds are paired: arms share initial weights and batches.",
        "Weights: chosen on validation.",
    )
    smoke: ClassVar[str] = "every stage ran on a sliver of data, with a small vocabulary: the scores mean nothing"
    beside: Sequence[str] = ("test_chrf", "test_loss", VALID_LOSS)
    of_curves: ClassVar[Mapping[str, Mapping[str, str]]] = OF_CURVES

    modules: ClassVar[Sequence[str]] = (
        "ablab.transformer.translation.prune_curve",
        "ablab.transformer.translation.training",
    )
    lean: ClassVar[tuple[str, ...]] = ("pruning=none",)

    def check(self, config: TranslationConfig) -> None:
        config.data.check()

    def check_asked(self, composed: Composed) -> None:
        planning.check_asked(composed)

    def check_reopened(self, config: TranslationConfig, folder: RunFolder, record: Record) -> None:
        planning.check_reopened(config, folder, record)

    def origin(self, config: TranslationConfig) -> SavedModel | None:
        return planning.origin_of(config)

    def recipe(self, config: TranslationConfig, origin: str | None) -> dict[str, Any]:
        return recipe(config, origin)

    def evaluation(self, config: TranslationConfig) -> dict[str, Any]:
        return evaluation(config)

    def curve(self, config: TranslationConfig) -> dict[str, Any]:
        return curve(config)

    def lacks_curve(self, planned: PlannedTranslation) -> bool:
        return planning.lacks_curve(planned)

    def prepared(self, planned: PlannedTranslation, console: Console) -> "Work":
        from ablab.transformer.translation.training import prepare_training  # torch from here on

        return prepare_training(planned, console)

    def callbacks(
        self, planned: PlannedTranslation, console: Console, beating: Heartbeat, tracker: Tracker
    ) -> "Callbacks":
        from ablab.transformer.translation.callbacks import CurveCallback

        found = super().callbacks(planned, console, beating, tracker)
        found.callbacks.append(CurveCallback(tracker))
        return found

    def evaluate(self, planned: PlannedTranslation, record: Record, callbacks: "Callbacks") -> None:
        from ablab.transformer.translation.evaluate import evaluate

        evaluate(planned, record, callbacks)

    def measure_curve(self, planned: PlannedTranslation, record: Record, callbacks: "Callbacks") -> None:
        from ablab.transformer.translation.prune_curve import prune_curve

        prune_curve(planned, record, callbacks)

    def outputs_for(self, folder: RunFolder, inputs: Sequence[str], **settings: object) -> list[str]:
        return translated(folder, inputs, **settings)

    def dry_run(self, planned: PlannedTranslation) -> dict[str, Any]:
        from ablab.transformer.translation.training import try_out

        return asdict(try_out(planned))

    def draw_curves(self, curves: Mapping[str, Curve], title: str, path: Path) -> None:
        draw([line for arm, curve in curves.items() for line in lines_of([curve], arm)], title, path)

    def chosen_by(self, metric: str, recipe: Recipe) -> str | None:
        return chosen_by(metric, recipe)

    def of_curve(self, claim: Any) -> OfCurve | None:
        return of_curve(claim)

    def may_judge_by(self, curve: Curve, planned: PlannedTranslation) -> bool:
        return not removes_heads(planned.config.pruning) or curve.curve_id == planned.curve_id

    def check_measured(self, claim: Any, planned: PlannedTranslation) -> None:
        check_measured(claim, planned)

    def rows(self, record: Record, evaluation: Evaluation | None) -> Iterator[tuple[str, str]]:
        return said.rows_of(record, evaluation)

    def next_lines(self, record: Record) -> Sequence[str]:
        return said.next_lines(record)

    def curve_table(self, curve: Curve) -> tuple[Sequence[Sequence[str]], int]:
        return said.curve_table(curve)

    def notes_on_curve(self, curve: Curve) -> Sequence[str]:
        return said.notes_on_curve(curve)

    def scored_again(self, evaluation: Evaluation, folder: RunFolder) -> Iterator[str]:
        return texts.scored_again(evaluation, folder)

    def differing(
        self, evaluations: tuple[Evaluation, Evaluation], texts_of: tuple[Sequence[str], Sequence[str]], outputs: Path
    ) -> Sequence[Example]:
        return texts.differing(evaluations, texts_of, outputs)

    def charts(self, *, on_one_scale: bool) -> Mapping[str, Chart]:
        """Return the pictures of validation, pruning and training; of several vocabularies also the comparable loss."""
        loss = Chart("Validation loss", "step", TOKEN_NATS, "validations", "loss")
        found = {
            VALID_LOSS: loss,
            VALID_BLEU: Chart("Validation BLEU (greedy)", "step", "BLEU", "validations", "bleu"),
            **CHARTS,
            "grad_norm": Chart("Gradient norm", "step", "before clipping", "metrics", "grad_norm"),
            "drophead": Chart(
                *("Probability with which a head is dropped", "step", "probability", "metrics", "drophead"),
                is_flat_without=True,
            ),
        }
        if on_one_scale:
            return found
        per_character = Chart("Validation loss per character", "step", NATS, "validations", "loss_per_character")
        own = Chart(loss.title, loss.x, f"{loss.y} of the arm's own vocabulary", loss.source, loss.key)
        return {**found, VALID_LOSS: own, VALID_LOSS_PER_CHARACTER: per_character}
