"""Hugging Face's MarianMTModel in a plain loop.

python -m benchmarks.speed.peers.marian PREPARED STEPS fp32|bf16
"""

import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from benchmarks.speed.peers.plain import BOS, PAD, PLACE, Model, train
from benchmarks.speed.task import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, VOCAB


def build() -> tuple[Model, list[Tensor]]:
    """The model as a map from padded ids to logits, and what is trained of it."""
    config = MarianConfig(
        vocab_size=VOCAB,
        d_model=D_MODEL,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        dropout=DROPOUT,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=3,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        use_cache=False,
    )
    model = MarianMTModel(config).train().to(PLACE)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def logits(src: Tensor, tgt: Tensor) -> Tensor:
        mask = (src != PAD).long()
        found: Tensor = model(input_ids=src, attention_mask=mask, decoder_input_ids=tgt, use_cache=False).logits
        return found

    return logits, parameters


def main() -> None:
    """One measurement."""
    torch.manual_seed(1)
    folder, steps, precision = sys.argv[1:]
    logits, parameters = build()
    train(logits, parameters, Path(folder), int(steps), bf16=precision == "bf16")


if __name__ == "__main__":
    main()
