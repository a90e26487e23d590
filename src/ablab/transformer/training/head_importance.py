"""The importance of every head: how much the loss of a sentence depends on the head's output."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ablab.transformer.data.batches import MicroBatch
from ablab.transformer.model.attention import Attention
from ablab.transformer.model.heads import attentions
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.training.loss import to_device, token_loss


def head_importance(
    model: TokenModel, batches: Iterable[MicroBatch], progress: Callable[[int], None] = lambda _: None
) -> dict[str, list[list[float]]]:
    """Return the importance of each head by site and layer, with norm 1 in each attention.

        I_h = mean over sentences x of |Att_h(x)^T dL(x)/dAtt_h(x)|,   L(x) = -log p(target | source)

    Michel, Levy and Neubig 2019, equation 2, with the norm of their section 4.1 (an l2 norm over the heads of a layer,
    after Molchanov et al. 2017): an attention whose heads all have gradient 0 keeps zeros. With a mask xi_h that
    multiplies the head's output at every position, the product is dL(x)/dxi_h at xi = 1; each sentence, or row of a
    batch of another kind, has masks of its own, so that one backward pass gives the gradients of a whole batch.
    `progress` counts these.
    """
    sites = attentions(model)
    sums = {site: [torch.zeros(each.num_heads, dtype=torch.float64) for each in found] for site, found in sites.items()}
    with evaluating(model), _constant(model), torch.enable_grad():
        for each in batches:
            batch = to_device(each, model)
            for site, layers in _slopes(model, sites, batch).items():
                for total, slopes in zip(sums[site], layers, strict=True):
                    total += slopes.abs().sum(dim=0).to(total)
            progress(len(batch.labels))
    return {site: [F.normalize(total, dim=0).tolist() for total in layers] for site, layers in sums.items()}


def _slopes(
    model: TokenModel, sites: dict[str, list[Attention]], batch: MicroBatch
) -> dict[str, list[Float[Tensor, "batch heads"]]]:
    """Return dL(x)/dxi of each sentence x of the batch for each head."""
    masks = {
        site: [each.output.weight.new_ones(len(batch.labels), each.num_heads, requires_grad=True) for each in found]
        for site, found in sites.items()
    }
    pairs = [pair for site, found in sites.items() for pair in zip(found, masks[site], strict=True)]
    with multiplied(pairs):
        loss = token_loss(model, batch, label_smoothing=0.0).total
    # LayerDrop is off in evaluation, so every mask is in the graph.
    slopes = iter(torch.autograd.grad(loss, [mask for _, mask in pairs]))
    return {site: [next(slopes) for _ in found] for site, found in sites.items()}


@contextmanager
def multiplied(pairs: list[tuple[Attention, Float[Tensor, "batch heads"]]]) -> Iterator[None]:
    """Multiply the heads' outputs by masks inside the block, where DropHead would."""

    def by(mask: Tensor) -> Callable[[nn.Module, Any, Tensor], Tensor]:
        return lambda module, inputs, heads: heads * mask[:, :, None, None]

    hooks = [attention.drophead.register_forward_hook(by(mask)) for attention, mask in pairs]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _constant(model: nn.Module) -> Iterator[None]:
    """Ask for no gradients of the parameters, which would take most of the time."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)
