"""A loss of one's own: what it is handed, which words it reads, and what its laws find."""

import pytest
import torch
import torch.nn.functional as F

from ablab.commands.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.tasks.identity import recipe
from ablab.transformer.data.batches import Batch
from ablab.transformer.model.streams import reseed
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.training import loss as loss_module
from ablab.transformer.training.loss import cross_entropy, predict, sum_over_tokens, token_loss
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.contracts import of_losses
from ablab.transformer.translation.verbs.check import _broken
from tests.model.arms import NO_DROPOUT, build, source, target
from tests.parts.conftest import study
from tests.run.conftest import TINY

__all__ = ["study"]

HEAD = """
from ablab.fields import NonNegative
from ablab.transformer.training.loss import TokenLoss, cross_entropy, predict, sum_over_tokens, token_loss
"""
FOCAL = f"""{HEAD}
def focal(model, batch, *, gamma: NonNegative = 2.0) -> TokenLoss:
    predictions = predict(model, batch)

    def weighed(labels, log_probs):
        log_p = log_probs.gather(1, labels[:, None])
        return ((1 - log_p.exp()) ** gamma * -log_p).sum()

    true = cross_entropy(predictions, 0.0).true
    return TokenLoss(sum_over_tokens(weighed, predictions), true, batch.tokens)
"""
SIZE = ("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.encoder_layers=2", "model.decoder_layers=2")
YAML = {"loss/mine": "_target_: parts.focal\n"}


def _batch():
    return Batch.of(source(5, 3, 8, 6), target(4, 7, 2, 6, seed=50), target(4, 7, 2, 6))


def test_its_fields_are_in_the_recipe_and_label_smoothing_is_not(study):
    study(FOCAL, YAML)
    plain, mine = recipe(compose([]).config), recipe(compose(["loss=mine", "loss.gamma=1.5"]).config)
    assert "loss" not in plain
    assert mine["loss"]["_target_"].endswith(".focal")
    assert mine["loss"]["gamma"] == 1.5
    assert plain["training"].pop("label_smoothing") == 0.1
    del mine["loss"]
    assert mine == plain


def test_a_word_that_it_does_not_read_is_refused(study):
    study(FOCAL, YAML)
    with pytest.raises(UserError) as refused:
        compose(["loss=mine", "training.label_smoothing=0.2"])
    assert str(refused.value) == (
        "training.label_smoothing=0.2 has no effect with loss=mine; allowed with loss=label_smoothing"
    )
    with pytest.raises(UserError, match=r"loss\.gamma=-1: allowed: greater than or equal to 0"):
        compose(["loss=mine", "loss.gamma=-1"])
    with pytest.raises(
        UserError, match=r"loss\.gamma=1 has no effect with loss=label_smoothing; allowed with loss=mine"
    ):
        compose(["loss.gamma=1"])


def test_a_loss_that_asks_for_label_smoothing_is_handed_it(study):
    study(
        f"{HEAD}\ndef twice(model, batch, label_smoothing: float) -> TokenLoss:\n"
        "    loss = token_loss(model, batch, label_smoothing)\n    return loss._replace(total=2 * loss.total)\n",
        {"loss/mine": "_target_: parts.twice\n"},
    )
    config = compose(["loss=mine", "training.label_smoothing=0.2"]).config
    assert recipe(config)["training"]["label_smoothing"] == 0.2
    model, batch = build("pre", NO_DROPOUT).eval(), _batch()
    found = build_objective(config, TrainingState()).loss(model, batch)
    assert torch.equal(found.total, 2 * token_loss(model, batch, 0.2).total)


def test_a_loss_that_returns_a_number_ends_training_in_a_line(study, capsys):
    study(f"{HEAD}\ndef focal(model, batch):\n    return token_loss(model, batch, 0.1).total\n", YAML)
    words = ("smoke=true", "loss=mine", "logger=none", "pruning=none", "trainer.progress=false")
    assert main(["train", *TINY, *words]) == 2
    assert capsys.readouterr().err == "error: the loss is a Tensor; allowed: a TokenLoss\n"


