"""Export of a language model in two layouts of the library transformers: safetensors and config.json.

    gpt2:   LayerNorm, positions at the input, a feed-forward network of two matrices (Radford et al. 2019)
    llama:  RMSNorm, rotary positions, SwiGLU (Touvron et al. 2023)

Both are pre-norm. Whatever else a layout cannot say is refused. The library itself is not needed to write them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ablab.errors import UserError
from ablab.files import write_json
from ablab.files.disk import replacing
from ablab.transformer.model.attention import SelfAttention
from ablab.transformer.model.feed_forward import GELU, FeedForward, GELUTanh, ReLU, SwiGLU
from ablab.transformer.model.language_model import CausalLayer, LanguageModel
from ablab.transformer.model.norms import LayerNorm, RMSNorm, ScaleNorm
from ablab.transformer.model.positions import LearnedPositions, NoPosition, RotaryPosition, SinusoidalPositions
from ablab.transformer.model.projection import Projection
from ablab.transformer.model.residual import PreNorm, Residual

Tensors = dict[str, Tensor]


class Exported(NamedTuple):
    """What a folder of transformers holds: the content of config.json, and tensors by their names there."""

    config: dict[str, Any]
    tensors: Tensors


def to_transformers(model: LanguageModel, layout: str, context: int, end: int, folder: Path) -> None:
    """Write the model to `folder`. UserError for parts that a layout lacks.

    `context`: the most tokens of a text. `end`: the token that ends a document, from which the next one is read.
    """
    written = exported(model, layout, context)
    written.config.update(bos_token_id=end, eos_token_id=end)
    with replacing(folder / "model.safetensors") as temporary:
        save_file(written.tensors, temporary, metadata={"format": "pt"})
    write_json(folder / "config.json", written.config)


@torch.no_grad()
def exported(model: LanguageModel, layout: str, context: int) -> Exported:
    """Return the model in a layout, in the precision that it has."""
    layers = [cast(CausalLayer, layer) for layer in model.decoder.layers]
    residuals = [module for module in model.decoder.modules() if isinstance(module, Residual)]
    _allow(layout, residuals, (PreNorm,), "placement=pre")
    if any(layer.self_attention.norm is not None for layer in layers):
        raise UserError(f"format={layout}: queries and keys have a norm; allowed: attention_norm=none")
    if any(layer.self_attention.output.in_features != model.decoder_width for layer in layers):
        raise UserError(f"format={layout}: heads were removed; allowed: a model with all of its heads")
    if model.output_bias is not None:
        raise UserError(f"format={layout}: the logits have a bias; allowed: model.output_bias=false")
    if not layers:
        raise UserError(f"format={layout}: no layers are left; allowed: a model with layers")
    return _WRITERS[layout](model, layers, context)


def _gpt2(model: LanguageModel, layers: list[CausalLayer], context: int) -> Exported:
    norms = _norms(model, layers)
    _allow("gpt2", norms, (LayerNorm,), "norm=pre")
    activation = _allow("gpt2", [layer.feed_forward for layer in layers], tuple(ACTIVATIONS), "feed_forward=gelu_tanh")
    tensors = {"transformer.wpe.weight": _positions(model, layers, context)}
    for number, layer in enumerate(layers):
        at, attention, network = f"transformer.h.{number}.", layer.self_attention, cast(FeedForward, layer.feed_forward)
        tensors |= _linear(f"{at}attn.c_attn", attention.qkv, turned=True)
        tensors |= _linear(f"{at}attn.c_proj", attention.output, turned=True)
        tensors |= _linear(f"{at}mlp.c_fc", network.inner, turned=True)
        tensors |= _linear(f"{at}mlp.c_proj", network.outer, turned=True)
    names = [f"transformer.h.{number}.ln_{place}" for number in range(len(layers)) for place in (1, 2)]
    for name, norm in zip([*names, "transformer.ln_f"], norms, strict=True):
        tensors |= {f"{name}.weight": norm.weight, f"{name}.bias": norm.bias}
    config = {
        "n_positions": context,
        "n_embd": model.decoder_width,
        "n_layer": len(layers),
        "n_head": layers[0].self_attention.num_heads,
        "n_inner": cast(FeedForward, layers[0].feed_forward).inner.out_features,
        "activation_function": ACTIVATIONS[activation],
        "layer_norm_epsilon": norms[0].eps,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }
    return _with_tables(model, "gpt2", "GPT2LMHeadModel", "transformer.wte.weight", config, tensors)


def _llama(model: LanguageModel, layers: list[CausalLayer], context: int) -> Exported:
    norms = _norms(model, layers)
    kind = _allow("llama", norms, (RMSNorm, ScaleNorm), "norm=rmsnorm, norm=scalenorm")
    _allow("llama", [layer.feed_forward for layer in layers], (SwiGLU,), "feed_forward=swiglu")
    positions = [layer.self_attention.position for layer in layers]
    _allow("llama", positions, (RotaryPosition,), "position=rope")
    tensors: Tensors = {}
    for number, layer in enumerate(layers):
        at, network = f"model.layers.{number}.", cast(SwiGLU, layer.feed_forward)
        tensors |= _projections(f"{at}self_attn.", layer.self_attention)
        tensors |= _linear(f"{at}self_attn.o_proj", layer.self_attention.output)
        tensors |= _linear(f"{at}mlp.gate_proj", network.gate)
        tensors |= _linear(f"{at}mlp.up_proj", network.inner)
        tensors |= _linear(f"{at}mlp.down_proj", network.outer)
    places = ("input_layernorm", "post_attention_layernorm")
    names = [f"model.layers.{number}.{place}" for number in range(len(layers)) for place in places]
    width = model.decoder_width
    for name, norm in zip([*names, "model.norm"], norms, strict=True):
        # g x / |x| = (g / sqrt(d)) x / rms(x)
        gain = norm.weight if kind is RMSNorm else (norm.g / math.sqrt(width)).repeat(width)
        tensors[f"{name}.weight"] = gain
    theta = cast(RotaryPosition, positions[0]).base
    config = {
        "max_position_embeddings": context,
        "hidden_size": width,
        "intermediate_size": cast(SwiGLU, layers[0].feed_forward).inner.out_features,
        "num_hidden_layers": len(layers),
        "num_attention_heads": layers[0].self_attention.num_heads,
        "num_key_value_heads": layers[0].self_attention.num_heads,
        "hidden_act": "silu",
        "rms_norm_eps": norms[0].eps if kind is RMSNorm else ScaleNorm.EPSILON**2 / width,
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "attention_bias": layers[0].self_attention.output.bias is not None,
        "mlp_bias": True,
    }
    return _with_tables(model, "llama", "LlamaForCausalLM", "model.embed_tokens.weight", config, tensors)


_WRITERS: Mapping[str, Callable[[LanguageModel, list[CausalLayer], int], Exported]] = {"gpt2": _gpt2, "llama": _llama}

ACTIVATIONS: Mapping[type[nn.Module], str] = {ReLU: "relu", GELU: "gelu", GELUTanh: "gelu_new"}
"""Names that transformers has for feed-forward networks of two matrices."""


def _allow(
    layout: str, parts: Iterable[nn.Module | None], kinds: tuple[type[nn.Module], ...], words: str
) -> type[nn.Module]:
    """Return the one kind that all parts have. UserError where they differ, or it is none of these."""
    found = {type(part): None for part in parts}
    kind, *others = found
    if others or kind not in kinds:
        named = ", ".join("no such part" if each is type(None) else each.__name__ for each in found)
        raise UserError(f"format={layout}: {named} cannot be said in this layout; allowed: {words}")
    return kind


def _norms(model: LanguageModel, layers: list[CausalLayer]) -> list[Any]:
    """Return the norms in the order of the data, the last one included."""
    own = [each.norm for layer in layers for each in (layer.around_self_attention, layer.around_feed_forward)]
    return [*own, model.decoder.final_norm]


def _positions(model: LanguageModel, layers: list[CausalLayer], context: int) -> Tensor:
    """Return the vectors of the first `context` positions; zeros where there are none."""
    words = "position=learned, position=sinusoidal, position=none"
    if model.target_input.positions is None:
        _allow("gpt2", [layer.self_attention.position for layer in layers], (NoPosition,), words)
        return model.words.output_matrix().new_zeros(context, model.decoder_width)
    _allow("gpt2", [model.target_input.positions], (LearnedPositions, SinusoidalPositions), words)
    found: Tensor = model.target_input.positions(0, context)
    return found


def _linear(name: str, linear: nn.Linear, *, turned: bool = False) -> Tensors:
    """Return weight and bias under this name. `turned`: a matrix has its inputs first there, and a bias always."""
    bias = linear.whole_bias() if isinstance(linear, Projection) else linear.bias
    if not turned:
        return {f"{name}.weight": linear.weight, **({} if bias is None else {f"{name}.bias": bias})}
    return {
        f"{name}.weight": linear.weight.T,
        f"{name}.bias": linear.weight.new_zeros(linear.out_features) if bias is None else bias,
    }


def _projections(at: str, attention: SelfAttention) -> Tensors:
    """Return queries, keys and values apart. The features 2i and 2i + 1, which rotate together, are halves there."""
    d_head = attention.d_model // attention.num_heads
    halves = torch.cat([torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)])
    tensors: Tensors = {}
    whole = {"weight": attention.qkv.weight, "bias": attention.qkv.whole_bias()}
    for kind, joined in ((kind, tensor) for kind, tensor in whole.items() if tensor is not None):
        for name, part in zip("qkv", joined.chunk(3), strict=True):
            heads = part.unflatten(0, (attention.num_heads, d_head))
            tensors[f"{at}{name}_proj.{kind}"] = (heads if name == "v" else heads[:, halves]).flatten(0, 1)
    return tensors


def _with_tables(
    model: LanguageModel, kind: str, architecture: str, table: str, config: dict[str, Any], tensors: Tensors
) -> Exported:
    """Add the tables; a scale of word vectors at the input becomes part of them, and then there are two."""
    output = model.words.output_matrix()
    given = model.words.target(torch.arange(len(output), device=output.device))
    is_tied = torch.equal(given, output)
    tensors |= {table: given} | ({} if is_tied else {"lm_head.weight": output})
    head = {"model_type": kind, "architectures": [architecture], "vocab_size": len(output)}
    last = {"tie_word_embeddings": is_tied, "dtype": str(output.dtype).removeprefix("torch.")}
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    return Exported({**head, **config, **last}, plain)
