"""What the decoder looks at, as numbers and as a picture."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.model.attention import CrossAttention, KeysValues
from ablab.model.modes import evaluating
from ablab.model.transformer import Transformer


@torch.inference_mode()
def cross_attention(model: Transformer, src: Tensor, tgt: Tensor) -> Float[Tensor, "layers heads tgt_len src_len"]:
    """How much each target position of one sentence pair attends to each source token, in every layer and head."""
    maps: list[Tensor] = []

    def look(module: nn.Module, inputs: tuple[Tensor, KeysValues, Tensor | None]) -> None:
        assert isinstance(module, CrossAttention)
        maps.append(module.weights(*inputs)[0])

    hooks = [module.register_forward_pre_hook(look) for module in model.modules() if isinstance(module, CrossAttention)]
    try:
        with evaluating(model):
            model(src, tgt)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(maps)


def draw_attention(
    weights: Float[Tensor, "tgt_len src_len"],
    rows: Sequence[str],
    columns: Sequence[str],
    path: Path,
    title: str,
) -> None:
    """A heat map: target pieces down, source pieces across."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 0.42 * len(columns), 1.5 + 0.34 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(weights.float().cpu().numpy(), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(title)
    figure.colorbar(image, label="attention weight")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
