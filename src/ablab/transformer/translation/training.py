"""What translation brings to a training: its corpus, model, steps, validation and attention maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ablab.config.kinds import outside_parts
from ablab.errors import UserError
from ablab.store.run_folder import RunFolder
from ablab.tracking.console import Console
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig
from ablab.transformer.data.ceiling import remarks
from ablab.transformer.data.corpus import SIZED, Corpus
from ablab.transformer.data.prepared import Prepared, check_vocabulary, prepare
from ablab.transformer.data.steps import TrainingSteps
from ablab.transformer.data.tokenizer import save_tokenizers
from ablab.transformer.data.vocabulary import told_size
from ablab.transformer.export.ctranslate2 import POSITIONS, check_model
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.builders import UNBOUNDED, Trainable
from ablab.transformer.stages.dry_run import DryRun, dry_run
from ablab.transformer.stages.models import build_model, start_from
from ablab.transformer.stages.train import Work
from ablab.transformer.stages.train import prepare_training as prepare_any
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.cost import flops_per_token
from ablab.transformer.training.validation import Validate, Validation
from ablab.transformer.translation.callbacks import AttentionMapCallback
from ablab.transformer.translation.validation import TranslationValidation, Validator


@dataclass
class TranslationTrainable(Trainable[TranslationConfig]):
    """A Transformer to train on the sentence pairs of a prepared corpus. `origin`: what it starts from, if anything."""

    validation: ClassVar[type[Validation]] = TranslationValidation

    config: TranslationConfig
    prepared: Prepared
    origin: SavedModel | None

    def model(self) -> Transformer:
        src_vocab, tgt_vocab = self.prepared.manifest["vocab"]
        model = build_model(self.config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
        if self.origin is not None:
            start_from(model, self.origin)
        return model

    def steps(self) -> TrainingSteps:
        return build_steps(self.config, self.prepared)

    def validator(self, first: int | None = None) -> Validate:
        return Validator(self.prepared, self.config.valid_extra_tokens, first=first)

    def save(self, checkpoints: Path) -> None:
        save_tokenizers(checkpoints, self.prepared.tokenizers)

    @property
    def data(self) -> Mapping[str, Any]:
        return {**self.prepared.manifest, "corpus": self.prepared.folder.name}

    @property
    def amount(self) -> str:
        return f"{self.prepared.manifest['train']['kept']:,} pairs"

    @property
    def tokens_of_epoch(self) -> int:
        count: int = self.prepared.manifest["train"]["tgt_tokens"]
        return count

    def flops_per_token(self, model: Transformer, shares: Mapping[str, Sequence[float]]) -> float:
        counts = self.prepared.manifest["train"]
        return flops_per_token(model, counts["src_tokens"] / counts["tgt_tokens"], shares)

    def recorded(self, validation: Validation) -> dict[str, float]:
        return {**validation.scores, "loss_per_character": self.prepared.valid_per_character(validation.loss)}

    def callbacks(self, model: Transformer, folder: RunFolder, callbacks: Callback) -> list[Callback]:
        return [AttentionMapCallback(model, self.prepared, folder.artefacts, callbacks)]


def build_steps(config: TranslationConfig, prepared: Prepared) -> TrainingSteps:
    """Build the training data by step, without a limit on the number of steps."""
    src, tgt = prepared.train
    return TrainingSteps(
        src,
        tgt,
        batch_tokens=config.optim.batch_tokens,
        seed=config.seed,
        micro_batches=config.trainer.micro_batches,
        total=UNBOUNDED,
    )


def prepare_training(planned: PlannedTranslation, console: Console) -> Work:
    """Prepare the corpus, build the model, find the last checkpoint."""
    return prepare_any(planned, console, _prepare)


def check_engine(config: TranslationConfig) -> None:
    """Raise UserError for parts of the model that the engine of the test's translations cannot represent."""
    if config.decoding.engine == "own":
        return
    if config.test_extra_tokens + 1 >= POSITIONS:  # no source is shorter
        raise UserError(
            f"decoding.max_extra_tokens={config.test_extra_tokens}: a model of engine={config.decoding.engine} writes "
            f"fewer than {POSITIONS} subwords; allowed: less than {POSITIONS} with those of each source, or own"
        )
    try:
        check_model(build_model(config, src_vocab=8, tgt_vocab=8))
    except UserError as error:
        raise UserError(f"decoding.engine={config.decoding.engine}: {error}; allowed: own") from None


def try_out(planned: PlannedTranslation) -> DryRun:
    """Try a few steps of a run; only the prepared corpus is kept."""
    prepared = prepare(planned.config.data, planned.outputs / "corpora", lambda _: None)
    return dry_run(TranslationTrainable(planned.config, prepared, None))


def _prepare(planned: PlannedTranslation, console: Console) -> TranslationTrainable:
    config, asked = planned.config, planned.composed.asked
    if asked is not None and "data.vocab_size" in planned.composed.changes:
        check_vocabulary(asked, planned.outputs / "corpora", console.counting)
    prepared = prepare(config.data, planned.outputs / "corpora", console.say, console.counting)
    text = prepared.manifest["train"]
    if asked is None and (dropped := text.get("dropped_overlap", 0)):
        config.data.check_wanted("train", text["pairs"] - dropped)
    if asked is not None:
        console.say(shrunk_line(config.data, asked, prepared))
    elif config.data.tokenizer in SIZED:
        size = told_size(config.data.vocab_size, prepared.manifest["vocab"], hard=config.data.hard_vocab_limit)
        if size is not None:
            console.say(size)
    for line in remarks(config.data, prepared.manifest):
        console.say(line)
    if planned.origin is not None:
        planned.origin.check_vocabulary(prepared.folder)
    planned.folder.begin(planned.recipe, outside_parts(config))
    if prepared.overlap is not None and (told := prepared.overlap.told("validation", "training")) is not None:
        console.say(f"{told} (data.overlap=drop leaves such pairs out of training)")
    return TranslationTrainable(config, prepared, planned.origin)


def shrunk_line(corpus: Corpus, asked: Corpus, prepared: Prepared) -> str:
    """Say what a smoke run reduces."""
    vocab = " and ".join(f"{size:,}" for size in dict.fromkeys(prepared.manifest["vocab"]))
    shrunk = f", and a vocabulary of {vocab} in place of {asked.vocab_size:,}" if asked.is_read("vocab_size") else ""
    return f"smoke: {corpus.train_pairs:,} pairs at most{shrunk}"
