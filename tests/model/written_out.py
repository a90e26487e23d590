"""The Transformer written out in plain products, with what was drawn in place of its regularisers.

Norms, word tables, positions and projections are the model's own, and have laws of their own; here it is decided what
goes into what, and what falls where.
"""

import math

import torch
from torch import Tensor, nn

from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import causal_mask
from tests.model.recording import Drawn


class WrittenOut:
    """One pass of a model that drew `drawn`: takes each draw once, and in training wants one at every site."""

    def __init__(self, model: Transformer, drawn: Drawn) -> None:
        self.model, self.training = model, model.training
        self.drawn = {name: list(draws) for name, draws in drawn.items()}

    def hidden(self, src: Tensor, tgt: Tensor) -> Tensor:
        """What the model's forward gives."""
        model, allowed = self.model, (src != PAD)[:, None, None, :]
        words = [self._words(tokens) for tokens in (src, tgt)]
        memory = self._enter("source_input", model.words.source(words[0]))
        for layer in self._running("encoder"):
            memory = self._self_attention(layer, memory, allowed)
            memory = self._feed_forward(layer, memory)
        memory = model.encoder.final_norm(memory)
        x = self._enter("target_input", model.words.target(words[1]))
        for layer in self._running("decoder"):
            x = self._self_attention(layer, x, causal_mask(x.size(1)))
            x = self._cross_attention(layer, x, memory, allowed)
            x = self._feed_forward(layer, x)
        return model.decoder.final_norm(x)

    def left_over(self) -> set[str]:
        """Sites that drew more than this took."""
        return {name for name, draws in self.drawn.items() if draws}

    def _take(self, site: str) -> Tensor:
        return self.drawn[site].pop(0)

    def _module(self, path: str) -> nn.Module:
        return self.model.get_submodule(path)

    def _words(self, tokens: Tensor) -> Tensor:
        return self._take("word_dropout") if "word_dropout" in self.drawn else tokens

    def _running(self, stack: str) -> list[str]:
        layers = self._take(f"{stack}.layerdrop") if self.training else range(len(self._module(f"{stack}.layers")))
        return [f"{stack}.layers.{index}" for index in layers]

    def _drop(self, site: str, x: Tensor) -> Tensor:
        return x * self._take(f"{site}.dropout") if self.training else x

    def _enter(self, path: str, embedded: Tensor) -> Tensor:
        return self._drop(path, embedded + self._module(path).positions(0, embedded.size(1)))

    def _around(self, path: str, x: Tensor, f) -> Tensor:
        return x + self._drop(path, f(self._module(path).norm(x)))

    def _self_attention(self, layer: str, x: Tensor, allowed: Tensor) -> Tensor:
        path = f"{layer}.self_attention"
        qkv = self._module(path).qkv
        return self._around(
            f"{layer}.around_self_attention", x, lambda y: self._attend(path, *qkv(y).chunk(3, -1), allowed)
        )

    def _cross_attention(self, layer: str, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
        path = f"{layer}.cross_attention"
        query, key_value = self._module(path).query, self._module(path).key_value
        return self._around(
            f"{layer}.around_cross_attention",
            x,
            lambda y: self._attend(path, query(y), *key_value(memory).chunk(2, -1), allowed),
        )

    def _attend(self, path: str, queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        heads = self._module(path).num_heads
        queries, keys, values = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (queries, keys, values))
        scores = self._scores(path, queries, keys)
        weights = torch.softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)
        mixed = self._drop(path, weights) @ values
        if f"{path}.drophead" in self.drawn:
            mixed = mixed * self._take(f"{path}.drophead")[:, :, None, None]
        return self._module(path).output(mixed.transpose(1, 2).flatten(2))

    def _scores(self, path: str, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.mT / math.sqrt(queries.size(-1))

    def _feed_forward(self, layer: str, x: Tensor) -> Tensor:
        path = f"{layer}.feed_forward"
        outer = self._module(path).outer
        return self._around(
            f"{layer}.around_feed_forward", x, lambda y: outer(self._drop(path, self._hidden(self._module(path), y)))
        )

    def _hidden(self, feed_forward: nn.Module, x: Tensor) -> Tensor:
        return feed_forward.inner(x).clamp(min=0)


class Post(WrittenOut):
    """norm(x + f(x)), Vaswani et al. 2017."""

    def _around(self, path: str, x: Tensor, f) -> Tensor:
        return self._module(path).norm(x + self._drop(path, f(x)))


class DeepNorm(WrittenOut):
    """norm(alpha x + f(x)), Wang et al. 2022, for encoder and decoder of an encoder-decoder."""

    def _around(self, path: str, x: Tensor, f) -> Tensor:
        n, m = (len(self._module(f"{stack}.layers")) for stack in ("encoder", "decoder"))
        alpha = 0.81 * (n**4 * m) ** (1 / 16) if path.startswith("encoder") else (3 * m) ** (1 / 4)
        return self._module(path).norm(alpha * x + self._drop(path, f(x)))


class Sandwich(WrittenOut):
    """x + norm(f(norm(x))), Ding et al. 2021."""

    def _around(self, path: str, x: Tensor, f) -> Tensor:
        around = self._module(path)
        return x + around.norm_out(self._drop(path, f(around.norm(x))))


class GELU(WrittenOut):
    """y Phi(y), Hendrycks & Gimpel 2016."""

    def _hidden(self, feed_forward: nn.Module, x: Tensor) -> Tensor:
        y = feed_forward.inner(x)
        return y * (1 + torch.erf(y / math.sqrt(2))) / 2


class GELUTanh(WrittenOut):
    """Its approximation, Hendrycks & Gimpel 2016, section 2."""

    def _hidden(self, feed_forward: nn.Module, x: Tensor) -> Tensor:
        y = feed_forward.inner(x)
        return 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


class SwiGLU(WrittenOut):
    """swish(W x) * V x, Shazeer 2020."""

    def _hidden(self, feed_forward: nn.Module, x: Tensor) -> Tensor:
        y = feed_forward.gate(x)
        return y / (1 + torch.exp(-y)) * feed_forward.inner(x)


class Unplaced(WrittenOut):
    """Nothing is added to the word vectors."""

    def _enter(self, path: str, embedded: Tensor) -> Tensor:
        return self._drop(path, embedded)


class RoPE(Unplaced):
    """Pairs of features as complex numbers, times e^(i m theta) at position m, Su et al. 2021."""

    def _scores(self, path: str, queries: Tensor, keys: Tensor) -> Tensor:
        if path.endswith("self_attention"):
            queries, keys = turned(queries), turned(keys)
        return super()._scores(path, queries, keys)


def turned(x: Tensor) -> Tensor:
    """Queries or keys [batch, heads, length, d_head] from position 0 on."""
    width = x.size(-1)
    points = torch.complex(x[..., 0::2], x[..., 1::2])
    for m in range(x.size(2)):
        for i in range(width // 2):
            angle = m * 10_000.0 ** (-2 * i / width)
            points[..., m, i] = points[..., m, i] * complex(math.cos(angle), math.sin(angle))
    return torch.view_as_real(points).flatten(-2)


class QK(WrittenOut):
    """g q k / (|q| |k|), Henry et al. 2020."""

    def _scores(self, path: str, queries: Tensor, keys: Tensor) -> Tensor:
        lengths = [torch.sqrt((x * x).sum(-1)) for x in (queries, keys)]
        return self._module(path).norm.g * (queries @ keys.mT) / (lengths[0][..., :, None] * lengths[1][..., None, :])


WRITTEN = {
    "post": Post,
    "post_scalenorm": Post,
    "deepnorm": DeepNorm,
    "sandwich": Sandwich,
    "gelu": GELU,
    "gelu_tanh": GELUTanh,
    "swiglu": SwiGLU,
    "rope": RoPE,
    "unplaced": Unplaced,
    "qk": QK,
}
"""By variant, where it is not a pre-norm like the others."""


def written_out(variant: str, model: Transformer, drawn: Drawn) -> WrittenOut:
    """A variant of `arms.VARIANTS` written out."""
    return WRITTEN.get(variant, WrittenOut)(model, drawn)
