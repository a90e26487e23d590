"""Scores are sacrebleu's, bear their signatures, and can be computed again from what is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from ablab.errors import UserError
from ablab.transformer.data.scoring import bleu, is_installed, looks_tokenised, score, tokenizer_of

HYPOTHESES = ["the red house stands by the river", "a bird , it sings", "", "Ein Haus"]
REFERENCES = ["the red house stands near the river", "a bird sings on the tree", "nothing at all", "Ein Haus"]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        *((code, "zh") for code in ("zh", "zh_CN", "ZH-tw", "zho_Hans", "yue")),
        *((code, "char") for code in ("th", "lao_Laoo", "km", "my", "bo")),
        *((code, "13a") for code in ("de", "en", "cs", "hi", "ar", "zhx", "")),
    ],
)
def test_the_tokenizer_is_that_of_the_target_language(language, expected):
    assert tokenizer_of(language) == expected


@pytest.mark.parametrize(("language", "own", "instead"), [("ja", "ja-mecab", "char"), ("ko", "ko-mecab", "13a")])
def test_japanese_and_korean_have_their_own_where_it_is_installed(language, own, instead, monkeypatch):
    for there in (True, False):
        monkeypatch.setattr(
            "ablab.transformer.data.scoring.find_spec", lambda _, there=there: object() if there else None
        )
        assert is_installed(own) is there
        assert tokenizer_of(language) == (own if there else instead)


sentence = st.lists(st.sampled_from(["the", "red", "green", "house", "bird", "sings", ".", ","]), max_size=9).map(
    " ".join
)


def _from_sums(statistics: list[list[int]]) -> float:
    """Corpus BLEU by sacrebleu's own formula, from the sums over the sentences."""
    sums = [sum(column) for column in zip(*statistics, strict=True)]
    return BLEU.compute_bleu(
        correct=sums[2:6], total=sums[6:10], sys_len=sums[0], ref_len=sums[1], smooth_method="exp"
    ).score


def test_stored_statistics_sum_to_the_corpus_score():
    scores = score(HYPOTHESES, REFERENCES)
    assert 0 < scores.bleu < 100
    assert _from_sums(scores.sentences) == pytest.approx(scores.bleu, abs=1e-12)


@given(st.lists(st.tuples(sentence, sentence.filter(bool)), min_size=1, max_size=5))
def test_so_they_do_for_any_sentences(pairs):
    hypotheses, references = ([pair[side] for pair in pairs] for side in (0, 1))
    scores = score(hypotheses, references)
    assert _from_sums(scores.sentences) == pytest.approx(scores.bleu, abs=1e-9)
    assert len(scores.sentences) == len(pairs)


def test_the_order_of_sentences_does_not_matter():
    one, other = score(HYPOTHESES, REFERENCES), score(HYPOTHESES[::-1], REFERENCES[::-1])
    assert one.bleu == other.bleu
    assert one.sentences == other.sentences[::-1]


def test_a_perfect_translation_scores_full():
    scores = score(REFERENCES, REFERENCES)
    assert (scores.bleu, scores.chrf) == pytest.approx((100, 100))
    assert scores.brevity_penalty == scores.length_ratio == 1


def test_the_signatures_are_there():
    signatures = score(HYPOTHESES, REFERENCES).signatures
    assert set(signatures) == {"bleu", "chrf"}
    for signature in signatures.values():
        assert "nrefs:1" in signature
        assert "version:" in signature
    assert "tok:13a" in signatures["bleu"]


def test_validation_bleu_is_the_same_measure():
    assert bleu(HYPOTHESES, REFERENCES) == score(HYPOTHESES, REFERENCES).bleu


@pytest.mark.parametrize("count", [3, 5])
def test_unequal_numbers_of_sentences(count):
    with pytest.raises(ValueError, match=r"len\(references\)=4"):
        score(["x"] * count, REFERENCES)


def test_nothing_to_score():
    with pytest.raises(UserError, match="empty"):
        score([], [])


def test_text_that_is_tokenised_is_recognised():
    plain = [f"the {word} house is old." for word in ("red", "green", "blue") * 5]
    assert not looks_tokenised(plain)
    assert looks_tokenised([sentence.replace(".", " .") for sentence in plain])
    assert not looks_tokenised(["no full stop"] * 50)
    assert not looks_tokenised([])
