"""Export of a trained model to CTranslate2, which translates without torch, and in 8-bit integers on request.

Everything is read from the model's own modules; one small function converts each kind of module.
"""

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ablab.errors import UserError
from ablab.files.disk import publish
from ablab.transformer.data.tokenizer import Tokenizer, save_tokenizers
from ablab.transformer.model.attention import Attention, CrossAttention, SelfAttention
from ablab.transformer.model.embedding import Embedding, FixNormEmbedding, PlainEmbedding
from ablab.transformer.model.feed_forward import ReLU
from ablab.transformer.model.layers import DecoderLayer, EncoderLayer
from ablab.transformer.model.norms import LayerNorm, RMSNorm, ScaleNorm
from ablab.transformer.model.positions import LearnedPositions, SinusoidalPositions, sinusoid
from ablab.transformer.model.projection import Projection
from ablab.transformer.model.residual import PostNorm, PreNorm, Residual
from ablab.transformer.model.tokens import BOS, EOS, UNK
from ablab.transformer.model.transformer import Decoder, Encoder, Transformer

Quantization = Literal["float32", "int8"]
Value = TypeVar("Value")

POSITIONS = 2048
"""Rows of an exported position table. CTranslate2 cannot extend it as ours grows, and refuses longer sentences."""

TABLES = (Embedding, PlainEmbedding, FixNormEmbedding)

PRE_NORM: Mapping[type, bool] = {PreNorm: True, PostNorm: False}


def to_ctranslate2(
    model: Transformer, tokenizers: tuple[Tokenizer, Tokenizer], folder: Path, *, quantization: Quantization
) -> None:
    """Write model, vocabularies and tokenizers to `folder`, all or nothing. The model stays unchanged.

    `int8` stores matrices and word tables as 8-bit integers with a scale per row. Raises UserError when `folder` is not
    empty, and for a model that CTranslate2 cannot express.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: exists; say a new folder, or remove it")
    spec = _specification(model, tokenizers)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        written = Path(temporary) / "model"
        save_tokenizers(written, tokenizers)
        spec.save(str(written))
        publish(written, folder)


def check_model(model: Transformer) -> None:
    """Raise UserError for a model that CTranslate2 cannot express, or where it is not installed."""
    _of_parts(model)


def library() -> Any:
    """Import CTranslate2 on first use, since it is an extra. Raises UserError where it is not installed."""
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError:
        raise UserError("ctranslate2 is not installed; pip install 'ablab[ctranslate2]'") from None
    return ctranslate2


def _specification(model: Transformer, tokenizers: tuple[Tokenizer, Tokenizer]) -> Any:
    """Return the model as CTranslate2's converters hold it in memory. Raises UserError for parts that it lacks."""
    spec = _of_parts(model)
    _name_words(spec, tokenizers)
    return spec


def _of_parts(model: Transformer) -> Any:
    """Return the model without its vocabularies."""
    _check_parts(model)
    specs = library().specs
    encoder = _empty_stack(specs.TransformerEncoderSpec, model.encoder)
    decoder = _empty_stack(specs.TransformerDecoderSpec, model.decoder)
    words = model.words
    (source,) = encoder.embeddings
    source.weight = _table(words.tables[words.source_name])
    decoder.embeddings.weight = _table(words.tables[words.target_name])
    decoder.projection.weight = _plain(words.output_matrix())
    if model.output_bias is not None:
        decoder.projection.bias = _plain(model.output_bias)
    _fill_stack(encoder, model.encoder)
    _fill_stack(decoder, model.decoder)
    encoder.position_encodings.encodings = _positions(model.source_input.positions)
    decoder.position_encodings.encodings = _positions(model.target_input.positions)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = _epsilon(model)
    return spec


