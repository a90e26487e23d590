"""From configuration to objects: the only place that knows both."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ablab.config import Config
from ablab.data.prepared import Prepared
from ablab.data.steps import TrainingSteps
from ablab.decoding.translate import Search
from ablab.errors import UserError
from ablab.identity import peak_rate
from ablab.mirror import Mirror, NoMirror, RunCard, WandbMirror
from ablab.model.attention import CrossAttention, SelfAttention
from ablab.model.drophead import DropHead
from ablab.model.dropout import Dropout
from ablab.model.embedding import Embedding, FixNormEmbedding, TokenInput, WordTables
from ablab.model.feed_forward import FeedForward
from ablab.model.initialisation import INITIALISERS, initialise
from ablab.model.layerdrop import RATES, LayerDrop
from ablab.model.layers import DecoderLayer, EncoderLayer
from ablab.model.norms import NORMS, ScaleNorm
from ablab.model.positions import POSITIONS
from ablab.model.residual import PLACEMENTS, Residual
from ablab.model.transformer import Decoder, Encoder, Transformer
from ablab.model.word_dropout import WordDropout
from ablab.plan import Planned
from ablab.training.checkpoints import Checkpoints
from ablab.training.course import Course, Ends, Plateau
from ablab.training.lightning_module import Objective
from ablab.training.schedules import DROP_SCHEDULES, inverse_sqrt

UNBOUNDED = 1 << 40
"""Steps of a training that something other than steps will end."""


def build_model(config: Config, *, src_vocab: int, tgt_vocab: int) -> Transformer:
    """The Transformer of this configuration, with its initial weights."""
    model = _Parts(config).transformer(src_vocab, tgt_vocab)
    initialise(model, INITIALISERS[config.init.kind](), config.seed)
    return model


def build_steps(config: Config, prepared: Prepared) -> TrainingSteps:
    """The training data by step, as many as steps and epochs allow."""
    src, tgt = prepared.train
    steps = TrainingSteps(
        src,
        tgt,
        batch_tokens=config.optim.batch_tokens,
        seed=config.seed,
        micro_batches=config.trainer.micro_batches,
        total=UNBOUNDED,
    )
    bounds = [config.training.max_steps or UNBOUNDED]
    if config.training.max_epochs is not None:
        bounds.append(steps.steps_in(config.training.max_epochs))
    steps.total = min(bounds)
    return steps


def build_objective(config: Config, course: Course) -> Objective:
    """What an optimiser step minimises, and at which rates."""
    optim, drophead = config.optim, config.drophead
    schedule = DROP_SCHEDULES[drophead.schedule]
    return Objective(
        seed=config.seed,
        label_smoothing=config.training.label_smoothing,
        learning_rate=_learning_rate(config, course),
        drophead_rate=lambda step: schedule(step, drophead.p, drophead.warmup_steps, drophead.total_steps or 0),
        betas=(optim.beta1, optim.beta2),
        eps=optim.eps,
        clip=optim.clip,
    )


def _learning_rate(config: Config, course: Course) -> Callable[[int], float]:
    if (plateau := _plateau(config)) is not None:
        return lambda step: plateau.rate(course)
    peak, warmup = peak_rate(config), config.optim.warmup_steps
    return lambda step: inverse_sqrt(step, warmup=warmup, peak=peak)


def _plateau(config: Config) -> Plateau | None:
    optim = config.optim
    if optim.schedule != "plateau":
        return None
    return Plateau(peak=peak_rate(config), decay=optim.decay, patience=optim.decay_patience, min_rate=optim.min_lr)


def build_ends(config: Config, steps: TrainingSteps) -> Ends:
    """What ends training."""
    training = config.training
    return Ends(
        total_steps=len(steps) if steps.total < UNBOUNDED else None,
        max_seconds=None if training.max_minutes is None else 60 * training.max_minutes,
        patience=training.patience,
        monitor=training.monitor,
        plateau=_plateau(config),
    )


def build_checkpoints(config: Config, folder: Path) -> Checkpoints:
    """The run's weights on disk, and how they are selected."""
    training = config.training
    return Checkpoints(folder, training.monitor, training.select, training.average_last)


def build_search(config: Config) -> Search:
    """How test sentences are translated."""
    decoding = config.decoding
    return Search(decoding.beam_size, decoding.length_penalty, decoding.max_extra_tokens)


