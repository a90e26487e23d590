"""Validation judges the model as it will be used, nothing dropped, and leaves it as it found it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ablab.transformer.data.batches import Sentences, collate
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.model.tokens import SPECIAL
from ablab.transformer.translation import validation
from ablab.transformer.translation.validation import Validator, spread_loss
from tests.model.arms import ALL_RATES, NO_DROPOUT, VOCAB, build, stir

NOTHING_DROPS = {
    **NO_DROPOUT,
    **{f"model.{kind}_dropout": 0.0 for kind in ("attention", "activation", "word")},
    **{f"layerdrop_{stack}": 0.0 for stack in ("encoder", "decoder")},
}


class Spelt(Tokenizer):
    """A word is its id."""

    def __init__(self) -> None:
        """Without a model."""

    def decode(self, ids):
        return [" ".join(map(str, sentence)) for sentence in ids]


@pytest.fixture
def validator():
    """Of seven pairs."""
    rng = np.random.default_rng(1)
    sides = [
        Sentences.of([rng.integers(len(SPECIAL), VOCAB, length).tolist() for length in rng.integers(1, 9, 7)])
        for _ in range(2)
    ]
    texts = [(str(number), f"{number + 10} {number + 12} {number + 9}") for number in range(7)]
    return Validator(SimpleNamespace(valid=sides, valid_text=texts, tokenizers=(Spelt(), Spelt()), scoring={}))


def with_everything_that_drops():
    model = build("pre", ALL_RATES, drophead=0.5)
    stir(model)
    return model.train()


def test_its_scores_are_those_of_a_model_in_which_nothing_drops(validator):
    model = with_everything_that_drops()
    plain = build("pre", NOTHING_DROPS)
    plain.load_state_dict(model.state_dict())
    assert validator(model, 1) == validator(plain.eval(), 1)


def test_its_loss_is_nats_per_token_whatever_the_batches(validator, monkeypatch):
    """Batches of unequally many tokens, and no label smoothing."""
    model = build("pre", NOTHING_DROPS).eval()
    stir(model)
    nats, tokens = 0.0, 0
    for row in range(7):
        batch = collate(validator.src, validator.tgt, np.array([row]))
        with torch.no_grad():
            logits = model.logits(model(batch.src, batch.tgt))
        nats += float(F.cross_entropy(logits[0], batch.labels[0], reduction="sum"))
        tokens += len(batch.labels[0])
    for budget in (validation.VALID_TOKENS, 12):
        monkeypatch.setattr(validation, "VALID_TOKENS", budget)
        assert validator.loss(model) == pytest.approx(nats / tokens, rel=1e-10)


def test_in_training_the_same_model_does_drop(validator):
    """Or the equality above would say little."""
    model, batch = with_everything_that_drops(), collate(validator.src, validator.tgt, np.arange(7))
    with torch.no_grad():
        found, again = (model(batch.src, batch.tgt) for _ in range(2))
    assert not torch.equal(found, again)


@pytest.mark.parametrize("part", ["loss", "bleu"])
def test_every_part_of_the_model_evaluates_meanwhile_and_trains_afterwards(part, validator):
    model, modes = with_everything_that_drops(), set()
    for module in model.modules():
        module.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    getattr(validator, part)(model)
    assert modes == {False}
    assert all(module.training for module in model.modules())


def test_a_model_in_evaluation_stays_there(validator):
    model = with_everything_that_drops().eval()
    validator(model, 1)
    assert not any(module.training for module in model.modules())


def test_the_loss_spread_over_threads_is_the_loss(validator, monkeypatch):
    """With a batch for each sentence or two, whichever thread ends first; and nothing is left changed."""
    monkeypatch.setattr(validation, "SPREAD_TOKENS", 9)
    model = with_everything_that_drops()
    expected, state = validator.loss(model), torch.get_rng_state()
    torch.set_num_threads(2)
    found = [spread_loss(model, validator.src, validator.tgt) for _ in range(3)]
    assert torch.get_num_threads() == 2
    assert found == [pytest.approx(expected, rel=1e-6)] * 3
    assert len(set(found)) == 1
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
