"""What a sentence's search finds is a matter of that sentence, whoever shares its batch and whenever that shrinks.

Against a search of one sentence that keeps lists and computes every prefix anew. In double precision a batch's shape
moves a score by about 1e-15. No two candidates between which a search chooses are nearer than 1e-9 (asserted), so
words must be equal and scores nearly so. Where candidates do tie, nothing is promised but that every batch settles it
alike.
"""

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch

from ablab.transformer.decoding import search as module
from ablab.transformer.decoding.hypotheses import Ended, Finished, length_penalty
from ablab.transformer.model.tokens import BOS, EOS, PAD
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import build, source, stir

LENGTHS = (5, 3, 9, 2, 7, 1, 6, 4, 8, 10)
ROWS = tuple(range(len(LENGTHS)))
SRC = source(*LENGTHS)
SIZES = (1, 2, 7)
ALPHAS = (0.0, 0.6, 4.0)
"""Under the last one whatever ends later would win: a sentence that is done must not hear of it."""
EXTRA = 5
MODELS = {"pre": (13, 3.0), "post": (23, 3.0)}
"""Norm: seed, and what the end's row of the output table is multiplied by, so that sentences end now and then."""
COMPACTION = {"never": 0.0, "as shipped": module.COMPACT_BELOW, "at once": 1.0}


class Found(NamedTuple):
    """Hypotheses in the order in which they ended, with their log probabilities, and how many steps that took."""

    ended: list[tuple[tuple[int, ...], float]]
    steps: int

    def best(self, size, alpha):
        """The n-best list: ids, score, log probability."""
        scored = [(ids, log_prob / length_penalty(len(ids) + 1, alpha), log_prob) for ids, log_prob in self.ended]
        return sorted(scored, key=lambda hypothesis: -hypothesis[1])[:size]


@cache
def model_of(norm):
    """Sure of its words, so that what ends late can beat what ended early."""
    seed, end = MODELS[norm]
    torch.manual_seed(seed)
    model = build(norm, {"model.tie": "none", "model.encoder_layers": 1, "model.decoder_layers": 1}).eval()
    stir(model)
    with torch.no_grad():
        model.words.output_matrix().mul_(2)
        model.words.output_matrix()[EOS] *= end
    return model


@torch.no_grad()
def alone(model, src, size, extra):
    """Beam search of one sentence, [1, src_len], from the definition."""
    limit = src.size(1) - 1 + extra
    going, ended = [((), 0.0)], []
    for position in range(limit + 1):
        prefixes = torch.tensor([[BOS, *ids] for ids, _ in going])
        hidden = model(src.expand(len(going), -1), prefixes)[:, -1]
        continued = []
        for (ids, so_far), log_probs in zip(going, model.logits(hidden).log_softmax(-1).tolist(), strict=True):
            sayable = [EOS] if position == limit else [t for t in range(len(log_probs)) if t not in (PAD, BOS)]
            continued += [((*ids, token), so_far + log_probs[token]) for token in sayable]
        continued.sort(key=lambda hypothesis: -hypothesis[1])
        candidates = [log_prob for _, log_prob in continued[: 2 * size + 1]]
        assert all(a - b > 1e-9 for a, b in pairwise(candidates))
        ended += [(ids[:-1], log_prob) for ids, log_prob in continued[:size] if ids[-1] == EOS]
        going = [hypothesis for hypothesis in continued if hypothesis[0][-1] != EOS][:size]
        if len(ended) >= size:
            break
    return Found(ended, position + 1)


@cache
def expected(norm, row, size, extra=EXTRA):
    """What the plain search finds for one of our sentences."""
    return alone(model_of(norm), SRC[row : row + 1, : LENGTHS[row]], size, extra)


def search(norm, rows, size, alpha, extra=EXTRA):
    """What ours finds for some of our sentences together."""
    found = module.beam_search(model_of(norm), SRC[list(rows)], beam_size=size, alpha=alpha, max_extra_tokens=extra)
    return [[tuple(hypothesis) for hypothesis in hypotheses] for hypotheses in found]


def assert_as_alone(found, norm, rows, size, alpha, extra=EXTRA):
    for row, hypotheses in zip(rows, found, strict=True):
        wanted = expected(norm, row, size, extra).best(size, alpha)
        assert [ids for ids, *_ in hypotheses] == [ids for ids, *_ in wanted]
        for mine, other in zip(hypotheses, wanted, strict=True):
            assert mine[1:] == pytest.approx(other[1:], rel=1e-10)


@pytest.fixture(autouse=True)
def _never_compacted(monkeypatch):
    """Unless a test says otherwise, sentences that are done stay in the batch until all are."""
    compact(monkeypatch, "never")


def compact(monkeypatch, when):
    monkeypatch.setattr(module, "COMPACT_BELOW", COMPACTION[when])