def build_mirror(planned: Planned, say: Callable[[str], None]) -> Mirror:
    """Where the run is mirrored to."""
    config = planned.config
    if config.logger.kind == "none":
        return NoMirror()
    arms = {**planned.composed.choices, "layerdrop": config.layerdrop, "seed": config.seed}
    card = RunCard(
        run_id=planned.run_id,
        name=planned.name,
        config={**arms, "run_id": planned.run_id, "recipe": planned.recipe},
        tags=["smoke"] if config.smoke else [],
        folder=planned.folder.path,
    )
    logger = config.logger
    mirror = WandbMirror(card, mode=logger.mode, project=logger.project, entity=logger.entity)
    if mirror.offline_because is not None:
        say(f"W&B is out of reach ({mirror.offline_because}); the run is logged offline and can be synced later")
    return mirror


def device_of(accelerator: str) -> torch.device:
    """Where the numbers are computed; UserError when this machine has no such thing."""
    if accelerator == "gpu" and not torch.cuda.is_available():
        raise UserError("trainer.accelerator=gpu: torch finds no GPU here; allowed: cpu (trainer=cpu)")
    return torch.device("cuda" if accelerator == "gpu" else "cpu")


def trainer_options(config: Config) -> dict[str, Any]:
    """Lightning's Trainer arguments: devices and precision."""
    precision = {"fp32": "32-true", "bf16": "bf16-mixed"}[config.training.precision]
    return {
        "accelerator": config.trainer.accelerator,
        "devices": config.trainer.devices,
        "precision": precision,
    }


class _Parts:
    """Makes each part afresh, so that no two places share one unless they mean to."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.model = config.model
        self.placement = PLACEMENTS[config.norm.placement]

    def transformer(self, src_vocab: int, tgt_vocab: int) -> Transformer:
        table = FixNormEmbedding if self.config.norm.fixnorm else Embedding
        words = WordTables(src_vocab, tgt_vocab, self.model.d_model, tie=self.model.tie, table=table)
        return Transformer(
            words,
            WordDropout(self.model.word_dropout),
            self.token_input(),
            self.token_input(),
            self.encoder(),
            self.decoder(),
        )

    def token_input(self) -> TokenInput:
        positions = POSITIONS[self.config.position.kind](self.model.d_model, self.config.position.max_length)
        return TokenInput(positions, Dropout(self.model.embedding_dropout))

    def encoder(self) -> Encoder:
        depth = self.model.encoder_layers
        layers = [self.encoder_layer() for _ in range(depth)]
        return Encoder(layers, self.layerdrop(depth, self.config.layerdrop_encoder), self.final_norm())

    def decoder(self) -> Decoder:
        depth = self.model.decoder_layers
        layers = [self.decoder_layer() for _ in range(depth)]
        return Decoder(layers, self.layerdrop(depth, self.config.layerdrop_decoder), self.final_norm())

    def encoder_layer(self) -> EncoderLayer:
        return EncoderLayer(self.self_attention("encoder"), self.feed_forward(), self.residuals(2))

    def decoder_layer(self) -> DecoderLayer:
        return DecoderLayer(
            self.self_attention("decoder"), self.cross_attention(), self.feed_forward(), self.residuals(3)
        )

    def self_attention(self, site: str) -> SelfAttention:
        model = self.model
        return SelfAttention(
            model.d_model, model.num_heads, dropout=model.attention_dropout, drophead=self.drophead(site)
        )

    def cross_attention(self) -> CrossAttention:
        model = self.model
        return CrossAttention(
            model.d_model, model.num_heads, dropout=model.attention_dropout, drophead=self.drophead("cross")
        )

    def drophead(self, site: str) -> nn.Module:
        return DropHead(self.model.num_heads) if site in self.config.drophead.sites else nn.Identity()

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.model.d_model, self.model.d_ff, Dropout(self.model.activation_dropout))

    def residuals(self, count: int) -> list[Residual]:
        return [self.placement(self.norm(), Dropout(self.model.dropout)) for _ in range(count)]

    def layerdrop(self, depth: int, p: float) -> LayerDrop:
        return RATES[self.config.layerdrop_rates](depth, p)

    def final_norm(self) -> nn.Module:
        return self.placement.final_norm(self.norm)

    def norm(self) -> nn.Module:
        kind = NORMS[self.config.norm.kind]
        if kind is ScaleNorm:
            return ScaleNorm(self.model.d_model, learned=self.config.norm.learn_g)
        return kind(self.model.d_model)
