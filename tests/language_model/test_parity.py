"""GPT-2 and Llama of the library transformers, our weights put in: equal logits and gradients in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ablab.errors import UserError
from ablab.transformer.export.transformers_layouts import exported, to_transformers
from tests.language_model.models import CONTEXT, GPT2, LLAMA, VOCAB, stirred, tokens

transformers = pytest.importorskip("transformers")

EXACT = {"rtol": 1e-9, "atol": 1e-10}
ARMS = {
    "gpt2": GPT2,
    "gpt2, exact gelu, untied": (*GPT2, "feed_forward=gelu", "model.tie=none"),
    "gpt2, relu, scaled vectors, no biases": (
        *GPT2,
        "feed_forward=relu",
        "embedding=scaled",
        "model.attention_bias=none",
    ),
    "gpt2, sinusoids": ("position=sinusoidal", "norm=fixnorm", "model.dropout=0"),
    "gpt2, no positions": (*GPT2[:1], "position=none"),
    "llama": LLAMA,
    "llama, tied, all biases": (*LLAMA, "model.tie=all", "model.attention_bias=all", "position.base=500.0"),
    "llama, scaled vectors": (*LLAMA, "embedding=scaled", "model.attention_bias=no_key"),
}
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}


def layout(name):
    return name.partition(",")[0]


def in_double_precision(theirs):
    """Their formulas of norms and rotations, which take single precision whatever that of the model."""
    config = theirs.config

    def rotation(x, position_ids):
        step = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        angles = position_ids[..., None].double() / config.rope_parameters["rope_theta"] ** step
        both = torch.cat([angles, angles], dim=-1)
        return both.cos(), both.sin()

    def normalised(norm):
        return lambda x: norm.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon))

    theirs.model.rotary_emb.forward = rotation
    for module in theirs.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = normalised(module)


def reference(model, name, *, precise=True):
    """Their model with our weights, in float64."""
    config, weights = exported(model, layout(name), CONTEXT)
    kind = getattr(transformers, CLASSES[layout(name)])
    theirs = kind(kind.config_class(**config, attn_implementation="sdpa")).double().eval()
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert unexpected == []
    assert set(missing) <= {"lm_head.weight"}  # that of a tied model
    if layout(name) == "llama" and precise:
        in_double_precision(theirs)
    return theirs


@pytest.mark.parametrize("name", ARMS)
def test_logits_are_theirs(name):
    model, text = stirred(*ARMS[name]), tokens(3, CONTEXT)
    assert_close(model.logits(model(text)), reference(model, name)(text).logits, **EXACT)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_gradients_are_theirs(name):
    """Of the loss, by every weight: ours are put into their layout as weights are."""
    model, text = stirred(*ARMS[name]), tokens(3, CONTEXT)
    theirs = reference(model, name)
    for logits in (model.logits(model(text)), theirs(text).logits):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), text[:, 1:].flatten()).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    found = exported(model, layout(name), CONTEXT).tensors
    expected = {key: parameter.grad for key, parameter in theirs.named_parameters()}
    assert found.keys() >= expected.keys()
    for key, gradient in expected.items():
        assert_close(found[key], gradient, **EXACT, msg=key)


def test_scalenorm_is_an_rmsnorm_of_theirs_up_to_its_smallest_divisor():
    model, text = stirred(*LLAMA, "norm=scalenorm"), tokens(3, CONTEXT)
    assert_close(model.logits(model(text)), reference(model, "llama")(text).logits, rtol=1e-6, atol=1e-6)


def test_llama_in_its_own_precision_is_ours_to_that_precision():
    model, text = stirred(*LLAMA), tokens(3, CONTEXT)
    found = reference(model, "llama", precise=False)(text).logits
    assert_close(model.logits(model(text)), found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_an_export_is_loaded_with_equal_logits(name, tmp_path):
    model, text = stirred(*ARMS[name]).float(), tokens(3, CONTEXT)
    to_transformers(model, layout(name), CONTEXT, 0, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert theirs.config.eos_token_id == 0
    with torch.inference_mode():
        assert_close(theirs(text).logits, model.logits(model(text)), rtol=1e-4, atol=1e-4)


INEXPRESSIBLE = {
    ("gpt2", "norm=rmsnorm"): "RMSNorm",
    ("gpt2", "norm=post"): "PostNorm",
    ("gpt2", "placement=sandwich"): "Sandwich",
    ("gpt2", "norm=qk"): "queries and keys",
    ("gpt2", "position=rope"): "RotaryPosition",
    ("gpt2", "feed_forward=swiglu"): "SwiGLU",
    ("gpt2", "model.output_bias=true"): "bias",
    ("llama", "norm=pre"): "LayerNorm",
    ("llama", "norm=dyt"): "DyT",
    ("llama", "position=learned"): "no such part",
    ("llama", "position=none"): "NoPosition",
    ("llama", "feed_forward=gelu"): "GELU",
}


@pytest.mark.parametrize(("name", "word"), INEXPRESSIBLE)
def test_a_part_that_a_layout_lacks_is_refused_in_a_line(name, word):
    group = word.partition("=")[0]
    base = [each for each in {"gpt2": GPT2, "llama": LLAMA}[name] if each.partition("=")[0].partition(".")[0] != group]
    extra = [word] if word != "placement=sandwich" else [word, "norm=pre"]
    with pytest.raises(UserError, match=INEXPRESSIBLE[name, word]) as told:
        exported(stirred(*base, *extra), name, CONTEXT)
    assert "\n" not in str(told.value)
    assert "allowed" in str(told.value)


def test_word_vectors_enter_without_a_scale():
    plain, scaled = stirred(*GPT2), stirred(*GPT2, "embedding=scaled")
    text = tokens(2, 3)
    assert_close(plain.words.target(text) * math.sqrt(16), scaled.words.target(text))
    assert text.max() < VOCAB
