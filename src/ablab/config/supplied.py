"""Names that the builder supplies to parts: a parameter of any other name is a field that users set.

A part asks for what it needs by naming it, so that none of it has to be threaded through the parts around.
"""

from collections.abc import Mapping

MODEL = ("d_model", "d_ff", "num_heads", "d_head", "encoder_layers", "decoder_layers")
"""Dimensions of the model."""

PLACE = ("stack", "layer", "sublayer")
"""Where a part stands: `encoder` or `decoder`; the number of its layer, from 1, or 0 outside the layers; and
`self_attention`, `cross_attention`, `feed_forward`, `input` or `final`."""

SUPPLIED: Mapping[str, tuple[str, ...]] = {
    "norm": (*MODEL, *PLACE),
    "placement": (*MODEL, *PLACE, "norm", "make_norm", "dropout"),
    "embedding": (*MODEL, "vocab_size"),
    "attention_norm": (*MODEL, *PLACE),
    "feed_forward": (*MODEL, *PLACE, "dropout"),
    "init": MODEL,
    "position": (*MODEL, *PLACE),
    "drophead": (*MODEL, *PLACE, "step"),
    "schedule": (*MODEL, "step", "peak", "total"),
    "optim": (*MODEL, "parameters"),
    "pruning": ("encoder_layers", "decoder_layers", "judge", "rates"),
    "data": (),
    "logger": (),
}
"""By group, the parameters that are no fields. `peak`: the largest learning rate. `total`: `training.max_steps`."""
