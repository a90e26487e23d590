"""A model in bfloat16 computes what the model does, but for rounding."""

import pytest
import torch

from ablab.transformer.decoding.encodings import Encodings, in_bfloat16
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.tokens import BOS, EOS
from tests.model.arms import EVALUATED_ARMS, build, source, stir, words

ROUNDING = 0.1
"""As a share of the largest logit. A weight in bfloat16 is off by up to 2^-9, and every vector that is passed on."""


@pytest.mark.parametrize("arm", EVALUATED_ARMS, ids=lambda arm: arm.name)
def test_logits_are_those_of_the_model_but_for_rounding(arm):
    model = arm.build().eval()
    stir(model)
    copy, src, tgt = in_bfloat16(model), source(5, 8, 3), words(3, 6)
    with torch.no_grad():
        exact, found = model.logits(model(src, tgt)), copy.logits(copy(src, tgt))
    assert found.dtype == torch.bfloat16
    error = (found.double() - exact).abs().max()
    assert 0 < error <= ROUNDING * exact.abs().max()


@pytest.mark.parametrize("arm", EVALUATED_ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_search_finds_what_the_whole_pass_says_is_as_likely(arm, beams):
    model = arm.build().eval()
    stir(model)
    copy, src = in_bfloat16(model), source(6)
    (found,) = DecodingConfig(beams, 0.6, 4).run(copy, src)
    assert found
    for hypothesis in found:
        ids = torch.tensor([[BOS, *hypothesis.ids, EOS]])
        with torch.no_grad():
            likely = copy.logits(copy(src, ids[:, :-1])).float().log_softmax(dim=-1)
        log_prob = float(likely.gather(2, ids[:, 1:, None]).sum())
        assert hypothesis.log_prob == pytest.approx(log_prob, rel=ROUNDING)


def test_the_model_itself_stays_as_it_was():
    model = build("pre").eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    copy = in_bfloat16(model)
    for value in copy.parameters():
        value.data.zero_()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_it_takes_no_encoding_that_is_kept_of_the_model():
    model = build("pre").float().eval()
    stir(model)
    src, search = source(5, 8, 3), DecodingConfig(3, 0.6, 4)
    sharing = Encodings(model).share(model)
    search.run(sharing, src)
    assert search.run(in_bfloat16(sharing), src) == search.run(in_bfloat16(model), src)
