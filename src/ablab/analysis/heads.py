"""What each attention head is worth: how much worse the model is without it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ablab.model.attention import Attention
from ablab.model.transformer import Decoder, Encoder, Transformer


def attentions(model: Transformer, site: str) -> list[Attention]:
    """The attention of each layer, the lowest first, at a site as DropHead names it.

    `encoder` and `decoder`: self-attention; `cross`: the decoder's attention to the source.
    """
    stack: Encoder | Decoder = model.encoder if site == "encoder" else model.decoder
    name = "cross_attention" if site == "cross" else "self_attention"
    return [getattr(layer, name) for layer in stack.layers]


@contextmanager
def masked(attention: Attention, head: int) -> Iterator[None]:
    """Inside the block this head's output is 0, as where DropHead drops it, and the others are not scaled.

    The same as zeros in the columns of the output projection that read this head.
    """

    def silence(module: nn.Module, inputs: tuple[Tensor], heads: Tensor) -> Tensor:
        return heads.index_fill(1, torch.tensor([head], device=heads.device), 0.0)

    hook = attention.drophead.register_forward_hook(silence)
    try:
        yield
    finally:
        hook.remove()


def importance(
    sites: Sequence[Attention],
    loss: Callable[[], float],
    whole: float,
    progress: Callable[[int], None] = lambda _: None,
) -> list[list[float]]:
    """What masking each head alone adds to the loss, a row per attention: loss without head h, less `whole`.

    Michel, Levy and Neubig 2019, section 3.2, take the change of BLEU instead. Below 0: better without it. Heads
    that can each be spared may not be spared together.
    """
    rows = []
    for attention in sites:
        row = []
        for head in range(attention.num_heads):
            with masked(attention, head):
                row.append(loss() - whole)
            progress(1)
        rows.append(row)
    return rows
