"""Models made of the parts of another, and what an encoder that several of them have makes of each batch."""

import copy
from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from ablab.transformer.model.transformer import Transformer

Encoded = tuple[Tensor, Tensor | None]
"""The memory of a batch of sources, and its mask."""


class Twin(Transformer):
    """A model made of the parts of another, which computes what that does, up to what a derived class changes."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(
            model.words,
            model.word_dropout,
            model.source_input,
            model.target_input,
            model.encoder,
            model.decoder,
            model.output_bias,
        )
        self.train(model.training)


def in_bfloat16(model: Transformer) -> Transformer:
    """Return a copy whose weights are in bfloat16, and so are the vectors that it passes on.

    Sums within norms, softmax and the angles of rotary positions stay in single precision at least, as in training.
    """
    return copy.deepcopy(Twin(model)).to(torch.bfloat16)


class Encodings:
    """What an encoder makes of each batch, kept for the models that have all of it, and fewer layers in the decoder.

    They compute it the same way, so that no bit changes. On a CPU, and up to `MOST` bytes.
    """

    MOST = 1 << 28

    def __init__(self, whole: Transformer) -> None:
        self.whole = whole
        self._known: dict[tuple[int, torch.Size, bytes], Encoded] = {}
        self._bytes = 0

    def share(self, model: Transformer) -> Transformer:
        """Return a model that computes no encoding twice, if it has the encoder; else the model itself."""
        ours, theirs = (each.encoder.layers for each in (self.whole, model))
        same = len(ours) == len(theirs) and all(one is other for one, other in zip(ours, theirs, strict=True))
        return Sharing(model, self) if same and next(model.parameters()).device.type == "cpu" else model

    def of(self, src: Tensor, encode: Callable[[Tensor], Encoded]) -> Encoded:
        """Return the encoding of a batch; the number of threads affects rounding."""
        key = torch.get_num_threads(), src.shape, src.numpy().tobytes()
        if key in self._known:
            return self._known[key]
        encoded = encode(src)
        if self._bytes < self.MOST:
            self._known[key] = encoded
            self._bytes += encoded[0].nbytes
        return encoded


class Sharing(Twin):
    """A model that takes from `encodings` what its encoder makes of a batch."""

    def __init__(self, model: Transformer, encodings: Encodings) -> None:
        super().__init__(model)
        self.encodings = encodings

    def encode(self, src: Int[Tensor, "batch src_len"]) -> Encoded:
        return self.encodings.of(src, super().encode)