def _check_parts(model: Transformer) -> None:
    """Raise UserError for a part of the user's that is derived from one of ablab's: it computes something else."""
    norms, positions = (LayerNorm, RMSNorm, ScaleNorm), (SinusoidalPositions, LearnedPositions)
    known = (*norms, *positions, EncoderLayer, DecoderLayer, SelfAttention, CrossAttention, ReLU)
    for module in model.modules():
        if isinstance(module, known) and type(module) not in known:
            raise _unknown(module)


def _name_words(spec: Any, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Register the vocabularies and their special tokens."""
    rows = [*spec.get_source_vocabulary_size(), spec.get_target_vocabulary_size()]
    sizes = [len(tokenizer) for tokenizer in tokenizers]
    if sizes != rows:
        raise UserError(f"the tokenizers have {sizes} subwords, the model's word tables {rows} rows")
    source, target = (tokenizer.pieces(range(len(tokenizer))) for tokenizer in tokenizers)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = (target[token] for token in (UNK, BOS, EOS))
    config.decoder_start_token = config.bos_token
    config.add_source_eos = True


def _empty_stack(kind: Any, stack: Encoder | Decoder) -> Any:
    """Return an empty specification of this stack's shape."""
    name, modules = type(stack).__name__, list(stack.layers.modules())
    if not len(stack.layers):
        raise UserError(f"{name}: no layers are left; CTranslate2 needs at least one in each stack")
    residuals = [module for module in modules if isinstance(module, Residual)]
    _same(f"{name}: norm placements", [type(residual).__name__ for residual in residuals])
    for placement in map(type, residuals):
        if placement not in PRE_NORM:  # one of the user's may have a name of ours
            known = ", ".join(one.__name__ for one in PRE_NORM)
            raise UserError(f"{placement.__qualname__}: CTranslate2 has no such norm placement; it has {known}")
    attentions = [module for module in modules if isinstance(module, Attention)]
    if any(attention.output.in_features != attention.output.out_features for attention in attentions):
        raise UserError(
            f"{name}: heads were removed; CTranslate2 takes one number of heads for all attentions, each of width "
            "d_model / heads; allowed: a run, or a model that layers were removed from"
        )
    heads = [attention.num_heads for attention in attentions]
    return kind(
        len(stack.layers),
        _same(f"{name}: numbers of heads", heads),
        pre_norm=PRE_NORM[type(residuals[0])],
        no_final_norm=isinstance(stack.final_norm, nn.Identity),
        rms_norm=_norm(residuals[0].norm, _width(stack)).beta is None,
    )


def _epsilon(model: Transformer) -> float:
    """Return the epsilon of all norms; CTranslate2 has one for the whole model."""
    found = {}
    for stack in (model.encoder, model.decoder):
        norms = [module.norm for module in stack.modules() if isinstance(module, Residual)]
        for norm in [*norms, *([] if isinstance(stack.final_norm, nn.Identity) else [stack.final_norm])]:
            epsilon = _norm(norm, _width(stack)).epsilon
            found[f"{type(norm).__name__} (epsilon {epsilon:g})"] = epsilon
    return found[_same("norms", found)]


def _same(what: str, values: Iterable[Value]) -> Value:
    """Return the one value that all parts have. Raises UserError where they differ."""
    first, *others = dict.fromkeys(values)
    if others:
        raise UserError(f"{what} {', '.join(map(str, [first, *others]))}; CTranslate2 takes one for all layers")
    return first


def _width(stack: Encoder | Decoder) -> int:
    """Return d_model."""
    return next(module.output.out_features for module in stack.modules() if isinstance(module, Attention))


def _plain(tensor: Tensor) -> Tensor:
    """Return a copy in single precision: CTranslate2 quantises its input in place."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()


def _table(table: nn.Module) -> Tensor:
    """Return the rows of word vectors; CTranslate2 multiplies them by sqrt(d_model), as most tables here do."""
    if type(table) not in TABLES:
        raise _unknown(table)
    assert isinstance(table, Embedding)
    rows = table.matrix()
    return _plain(rows / math.sqrt(rows.size(1)) if isinstance(table, PlainEmbedding) else rows)


def _unknown(module: nn.Module | None) -> UserError:
    return UserError(f"{type(module).__name__}: not known to the export to CTranslate2")


class _Norm(NamedTuple):
    """Parameters of a norm: gamma (x - mean) / sqrt(var + epsilon) + beta, or without beta gamma x / sqrt(mean(x^2) +
    epsilon).
    """

    epsilon: float
    gamma: Tensor
    beta: Tensor | None = None


def _norm(norm: nn.Module, width: int) -> _Norm:
    """Return a norm over `width` features in CTranslate2's form.

    ScaleNorm: g x / |x| = (g / sqrt(d)) x / rms(x), with an epsilon that keeps the smallest divisor about equal to
    ours.
    """
    match norm:
        case LayerNorm():
            return _Norm(norm.eps, _plain(norm.weight), _plain(norm.bias))
        case RMSNorm():
            assert norm.eps is not None
            return _Norm(norm.eps, _plain(norm.weight))
        case ScaleNorm():
            return _Norm(norm.EPSILON**2 / width, _plain(norm.g / math.sqrt(width)).repeat(width))
    raise _unknown(norm)


def _positions(positions: nn.Module | None) -> Tensor:
    """Return the vectors of the first `POSITIONS` positions."""
    match positions:
        case SinusoidalPositions():  # anew: asking the module would make its own table grow
            return _plain(sinusoid(POSITIONS, positions.d_model))
        case LearnedPositions():
            return _plain(positions(0, POSITIONS))
    raise _unknown(positions)


def _fill_stack(spec: Any, stack: Encoder | Decoder) -> None:
    width = _width(stack)
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        _fill(layer, layer_spec, width)
    if not isinstance(stack.final_norm, nn.Identity):
        _fill_norm(spec.layer_norm, stack.final_norm, width)


def _fill_norm(spec: Any, norm: nn.Module, width: int) -> None:
    written = _norm(norm, width)
    spec.gamma = written.gamma
    if written.beta is not None:
        spec.beta = written.beta


def _fill_sublayer(spec: Any, sublayer: nn.Module, residual: Residual, width: int) -> None:
    _fill_norm(spec.layer_norm, residual.norm, width)
    _fill(sublayer, spec, width)


def _fill_linears(specs: Sequence[Any], *linears: nn.Linear) -> None:
    for spec, linear in zip(specs, linears, strict=True):
        spec.weight = _plain(linear.weight)
        bias = linear.whole_bias() if isinstance(linear, Projection) else linear.bias
        if bias is not None:
            spec.bias = _plain(bias)


def _fill(module: nn.Module, spec: Any, width: int) -> None:
    """Copy the weights of a layer or sublayer into its specification. Its activation is ReLU unless told otherwise."""
    match module:
        case EncoderLayer():
            _fill_sublayer(spec.self_attention, module.self_attention, module.around_self_attention, width)
            _fill_sublayer(spec.ffn, module.feed_forward, module.around_feed_forward, width)
        case DecoderLayer():
            _fill_sublayer(spec.self_attention, module.self_attention, module.around_self_attention, width)
            _fill_sublayer(spec.attention, module.cross_attention, module.around_cross_attention, width)
            _fill_sublayer(spec.ffn, module.feed_forward, module.around_feed_forward, width)
        case SelfAttention():
            _check_scores(module)
            _fill_linears(spec.linear, module.qkv, module.output)
        case CrossAttention():
            _check_scores(module)
            _fill_linears(spec.linear, module.query, module.key_value, module.output)
        case ReLU():
            _fill_linears([spec.linear_0, spec.linear_1], module.inner, module.outer)
        case _:
            raise _unknown(module)


def _check_scores(module: Attention) -> None:
    """Raise UserError unless the scores are the plain products of queries and keys, as CTranslate2 computes them."""
    for part in (module.norm, getattr(module, "position", None)):
        if part is not None:
            raise _unknown(part)
