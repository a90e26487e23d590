"""A run's weights under JoeyNMT's names, so that both search with the same model."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from ablab.transformer.model.positions import sinusoid
from benchmarks.speed.task import LAYERS

Weights = dict[str, Tensor]

POSITIONS = 5000
"""JoeyNMT keeps its table of sinusoids, of this length, among its weights."""

NORMS = {
    "encoder": {"around_self_attention": "layer_norm", "around_feed_forward": "feed_forward.layer_norm"},
    "decoder": {
        "around_self_attention": "x_layer_norm",
        "around_cross_attention": "dec_layer_norm",
        "around_feed_forward": "feed_forward.layer_norm",
    },
}
ATTENTION = {
    "encoder": {"self_attention": "src_src_att"},
    "decoder": {"self_attention": "trg_trg_att", "cross_attention": "src_trg_att"},
}
FEED_FORWARD = {"inner": "feed_forward.pwff_layer.0", "outer": "feed_forward.pwff_layer.3"}


def hand_over(weights: Path, checkpoint: Path) -> None:
    """Write a checkpoint that JoeyNMT loads to translate."""
    ours = load_file(weights)
    (table,) = (ours[name] for name in ours if name.startswith("words.tables."))
    theirs = {"src_embed.lut.weight": table, "trg_embed.lut.weight": table, "decoder.output_layer.weight": table}
    positions = sinusoid(POSITIONS, table.size(1)).float()[None]
    for stack in ("encoder", "decoder"):
        theirs[f"{stack}.pe.pe"] = positions
        theirs |= _moved(ours, f"{stack}.final_norm", f"{stack}.layer_norm")
        for layer in range(LAYERS):
            theirs |= _layer(ours, stack, f"{stack}.layers.{layer}")
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"model_state": theirs}, checkpoint)


def _layer(ours: Weights, stack: str, at: str) -> Weights:
    theirs: Weights = {}
    for name, their_name in NORMS[stack].items():
        theirs |= _moved(ours, f"{at}.{name}.norm", f"{at}.{their_name}")
    for name, their_name in FEED_FORWARD.items():
        theirs |= _moved(ours, f"{at}.feed_forward.{name}", f"{at}.{their_name}")
    for name, their_name in ATTENTION[stack].items():
        theirs |= _moved(ours, f"{at}.{name}.output", f"{at}.{their_name}.output_layer")
        weights, biases = (
            [ours[key] for part in ("qkv", "query", "key_value") if (key := f"{at}.{name}.{part}.{kind}") in ours]
            for kind in ("weight", "bias")
        )
        for role, tensor in zip("qkv", torch.cat(weights).chunk(3), strict=True):
            theirs[f"{at}.{their_name}.{role}_layer.weight"] = tensor.clone()
        # The query's and the value's: one of the keys changes nothing, whether ours have it or not.
        bias, width = torch.cat(biases), weights[0].size(1)
        query, value = bias[:width], bias[-width:]
        for role, tensor in zip("qkv", (query, torch.zeros_like(query), value), strict=True):
            theirs[f"{at}.{their_name}.{role}_layer.bias"] = tensor.clone()
    return theirs


def _moved(ours: Weights, name: str, their_name: str) -> Weights:
    return {f"{their_name}.{kind}": ours[f"{name}.{kind}"] for kind in ("weight", "bias")}
