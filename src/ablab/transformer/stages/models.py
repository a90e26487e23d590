"""Builds a Transformer from the configured architecture and loads saved models; the one place that chooses parts."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from ablab.code.load import construct, load
from ablab.config.kinds import chosen_part
from ablab.config.options import Option
from ablab.config.schema import Trainer
from ablab.errors import MachineError, UserError
from ablab.seeding import derive
from ablab.transformer.config.schema import Architecture, TranslationConfig
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.data.tokenizer import Tokenizer, load_tokenizers
from ablab.transformer.model.attention import CrossAttention, SelfAttention
from ablab.transformer.model.dropout import DropHead, Dropout, WordDropout
from ablab.transformer.model.embedding import Embedding, InputEmbedding, TiedEmbeddings
from ablab.transformer.model.heads import with_heads
from ablab.transformer.model.initialisation import initialise
from ablab.transformer.model.layerdrop import RATES, LayerDrop
from ablab.transformer.model.layers import DecoderLayer, EncoderLayer
from ablab.transformer.model.modes import check_compiler
from ablab.transformer.model.norms import AttentionNorm
from ablab.transformer.model.place import Place
from ablab.transformer.model.positions import AttentionPosition
from ablab.transformer.model.residual import Residual
from ablab.transformer.model.streams import reseed, seed_default
from ablab.transformer.model.transformer import AnyTokenModel, Decoder, Encoder, TokenModel, Transformer
from ablab.transformer.pruning.saved_model import SavedModel


def build_model(config: TranslationConfig, *, src_vocab: int, tgt_vocab: int) -> Transformer:
    """Build the Transformer of this configuration, with its initial weights."""
    return initialised(ModelBuilder(config, config.seed).transformer(src_vocab, tgt_vocab), config)


def initialised(model: AnyTokenModel, config: TransformerConfig) -> AnyTokenModel:
    """Return a model just built with its initial weights."""
    initialise(model, construct(chosen_part(config.init), {**config.sizes, **config.init.own}), config.seed)
    # Steps begin at 1. Draws before that need a stream per site too, as new generators all have the same seed.
    reseed(model, config.seed, step=0, micro_batch=0)
    return model


def load_model(saved: SavedModel, device: torch.device) -> tuple[Transformer, tuple[Tokenizer, Tokenizer]]:
    """Load a saved model to `device`, in evaluation mode, and its tokenizers; UserError for unreadable weights."""
    tokenizers = load_tokenizers(saved.tokenizers)
    model = ModelBuilder(saved.built, seed=0).transformer(len(tokenizers[0]), len(tokenizers[1]))
    return with_weights(model, saved, device), tokenizers


def with_weights(model: AnyTokenModel, saved: SavedModel, device: torch.device) -> AnyTokenModel:
    """Return a model built for saved weights with these weights, on `device`, in evaluation mode."""
    if saved.layers is not None:
        model = model.of_layers(saved.layers)
    if saved.heads is not None:
        model = with_heads(model, saved.heads)
    own = model.state_dict().keys()  # a pruned model has no learned rates of LayerDrop, whose scores its file may have
    weights = {name: each for name, each in _weights(saved).items() if name in own or ".layerdrop." not in name}
    model.load_state_dict(weights)
    return model.to(device).eval()


def _weights(saved: SavedModel) -> dict[str, torch.Tensor]:
    saved.check()
    try:
        return load_file(saved.weights)
    except SafetensorError as error:
        raise UserError(f"{saved.weights}: cannot be read as weights ({error})") from None


def start_from(model: TokenModel, saved: SavedModel) -> None:
    """Load a saved model's weights into a model of the same shape. Learned LayerDrop rates start anew."""
    weights = _weights(saved)
    fresh = {name: tensor for name, tensor in model.state_dict().items() if ".layerdrop." in name}
    kept = {name: tensor for name, tensor in weights.items() if ".layerdrop." not in name}
    model.load_state_dict({**kept, **fresh})


ALL_THREADS = torch.get_num_threads()
"""Torch's default number of threads."""


