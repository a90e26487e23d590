"""Small language models in float64, of the parts that words of a command line choose."""

import torch
from torch import Tensor

from ablab.config import compose
from ablab.transformer.language_model.build import build_language_model
from ablab.transformer.language_model.schema import LanguageModelConfig
from ablab.transformer.model.language_model import LanguageModel

VOCAB, CONTEXT = 24, 12
SIZE = (
    *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.decoder_layers=3", "model.context=16"),
    *("training.max_steps=8", "optim.batch_tokens=64"),
)
NO_DROPOUT = ("model.dropout=0",)
GPT2 = (*NO_DROPOUT, "position=learned", "position.max_length=16", "feed_forward=gelu_tanh", "embedding=plain")
LLAMA = (
    *(*NO_DROPOUT, "norm=rmsnorm", "position=rope", "feed_forward=swiglu", "embedding=plain"),
    *("model.attention_bias=none", "model.tie=none"),
)


def composed(*words: str) -> LanguageModelConfig:
    config = compose(["task=language_model", *SIZE, *words]).config
    assert isinstance(config, LanguageModelConfig)
    return config


def build(*words: str) -> LanguageModel:
    return build_language_model(composed(*words), VOCAB).double()


@torch.no_grad()
def stirred(*words: str) -> LanguageModel:
    """One whose parameters are all moved, so that no bias is 0 and no gain 1."""
    model = build(*words).eval()
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


def tokens(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(seed))
