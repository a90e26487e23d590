"""What ScaleNorm has learned: one number a site."""

from torch import nn

from ablab.model.norms import ScaleNorm
from ablab.model.transformer import Transformer

FINAL = "final norms"
"""The site at the end of each stack; there is none in PostNorm."""


def learned_scales(model: Transformer) -> dict[str, list[float]]:
    """g of every ScaleNorm that learns it, by site and then by layer, the lowest first.

    As in Nguyen & Salazar 2019, figures 3 and 4. `FINAL` has the encoder's and the decoder's. Empty for a model without
    a learned g.
    """
    sites = {
        f"{name} {site.replace('_', '-')}": [getattr(layer, f"around_{site}").norm for layer in stack.layers]
        for name, stack, parts in (
            ("encoder", model.encoder, ("self_attention", "feed_forward")),
            ("decoder", model.decoder, ("self_attention", "cross_attention", "feed_forward")),
        )
        for site in parts
    }
    sites[FINAL] = [model.encoder.final_norm, model.decoder.final_norm]
    return {site: [norm.g.item() for norm in norms] for site, norms in sites.items() if all(map(_learns, norms))}


def _learns(norm: nn.Module) -> bool:
    return isinstance(norm, ScaleNorm) and isinstance(norm.g, nn.Parameter)
