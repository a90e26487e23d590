"""A race is fair when all run the same distance and otherwise do what they would have done."""

import math
import random

import numpy as np
import pytest
import torch

from ablab.transformer.data.batches import Sentences
from ablab.transformer.decoding.encodings import Encodings
from ablab.transformer.decoding.speed import (
    FEWEST,
    MOST,
    PRECISION,
    TRUSTED,
    Paced,
    middling,
    translations_timed,
    turns_of,
)
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.heads import attentions, with_heads
from ablab.transformer.model.tokens import EOS
from ablab.transformer.model.transformer import Encoder, Transformer
from ablab.transformer.pruning.strategies import Kept
from ablab.transformer.pruning.surgery import prune
from tests.model.arms import build, source, stir, words

SEARCH = DecodingConfig(beam_size=3, length_penalty=0.6, max_extra_tokens=50)


def lively():
    torch.manual_seed(1)
    model = build("pre").float().eval()
    stir(model)
    return model


def test_every_translation_ends_at_its_pace_whoever_translates():
    model = lively()
    for kept in (Kept((0, 1), (0, 1, 2)), Kept((1,), (2,))):
        for beams in SEARCH.run(Paced(prune(model, kept), 9), source(5, 8, 3)):
            assert {len(hypothesis.ids) for hypothesis in beams} == {9}


def test_a_pace_takes_away_the_end_and_nothing_else():
    model = lively()
    paced = Paced(model, 3)
    src, tokens = source(5, 3), words(2, 1)
    ours, theirs = (m.start(src, beams=1, max_len=6) for m in (paced, model))
    with torch.no_grad():
        for position in range(5):
            mine, other = paced.step(tokens, ours), model.step(tokens, theirs)
            rest = torch.arange(mine.size(-1)) != EOS
            if position < 3:
                assert torch.equal(mine[..., rest], other[..., rest])
                assert torch.isneginf(mine[..., EOS]).all()
            else:
                assert torch.isneginf(mine[..., rest]).all()
                assert torch.equal(mine[..., EOS], other[..., EOS])


@pytest.mark.parametrize("search", [DecodingConfig(), SEARCH])
def test_a_model_makes_a_step_for_each_token_of_the_longest_source(search, monkeypatch):
    """Summed over the turns, whatever the model would have said."""
    steps = []
    plain = Transformer.step
    monkeypatch.setattr(
        Transformer, "step", lambda model, tokens, state: steps.append(model) or plain(model, tokens, state)
    )
    src = Sentences.of([[5] * length for length in (7, 2, 0, 4, 4, 11, 1)])
    full = lively()
    translations_timed([full, prune(full, Kept((1,), (2,)))], src, search, budget=0)
    assert len(steps) == 2 * FEWEST * src.lengths.max()


def test_the_sentences_of_middling_length_are_timed():
    lengths = np.array([3] * 20 + [50] * 20 + [7] * 16)
    assert set(lengths[middling(lengths)]) == {7}
    assert sorted(middling(lengths[:5])) == [0, 1, 2, 3, 4]


class Machine:
    """A machine whose clock moves as works take their time, with ups and downs of its own."""

    def __init__(self, noise, seed):
        self.time, self.noise, self.rng = 0.0, noise, random.Random(seed)
        self.done = []

    def now(self):
        return self.time

    def work(self, name, seconds):
        def do():
            self.done.append(name)
            interrupted = 2.0 if self.noise and self.rng.random() < 0.05 else 1.0
            self.time += seconds * interrupted * math.exp(self.rng.gauss(0, self.noise))

        return do


def test_works_take_turns_until_the_ratios_are_precise():
    machine = Machine(0.0, 1)
    found = turns_of([machine.work("a", 2.0), machine.work("b", 1.0)], 1e9, machine.now, machine.now)
    assert machine.done == ["a", "b"] * TRUSTED, "on a machine without noise, as soon as that can be known"
    assert found.seconds == pytest.approx([2.0, 1.0])
    assert (found.turns, found.error) == (TRUSTED - 1, pytest.approx(0.0, abs=1e-9))


