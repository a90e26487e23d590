"""Greedy and beam search, on models small enough to check against enumeration."""

import itertools
import math

import pytest
import torch

from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.decoding.hypotheses import NOTHING, length_penalty
from ablab.transformer.decoding.search import beam_search, greedy
from ablab.transformer.decoding.translator import DecodingConfig, Translator
from ablab.transformer.model.tokens import BOS, EOS, PAD
from tests.model.arms import VOCAB, build, source, stir

LENGTHS = (5, 3, 9, 2, 7, 1)


@pytest.fixture(scope="module")
def model():
    """Random but lively: weights are stirred so that probabilities differ and sentences end."""
    torch.manual_seed(3)
    model = build("pre").eval()
    stir(model)
    return model


def _log_probs(model, src, ids):
    """log p of each of `ids` and of the end, by one full pass, PAD and BOS excluded from the choice."""
    tgt = torch.tensor([[BOS, *ids]])
    with torch.no_grad():
        log_probs = model.logits(model(src, tgt)).log_softmax(-1)[0]
    return [float(log_probs[i, token]) for i, token in enumerate([*ids, EOS])]


@pytest.mark.parametrize("extra", [0, 3, 20])
def test_a_beam_of_one_is_greedy(model, extra):
    src = source(*LENGTHS)
    beams = beam_search(model, src, beam_size=1, alpha=0.6, max_extra_tokens=extra)
    assert [list(beam[0].ids) for beam in beams] == greedy(model, src, max_extra_tokens=extra)


@pytest.mark.shapes
def test_greedy_takes_the_likeliest_token_each_time(model):
    src = source(6)
    (ids,) = greedy(model, src, max_extra_tokens=4)
    with torch.no_grad():
        logits = model.logits(model(src, torch.tensor([[BOS, *ids]])))[0]
    logits[:, [PAD, BOS]] = -math.inf
    wanted = [*ids, EOS][: len(ids) + (len(ids) < 5 + 4)]
    assert logits.argmax(-1)[: len(wanted)].tolist() == wanted


