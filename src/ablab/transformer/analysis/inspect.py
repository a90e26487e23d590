"""Attention maps of a sentence pair, the importance of each head, and the g that each ScaleNorm has learned."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ablab.files import write_picture
from ablab.store.artefacts import Axis, MatrixArtefact, Slice
from ablab.transformer.model import heads
from ablab.transformer.model.attention import Attention, CrossAttention, SelfAttention
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.norms import ScaleNorm
from ablab.transformer.model.residual import Residual, Sandwich
from ablab.transformer.model.tokens import BOS
from ablab.transformer.model.transformer import TokenModel, Transformer

FINAL = "final norms"
"""The site at the end of each stack; PostNorm has none."""

NAMES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}

READS = {
    "encoder": "How much each token of the source (down) attends to each token of the source (across).",
    "decoder": "How much the position that predicts each token of the reference (down) attends to each token that the "
    "decoder has read (across). It reads the reference, so that all arms say the same.",
    "cross": "How much the position that predicts each token of the reference (down) attends to each token of the "
    "source (across). The decoder reads the reference, so that all arms say the same.",
}

DIGITS = 3


@torch.inference_mode()
def attention_maps(model: TokenModel, site: str, *inputs: Tensor) -> list[Float[Tensor, "heads queries keys"]]:
    """Return the attention weights at a site, a tensor per layer; each row sums to 1.

    The attention modules compute them from what they get in `model(*inputs)`, of the first row of its batch. Layers may
    differ in their number of heads. `site` as in `attentions`.
    """
    maps: list[Tensor] = []

    def look(module: nn.Module, given: tuple[Any, ...], options: dict[str, Any]) -> None:
        assert isinstance(module, SelfAttention | CrossAttention)
        maps.append(module.weights(*given, **options)[0])

    hooks = [module.register_forward_pre_hook(look, with_kwargs=True) for module in attentions(model, site)]
    try:
        with evaluating(model):
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return maps


def cross_attention(model: Transformer, src: Tensor, tgt: Tensor) -> list[Float[Tensor, "heads tgt_len src_len"]]:
    """Return the weight of each source token for each target position of one sentence pair, a tensor per layer."""
    return attention_maps(model, "cross", src, tgt)


def draw_attention(
    weights: Float[Tensor, "tgt_len src_len"],
    rows: Sequence[str],
    columns: Sequence[str],
    path: Path,
    title: str,
) -> None:
    """Draw a heat map: target pieces down, source pieces across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 0.42 * len(columns), 1.5 + 0.34 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(weights.float().cpu().numpy(), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    # A piece may have dollars, which are no formulas.
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", parse_math=False)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.set_title(title)
    figure.colorbar(image, label="attention weight")
    write_picture(path, figure)


def draw_translation(
    model: Transformer, src: Sequence[int], found: Sequence[int], pieces: tuple[list[str], list[str]], path: Path
) -> None:
    """Draw what a translation attends to in its source, in the last layer, as a mean over heads.

    `src` ends with its end of sentence; `found` and both lists of pieces have none.
    """
    device = next(model.parameters()).device
    maps = cross_attention(model, torch.tensor([src], device=device), torch.tensor([[BOS, *found]], device=device))
    rows, columns = [*pieces[1], "</s>"], [*pieces[0], "</s>"]
    draw_attention(maps[-1].mean(dim=0), rows, columns, path, "Cross-attention, last layer, mean of heads")


def attentions(model: TokenModel, site: str) -> list[Attention]:
    """Return the attention of each layer, the lowest first, at a site named as DropHead does.

    `encoder` and `decoder`: self-attention; `cross`: the decoder's attention to the source.
    """
    return heads.attentions(model)[site]


@contextmanager
def masked(attention: Attention, head: int) -> Iterator[None]:
    """Set this head's output to 0 inside the block, as DropHead does, without scaling the other heads.

    This equals zeros in the columns of the output projection that read the head.
    """

    def silence(module: nn.Module, inputs: tuple[Tensor], outputs: Tensor) -> Tensor:
        return outputs.index_fill(1, torch.tensor([head], device=outputs.device), 0.0)

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
    """Return the loss added by masking each head alone, a row per attention: loss without head h, less `whole`.

    Michel, Levy and Neubig 2019, section 3.2, take the change of BLEU instead. Below 0: the model is better without the
    head. Heads that can each be removed alone may not be removable together.
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


def learned_scales(model: TokenModel) -> dict[str, list[float]]:
    """Return g of every ScaleNorm that learns it, by site and then by layer, the lowest first.

    As in Nguyen & Salazar 2019, figures 3 and 4. `FINAL` has that of each stack; a sandwich also has norms
    of the outputs of sublayers. Empty for a model without a learned g.
    """
    around: dict[str, list[Residual]] = {
        f"{name} {site.replace('_', '-')}": [getattr(layer, f"around_{site}") for layer in layers]
        for name, layers in model.stacks.items()
        for site in ("self_attention", "cross_attention", "feed_forward")
        if hasattr(layers[0], site)
    }
    sites: dict[str, list[nn.Module]] = {}
    for site, residuals in around.items():
        sites[site] = [residual.norm for residual in residuals]
        if outputs := [residual.norm_out for residual in residuals if isinstance(residual, Sandwich)]:
            sites[f"{site}, output"] = outputs
    sites[FINAL] = [getattr(model, name).final_norm for name in model.stacks]
    found = {site: [g for norm in norms if (g := _learned(norm)) is not None] for site, norms in sites.items()}
    return {site: gains for site, gains in found.items() if gains}


def _learned(norm: nn.Module) -> float | None:
    """Return the g of a ScaleNorm that learns it; None for other norms."""
    return norm.g.item() if isinstance(norm, ScaleNorm) and isinstance(norm.g, nn.Parameter) else None


def mean_heads(
    maps: Sequence[Float[Tensor, "heads queries keys"]], title: str, section: str, about: str, x: Axis, y: Axis
) -> MatrixArtefact:
    """Return the mean over heads, for all layers and for each."""
    means = torch.stack([heads.mean(dim=0) for heads in maps])
    layers = {f"layer {number}": weights for number, weights in enumerate(means, 1)}
    return MatrixArtefact(
        title=title,
        section=section,
        about=f"{about} Each row sums to 1; the mean over heads.",
        x=x,
        y=y,
        value="attention weight",
        slices=[
            Slice(label=label, values=[[round(value, 4) for value in row] for row in weights.tolist()])
            for label, weights in {"all layers": means.mean(dim=0), **layers}.items()
        ],
    )


def single_heads(
    site: str,
    maps: Sequence[Float[Tensor, "heads queries keys"]],
    title: str,
    x: Axis,
    y: Axis,
    *,
    reads: str | None = None,
) -> MatrixArtefact:
    """Return the mean over heads of all layers and of each, and every single head; layers may differ in heads.

    `reads`: what a row says; None: that of a sentence pair.
    """
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
        about=f"{reads or READS[site]} Each row sums to 1.",
        x=x,
        y=y,
        value="attention weight",
        slices=slices,
    )


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(value, DIGITS) for value in row] for row in weights.tolist()]
