"""torch.nn.Transformer in a plain loop.

python -m benchmarks.speed.peers.torch_nn PREPARED STEPS fp32|bf16 everywhere|sublayers [compile]

`nn.Transformer` drops attention weights and activations of the feed-forward network, too, which ablab's presets do not:
`everywhere` leaves that as it is, `sublayers` has dropout where ablab has.
"""

import math
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.speed.peers.plain import PAD, PLACE, train
from benchmarks.speed.task import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, VOCAB


class Model(nn.Module):
    """As PyTorch's tutorial puts it together, with tied embeddings."""

    def __init__(self, dropout_in: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, D_MODEL, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, D_MODEL, 2) * (-math.log(1e4) / D_MODEL))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))
        self.transformer = nn.Transformer(D_MODEL, HEADS, LAYERS, LAYERS, D_FF, DROPOUT, batch_first=True)
        if dropout_in == "sublayers":
            for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
                layer.dropout.p = layer.self_attn.dropout = 0.0
            for layer in self.transformer.decoder.layers:
                layer.multihead_attn.dropout = 0.0
        self.dropout = nn.Dropout(DROPOUT)
        self.output = nn.Linear(D_MODEL, VOCAB, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits [batch, tgt_len, vocab]."""
        padding = src == PAD
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        hidden = self.transformer(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=future,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=padding,
        )
        return self.output(hidden)

    def embed(self, tokens: Tensor) -> Tensor:
        """Words and positions."""
        return self.dropout(self.embedding(tokens) * math.sqrt(D_MODEL) + self.positions[: tokens.size(1)])


def main() -> None:
    """One measurement."""
    torch.manual_seed(1)
    folder, steps, precision, dropout_in, *how = sys.argv[1:]
    model = Model(dropout_in).train().to(PLACE)
    called = torch.compile(model, dynamic=True) if how == ["compile"] else model
    train(called, list(model.parameters()), Path(folder), int(steps), bf16=precision == "bf16")


if __name__ == "__main__":
    main()
