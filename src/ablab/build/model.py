"""Builds a Transformer from the configured architecture and loads saved models; the one place that chooses parts."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from ablab.config import Config
from ablab.config.schema import Architecture, Trainer
from ablab.data.tokenizer import Tokenizer, load_tokenizers
from ablab.errors import MachineError, UserError
from ablab.model.attention import CrossAttention, SelfAttention
from ablab.model.attention_norms import ATTENTION_NORMS, AttentionNorm
from ablab.model.drophead import DropHead
from ablab.model.dropout import Dropout, WordDropout
from ablab.model.embedding import EMBEDDINGS, InputEmbedding, TiedEmbeddings
from ablab.model.feed_forward import FEED_FORWARDS, FeedForward
from ablab.model.initialisation import INITIALISERS, initialise
from ablab.model.layerdrop import RATES, LayerDrop
from ablab.model.layers import DecoderLayer, EncoderLayer
from ablab.model.norms import NORMS
from ablab.model.positions import POSITIONS, AttentionPosition
from ablab.model.residual import PLACEMENTS, Residual
from ablab.model.streams import reseed
from ablab.model.transformer import Decoder, Encoder, Transformer
from ablab.store.saved_model import SavedModel
from ablab.training.compile import check_compiler


def build_model(config: Config, *, src_vocab: int, tgt_vocab: int) -> Transformer:
    """Build the Transformer of this configuration, with its initial weights."""
    model = ModelBuilder(config).transformer(src_vocab, tgt_vocab)
    scheme = INITIALISERS[config.init.kind]
    initialise(model, scheme(**_asked_for(scheme, _depths(config))), config.seed)
    # Steps begin at 1. Draws before that need a stream per site too, as new generators all have the same seed.
    reseed(model, config.seed, step=0, micro_batch=0)
    return model


def load_model(saved: SavedModel, device: torch.device) -> tuple[Transformer, tuple[Tokenizer, Tokenizer]]:
    """Load a saved model to `device`, in evaluation mode, and its tokenizers; UserError for unreadable weights."""
    tokenizers = load_tokenizers(saved.tokenizers)
    model = ModelBuilder(saved.architecture).transformer(len(tokenizers[0]), len(tokenizers[1]))
    model.load_state_dict(_weights(saved))
    return model.to(device).eval(), tokenizers


def _weights(saved: SavedModel) -> dict[str, torch.Tensor]:
    try:
        return load_file(saved.weights)
    except SafetensorError as error:
        raise UserError(f"{saved.weights}: cannot be read as weights ({error})") from None


def start_from(model: Transformer, saved: SavedModel) -> None:
    """Load a saved model's weights into a model of the same shape. Learned LayerDrop rates start anew."""
    weights = _weights(saved)
    fresh = {name: tensor for name, tensor in model.state_dict().items() if ".layerdrop." in name}
    kept = {name: tensor for name, tensor in weights.items() if ".layerdrop." not in name}
    model.load_state_dict({**kept, **fresh})


def _depths(config: Architecture) -> dict[str, int]:
    """Return the numbers of layers, by the names under which parts ask for them."""
    return {"encoder_layers": config.model.encoder_layers, "decoder_layers": config.model.decoder_layers}


def _asked_for(part: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offered arguments whose names the part's constructor has."""
    return {name: offered[name] for name in inspect.signature(part).parameters if name in offered}


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
    """Builder of a Transformer's parts, which makes each part anew so that none is shared by accident."""

    def __init__(self, config: Architecture) -> None:
        self.config = config
        self.model = config.model
        self.placement = PLACEMENTS[config.placement.kind]

    def transformer(self, src_vocab: int, tgt_vocab: int) -> Transformer:
        table = EMBEDDINGS[self.config.embedding.kind]
        words = TiedEmbeddings(src_vocab, tgt_vocab, self.model.d_model, tie=self.model.tie, table=table)
        return Transformer(
            words,
            WordDropout(self.model.word_dropout),
            self.token_input(),
            self.token_input(),
            self.encoder(),
            self.decoder(),
        )

    def token_input(self) -> InputEmbedding:
        part, own = POSITIONS[self.config.position.kind], self.config.position.own
        positions = None if issubclass(part, AttentionPosition) else part(self.model.d_model, **own)
        return InputEmbedding(positions, Dropout(self.model.embedding_dropout))

    def attention_position(self, stack: str) -> AttentionPosition | None:
        part, own = POSITIONS[self.config.position.kind], self.config.position.own
        if not issubclass(part, AttentionPosition):
            return None
        d_model, num_heads = self.model.d_model, self.model.num_heads
        offered = {"d_model": d_model, "num_heads": num_heads, "d_head": d_model // num_heads, "stack": stack}
        return part(**_asked_for(part, offered), **own)

    def encoder(self) -> Encoder:
        depth = self.model.encoder_layers
        layers = [self.encoder_layer() for _ in range(depth)]
        return Encoder(layers, self.layerdrop(depth, self.config.layerdrop_encoder), self.final_norm())

    def decoder(self) -> Decoder:
        depth = self.model.decoder_layers
        layers = [self.decoder_layer() for _ in range(depth)]
        return Decoder(layers, self.layerdrop(depth, self.config.layerdrop_decoder), self.final_norm())

    def encoder_layer(self) -> EncoderLayer:
        return EncoderLayer(self.self_attention("encoder"), self.feed_forward(), self.residuals("encoder", 2))

    def decoder_layer(self) -> DecoderLayer:
        return DecoderLayer(
            self.self_attention("decoder"), self.cross_attention(), self.feed_forward(), self.residuals("decoder", 3)
        )

    def self_attention(self, site: str) -> SelfAttention:
        model = self.model
        return SelfAttention(
            model.d_model,
            model.num_heads,
            bias=model.attention_bias,
            dropout=Dropout(model.attention_dropout),
            drophead=self.drophead(site),
            norm=self.attention_norm(),
            position=self.attention_position(site),
        )

    def cross_attention(self) -> CrossAttention:
        model = self.model
        return CrossAttention(
            model.d_model,
            model.num_heads,
            bias=model.attention_bias,
            dropout=Dropout(model.attention_dropout),
            drophead=self.drophead("cross"),
            norm=self.attention_norm(),
        )

    def attention_norm(self) -> AttentionNorm | None:
        chosen = self.config.attention_norm
        part = ATTENTION_NORMS[chosen.kind]
        return None if part is None else part(**chosen.own)

    def drophead(self, site: str) -> nn.Module:
        return DropHead(self.model.num_heads) if site in self.config.drophead.own.get("sites", ()) else nn.Identity()

    def feed_forward(self) -> FeedForward:
        kind = FEED_FORWARDS[self.config.feed_forward.kind]
        return kind(self.model.d_model, self.model.d_ff, Dropout(self.model.activation_dropout))

    def residuals(self, stack: str, count: int) -> list[Residual]:
        offered = {"stack": stack, **_depths(self.config), "make_norm": self.norm}
        asked = _asked_for(self.placement, offered)
        return [self.placement(self.norm(), Dropout(self.model.dropout), **asked) for _ in range(count)]

    def layerdrop(self, depth: int, p: float) -> LayerDrop:
        return RATES[self.config.layerdrop_rates](depth, p)

    def final_norm(self) -> nn.Module:
        return self.placement.final_norm(self.norm)

    def norm(self) -> nn.Module:
        norm = self.config.norm
        return NORMS[norm.kind](self.model.d_model, **norm.own)
