"""The model against what the authors' code computes (Nguyen & Salazar 2019); see tests/references/README.md."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ablab.config import compose
from ablab.transformer.data.batches import Batch
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.stages.models import build_model
from ablab.transformer.training.loss import token_loss

REFERENCES = Path(__file__).parents[1] / "references"
CLOSE = {"rtol": 1e-6, "atol": 1e-10}
ARMS = {
    "post_layernorm": ("norm=post",),
    "post_layernorm_fixnorm": ("norm=post", "embedding=fixnorm"),
    "post_scalenorm": ("norm=scalenorm", "placement=post"),
    "post_scalenorm_fixnorm": ("norm=scalenorm_fixnorm", "placement=post"),
    "pre_layernorm": ("norm=pre",),
    "pre_layernorm_fixnorm": ("norm=fixnorm",),
    "pre_scalenorm": ("norm=scalenorm",),
    "pre_scalenorm_fixnorm": ("norm=scalenorm_fixnorm",),
}
THEIR_IDS = (PAD, BOS, EOS, UNK)
"""What their ids 0, 1, 2 and 3 are here; all others are equal."""
WITHOUT_COUNTERPART = ("lang_embedding",)
SUBLAYERS = {"encoder": ("self_attention", "feed_forward")}
SUBLAYERS["decoder"] = ("self_attention", "cross_attention", "feed_forward")


class Published(NamedTuple):
    """One file: their arrays, and their weights and gradients by their names."""

    arrays: dict[str, Tensor]
    weights: dict[str, Tensor]
    gradients: dict[str, Tensor]

    @classmethod
    @cache
    def read(cls, arm: str) -> "Published":
        with np.load(REFERENCES / f"{arm}.npz") as file:
            shapes = json.loads(str(file["shapes"]))
            arrays = {name: torch.from_numpy(file[name]) for name in file.files if name != "shapes"}
        return cls(arrays, *(_cut(arrays.pop(kind).double(), shapes) for kind in ("weights", "gradients")))

    @property
    def depth(self) -> int:
        return sum(name.startswith("encoder.ffs.") for name in self.weights) // 4

    def ids(self, name: str) -> Tensor:
        """Their token ids as ours."""
        return _our_ids(len(self.weights["word_embedding"]))[self.arrays[name]]

    def batch(self) -> Batch:
        return Batch.of(self.ids("src"), self.ids("tgt"), self.ids("targets"))


def _cut(flat: Tensor, shapes: dict[str, list[int]]) -> dict[str, Tensor]:
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    return {name: part.view(shapes[name]) for name, part in zip(shapes, flat.split(sizes), strict=True)}


def _our_ids(vocab: int) -> Tensor:
    return torch.tensor([*THEIR_IDS, *range(len(THEIR_IDS), vocab)])


def ours(theirs: dict[str, Tensor], depth: int) -> dict[str, Tensor]:
    """Their weights, or gradients of them, under our names: rows are cut and put into our order, no more."""
    table = theirs["word_embedding"]
    by_type = {"words.tables.shared.weight": table, "output_bias": theirs["out_bias"]}
    found = {name: torch.empty_like(rows).index_copy(0, _our_ids(len(rows)), rows) for name, rows in by_type.items()}
    for stack, sublayers in SUBLAYERS.items():
        for layer in range(depth):
            place = f"{stack}.layers.{layer}"
            found |= _attention(theirs, f"{stack}.atts.{layer}", f"{place}.self_attention", ("qkv",))
            if stack == "decoder":
                cross = f"{stack}.cross_atts.{layer}"
                found |= _attention(theirs, cross, f"{place}.cross_attention", ("query", "key_value"))
            for their_name, our_name in (("in_proj", "inner"), ("out_proj", "outer")):
                found |= _renamed(theirs, f"{stack}.ffs.{layer}.{their_name}", f"{place}.feed_forward.{our_name}")
            for site, sublayer in enumerate(sublayers, len(sublayers) * layer):
                found |= _renamed(theirs, f"{stack}.scales.{site}", f"{place}.around_{sublayer}.norm")
        found |= _renamed(theirs, f"{stack}.scales.{len(sublayers) * depth}", f"{stack}.final_norm")
    return found


def _renamed(theirs: dict[str, Tensor], old: str, new: str) -> dict[str, Tensor]:
    """All that stands below one of their names; ScaleNorm's g is their `scale`."""
    names = {name: name.removeprefix(old) for name in theirs if name.startswith(f"{old}.")}
    return {new + end.replace(".scale", ".g"): theirs[name] for name, end in names.items()}


