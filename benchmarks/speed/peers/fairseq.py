"""fairseq's Transformer in a plain loop.

python -m benchmarks.speed.peers.fairseq PREPARED STEPS fp32|bf16
"""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.speed.peers.plain import PAD, train
from benchmarks.speed.task import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, VOCAB

_dataclass = dataclasses.dataclass


def _hashable(cls: Any = None, /, **options: Any) -> Any:
    """Make a dataclass that may be another's default: Python 3.11 refuses those of fairseq 0.12 and of its Hydra."""
    return _dataclass(cls, **{"unsafe_hash": True, **options})


def main() -> None:
    """One measurement."""
    dataclasses.dataclass = _hashable
    from fairseq.data import Dictionary
    from fairseq.models.transformer import TransformerConfig, TransformerModelBase

    dataclasses.dataclass = _dataclass
    torch.manual_seed(1)
    config = TransformerConfig()
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = D_MODEL, D_FF
        side.layers, side.attention_heads = LAYERS, HEADS
    config.decoder.input_dim = config.decoder.output_dim = D_MODEL
    config.dropout, config.share_all_embeddings = DROPOUT, True
    config.max_source_positions = config.max_target_positions = 512
    words = Dictionary()
    for number in range(VOCAB - len(words)):
        words.add_symbol(str(number))
    assert words.pad() == PAD
    assert len(words) == VOCAB
    model = TransformerModelBase.build_model(config, SimpleNamespace(source_dictionary=words, target_dictionary=words))
    folder, steps, precision = sys.argv[1:]

    def logits(src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = model(src, (src != PAD).sum(dim=1), tgt)[0]
        return found

    train(logits, list(model.train().parameters()), Path(folder), int(steps), bf16=precision == "bf16")


if __name__ == "__main__":
    main()
