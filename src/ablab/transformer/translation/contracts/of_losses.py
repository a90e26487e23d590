"""The laws of losses: what they return, and how batches, padding and seeds decide it."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.batches import Batch
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.tokens import PAD
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.training.loss import TokenLoss, token_loss
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.contracts.laws import Law, require, require_close, require_equal
from ablab.transformer.translation.contracts.of_model import ROUNDING, built, sentences, without_rates

Gradients = dict[str, Tensor]


def gradients(config: TranslationConfig) -> None:
    """Compute the loss of a training step and its gradients, in all precisions."""
    for dtype, bf16 in ((torch.float64, False), (torch.float32, False), (torch.float32, True)):
        model = built(config).to(dtype).train()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = _loss(config, model, _batch())
        require(bool(loss.total.isfinite()), f"total is {loss.total.item()}")
        require(not loss.true.requires_grad, "true has a gradient; allowed: true.detach()")
        found = _gradients(model, loss)
        broken = [name for name, gradient in found.items() if not gradient.isfinite().all()]
        require(not broken, f"the gradient of {', '.join(broken)} is not finite")
    plain = _gradients(model, token_loss(_reseeded(model), _batch(), 0.0))
    reached = _gradients(model, _loss(config, _reseeded(model), _batch()))
    missed = plain.keys() - reached.keys()
    require(not missed, f"no gradient reaches {', '.join(sorted(missed))}")


def truth(config: TranslationConfig) -> None:
    """Compare with cross-entropy, where nothing is drawn."""
    model, batch = _model(config), _batch()
    loss, plain = _loss(config, model, batch), token_loss(model, batch, 0.0)
    require(loss.tokens == batch.tokens, f"tokens is {loss.tokens}, not {batch.tokens}")
    require_close(loss.true, plain.true, ROUNDING * batch.tokens, "true, from plain cross-entropy summed over tokens,")


def padding(config: TranslationConfig) -> None:
    """Add padding to every sentence."""
    model, batch = _model(config), _batch()
    wider = Batch.of(*(F.pad(side, (0, 3), value=PAD) for side in batch[:3]))
    loss, padded = _loss(config, model, batch), _loss(config, model, wider)
    require_close(padded.total, loss.total, ROUNDING * batch.tokens, "the loss with more padding")


def micro_batches(config: TranslationConfig) -> None:
    """Compute the loss and its gradients of a batch, and of its sentences one by one."""
    model, batch = _model(config), _batch()
    parts = [Batch.of(*(side[row : row + 1] for side in batch[:3])) for row in range(len(batch.src))]
    whole, losses = _loss(config, model, batch), [_loss(config, model, part) for part in parts]
    total = torch.stack([loss.total for loss in losses]).sum()
    require_close(total, whole.total, ROUNDING * batch.tokens, "the sum over micro-batches")
    expected = _gradients(model, whole)
    found = _gradients(model, TokenLoss(total, whole.true, batch.tokens))
    for name, gradient in expected.items():
        require_close(found[name], gradient, ROUNDING * batch.tokens, f"the gradient of {name}, over micro-batches,")


def draws(config: TranslationConfig) -> None:
    """Compute the loss twice with the same seed, another step between."""
    model, batch = built(config).double().train(), _batch()
    loss = build_objective(config, TrainingState()).loss
    first = loss(_reseeded(model), batch)
    reseed(model, 7, step=2, micro_batch=0)
    loss(model, batch)
    require_equal(loss(_reseeded(model), batch).total, first.total, "the loss of a step with the same seed")


LAWS = (
    Law("the loss is finite, and its gradient reaches every parameter", gradients),
    Law("true is plain cross-entropy, and tokens are counted", truth),
    Law("padding changes no loss", padding),
    Law("the loss of a batch is the sum over its micro-batches", micro_batches),
    Law("a seed and a step decide the loss", draws),
)


def _model(config: TranslationConfig) -> Transformer:
    """Return a model in training, as a loss is used, at rates of 0; in evaluation where a part draws nevertheless."""
    model, batch = built(without_rates(config)).double().train(), _batch()
    reseed(model, 7, step=1, micro_batch=0)
    first = model(batch.src, batch.tgt)
    reseed(model, 7, step=2, micro_batch=0)
    return model if model(batch.src, batch.tgt).equal(first) else model.eval()


def _reseeded(model: Transformer) -> Transformer:
    reseed(model, 7, step=1, micro_batch=0)
    return model


def _loss(config: TranslationConfig, model: Transformer, batch: Batch) -> TokenLoss:
    loss = build_objective(config, TrainingState()).loss(model, batch)
    require(isinstance(loss, TokenLoss), f"the loss is a {type(loss).__name__}; allowed: a TokenLoss")
    return loss


def _gradients(model: Transformer, loss: TokenLoss) -> Gradients:
    """Return the gradients of a loss, by the name of the parameter; those that it does not reach are left out."""
    model.zero_grad()
    require(loss.total.requires_grad, "total has no gradient")
    loss.total.backward()
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


def _batch() -> Batch:
    """Return three sentences of unequal lengths; labels are the target, one token on."""
    src, tgt = sentences(5, 2, 6)
    return Batch.of(src, tgt[:, :-1], tgt[:, 1:])
