"""The place of a part in the model."""

from typing import NamedTuple


class Place(NamedTuple):
    """The place of a part, which it may ask for by the names of these fields.

    `stack`: `encoder` or `decoder`. `layer`: its number, from 1; 0 before and after the layers. `sublayer`:
    `self_attention`, `cross_attention` or `feed_forward` within a layer, else `input` or `final`.
    """

    stack: str
    layer: int
    sublayer: str
