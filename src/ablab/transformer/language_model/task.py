"""The task of language models: a decoder-only Transformer, trained to continue text."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ablab.config import Composed
from ablab.errors import UserError
from ablab.fields import flatten
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import RunFolder
from ablab.tasks.score import Scores
from ablab.tasks.task import Chart, Nouns
from ablab.text import duration, how_many, program
from ablab.tracking.console import Console
from ablab.transformer.data.documents.texts import check_sizes, check_tests, check_texts, text_of
from ablab.transformer.language_model.analyses import wanted
from ablab.transformer.language_model.schema import (
    NAME,
    LanguageModelConfig,
    PlannedLanguageModel,
    curve,
    evaluation,
    recipe,
)
from ablab.transformer.language_model.scores import COMPARED, COSTS, VALID_BITS, VALID_LOSS, chosen_by
from ablab.transformer.pruning.measures import PRUNED, charts
from ablab.transformer.pruning.plot import Quality
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.asked import Wanted
from ablab.transformer.stages.task import TransformerTask, check_tokenizer, share_of_limit

if TYPE_CHECKING:
    from ablab.transformer.stages.train import Work
    from ablab.transformer.training.callbacks import Callbacks
    from ablab.transformer.translation.contracts.laws import Law


class LanguageModelling(TransformerTask):
    """A run trains a model on text, selects its weights on validation, and measures how they predict a test text."""

    name: ClassVar[str] = NAME
    scores: Scores = COMPARED
    costs: ClassVar[Scores] = COSTS
    primary: str = "test_bits_per_byte"
    loss: str = VALID_LOSS
    listed: Sequence[str] = ("test_bits_per_byte", "test_loss", VALID_BITS)
    curves: ClassVar[Sequence[str]] = ("bits_per_byte", "loss", "accuracy")
    beside: Sequence[str] = ("test_loss", "test_accuracy", VALID_BITS)
    nouns: ClassVar[Nouns] = Nouns("documents", "documents")
    smoke: ClassVar[str] = "every stage ran on a sliver of text, with a small vocabulary: the scores mean nothing"
    bounds: Mapping[str, tuple[float, float]] = {
        **dict.fromkeys((*COMPARED, *COSTS), (0.0, inf)),
        **dict.fromkeys(("test_perplexity", "valid_perplexity"), (1.0, inf)),
        **dict.fromkeys(("test_accuracy", "valid_accuracy"), (0.0, 100.0)),
    }
    modules: ClassVar[Sequence[str]] = (
        "ablab.transformer.language_model.curve",
        "ablab.transformer.language_model.training",
        "ablab.transformer.stages.warm",
    )
    of_curves: ClassVar[Mapping[str, Mapping[str, str]]] = {"pruned_bits_per_byte": PRUNED}
    quality: ClassVar[Quality] = Quality(
        *("bits_per_byte", "bits per byte", 4, False),
        {"bits_per_byte": "test bits per byte", "loss": "test loss"},
        ("loss", "bits_per_byte"),
        "texts/s",
        close=0.02,
    )
    layouts: ClassVar[tuple[str, ...]] = ("gpt2", "llama")
    small: ClassVar[tuple[str, ...]] = (
        *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.decoder_layers=3", "model.context=32"),
    )

    recipe = staticmethod(recipe)
    evaluation = staticmethod(evaluation)
    curve = staticmethod(curve)
    chosen_by = staticmethod(chosen_by)
    analyses = staticmethod(wanted)

    def export(self, saved: SavedModel, layout: str, folder: Path) -> None:
        from ablab.transformer.data.documents.tokenizers import save_tokenizer
        from ablab.transformer.export.transformers_layouts import to_transformers
        from ablab.transformer.language_model.build import load_language_model
        from ablab.transformer.stages.models import device_of  # torch from here on

        model, tokenizer = load_language_model(saved, device_of("cpu"))
        to_transformers(model, layout, saved.architecture.model.context, tokenizer.end, folder)
        save_tokenizer(folder, tokenizer)

    def laws(self, chosen: Collection[str], line: list[str]) -> Iterator["Law"]:
        from ablab.transformer.language_model.contracts import laws  # torch from here on

        return laws(chosen, line)

    def check(self, config: LanguageModelConfig) -> None:
        check_texts(config.data)

    def check_asked(self, composed: Composed) -> None:
        check_sizes(composed.asked or composed.config.data)  # type: ignore[attr-defined]
        check_tests(composed.config.data)  # type: ignore[attr-defined]

    def check_reopened(self, config: LanguageModelConfig, folder: RunFolder, record: Record) -> None:
        self.check(config)
        check_tokenizer(config.data.tokenizer, folder)
        known, digests = flatten(folder.recipe()), text_of(config.data).digests()
        if any(known.get(f"data.{key}") != digest for key, digest in digests.items()):
            raise UserError(
                f"{folder.run_id}: the text that data.* names is not what it was trained on; allowed: the same text"
            )

    def prepared(self, planned: PlannedLanguageModel, console: Console) -> "Work":
        from ablab.transformer.language_model.training import prepare_training  # torch from here on

        return prepare_training(planned, console)

    def evaluate(self, planned: PlannedLanguageModel, record: Record, callbacks: "Callbacks") -> None:
        from ablab.transformer.language_model.evaluate import evaluate

        evaluate(planned, record, callbacks)

    def measure_curve(self, planned: PlannedLanguageModel, record: Record, callbacks: "Callbacks") -> Curve:
        from ablab.transformer.language_model.curve import measure
        from ablab.transformer.stages.pruning_curve import prune_curve

        return prune_curve(measure, planned, record, callbacks)

    def dry_run(self, planned: PlannedLanguageModel) -> dict[str, Any]:
        from ablab.transformer.language_model.training import try_out

        return asdict(try_out(planned))

    def rows(self, record: Record, evaluation: Evaluation | None) -> Iterator[tuple[str, str]]:
        def shown(perplexity: float) -> str:
            return f"{perplexity:,.2f}" if perplexity < 1e6 else f"{perplexity:.3g}"

        for place, scores in (
            ("test", evaluation and evaluation.scores),
            ("validation", record.selected and record.selected.scores),
        ):
            if scores:
                yield (
                    place,
                    f"{scores['bits_per_byte']:.4f} bits per byte, {scores['loss']:.4f} nats per token, perplexity "
                    f"{shown(scores['perplexity'])}, {scores['accuracy']:.2f} % of tokens guessed",
                )
        if evaluation is not None:
            yield "test text", f"{evaluation.test_name}, {how_many(evaluation.sentences, 'document')}"
        cost = record.cost
        yield "parameters", f"{cost.parameters:,}"
        yield (
            "training",
            f"{cost.steps:,} steps, {cost.epochs:.1f} epochs in {duration(cost.seconds)}, "
            f"{cost.tokens_per_second:,.0f} tokens/s{share_of_limit(record)}",
        )

    def add_artefacts(
        self, planned: PlannedLanguageModel, record: Record, lacking: Sequence[Wanted], callbacks: "Callbacks"
    ) -> None:
        from ablab.transformer.language_model.analyse import add_artefacts, say_what_is_cut

        say_what_is_cut(planned, record, lacking, callbacks.on_message)
        add_artefacts(planned, record, lacking, callbacks)

    def line_for(self, model: str) -> str:
        return f"{program('generate')} run={model} prompt='the beginning of a text'"

    def charts(self, *, on_one_scale: bool) -> Mapping[str, Chart]:
        return {
            VALID_BITS: Chart("Validation bits per byte", "step", "bits per byte", "validations", "bits_per_byte"),
            VALID_LOSS: Chart("Validation loss", "step", "nats per token", "validations", "loss"),
            **charts(self.quality),
            "grad_norm": Chart("Norm of the gradient before it is clipped", "step", "norm", "metrics", "grad_norm"),
        }
