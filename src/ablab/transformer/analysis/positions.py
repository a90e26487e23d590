"""The vectors of a model's input positions, and how similar positions are to each other."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from ablab.store.artefacts import Axis, MatrixArtefact, Slice
from ablab.transformer.model.transformer import TokenModel

SECTION = "Position encodings"


@torch.inference_mode()
def position_vectors(model: TokenModel, count: int) -> Mapping[str, Float[Tensor, "positions d_model"]]:
    """Return the vectors of the first `count` positions that each input adds to its scaled word vectors."""
    sides = [side for side in ("source", "target") if hasattr(model, f"{side}_input")]
    inputs = {side: getattr(model, f"{side}_input").positions for side in sides}
    return {side: part(0, count).detach().float().cpu() for side, part in inputs.items() if part is not None}


def similarity(vectors: Float[Tensor, "positions d_model"]) -> Float[Tensor, "positions positions"]:
    """Return the cosine of the angle between the vectors of each two positions; 1 on the diagonal."""
    units = F.normalize(vectors.double(), dim=-1)
    return units @ units.T


def heat_map(vectors: Mapping[str, Float[Tensor, "positions d_model"]]) -> MatrixArtefact:
    """Return the vectors themselves, positions down and dimensions across."""
    count, width = next(iter(vectors.values())).shape
    return MatrixArtefact(
        title="Vector of each position",
        section=SECTION,
        order=1,
        about="What the input of each stack adds to a token's scaled word vector, by position (counted from 0) and "
        "dimension (Vaswani et al. 2017, section 3.5, or learned). A fixed table is the same for source and target.",
        x=Axis(title="dimension", labels=[str(number) for number in range(width)]),
        y=Axis(title="position", labels=[str(number) for number in range(count)]),
        value="value",
        slices=[
            # Dimension 5 of a learned table does not correspond to dimension 5 of another seed's.
            Slice(label=side, column=side, of_one_run=True, values=_rounded(values, 3))
            for side, values in vectors.items()
        ],
    )


def similarities(vectors: Mapping[str, Float[Tensor, "positions d_model"]]) -> MatrixArtefact:
    """Return the cosine similarity of each two positions."""
    labels = [str(number) for number in range(len(next(iter(vectors.values()))))]
    return MatrixArtefact(
        title="Cosine similarity of positions",
        section=SECTION,
        order=2,
        about="The cosine of the angle between the vectors of two positions, counted from 0. Sinusoids give a "
        "function of the distance alone; a learned table gives what training made of it, and positions that training "
        "never saw keep their initial vectors.",
        x=Axis(title="position", labels=labels),
        y=Axis(title="position", labels=labels),
        value="cosine similarity",
        slices=[
            Slice(label=side, column=side, values=_rounded(similarity(values), 4)) for side, values in vectors.items()
        ],
    )


def _rounded(values: Tensor, digits: int) -> list[list[float]]:
    return [[round(value, digits) for value in row] for row in values.tolist()]
