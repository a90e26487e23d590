"""What a language model brings to a training: its text, model, steps and validation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ablab.config.kinds import outside_parts
from ablab.tracking.console import Console
from ablab.transformer.data.corpus import SIZED
from ablab.transformer.data.documents.packing import PackedSteps
from ablab.transformer.data.documents.prepared import PreparedText, check_vocabulary, prepare
from ablab.transformer.data.documents.tokenizers import save_tokenizer
from ablab.transformer.data.vocabulary import told_size
from ablab.transformer.language_model.build import build_language_model
from ablab.transformer.language_model.schema import LanguageModelConfig, PlannedLanguageModel
from ablab.transformer.language_model.scoring import predicted
from ablab.transformer.model.language_model import LanguageModel
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.builders import UNBOUNDED, Trainable
from ablab.transformer.stages.dry_run import DryRun, dry_run
from ablab.transformer.stages.models import start_from
from ablab.transformer.stages.train import Work
from ablab.transformer.stages.train import prepare_training as prepare_any
from ablab.transformer.training.cost import matrix_parameters
from ablab.transformer.training.validation import Samples, Validate, Validation


@dataclass(frozen=True)
class LanguageModelValidation(Validation):
    """The scores of one validation. `accuracy`: percent of tokens that are the model's first guess."""

    columns: ClassVar[tuple[str, ...]] = ("loss", "perplexity", "bits_per_byte", "accuracy")
    higher_is_better: ClassVar[tuple[str, ...]] = ("accuracy",)

    bits_per_byte: float
    accuracy: float

    @property
    def line(self) -> str:
        return f"{super().line}   bits per byte {self.bits_per_byte:.4f}"


@dataclass
class TextTrainable(Trainable[LanguageModelConfig]):
    """A language model to train on prepared text. `origin`: what it starts from, if anything."""

    validation: ClassVar[type[Validation]] = LanguageModelValidation

    config: LanguageModelConfig
    prepared: PreparedText
    origin: SavedModel | None

    def model(self) -> LanguageModel:
        model = build_language_model(self.config, self.prepared.manifest["vocab"])
        if self.origin is not None:
            start_from(model, self.origin)
        return model

    def steps(self) -> PackedSteps:
        return PackedSteps(
            self.prepared.train,
            context=self.config.model.context,
            batch_tokens=self.config.optim.batch_tokens,
            seed=self.config.seed,
            micro_batches=self.config.trainer.micro_batches,
            total=UNBOUNDED,
        )

    def validator(self, first: int | None = None) -> Validate:
        shard = self.prepared.valid if first is None else self.prepared.valid.first(first)

        def validate(model: Any, step: int) -> tuple[Validation, Samples]:
            scores = predicted(model, shard, self.config.model.context).scores
            return LanguageModelValidation(step, scores["loss"], scores["bits_per_byte"], scores["accuracy"]), Samples()

        return validate

    def save(self, checkpoints: Path) -> None:
        save_tokenizer(checkpoints, self.prepared.tokenizer)

    @property
    def data(self) -> Mapping[str, Any]:
        """The manifest; a document stands where a record of sentence pairs has a pair."""
        manifest, found = self.prepared.manifest, self.prepared.manifest["overlap"]
        train, valid = manifest["train"], manifest["valid"]
        return {
            **manifest,
            "corpus": self.prepared.folder.name,
            "train": {**train, "kept": train["documents"], "tgt_tokens": train["tokens"]},
            "valid": {**valid, "pairs": valid["documents"]},
            "overlap": {"of": found["of"], "pairs": found["same"], "sources": found["same"], "near": found["near"]},
        }

    @property
    def amount(self) -> str:
        counts = self.prepared.manifest["train"]
        return f"{counts['documents']:,} documents of {counts['tokens']:,} tokens"

    @property
    def tokens_of_epoch(self) -> int:
        count: int = self.prepared.manifest["train"]["tokens"]
        return count

    def flops_per_token(self, model: LanguageModel, shares: Mapping[str, Sequence[float]]) -> float:
        """6 per matrix parameter that a token passes (Kaplan et al. 2020, section 2.1), attention's products aside."""
        layers = [each for stack, found in model.stacks.items() for each in zip(shares[stack], found, strict=True)]
        passed = sum(share * matrix_parameters(layer) for share, layer in layers)
        return 6.0 * (passed + model.words.output_matrix().numel())


def prepare_training(planned: PlannedLanguageModel, console: Console) -> Work:
    """Prepare the text, build the model, find the last checkpoint."""
    return prepare_any(planned, console, _prepare)


def _prepare(planned: PlannedLanguageModel, console: Console) -> TextTrainable:
    asked, data = planned.composed.asked, planned.config.data
    if asked is not None and "data.vocab_size" in planned.composed.changes and asked.hard_vocab_limit:
        check_vocabulary(asked, planned.outputs / "corpora", console.counting)
    prepared = prepare(data, planned.outputs / "corpora", console.say, console.counting)
    if data.tokenizer in SIZED:
        size = told_size(data.vocab_size, [prepared.manifest["vocab"]], hard=data.hard_vocab_limit)
        if size is not None:
            console.say(size)
    for line in prepared.remarks():
        console.say(line)
    if planned.origin is not None:
        planned.origin.check_vocabulary(prepared.folder)
    planned.folder.begin(planned.recipe, outside_parts(planned.config))
    return TextTrainable(planned.config, prepared, planned.origin)


def try_out(planned: PlannedLanguageModel) -> DryRun:
    """Try a few steps of a run; only the prepared text is kept."""
    prepared = prepare(planned.config.data, planned.outputs / "corpora", lambda _: None)
    return dry_run(TextTrainable(planned.config, prepared, None))
