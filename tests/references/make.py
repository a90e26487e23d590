"""Runs the authors' published code on small random weights, and keeps what it computes as data.

    python tests/references/make.py <checkout of github.com/tnq177/transformers_without_tears>

Only facts come out: inputs, weights, outputs, gradients. README.md beside this file says which are meant.
"""

import json
import sys
import zlib
from argparse import Namespace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).parent
VOCAB, D_MODEL, D_FF, HEADS, DEPTH, SMOOTHING = 13, 8, 12, 2, 2, 0.1
PAD, BOS, EOS, UNK = 0, 1, 2, 3  # their ids
SOURCE = ((7, 4, UNK, 9, EOS), (12, 5, EOS), (4, 4, 11, EOS))
TARGET = ((6, 10, 3), (8, 5, 7, 12, 4), (9,))


def settings(placement: str, norm: str, *, fixnorm: bool) -> Namespace:
    """Their options, without dropout. `mask_logit` lets the caller say which types may be predicted."""
    return Namespace(
        embed_dim=D_MODEL,
        ff_dim=D_FF,
        num_heads=HEADS,
        num_enc_layers=DEPTH,
        num_dec_layers=DEPTH,
        joint_vocab_size=VOCAB,
        lang_vocab_size=2,
        use_bias=True,
        mask_logit=True,
        pre_act=placement == "pre",
        scnorm=norm == "scalenorm",
        fix_norm=fixnorm,
        label_smoothing=SMOOTHING,
        **{f"{site}dropout": 0.0 for site in ("", "att_", "ff_", "word_")},
    )


def drawn(name: str, weight: Tensor) -> Tensor:
    """A value for one of their parameters, whatever others there are: multiples of 1/64, which pack well."""
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    if name in ("lang_embedding", "out_bias"):  # without counterpart in ablab
        return torch.zeros_like(weight)
    if name.endswith(".scale"):
        value = D_MODEL**0.5 + 0.5 * noise
    elif ".scales." in name and name.endswith(".weight"):
        value = 1 + 0.3 * noise
    else:
        value = (0.2 if "bias" in name else 0.4) * noise
    return (value * 64).round() / 64


def rows(sentences: tuple[tuple[int, ...], ...]) -> Tensor:
    """Sentences padded to one length."""
    width = max(map(len, sentences))
    return torch.tensor([[*sentence, *[PAD] * (width - len(sentence))] for sentence in sentences])


def computed(options: Namespace) -> dict[str, np.ndarray]:
    """What their model makes of weights and sentences."""
    from model import Transformer  # theirs

    model = Transformer(options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(drawn(name, parameter))
    seen: dict[str, Tensor] = {}
    model.encoder.register_forward_hook(lambda module, given, output: seen.update(encoder_output=output))
    logit_fn = model.logit_fn
    model.logit_fn = lambda *given: seen.setdefault("logits", logit_fn(*given))

    src = rows(SOURCE)
    tgt, targets = rows(tuple((BOS, *words) for words in TARGET)), rows(tuple((*words, EOS) for words in TARGET))
    found = model(src, tgt, targets, 0, 1, torch.ones(VOCAB))
    found["loss"].backward()
    arrays = {"src": src, "tgt": tgt, "targets": targets, "label_smoothing": torch.tensor(SMOOTHING)}
    arrays |= {"encoder_output": seen["encoder_output"], "logits": seen["logits"].view(*tgt.shape, VOCAB)}
    arrays |= {"loss": found["loss"], "nll_loss": found["nll_loss"]}
    parameters = dict(model.named_parameters())
    arrays["weights"] = torch.cat([parameter.flatten() for parameter in parameters.values()])
    arrays["gradients"] = torch.cat([parameter.grad.flatten() for parameter in parameters.values()]).float()
    shapes = json.dumps({name: parameter.shape for name, parameter in parameters.items()})
    return {"shapes": np.array(shapes), **{name: tensor.detach().numpy() for name, tensor in arrays.items()}}


def main() -> None:
    """One file per arm."""
    sys.path.insert(0, sys.argv[1])
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for placement in ("post", "pre"):
        for norm in ("layernorm", "scalenorm"):
            for fixnorm in (False, True):
                name = "_".join((placement, norm, *["fixnorm"] * fixnorm))
                np.savez_compressed(HERE / f"{name}.npz", **computed(settings(placement, norm, fixnorm=fixnorm)))


if __name__ == "__main__":
    main()
