"""The model's distribution over the target vocabulary at each target position of one sentence."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ablab.store.artefacts import Axis, MatrixArtefact, SeriesArtefact, Slice, Trace
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.tokens import BOS
from ablab.transformer.model.transformer import TokenModel, Transformer

SECTION = "Next token"

TOP = 10
"""Types shown at each position."""

Readable = Callable[[Sequence[int]], Sequence[str]]
"""A function from ids to the texts of their pieces, special tokens included."""


def distributions(model: Transformer, src: Tensor, ids: Sequence[int]) -> Float[Tensor, "positions vocab"]:
    """Return the logarithm of the probability of each type at each target position, in nats and float64.

    The decoder reads the tokens before the position (teacher forcing). `src`: [1, src_len]; `ids`: the target without
    begin and end. The last position predicts the end, so there is one more than `ids`.
    """
    return predictions(model, src, torch.tensor([[BOS, *ids]], device=src.device))


@torch.inference_mode()
def predictions(model: TokenModel, *inputs: Tensor) -> Float[Tensor, "positions vocab"]:
    """Return the logarithms of the probabilities, in nats and float64, at each position of the one row of inputs."""
    with evaluating(model):
        return torch.log_softmax(model.logits(model(*inputs)[0]).double(), dim=-1).cpu()


def entropies(logs: Float[Tensor, "positions vocab"]) -> list[float]:
    """Return the entropy of each distribution in bits; at most the binary logarithm of the vocabulary's size."""
    return torch.special.entr(logs.exp()).sum(dim=-1).div(math.log(2)).tolist()


def table(
    logs: Float[Tensor, "positions vocab"], ids: Sequence[int], readable: Readable, *, title: str, about: str
) -> MatrixArtefact:
    """Return the most probable pieces of each position with their probabilities, and the rest of the mass.

    `ids`: the token that stands at each position. The row's label has the entropy of the distribution before it.
    """
    top = logs.exp().topk(min(TOP, logs.size(-1)), dim=-1)
    values = [[*row, max(0.0, 1.0 - sum(row))] for row in top.values.tolist()]
    pieces = [[*readable(row), "others"] for row in top.indices.tolist()]
    rows = zip(readable(ids), entropies(logs), strict=True)
    return MatrixArtefact(
        title=title,
        section=SECTION,
        order=1,
        about=about,
        x=Axis(title="rank", labels=[*(str(rank + 1) for rank in range(top.values.size(-1))), "others"]),
        y=Axis(title="entropy, token", labels=[f"{bits:.2f} bits  {token}" for token, bits in rows]),
        value="probability",
        slices=[
            Slice(
                label="",
                of_one_run=True,
                values=[[round(value, 4) for value in row] for row in values],
                cells=[
                    [f"{piece}\n{value:.3f}" for piece, value in zip(*pair, strict=True)]
                    for pair in zip(pieces, values, strict=True)
                ],
            )
        ],
    )


def uncertainty(
    logs: Float[Tensor, "positions vocab"], ids: Sequence[int], readable: Readable, of: str = "the reference"
) -> SeriesArtefact:
    """Return the entropy at each position, and the surprisal of the token that stands there, both in bits."""
    surprisal = (-logs[torch.arange(len(ids)), torch.tensor(ids)] / math.log(2)).tolist()
    names, places = list(readable(ids)), [float(place) for place in range(1, len(ids) + 1)]
    return SeriesArtefact(
        title=f"Uncertainty at each position of {of}",
        section=SECTION,
        order=2,
        about="Entropy: of the whole distribution over the vocabulary. Surprisal: -log2 of the probability of "
        f"the token that stands in {of}. The model reads {of}, so that all arms say the same.",
        x=Axis(title=f"token of {of}"),
        y=Axis(title="bits"),
        series=[
            Trace(label=label, x=places, y=[round(value, 4) for value in values], names=names)
            for label, values in (("entropy", entropies(logs)), (f"surprisal of {of}", surprisal))
        ],
    )
