"""The laws of the model's parts: norms, placements, positions, feed-forward networks, embeddings, initial weights."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ablab.config import compose
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.tokens import BOS, EOS, PAD, SPECIAL
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.stages.models import build_model
from ablab.transformer.translation.contracts.laws import (
    Law,
    in_another_process,
    require,
    require_close,
    require_equal,
)

VOCAB = 24
ROUNDING = 1e-9
"""Of float64, over the few layers of the model that is checked."""

NO_RATES: Mapping[str, float] = dict.fromkeys(
    ("dropout", "embedding_dropout", "attention_dropout", "activation_dropout", "word_dropout"), 0.0
)


def shapes(config: TranslationConfig) -> None:
    """Compute logits and gradients."""
    model = _model(config).train()
    src, tgt = sentences(5, 2, 6)
    logits = model.logits(model(src, tgt))
    require(logits.shape == (3, 6, VOCAB), f"logits have the shape {tuple(logits.shape)}, not {(3, 6, VOCAB)}")
    require(bool(logits.isfinite().all()), "logits are not finite")
    logits.pow(2).mean().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    broken = [name for name, grad in gradients.items() if grad is not None and not grad.isfinite().all()]
    require(not broken, f"the gradient of {', '.join(broken)} is not finite")
    unused = [name for name, grad in gradients.items() if grad is None]
    drops_layers = config.layerdrop_encoder > 0 or config.layerdrop_decoder > 0
    require(not unused or drops_layers, f"no gradient reaches {', '.join(unused)}")


def padding(config: TranslationConfig) -> None:
    """Translate sentences together and alone."""
    model = _model(config).eval()
    lengths = (5, 2, 8)
    src, tgt = sentences(*lengths)
    together = model.logits(model(src, tgt))
    for row, length in enumerate(lengths):
        alone = model.logits(model(src[row : row + 1, :length], tgt[row : row + 1, :length]))
        require_close(together[row : row + 1, :length], alone, ROUNDING, f"a sentence of {length} tokens with padding")


def future(config: TranslationConfig) -> None:
    """Change target tokens and look at the logits before them."""
    model = _model(config).eval()
    src, tgt = sentences(6, 6)
    before = model(src, tgt)
    for position in range(1, 6):
        other = tgt.clone()
        other[:, position:] = len(SPECIAL) + (tgt[:, position:] + 1) % (VOCAB - len(SPECIAL))
        require_close(
            model(src, other)[:, :position], before[:, :position], ROUNDING, f"what precedes token {position}"
        )


def decoding(config: TranslationConfig) -> None:
    """Decode token by token, and all at once."""
    model = _model(config).eval()
    src, tgt = sentences(5, 3)
    whole = model.logits(model(src, tgt))
    state = model.start(src, beams=1, max_len=tgt.size(1))
    for position in range(tgt.size(1)):
        step = model.step(tgt[:, position : position + 1], state)
        require_close(step[:, 0], whole[:, position], ROUNDING, f"decoding step {position + 1}")


def evaluation(config: TranslationConfig) -> None:
    """Evaluate twice, with random numbers between."""
    model = _model(config).eval()
    src, tgt = sentences(5, 2, 6)
    first = model(src, tgt)
    state = torch.get_rng_state()
    model(src, tgt)
    require(torch.equal(state, torch.get_rng_state()), "evaluation draws random numbers")
    torch.rand(3)
    require_equal(model(src, tgt), first, "a second evaluation")


def rate_zero(config: TranslationConfig) -> None:
    """Train at rate 0 and evaluate."""
    model = _model(without_rates(config))
    src, tgt = sentences(5, 2, 6)
    trained = model.train()(src, tgt)
    require_equal(trained, model.eval()(src, tgt), "training at rate 0")


def streams(config: TranslationConfig) -> None:
    """Draw twice from the same seed."""
    model = _model(config).train()
    for module in model.modules():
        if isinstance(module, DropHead):
            module.drop_prob = 0.3
    src, tgt = sentences(5, 2, 6)
    results = []
    for _ in range(2):
        reseed(model, 7, step=1, micro_batch=0)
        results.append(model(src, tgt))
        torch.rand(5)
    require_equal(results[1], results[0], "a training step with the same seed")


def weights(config: TranslationConfig) -> None:
    """Build twice from one seed; save and load."""
    first, second = _model(config), _model(config)
    for name, tensor in first.state_dict().items():
        require_equal(second.state_dict()[name], tensor, f"the initial {name} under one seed")
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.add_(0.1)
    second.load_state_dict(first.state_dict())
    src, tgt = sentences(5, 2, 6)
    require_equal(second.eval()(src, tgt), first.eval()(src, tgt), "a model with loaded weights")


def precisions(config: TranslationConfig) -> None:
    """Compute in float32, and with matrix products in bfloat16, both as a run does: nothing casts its buffers.

    Attention weights are dropped in training, as they then take another way on the CPU.
    """
    src, tgt = sentences(5, 2, 6)
    exact = _model(config).eval()
    expected = exact.logits(exact(src, tgt))
    single = built(_dropping_weights(config)).eval()
    require_close(single.logits(single(src, tgt)).double(), expected, 1e-3 * _size(expected), "float32")
    single.train()
    for name, bf16 in (("float32", False), ("bfloat16", True)):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits = single.logits(single(src, tgt))
            loss = logits.float().pow(2).mean()
        loss.backward()
        require(bool(loss.isfinite()), f"the loss in {name} is not finite")
    single.eval()
    with torch.autocast("cpu", torch.bfloat16):
        found = single.logits(single(src, tgt)).double()
    require_close(found, expected, 0.2 * _size(expected), "bfloat16")


LAWS = (
    Law("logits and gradients have the right shapes and are finite", shapes),
    Law("padding changes nothing", padding),
    Law("the future changes nothing", future),
    Law("decoding token by token equals the whole pass", decoding),
    Law("evaluation draws nothing", evaluation),
    Law("training at rate 0 equals evaluation, bit for bit", rate_zero),
    Law("a seed and a step decide every draw", streams),
    Law("a seed decides the initial weights, and weights can be saved and loaded", weights),
    Law("float64, float32 and bfloat16 agree", precisions),
)


class LawOfOtherProcesses:
    """Build the model in another process, which continues its run or translates with it. `words`: of such a run."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __call__(self, config: TranslationConfig) -> None:
        here, there = size_of_logits(compose(self.words).config), in_another_process(PROGRAM, self.words)
        require(
            abs(there - here) <= ROUNDING * here,
            f"its logits have the length {there:.6g} in a second process, and {here:.6g} here (by hash() of a text, or "
            "random numbers at import?)",
        )