def set_threads(trainer: Trainer, *, processes: int = 1) -> torch.device:
    """Set the number of threads and return the device of the configuration.

    The configured number is for the whole run; `processes` of its processes share it at present.
    """
    device = device_of(trainer.accelerator)
    if trainer.threads is not None or trainer.devices > 1:
        torch.set_num_threads(max(1, (trainer.threads or ALL_THREADS) // processes))
    return device


def check_devices(trainer: Trainer) -> None:
    """Raise MachineError when this machine lacks the configured devices, or a compiler that `compile` needs."""
    device_of(trainer.accelerator)
    needed = int(os.environ.get("LOCAL_WORLD_SIZE", trainer.devices))  # torchrun's number of them on this machine
    if trainer.accelerator == "gpu" and needed > torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise MachineError(f"trainer.devices={needed}: torch finds {count} here; allowed: 1 to {count}")
    if trainer.compile:
        check_compiler()


def device_of(accelerator: str) -> torch.device:
    """Return the torch device of an accelerator; MachineError when this machine has none."""
    if accelerator == "gpu" and not torch.cuda.is_available():
        raise MachineError("trainer.accelerator=gpu: torch finds no GPU here; allowed: cpu (trainer=cpu)")
    return torch.device("cuda" if accelerator == "gpu" else "cpu")


class ModelBuilder:
    """Builder of a Transformer's parts, which makes each part anew so that none is shared by accident.

    What a part's constructor draws follows from `seed` and the part's place.
    """

    def __init__(self, config: Architecture, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.model = config.model

    def transformer(self, src_vocab: int, tgt_vocab: int) -> Transformer:
        words = TiedEmbeddings(src_vocab, tgt_vocab, self.table, tie=self.model.tie)
        return Transformer(
            words,
            WordDropout(self.model.word_dropout),
            self.token_input("encoder"),
            self.token_input("decoder"),
            self.encoder(),
            self.decoder(),
            nn.Parameter(torch.zeros(tgt_vocab)) if self.model.output_bias else None,
        )

    def table(self, vocab_size: int) -> Embedding:
        embedding = self.config.embedding
        facts = {**self.model.sizes, "vocab_size": vocab_size}
        table: Embedding = construct(chosen_part(embedding), {**facts, **embedding.own})
        return table

    def token_input(self, stack: str) -> InputEmbedding:
        positions = None if self.attends_by_position else self.make(self.config.position, Place(stack, 0, "input"))
        return InputEmbedding(positions, Dropout(self.model.embedding_dropout))

    def attention_position(self, place: Place) -> AttentionPosition | None:
        if not self.attends_by_position:
            return None
        position: AttentionPosition = self.make(self.config.position, place)
        return position

    @property
    def attends_by_position(self) -> bool:
        """Whether positions act within attention, and not at the input."""
        return issubclass(load(chosen_part(self.config.position)), AttentionPosition)

    def encoder(self) -> Encoder:
        depth = self.model.encoder_layers
        layers = [self.encoder_layer(number) for number in range(1, depth + 1)]
        return Encoder(layers, self.layerdrop(depth, self.config.layerdrop_encoder), self.final_norm("encoder"))

    def decoder(self) -> Decoder:
        depth = self.model.decoder_layers
        layers = [self.decoder_layer(number) for number in range(1, depth + 1)]
        return Decoder(layers, self.layerdrop(depth, self.config.layerdrop_decoder), self.final_norm("decoder"))

    def encoder_layer(self, number: int) -> EncoderLayer:
        own, feed_forward = (Place("encoder", number, each) for each in ("self_attention", "feed_forward"))
        return EncoderLayer(
            self.self_attention(own),
            self.feed_forward(feed_forward),
            [self.residual(place) for place in (own, feed_forward)],
        )

    def decoder_layer(self, number: int) -> DecoderLayer:
        own, cross, feed_forward = (
            Place("decoder", number, each) for each in ("self_attention", "cross_attention", "feed_forward")
        )
        return DecoderLayer(
            self.self_attention(own),
            self.cross_attention(cross),
            self.feed_forward(feed_forward),
            [self.residual(place) for place in (own, cross, feed_forward)],
        )

    def self_attention(self, place: Place) -> SelfAttention:
        model = self.model
        return SelfAttention(
            model.d_model,
            model.num_heads,
            bias=model.attention_bias,
            dropout=Dropout(model.attention_dropout),
            drophead=self.drophead(place, site=place.stack),
            norm=self.attention_norm(place),
            position=self.attention_position(place),
        )

    def cross_attention(self, place: Place) -> CrossAttention:
        model = self.model
        return CrossAttention(
            model.d_model,
            model.num_heads,
            bias=model.attention_bias,
            dropout=Dropout(model.attention_dropout),
            drophead=self.drophead(place, site="cross"),
            norm=self.attention_norm(place),
        )

    def attention_norm(self, place: Place) -> AttentionNorm | None:
        if self.config.attention_norm.kind == "none":
            return None
        norm: AttentionNorm = self.make(self.config.attention_norm, place)
        return norm

    def drophead(self, place: Place, site: str) -> nn.Module:
        dropped = site in self.config.drophead.own.get("sites", ())
        return DropHead(self.model.num_heads, place) if dropped else nn.Identity()

    def feed_forward(self, place: Place) -> nn.Module:
        network: nn.Module = self.make(
            self.config.feed_forward, place, dropout=lambda: Dropout(self.model.activation_dropout)
        )
        return network

    def residual(self, place: Place) -> Residual:
        residual: Residual = self.make(
            self.config.placement,
            place,
            norm=lambda: self.norm(place),
            make_norm=lambda: partial(self.norm, place),
            dropout=lambda: Dropout(self.model.dropout),
        )
        return residual

    def layerdrop(self, depth: int, p: float) -> LayerDrop:
        return RATES[self.config.layerdrop_rates](depth, p)

    def final_norm(self, stack: str) -> nn.Module:
        placement: type[Residual] = load(chosen_part(self.config.placement))
        return placement.final_norm(partial(self.norm, Place(stack, 0, "final")))

    def norm(self, place: Place) -> nn.Module:
        norm: nn.Module = self.make(self.config.norm, place)
        return norm

    def make(self, option: Option, place: Place, **modules: Callable[[], Any]) -> Any:
        """Make an option's part for a place, with the modules that it may ask for."""
        seed_default(derive(self.seed, "constructor", option.of_group, *place))
        return construct(chosen_part(option), {**self.model.sizes, **place._asdict(), **option.own}, modules)
