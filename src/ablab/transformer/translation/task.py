"""The task translation: an encoder-decoder Transformer, trained on sentence pairs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from ablab.config import Composed
from ablab.errors import UserError
from ablab.fields import SCHEMA, flatten
from ablab.store.records import Curve, Record
from ablab.store.run_folder import RunFolder
from ablab.tasks.score import Scores
from ablab.tasks.task import Chart, Nouns
from ablab.text import program
from ablab.tracking.console import Console
from ablab.transformer.config.recipe import curve, evaluation, recipe
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig
from ablab.transformer.pruning.measures import PRUNED, charts
from ablab.transformer.pruning.plot import Quality
from ablab.transformer.stages.asked import Wanted
from ablab.transformer.stages.task import TransformerTask, check_tokenizer
from ablab.transformer.translation import said, texts
from ablab.transformer.translation.analyses import wanted
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
    from ablab.transformer.translation.contracts.laws import Law


FEW = 10_000
"""Training pairs below which a smoke run finds out whether its text gives the usual vocabulary.

2,000 pairs of Multi30k give 23,000 pieces, 400 of a few words a hundredth of that.
"""


class Translation(TransformerTask):
    """A run trains a model on sentence pairs, selects its weights on validation, and translates a test set."""

    name: ClassVar[str] = "translation"
    scores: Scores = SCORES
    costs: ClassVar[Scores] = COSTS
    primary: str = "test_bleu"
    loss: str = VALID_LOSS
    listed: Sequence[str] = ("test_bleu", "test_chrf", VALID_LOSS)
    curves: ClassVar[Sequence[str]] = ("bleu", "loss", "perplexity")
    nouns: ClassVar[Nouns] = Nouns("sentences", "pairs", "target tokens")
    smoke: ClassVar[str] = "every stage ran on a sliver of data, with a small vocabulary: the scores mean nothing"
    beside: Sequence[str] = ("test_chrf", "test_loss", VALID_LOSS)
    of_curves: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "depth": {"fall": "the BLEU that pruning may cost"},
        "pruned_bleu": PRUNED,
    }

    bounds: Mapping[str, tuple[float, float]] = {
        **dict.fromkeys((*SCORES, *COSTS), (0.0, inf)),
        **dict.fromkeys(("test_bleu", "test_chrf", "valid_bleu"), (0.0, 100.0)),
    }
    modules: ClassVar[Sequence[str]] = (
        "ablab.transformer.translation.prune_curve",
        "ablab.transformer.translation.training",
        "ablab.transformer.stages.warm",
    )
    quality: ClassVar[Quality] = Quality(
        *("bleu", "BLEU", 2, True, {"bleu": "test BLEU", "chrf": "chrF"}, ("loss", "bleu"), "sentences/s", 1.0)
    )
    small: ClassVar[tuple[str, ...]] = (
        *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.encoder_layers=2", "model.decoder_layers=3"),
    )

    recipe = staticmethod(recipe)
    evaluation = staticmethod(evaluation)
    curve = staticmethod(curve)
    chosen_by = staticmethod(chosen_by)
    rows = staticmethod(said.rows_of)
    analyses = staticmethod(wanted)
    scored_again = staticmethod(texts.scored_again)
    samples = staticmethod(texts.samples)
    differing = staticmethod(texts.differing)
    outputs_for = staticmethod(translated)

    def laws(self, chosen: Collection[str], line: list[str]) -> Iterator["Law"]:
        from ablab.transformer.translation.contracts import laws  # torch from here on

        return laws(chosen, line)

    def check(self, config: TranslationConfig) -> None:
        config.data.check()

    def check_asked(self, composed: Composed) -> None:
        (composed.asked or composed.config.data).check_pairs()  # type: ignore[attr-defined]

    def check_reopened(self, config: TranslationConfig, folder: RunFolder, record: Record) -> None:
        """Raise UserError where the text is not the one that the run was trained on: its tokenizers would not fit."""
        config.data.check()
        check_tokenizer(config.data.tokenizer, folder)
        known, digests = flatten(folder.recipe()), config.data.digests()
        if record.schema_version == SCHEMA and known.get("data.digest") != digests["digest"]:
            raise UserError(
                f"{folder.run_id}: the text that data.* names is not what it was trained on; allowed: the same "
                "sentences (a relative path is looked up from the present folder; a corpus that a package makes, by "
                "the same version)"
            )
        if known.get("data.dropped") != digests.get("dropped"):
            raise UserError(
                f"{folder.run_id}: data.overlap=drop left the sentences of another test set out of its training; "
                "allowed: the test set that it was trained with"
            )

    def prepared(self, planned: PlannedTranslation, console: Console) -> "Work":
        from ablab.transformer.data.prepared import check_vocabulary
        from ablab.transformer.translation.training import check_engine, prepare_training  # torch from here on

        check_engine(planned.config)
        # One that was typed is checked where the text is prepared. It is not done there for all: runs of before, which
        # it concerns in nothing, would have been trained by other code.
        asked, is_typed = planned.composed.asked, "data.vocab_size" in planned.composed.changes
        if asked is not None and not is_typed and (asked.train_pairs or asked.pairs_in("train") or FEW) < FEW:
            check_vocabulary(asked, planned.outputs / "corpora", console.counting)
        return prepare_training(planned, console)

    def evaluate(self, planned: PlannedTranslation, record: Record, callbacks: "Callbacks") -> None:
        from ablab.transformer.translation.evaluate import evaluate

        evaluate(planned, record, callbacks)

    def measure_curve(self, planned: PlannedTranslation, record: Record, callbacks: "Callbacks") -> Curve:
        from ablab.transformer.stages.pruning_curve import prune_curve
        from ablab.transformer.translation.prune_curve import measure

        return prune_curve(measure, planned, record, callbacks)

    def dry_run(self, planned: PlannedTranslation) -> dict[str, Any]:
        from ablab.transformer.translation.training import try_out

        return asdict(try_out(planned))

    def add_artefacts(
        self, planned: PlannedTranslation, record: Record, lacking: Sequence[Wanted], callbacks: "Callbacks"
    ) -> None:
        from ablab.transformer.translation.analyse import add_artefacts

        add_artefacts(planned, record, lacking, callbacks)

    def line_for(self, model: str) -> str:
        return f"echo 'a sentence' | {program('translate')} run={model}"

    def charts(self, *, on_one_scale: bool) -> Mapping[str, Chart]:
        """Return the pictures of validation, pruning and training; of several vocabularies also the comparable loss."""
        loss = Chart("Validation loss", "step", TOKEN_NATS, "validations", "loss")
        found = {
            VALID_LOSS: loss,
            VALID_BLEU: Chart("Validation BLEU (greedy)", "step", "BLEU", "validations", "bleu"),
            **charts(self.quality),
            "grad_norm": Chart("Norm of the gradient before it is clipped", "step", "norm", "metrics", "grad_norm"),
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