PROGRAM = f"""
import json, sys
from ablab.config import compose
from {__name__} import size_of_logits
print(json.dumps(size_of_logits(compose(sys.argv[1:]).config)))
"""


def size_of_logits(config: Any) -> float:
    """Return the length of all logits of a few sentences."""
    model = _model(config).eval()
    return float(model.logits(model(*sentences(5, 2, 6))).norm().item())


def laws(words: list[str]) -> tuple[Law, ...]:
    """Return all laws of the model's parts. `words`: of a run that has them."""
    return (*LAWS, Law("another process computes the same", LawOfOtherProcesses(words)))


def _model(config: TranslationConfig) -> Transformer:
    return built(config).double()


def built(config: TranslationConfig) -> Transformer:
    """Build the small model that is checked."""
    return build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB)


def _size(logits: Tensor) -> float:
    return max(1.0, logits.abs().max().item())


def without_rates(config: TranslationConfig) -> TranslationConfig:
    calm: dict[str, Any] = {"layerdrop_encoder": 0.0, "layerdrop_decoder": 0.0}
    return config.model_copy(update={**calm, "model": config.model.model_copy(update=NO_RATES)})


def _dropping_weights(config: TranslationConfig) -> TranslationConfig:
    dropping = {"attention_dropout": config.model.attention_dropout or 0.1}
    return config.model_copy(update={"model": config.model.model_copy(update=dropping)})


def sentences(*lengths: int) -> tuple[Tensor, Tensor]:
    """Return random source and target sentences of so many tokens, with padding."""
    generator = torch.Generator().manual_seed(3)
    src, tgt = (
        [torch.randint(len(SPECIAL), VOCAB, (length,), generator=generator) for length in lengths] for _ in range(2)
    )
    for row in src:
        row[-1] = EOS
    for row in tgt:
        row[0] = BOS
    padded = [pad_sequence(rows, batch_first=True, padding_value=PAD) for rows in (src, tgt)]
    return padded[0], padded[1]
