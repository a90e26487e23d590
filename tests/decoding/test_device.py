"""No step of a search waits for its device. The meta device has shapes and no values: to ask for one is an error."""

import pytest
import torch

from ablab.transformer.decoding import search
from ablab.transformer.decoding.translator import BATCH_TOKENS, DecodingConfig
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import build, source

LONGEST = 6


@pytest.mark.parametrize("size", [1, 4])
def test_steps_ask_for_nothing(size, monkeypatch):
    """Until the translations are read, or the unfinished sentences counted."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # it has never heard of that device
    counted, steps = [], []
    monkeypatch.setattr(search, "length_limits", lambda src, _: (src.sum(dim=1), LONGEST))
    monkeypatch.setattr(search, "unfinished", lambda going, position: counted.append(position))
    plain = Transformer.step
    monkeypatch.setattr(Transformer, "step", lambda *asked: steps.append(1) or plain(*asked))
    model = build("pre").float().to("meta").eval()
    with pytest.raises(NotImplementedError, match="meta"):
        DecodingConfig(beam_size=size).best(model, source(5, 3, 4).to("meta"))
    assert len(steps) == LONGEST + 1
    assert counted == list(range(LONGEST + 1))  # so that what failed came after the last step


def test_the_unfinished_are_counted_at_each_step_of_a_cpu_alone():
    for device, steps in (("cpu", 16), ("meta", 16 // search.COUNT_EVERY)):
        assert sum(search.counts_after(position, torch.device(device)) for position in range(16)) == steps


def test_other_devices_translate_larger_batches():
    beams = DecodingConfig(beam_size=4)
    assert beams.batch_tokens(torch.device("cpu")) == BATCH_TOKENS // 4
    assert beams.batch_tokens(torch.device("meta")) > BATCH_TOKENS
