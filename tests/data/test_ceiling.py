"""A score that cannot be reached is told before training, with the option that mends it."""

import re

import pytest

from ablab.transformer.data.ceiling import ceiling, remarks
from ablab.transformer.data.prepared import prepare
from ablab.transformer.data.scoring import Scoring
from ablab.transformer.data.vocabulary import train_tokenizer

GERMAN = ["ein rotes Haus steht am Fluss", "zwei kleine Hunde laufen durch den Park"]
CHINESE = ["我们，明天，去，北京", "你好，世界，很，大"]
WORDS = ["Haus", "Hund", "Fluss"]


def test_text_that_the_tokenizer_gives_back_can_reach_100():
    found = ceiling(GERMAN, train_tokenizer(GERMAN, 40), Scoring())
    assert found == {"itself": pytest.approx(100), "through": pytest.approx(100)}


def test_a_tokenizer_that_normalises_lowers_what_can_be_reached():
    usual, identity = (
        ceiling(CHINESE, train_tokenizer(CHINESE, 99, "char", rule), Scoring("zh")) for rule in ("nmt_nfkc", "identity")
    )
    assert usual["itself"] == identity["itself"] == pytest.approx(100)
    assert usual["through"] < 50
    assert identity["through"] == pytest.approx(100)


def test_references_of_less_than_four_tokens_score_nothing_against_themselves():
    found = ceiling(WORDS, train_tokenizer(WORDS, 99, "char"), Scoring())
    assert found == {"itself": 0, "through": 0, "characters": pytest.approx(100)}


def said(corpus, tmp_path):
    return list(remarks(corpus, prepare(corpus, tmp_path / "store", lambda _: None).manifest))


def written(folder, sources, targets, tgt="de", **changes):
    for name, lines in (("en", sources), (tgt, targets)):
        (folder / f"x.{name}").write_text("".join(f"{line}\n" for line in lines * 6), encoding="utf-8")
    return {**{name: str(folder / "x") for name in ("train", "valid", "test")}, "tgt": tgt, **changes}


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ((GERMAN, GERMAN), {"vocab_size": 40}, []),
        (
            (GERMAN, CHINESE),
            {"tgt": "zh", "tokenizer": "char"},
            ["BLEU by sacrebleu's tokenizer zh", "data.normalization=identity: SentencePiece's nmt_nfkc would change"],
        ),
        (
            (GERMAN, CHINESE),
            {"tgt": "zh", "tokenizer": "char", "normalization": "nmt_nfkc"},
            ["BLEU by sacrebleu's tokenizer zh", "BLEU can reach .* allowed: data.normalization=identity, or"],
        ),
        (
            (GERMAN, GERMAN),
            {"tokenizer": "char", "vocab_size": 8},
            [r"BLEU can reach .* allowed: a larger data\.vocab_size$", "unknown to the tokenizer"],
        ),
        (
            (WORDS, WORDS),
            {"tokenizer": "char"},
            ["score 0.00 against themselves, as none has four tokens for 13a; allowed: .*=char, .*loss"],
        ),
        ((["a", "b"], ["c", "d"]), {"tokenizer": "char"}, ["four tokens for 13a; allowed: training.monitor=loss"]),
        (
            ([*GERMAN, "<s> ein <unk>"], [*GERMAN, "zwei"]),
            {"vocab_size": 50},
            [r"unknown to the tokenizer: [1-9]\d* source and 0 target tokens of training"],
        ),
    ],
    ids=[
        "nothing",
        "Chinese",
        "Chinese normalised",
        "few characters",
        "a lexicon",
        "letters",
        "signs of the tokenizer's own",
    ],
)
def test_each_thing_that_scores_cannot_mean_is_told(text, changes, expected, configured, tmp_path):
    lines = said(configured("text", **written(tmp_path, *text, **{"bleu_tokenizer": None, **changes})), tmp_path)
    assert len(lines) == len(expected)
    for line, pattern in zip(lines, expected, strict=True):
        assert re.search(pattern, line), line


def test_what_an_older_version_prepared_says_less(configured):
    assert list(remarks(configured("numbers"), {"unigram_loss": 3.0})) == []