def _attention(theirs: dict[str, Tensor], old: str, new: str, inputs: tuple[str, ...]) -> dict[str, Tensor]:
    """Their one matrix of queries, keys, values and output, one above the other, in our pieces."""
    pieces = {("qkv",): [3, 1], ("query", "key_value"): [1, 2, 1]}[inputs]
    found = {}
    for kind, ending in (("weights", "weight"), ("biases", "bias")):
        joined = theirs[f"{old}.{kind}"]
        parts = joined.split([piece * (len(joined) // 4) for piece in pieces])
        found |= {f"{new}.{name}.{ending}": part for name, part in zip((*inputs, "output"), parts, strict=True)}
    return found


def built(arm: str) -> Transformer:
    """Our model of this arm with their weights."""
    published = Published.read(arm)
    vocab, d_model = published.weights["word_embedding"].shape
    depth = published.depth
    sizes = {"d_model": d_model, "d_ff": len(published.weights["encoder.ffs.0.in_proj.bias"]), "num_heads": 2}
    sizes |= {"encoder_layers": depth, "decoder_layers": depth, "tie": "all"}
    words = [*ARMS[arm], "model.attention_bias=all", "model.output_bias=true"]
    config = compose([*words, *(f"model.{key}={value}" for key, value in sizes.items())]).config
    model = build_model(config, src_vocab=vocab, tgt_vocab=vocab).double().eval()
    model.load_state_dict(ours(published.weights, depth))
    return model


@pytest.mark.parametrize("arm", ARMS)
def test_no_weight_of_theirs_is_left_out_unless_it_is_zero(arm):
    published = Published.read(arm)
    missing = [published.weights[name] for name in WITHOUT_COUNTERPART]
    assert not any(weight.any() for weight in missing)
    taken = ours(published.weights, published.depth)
    everything = [*taken.values(), *missing]
    assert sum(weight.numel() for weight in everything) == sum(w.numel() for w in published.weights.values())


@pytest.mark.parametrize("arm", ARMS)
def test_outputs_equal_the_authors(arm):
    published, model = Published.read(arm), built(arm)
    batch = published.batch()
    memory, _ = model.encode(batch.src)
    real = batch.src != PAD
    assert_close(memory[real], published.arrays["encoder_output"][real], **CLOSE)
    expected = published.arrays["logits"]
    logits = model.logits(model(batch.src, batch.tgt)).index_select(-1, _our_ids(expected.size(-1)))
    real = batch.labels != PAD
    assert_close(logits[real], expected[real], **CLOSE)


@pytest.mark.parametrize("arm", ARMS)
def test_losses_and_all_gradients_equal_the_authors(arm):
    published, model = Published.read(arm), built(arm)
    loss = token_loss(model, published.batch(), float(published.arrays["label_smoothing"]))
    assert_close(loss.total, published.arrays["loss"], **CLOSE)
    assert_close(loss.true, published.arrays["nll_loss"], **CLOSE)
    loss.total.backward()
    expected = ours(published.gradients, published.depth)
    assert all(gradient.abs().max() > 1e-3 for gradient in expected.values())
    assert_close({name: parameter.grad for name, parameter in model.named_parameters()}, expected, **CLOSE)
