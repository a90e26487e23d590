"""A race is fair when all run the same distance and otherwise do what they would have done."""

import pytest
import torch

from ablab.transformer.data.batches import Sentences, like_lengths
from ablab.transformer.decoding import speed, translator
from ablab.transformer.decoding.speed import ROUNDS, Paced, sentences_per_second
from ablab.transformer.decoding.translator import DecodingConfig
from ablab.transformer.model.tokens import EOS
from ablab.transformer.model.transformer import Transformer
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
@pytest.mark.parametrize("batch_tokens", [4096, 12])
def test_a_model_makes_a_step_for_each_token_of_the_longest_source(search, batch_tokens, monkeypatch):
    """Summed over the batches and turns, whatever the model would have said."""
    steps = []
    plain = Transformer.step
    monkeypatch.setattr(
        Transformer, "step", lambda model, tokens, state: steps.append(model) or plain(model, tokens, state)
    )
    monkeypatch.setattr(speed, "ROUNDS", 1)
    monkeypatch.setattr(translator, "BATCH_TOKENS", batch_tokens * search.beam_size)
    src = Sentences.of([[5] * length for length in (7, 2, 0, 4, 4, 11, 1)])
    full = lively()
    sentences_per_second([full, prune(full, Kept((1,), (2,)))], src, search)
    longest = [src.lengths[rows].max() for rows in like_lengths(src.lengths, batch_tokens)]
    assert len(longest) == (1 if batch_tokens == 4096 else 4)
    assert len(steps) == 2 * 2 * sum(longest)  # two models, a turn that warms up and one that counts


def test_models_take_turns(monkeypatch):
    turns = []
    monkeypatch.setattr("ablab.transformer.decoding.speed._translate", lambda model, *_: turns.append(model))
    first, second = lively(), lively()
    assert len(sentences_per_second([first, second], Sentences.of([[5]]), SEARCH)) == 2
    assert [model is first for model in turns] == [True, False] * (ROUNDS + 1)


def test_the_rate_counts_sentences():
    (rate,) = sentences_per_second([lively()], Sentences.of([[5, 6, 7], [8, 9]]), SEARCH)
    assert rate > 0