@pytest.mark.parametrize("norm", MODELS)
@pytest.mark.parametrize("size", SIZES)
def test_a_batch_finds_what_each_sentence_finds_alone(norm, size, monkeypatch):
    assert len({expected(norm, row, size).steps for row in ROWS}) >= 3  # some are done long before others
    for alpha in ALPHAS:
        assert_as_alone(search(norm, ROWS, size, alpha), norm, ROWS, size, alpha)
    for when in ("as shipped", "at once"):
        compact(monkeypatch, when)
        assert_as_alone(search(norm, ROWS, size, 0.6), norm, ROWS, size, 0.6)


@pytest.mark.parametrize("every", [2, 3, 8])
@pytest.mark.parametrize("norm", MODELS)
def test_what_is_done_may_stay_for_some_steps(norm, every, monkeypatch):
    """As on a GPU, where the unfinished are counted now and then, and all sentences are looked at for ends."""
    compact(monkeypatch, "at once")
    monkeypatch.setattr(module, "counts_after", lambda position, device: (position + 1) % every == 0)
    monkeypatch.setattr(Ended, "sentences", lambda ended: torch.arange(len(ended.log_probs)))
    for size in SIZES:
        assert_as_alone(search(norm, ROWS, size, 0.6), norm, ROWS, size, 0.6)
    assert module.greedy(model_of(norm), SRC, max_extra_tokens=EXTRA) == [
        list(expected(norm, row, 1).ended[0][0]) for row in ROWS
    ]


COMPANIES = {
    "in another order": (7, 2, 9, 0, 5, 8, 1, 6, 3, 4),
    "one twice": (4, 0, 4, 8),
    "one only": (2, 2, 2, 2, 2),
    "in pairs": (5, 9),
}


@pytest.mark.parametrize("norm", MODELS)
@pytest.mark.parametrize("rows", COMPANIES.values(), ids=COMPANIES)
def test_company_changes_nothing(norm, rows):
    for size in SIZES:
        assert_as_alone(search(norm, rows, size, 0.6), norm, rows, size, 0.6)


@pytest.mark.parametrize("norm", MODELS)
def test_a_sentence_at_its_limit_is_done_with_what_it_has(norm):
    """Where nothing may be said beyond the source's length, few hypotheses can end."""
    for size in SIZES:
        assert_as_alone(search(norm, ROWS, size, 0.6, extra=0), norm, ROWS, size, 0.6, extra=0)
    assert len(expected(norm, LENGTHS.index(1), 7, 0).ended) == 1


@pytest.mark.parametrize("norm", MODELS)
@pytest.mark.parametrize("when", COMPACTION)
def test_greedy_is_a_beam_of_one_in_every_batch(norm, when, monkeypatch):
    compact(monkeypatch, when)
    found = module.greedy(model_of(norm), SRC, max_extra_tokens=EXTRA)
    assert found == [list(expected(norm, row, 1).ended[0][0]) for row in ROWS]
    assert found == [list(hypotheses[0][0]) for hypotheses in search(norm, ROWS, 1, 0.6)]


@pytest.mark.parametrize("norm", MODELS)
@pytest.mark.parametrize("extra", [0, EXTRA])
@pytest.mark.parametrize("size", [1, 4])
def test_a_batch_takes_the_steps_of_its_longest_search(norm, size, extra, monkeypatch):
    """And, where what is done leaves at once, computes nothing for it."""
    computed = []
    plain = Transformer.step
    monkeypatch.setattr(
        Transformer, "step", lambda model, tokens, state: computed.append(len(tokens)) or plain(model, tokens, state)
    )
    steps = [expected(norm, row, size, extra).steps for row in ROWS]
    search(norm, ROWS, size, 0.6, extra)
    assert computed == [len(ROWS)] * max(steps)
    computed.clear()
    compact(monkeypatch, "at once")
    search(norm, ROWS, size, 0.6, extra)
    assert computed == [sum(step > position for step in steps) for position in range(max(steps))]


def test_equals_are_ordered_alike_in_every_batch(monkeypatch):
    """Every word is as likely as every other, so that all hypotheses of a length tie exactly."""
    monkeypatch.setattr(Transformer, "logits", lambda _, hidden: hidden.new_zeros(*hidden.shape[:-1], 12))
    rows = (4, 5, 8, 1)
    for size in SIZES:
        assert search("pre", rows, size, 0.0) == [search("pre", [row], size, 0.0)[0] for row in rows]


def test_of_equals_the_one_that_ended_first_is_first():
    """Three ends in turn of equal score, then a better one, while another sentence has ends of its own."""
    finished = Finished.none(2, 3, 4, torch.float64, torch.device("cpu"))
    rows, origin = torch.tensor([0, 1]), torch.tensor([[0, 1, 2]] * 2)
    for length, score in enumerate((-2.0, -2.0, -2.0, -1.0)):
        log_probs = torch.tensor([[score] + [-math.inf] * 2, [-9.0 + length] * 3], dtype=torch.float64)
        said = torch.full((2, 3, 4), 5 + length)
        finished.add(rows, Ended(log_probs, origin, said), penalty=1.0, length=length)
    ours, others = finished.hypotheses()
    assert [len(hypothesis.ids) for hypothesis in ours] == [3, 0, 1]
    assert [hypothesis.ids for hypothesis in others] == [(8, 8, 8)] * 3