@pytest.mark.parametrize("law", of_losses.LAWS, ids=lambda law: law.sentence)
def test_focal_loss_keeps_the_law(law, study):
    study(FOCAL, YAML)
    law.check(compose(["loss=mine", *SIZE]).config)


BROKEN = {
    "is a number": ("token_loss(model, batch, 0.1).total", "the loss is finite"),
    "overflows": ("(lambda loss: loss._replace(total=loss.total / 0))(token_loss(model, batch, 0.1))", "the loss is f"),
    "is cut from the graph": (
        "(lambda loss: loss._replace(total=loss.total.detach()))(token_loss(model, batch, 0.1))",
        "the loss is finite",
    ),
    "calls the smoothed loss true": (
        "(lambda loss: loss._replace(true=loss.total.detach()))(token_loss(model, batch, 0.1))",
        "true is plain cross-entropy",
    ),
    "counts padding": (
        "(lambda loss: loss._replace(total=loss.total * batch.tgt.numel()))(token_loss(model, batch, 0.1))",
        "padding changes no loss",
    ),
    "counts padding in training alone": (
        "(lambda loss: loss._replace(total=loss.total * (batch.tgt.numel() if model.training else 1)))"
        "(token_loss(model, batch, 0.1))",
        "padding changes no loss",
    ),
    "is a mean in training alone": (
        "(lambda loss: loss._replace(total=loss.total / (loss.tokens if model.training else 1)))"
        "(token_loss(model, batch, 0.1))",
        "the loss of a batch is the sum",
    ),
    "is a mean": (
        "(lambda loss: loss._replace(total=loss.total / loss.tokens))(token_loss(model, batch, 0.1))",
        "the loss of a batch is the sum",
    ),
    "remembers": (
        "(lambda loss: loss._replace(total=loss.total * (SEEN.append(1) or len(SEEN))))(token_loss(model, batch, 0.1))",
        "a seed and a step decide the loss",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_loss_that_breaks_a_law_is_found(what, study):
    value, sentence = BROKEN[what]
    study(
        f"{HEAD}\nSEEN = []\n\ndef mine(model, batch):\n    return {value}\n", {"loss/mine": "_target_: parts.mine\n"}
    )
    (law,) = [law for law in of_losses.LAWS if law.sentence.startswith(sentence)]
    assert _broken(law, compose(["loss=mine", *SIZE]).config) is not None


@pytest.mark.parametrize("rows", [1, 5, 900])
def test_a_sum_over_tokens_has_the_values_and_gradients_of_whole_logits(rows, monkeypatch):
    monkeypatch.setattr(loss_module, "loss_rows", lambda *_: rows)
    model, batch = build("pre", {**NO_DROPOUT, "model.output_bias": True}).eval(), _batch()

    def squares(labels, log_probs, others):
        return (F.nll_loss(log_probs, labels, reduction="none") * others.exp().square().sum(-1)).sum()

    labels = batch.labels.flatten()[batch.real]
    log_probs = model.logits(model(batch.src, batch.tgt)).flatten(0, 1)[batch.real].log_softmax(-1)
    expected = squares(labels, log_probs, log_probs)
    found = sum_over_tokens(squares, *[predict(model, batch)] * 2)
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    torch.testing.assert_close(torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters))


def test_a_second_pass_draws_anew_and_again_the_same_after_reseeding():
    """Each dropout site goes on in its own stream; without a rate the passes are equal."""
    model, batch = build("pre").train(), _batch()

    def passes(step):
        reseed(model, 1, step=step, micro_batch=0)
        return [cross_entropy(predict(model, batch), 0.0).true for _ in range(2)]

    first, second = passes(1)
    assert not torch.equal(first, second)
    assert [first, second] == passes(1)
    assert first not in passes(2)
    model.eval()
    assert len({float(each) for each in passes(1)}) == 1
