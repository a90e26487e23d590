"""Builds a language model from the configured parts, which are those of the encoder-decoder Transformer."""

from typing import Any, cast

import torch
from torch import nn

from ablab.transformer.data.documents.tokenizers import TextTokenizer, load_tokenizer
from ablab.transformer.language_model.schema import STACK, LanguageModelArchitecture, LanguageModelConfig
from ablab.transformer.model.dropout import Dropout
from ablab.transformer.model.embedding import TiedEmbeddings
from ablab.transformer.model.language_model import CausalLayer, CausalStack, LanguageModel, TokenInput
from ablab.transformer.model.place import Place
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.models import ModelBuilder, initialised, with_weights


def build_language_model(config: LanguageModelConfig, vocab: int) -> LanguageModel:
    """Build the model of this configuration, with its initial weights."""
    return initialised(LanguageModelBuilder(config, config.seed).language_model(vocab), config)


def load_language_model(saved: SavedModel, device: torch.device) -> tuple[LanguageModel, TextTokenizer]:
    """Load a saved model to `device`, in evaluation mode, and its tokenizer; UserError for unreadable weights."""
    tokenizer = load_tokenizer(saved.tokenizers)
    model = LanguageModelBuilder(saved.built, seed=0).language_model(len(tokenizer))
    return with_weights(model, saved, device), tokenizer


class LanguageModelBuilder(ModelBuilder):
    """Builder of a decoder-only stack, of the parts that the encoder-decoder's builder makes."""

    def __init__(self, config: LanguageModelArchitecture, seed: int) -> None:
        super().__init__(cast(Any, config), seed)

    def language_model(self, vocab: int) -> LanguageModel:
        given = super().token_input(STACK)
        return LanguageModel(
            TiedEmbeddings(vocab, vocab, self.table, tie="all" if self.model.tie == "all" else "source_target"),
            TokenInput(given.positions, Dropout(self.model.embedding_dropout)),
            self.stack(),
            nn.Parameter(torch.zeros(vocab)) if self.model.output_bias else None,
        )

    def stack(self) -> CausalStack:
        depth = self.model.decoder_layers
        layers = [self.layer(number) for number in range(1, depth + 1)]
        rates = self.layerdrop(depth, self.config.layerdrop_decoder)
        return CausalStack(layers, rates, self.final_norm(STACK))

    def layer(self, number: int) -> CausalLayer:
        own, feed_forward = (Place(STACK, number, each) for each in ("self_attention", "feed_forward"))
        return CausalLayer(
            self.self_attention(own),
            self.feed_forward(feed_forward),
            [self.residual(place) for place in (own, feed_forward)],
        )
