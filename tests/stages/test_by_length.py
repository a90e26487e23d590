"""Every sentence is in one bucket, and a bucket's scores are those that sacrebleu gives its sentences."""

import random
from itertools import pairwise

import pytest
import sacrebleu

from ablab.transformer.data.scoring import sentence_statistics
from ablab.transformer.translation.texts import FEWEST, METRICS, MOST_BUCKETS, buckets, by_length, lengths

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]


@pytest.fixture(scope="module")
def text():
    rng = random.Random(5)
    sources, references, hypotheses = [], [], []
    for _ in range(330):
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 25))]
        sources.append(" ".join(words))
        references.append(" ".join(reversed(words)))
        hypotheses.append(" ".join(word if rng.random() < 0.8 else rng.choice(WORDS) for word in reversed(words)))
    return sources, references, hypotheses, {"bleu": sentence_statistics(hypotheses, references)}


@pytest.mark.parametrize("seed", range(12))
def test_each_sentence_is_in_the_bucket_of_its_length_alone(seed):
    rng = random.Random(seed)
    sizes = [rng.randint(0, rng.choice([3, 60])) for _ in range(rng.choice([1, 40, 99, 700]))]
    parts = buckets(sizes)
    assert 1 <= len(parts) <= max(1, min(MOST_BUCKETS, len(sizes) // FEWEST))
    assert sorted(row for part in parts for row in part.rows) == list(range(len(sizes)))
    assert len(parts) == 1 or min(len(part.rows) for part in parts) >= FEWEST
    for part in parts:
        assert all(part.low <= sizes[row] <= part.high for row in part.rows)
        assert f"n={len(part.rows):,}" in part.name
    assert all(one.high < other.low for one, other in pairwise(parts))


def test_scores_of_a_bucket_are_sacrebleus(text):
    sources, references, hypotheses, _ = text
    _, sizes = lengths(sources)
    parts = buckets(sizes)
    assert len(parts) > 3
    scorers = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}
    for metric, scorer in scorers.items():
        (trace,) = by_length(metric, *text).series
        for part, found in zip(parts, trace.y, strict=True):
            chosen = [[side[row] for row in part.rows] for side in (hypotheses, references)]
            assert found == pytest.approx(scorer(chosen[0], [chosen[1]]).score, abs=1e-4)


def test_one_bucket_is_the_corpus(text):
    sources, references, hypotheses = (side[: FEWEST + 5] for side in text[:3])
    items = {"bleu": text[3]["bleu"][: FEWEST + 5]}
    (trace,) = by_length("bleu", sources, references, hypotheses, items).series
    assert trace.y == pytest.approx([sacrebleu.corpus_bleu(hypotheses, [references]).score], abs=1e-4)


def test_statistics_of_the_buckets_sum_to_those_of_the_corpus(text):
    statistics = text[3]["bleu"]
    parts = buckets(lengths(text[0])[1])
    sums = [sum(statistics[row][column] for part in parts for row in part.rows) for column in range(10)]
    assert sums == [sum(row[column] for row in statistics) for column in range(10)]


def test_bleu_needs_no_translations(text):
    sources, references, _, statistics = text
    assert by_length("bleu", sources, references, [], statistics) == by_length("bleu", *text)
    assert set(METRICS) == {"bleu", "chrf"}


def test_text_without_spaces_is_measured_in_characters():
    assert lengths(["one two three", " a  b "]) == ("words", [3, 2])
    assert lengths(["你好世界", "早", "a b"]) == ("characters", [4, 1, 3])
