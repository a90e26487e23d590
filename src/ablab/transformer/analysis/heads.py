"""The attention of every head to one sentence pair, as an artefact of small multiples."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ablab.store.artefacts import Axis, MatrixArtefact, Slice

NAMES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}

READS = {
    "encoder": "How much each token of the source (down) attends to each token of the source (across).",
    "decoder": "How much the position that predicts each token of the reference (down) attends to each token that the "
    "decoder has read (across). It reads the reference, so that all arms say the same.",
    "cross": "How much the position that predicts each token of the reference (down) attends to each token of the "
    "source (across). The decoder reads the reference, so that all arms say the same.",
}

DIGITS = 3


def single_heads(
    site: str, maps: Sequence[Float[Tensor, "heads queries keys"]], title: str, x: Axis, y: Axis
) -> MatrixArtefact:
    """Return the mean over heads of all layers and of each, and every single head; layers may differ in heads."""
    means = [heads.mean(dim=0) for heads in maps]
    slices = [Slice(label="all layers", values=_rounded(torch.stack(means).mean(dim=0)))]
    slices += [
        Slice(label=f"layer {number}", row=f"layer {number}", column="mean", values=_rounded(weights))
        for number, weights in enumerate(means, 1)
    ]
    slices += [
        Slice(
            label=f"layer {layer}, head {head}",
            row=f"layer {layer}",
            column=f"head {head}",
            of_one_run=True,
            values=_rounded(weights),
        )
        for layer, heads in enumerate(maps, 1)
        for head, weights in enumerate(heads, 1)
    ]
    return MatrixArtefact(
        title=title,
        section=f"{NAMES[site]}, head by head",
        about=f"{READS[site]} Each row sums to 1.",
        x=x,
        y=y,
        value="attention weight",
        slices=slices,
    )


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(value, DIGITS) for value in row] for row in weights.tolist()]
