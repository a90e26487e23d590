"""Where dropout acts: every site of every arm, against the model written out with what was drawn."""

from collections.abc import Iterable
from itertools import count

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ablab.transformer.model.dropout import LEVELS
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import VARIANTS, build, source, stir, target
from tests.model.recording import Drawn, record
from tests.model.written_out import written_out

# In float64 a sum of another order differs by less; a mask at another place by more than 1e-3.
CLOSE = {"rtol": 0, "atol": 1e-9}
RATES = {"": 0.1, "embedding_": 0.2, "attention_": 0.3, "activation_": 0.4}
DROPOUT = {f"model.{kind}dropout": rate for kind, rate in RATES.items()}
OTHERS = {"model.word_dropout": 0.4, "layerdrop_encoder": 0.4, "layerdrop_decoder": 0.4}
BATCH = source(5, 2, 7), target(4, 6, 3)


def rate_of(site: str) -> float:
    """What the configuration says of a site, by its name."""
    owner = site.split(".")[-2]
    if owner.startswith("around_"):
        return RATES[""]
    kinds = {"_input": "embedding_", "_attention": "attention_", "_forward": "activation_"}
    return RATES[next(kind for end, kind in kinds.items() if owner.endswith(end))]


def sites(encoder: Iterable[int], decoder: Iterable[int]) -> set[str]:
    """Every place where dropout belongs, for the layers that run."""
    inner = {"encoder": ("self_attention", "feed_forward")}
    inner["decoder"] = ("cross_attention", *inner["encoder"])
    found = {"source_input", "target_input"}
    for stack, layers in (("encoder", encoder), ("decoder", decoder)):
        for at in (f"{stack}.layers.{index}" for index in layers):
            found |= {f"{at}.{own}" for own in inner[stack]} | {f"{at}.around_{own}" for own in inner[stack]}
    return {f"{path}.dropout" for path in found}


def outcome(hidden: Tensor, model: torch.nn.Module) -> list[Tensor]:
    """Hidden vectors, and their gradient by every parameter."""
    direction = torch.linspace(-1, 1, hidden.numel(), dtype=hidden.dtype).view_as(hidden)
    gradients = torch.autograd.grad((hidden * direction).sum(), list(model.parameters()), allow_unused=True)
    return [hidden, *(torch.zeros(()) if gradient is None else gradient for gradient in gradients)]


def step_with_some_layers(model: Transformer) -> int:
    """A step in which each stack runs some of its layers and not all."""
    for step in count(1):
        reseed(model, 1, step=step, micro_batch=0)
        if all(0 < len(stack.layerdrop()) < len(stack.layers) for stack in (model.encoder, model.decoder)):
            return step
    raise AssertionError


@pytest.mark.parametrize("others", [False, True], ids=["dropout alone", "all regularisers"])
@pytest.mark.parametrize("norm", VARIANTS)
def test_dropout_acts_where_it_belongs_and_nowhere_else(norm, others):
    model = build(norm, {**DROPOUT, **(OTHERS if others else {})}, drophead=0.4 if others else 0.0).train()
    stir(model)
    step = step_with_some_layers(model) if others else 1
    drawn = record(model)
    reseed(model, 1, step=step, micro_batch=0)
    hidden = model(*BATCH)
    written = written_out(norm, model, drawn)
    for ours, theirs in zip(outcome(hidden, model), outcome(written.hidden(*BATCH), model), strict=True):
        assert_close(ours, theirs, **CLOSE)
    assert written.left_over() == set()
    ran = drawn["encoder.layerdrop"][0], drawn["decoder.layerdrop"][0]
    assert {name for name in drawn if name.endswith(".dropout")} == sites(*ran)


@pytest.mark.parametrize("norm", VARIANTS)
def test_evaluation_is_the_model_written_out_without_dropout(norm):
    model = build(norm, {**DROPOUT, **OTHERS}, drophead=0.4).eval()
    stir(model)
    drawn = record(model)
    hidden = model(*BATCH)
    assert_close(hidden, written_out(norm, model, drawn).hidden(*BATCH), **CLOSE)
    assert drawn == {}


def drawn_by(**changes: float) -> Drawn:
    model = build("pre", {**dict.fromkeys(DROPOUT, 0.0), **{f"model.{kind}": rate for kind, rate in changes.items()}})
    drawn = record(model.train())
    model(source(*[9] * 20), target(*[9] * 20))
    return drawn


@pytest.mark.parametrize("kind", RATES)
def test_each_rate_is_that_of_its_own_sites(kind):
    drawn = drawn_by(**{f"{kind}dropout": RATES[kind]})
    found = {site for site in drawn if site.endswith(".dropout")}
    assert found == {site for site in sites(range(2), range(3)) if rate_of(site) == RATES[kind]}
    for site in found:
        (multipliers,) = drawn[site]
        scale = LEVELS / (LEVELS - round(RATES[kind] * LEVELS))
        assert set(multipliers.unique().tolist()) == {0.0, scale}
        error = (RATES[kind] * (1 - RATES[kind]) / multipliers.numel()) ** 0.5
        assert abs(float((multipliers == 0).double().mean()) - RATES[kind]) < 5 * error


def test_word_dropout_takes_words_and_leaves_what_means_something_to_the_model():
    model = build("pre", {"model.word_dropout": 0.5}).train()
    drawn = record(model)
    batch = source(*range(2, 12)), target(*range(2, 12))
    model(*batch)
    assert len(drawn["word_dropout"]) == 2
    for before, after in zip(batch, drawn["word_dropout"], strict=True):
        special = (before == PAD) | (before == BOS) | (before == EOS)
        assert torch.equal(after[special], before[special])
        hidden = after != before
        assert hidden.any()
        assert (after[hidden] == UNK).all()
        assert not hidden[~special].all()