def test_timing_ends_with_its_budget_or_at_its_precision():
    noisy = Machine(0.05, 1)
    found = turns_of([noisy.work("a", 2.0), noisy.work("b", 1.0)], 30.0, noisy.now, noisy.now)
    assert found.error > PRECISION
    assert 30 < noisy.time < 30 + 2 * 3.5, "it ends with the turn in which the budget is over"
    rich = Machine(0.03, 1)
    found = turns_of([rich.work("a", 2.0), rich.work("b", 1.0)], 1e9, rich.now, rich.now)
    assert TRUSTED <= found.turns < MOST
    assert found.error <= PRECISION


def test_ratios_of_a_short_timing_are_within_3_percent_of_a_long_one():
    """On a machine as noisy as an idle one was measured to be, with one turn in twenty disturbed, 95 times in 100."""
    seconds = [0.045, 0.036, 0.027, 0.018, 0.035, 0.025, 0.016]
    budget, off = 2.0, []
    for seed in range(100):
        machine = Machine(0.02, seed)
        works = [machine.work(number, each) for number, each in enumerate(seconds)]
        found = turns_of(works, budget, machine.now, machine.now)
        assert machine.time < budget + 2 * sum(seconds)
        ratios = [found.seconds[0] / each for each in found.seconds]
        off.append(max(abs(ratio / (seconds[0] / each) - 1) for ratio, each in zip(ratios, seconds, strict=True)))
    assert sorted(off)[94] < 0.03
    assert sum(off) / len(off) < 0.02


def test_the_error_says_how_far_ratios_are_off():
    """Two standard errors hold about 95 times in 100, of two works."""
    held = 0
    for seed in range(200):
        machine = Machine(0.05, seed)
        found = turns_of([machine.work("a", 2.0), machine.work("b", 1.0)], 60.0, machine.now, machine.now)
        held += abs(found.seconds[0] / found.seconds[1] / 2 - 1) <= 2 * found.error
    assert held / 200 > 0.85


def test_a_thread_times_and_all_are_there_again(monkeypatch):
    seen = []
    plain = Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda *given: seen.append(torch.get_num_threads()) or plain(*given))
    torch.set_num_threads(2)
    translations_timed([lively()], Sentences.of([[5, 6, 7], [8, 9]]), SEARCH, budget=0)
    assert seen == [1] * FEWEST
    assert torch.get_num_threads() == 2


@pytest.fixture
def encoded(monkeypatch):
    """How often an encoder ran."""
    runs = []
    plain = Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda self, *given: runs.append(self) or plain(self, *given))
    return runs


def test_models_with_a_whole_encoder_share_what_it_makes_of_a_batch(encoded):
    full = lively()
    encodings = Encodings(full)
    src = source(5, 8, 3)
    for kept in (Kept((0, 1), (0, 1, 2)), Kept((0, 1), (1,)), Kept((0, 1), (0, 2))):
        model = prune(full, kept)
        apart = SEARCH.run(model, src)
        encoded.clear()
        assert SEARCH.run(encodings.share(model), src) == apart, "no bit of a score changes"
        assert len(encoded) == (1 if len(kept.decoder) == 3 else 0)
    SEARCH.run(encodings.share(full), source(4, 4))
    assert len(encoded) == 1, "another batch is encoded"


def test_models_with_fewer_layers_or_heads_in_the_encoder_share_nothing(encoded):
    full = lively()
    encodings = Encodings(full)
    for model in (prune(full, Kept((1,), (0, 1, 2))), with_heads(full, fewer_heads(full))):
        assert encodings.share(model) is model


def fewer_heads(model):
    every = {site: [list(range(each.num_heads)) for each in found] for site, found in attentions(model).items()}
    return {**every, "encoder": [every["encoder"][0][:-1], *every["encoder"][1:]]}


def test_what_is_kept_of_encodings_has_a_limit(encoded, monkeypatch):
    monkeypatch.setattr(Encodings, "MOST", 1)
    full = lively()
    encodings = Encodings(full)
    for batch in (source(5, 8), source(3, 3), source(3, 3), source(5, 8)):
        SEARCH.run(encodings.share(full), batch)
    assert len(encoded) == 3, "the first is kept, the others are not"