@pytest.mark.shapes
@pytest.mark.parametrize("size", [1, 2, 5])
def test_sharing_a_batch_changes_no_translation(model, size):
    src = source(*LENGTHS)
    together = beam_search(model, src, beam_size=size, alpha=0.6, max_extra_tokens=8)
    for row, length in enumerate(LENGTHS):
        (alone,) = beam_search(model, src[row : row + 1, :length], beam_size=size, alpha=0.6, max_extra_tokens=8)
        assert [h.ids for h in alone] == [h.ids for h in together[row]]
        assert [h.score for h in alone] == pytest.approx([h.score for h in together[row]], rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_scores_are_what_a_full_pass_gives(model, alpha):
    src = source(*LENGTHS)
    for row, hypotheses in enumerate(beam_search(model, src, beam_size=4, alpha=alpha, max_extra_tokens=6)):
        assert len(hypotheses) == 4
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        assert len({h.ids for h in hypotheses}) == 4
        for hypothesis in hypotheses:
            log_prob = sum(_log_probs(model, src[row : row + 1, : LENGTHS[row]], hypothesis.ids))
            assert hypothesis.log_prob == pytest.approx(log_prob, rel=1e-4)
            penalty = length_penalty(len(hypothesis.ids) + 1, alpha)
            assert hypothesis.score == pytest.approx(log_prob / penalty, rel=1e-4)


def test_a_wide_beam_finds_the_best_of_all(model):
    """With a beam as wide as everything that can be said, the search is exhaustive."""
    src = torch.tensor([[EOS]])
    words = [token for token in range(VOCAB) if token not in (PAD, BOS, EOS)]
    everything = [(), *itertools.product(words, repeat=1), *itertools.product(words, repeat=2)]
    scores = {ids: sum(_log_probs(model, src, ids)) for ids in everything}
    (found,) = beam_search(model, src, beam_size=len(everything), alpha=0.0, max_extra_tokens=2)
    best = sorted(scores, key=scores.__getitem__, reverse=True)
    assert [h.ids for h in found[:20]] == best[:20]
    assert sum(math.exp(h.log_prob) for h in found) <= 1 + 1e-6


def _with_logits(monkeypatch, model, tokens, value):
    """The model with the logits of some tokens set."""
    plain = type(model).logits

    def changed(self, hidden):
        logits = plain(self, hidden)
        logits[..., tokens] = value
        return logits

    monkeypatch.setattr(type(model), "logits", changed)


def test_no_translation_is_longer_than_its_source_allows(model, monkeypatch):
    _with_logits(monkeypatch, model, [EOS], -1e4)
    src = source(*LENGTHS)
    for extra in (0, 4):
        limits = [length - 1 + extra for length in LENGTHS]
        assert [len(ids) for ids in greedy(model, src, max_extra_tokens=extra)] == limits
        beams = beam_search(model, src, beam_size=3, alpha=0.6, max_extra_tokens=extra)
        assert all(len(h.ids) <= limit for beam, limit in zip(beams, limits, strict=True) for h in beam)
        assert all(beam for beam in beams)


def test_padding_and_begin_are_never_said(model, monkeypatch):
    _with_logits(monkeypatch, model, [PAD, BOS], 100.0)
    src = source(*LENGTHS)
    said = {token for ids in greedy(model, src, max_extra_tokens=5) for token in ids}
    said |= {
        token
        for beam in beam_search(model, src, beam_size=3, alpha=0.6, max_extra_tokens=5)
        for h in beam
        for token in h.ids
    }
    assert said
    assert not said & {PAD, BOS}


def test_length_penalty_points():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(12, 0.0) == 1
    assert length_penalty(12, 0.6) == pytest.approx(1.868, abs=5e-4)


class _Letters(Tokenizer):
    """A tokenizer of numbers, for the order of things alone."""

    def __init__(self):
        pass

    def encode(self, sentences):
        return [[int(word) for word in sentence.split()] for sentence in sentences]

    def decode(self, ids):
        return [" ".join(str(i) for i in sequence) for sequence in ids]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("blanks", [("", " ", "\t", "\u200b"), ("5 6", "", "7", "\u200b ")])
def test_a_blank_sentence_has_an_empty_translation(model, beam_size, blanks):
    """Whatever the model would say, and whatever the tokenizer makes of it."""

    class Spelling(_Letters):
        def encode(self, sentences):
            return [[5 + ord(letter) % 9 for letter in sentence] for sentence in sentences]

    translator, search = Translator(model, (Spelling(), _Letters())), DecodingConfig(beam_size, max_extra_tokens=4)
    encoded = translator.encode(blanks)
    counted = []
    found = translator.hypotheses(encoded, search, counted.append)
    said = translator.best(encoded, search)
    assert sum(counted) == len(blanks)
    for sentence, beams, text in zip(blanks, found, said, strict=True):
        if not sentence.strip(" \t\u200b"):
            assert (beams, text) == ([NOTHING], "")
        else:
            assert len(beams) == beam_size


@pytest.mark.parametrize(
    "search", [DecodingConfig(max_extra_tokens=8), DecodingConfig(beam_size=3, length_penalty=0.6, max_extra_tokens=8)]
)
def test_translations_come_back_in_order_and_leave_the_mode_alone(model, search):
    sentences = ["5 6 7 8", "", "9", "10 11 12 13 14 15", "16 17"]
    translator = Translator(model, (_Letters(), _Letters()))
    model.train()
    together = translator.best(translator.encode(sentences), search)
    assert model.training
    model.eval()
    alone = [translator.best(Sentences.of(_Letters().encode([s])), search)[0] for s in sentences]
    assert together == alone


def test_translations_that_reach_the_limit_are_counted():
    """One token below it none is; a blank sentence has no limit to reach."""
    search = DecodingConfig(max_extra_tokens=2)
    assert search.cut([3, 3, 3, 0, 1], [[7] * 5, [7] * 4, [7] * 6, [], [7] * 2]) == 2
    assert DecodingConfig(max_extra_tokens=0).cut([0, 1], [[], [7]]) == 1
