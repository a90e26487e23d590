"""A tokenizer gives back the text that it was given, and the usual normalisation stays where it changes no text."""

import unicodedata

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from ablab.fields import Role
from ablab.transformer.data.normalization import is_plain
from ablab.transformer.data.vocabulary import train_tokenizer

CHANGED = {
    "a comma of full width": "\u6211\uff0c\u4f60",
    "an ellipsis": "et puis\u2026",
    "a fraction": "\u00bd litre",
    "French in NFD": unicodedata.normalize("NFD", "\u00e9t\u00e9"),
    "Persian with a non-joiner": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "kana of half width": "\uff76\uff9e",
    "a space of no width": "\u0e01\u200b\u0e02",
    "a control character": "a\x01b",
    "a mark of direction": "\u200fa",
}
KEPT = {
    "German": "Gr\u00fc\u00dfe, \u201egut\u201c \u2013 ja",
    "Chinese": "\u6211\u4eec\u3002",
    "Vietnamese in NFC": unicodedata.normalize("NFC", "Vi\u1ec7t"),
    "no-break and wide spaces": "a\u00a0b\u3000c\td  e",
    "a joiner in an emoji": "\U0001f469\u200d\U0001f52c",
    "nothing": "",
}

words = st.lists(
    st.sampled_from([*"ab \u00e9e\u0301\u0323\u2026\u00a0\t\u200b\u200d\uac00\u1100\u1161\uff76\uff9e\u4e2d\u2581"])
).map("".join)


def usual(sentence):
    return (
        sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").normalize(sentence).replace("\u2581", " ").strip()
    )


def spaced(sentence):
    return " ".join(sentence.replace("\u2581", " ").split())


@pytest.mark.parametrize("sentence", CHANGED.values(), ids=CHANGED)
def test_text_that_the_usual_rule_changes_is_not_plain(sentence):
    assert usual(sentence) != spaced(sentence)
    assert not is_plain(["plain", sentence])


@pytest.mark.parametrize("sentence", KEPT.values(), ids=KEPT)
def test_text_that_it_keeps_is_plain_white_space_apart(sentence):
    assert usual(sentence) == spaced(sentence)
    assert is_plain(["plain", sentence])


@given(st.lists(words, max_size=4))
def test_plain_is_what_the_usual_rule_leaves_as_it_is(sentences):
    if is_plain(sentences):
        assert [usual(sentence) for sentence in sentences] == [spaced(sentence) for sentence in sentences]
    elif all(unicodedata.is_normalized("NFC", sentence) for sentence in sentences):
        assert any(usual(sentence) != spaced(sentence) for sentence in sentences)


@pytest.mark.parametrize("kind", ["bpe", "char"])
@given(st.lists(words.filter(str.strip), min_size=1, max_size=6))
def test_the_identity_gives_back_every_character_but_white_space(kind, sentences):
    text = [*sentences, *CHANGED.values(), *KEPT.values()]
    tokenizer = train_tokenizer(text, 400, "char", "identity") if kind == "char" else train_bpe(text)
    assert tokenizer.decode(tokenizer.encode(text)) == [spaced(sentence) for sentence in text]


def train_bpe(text):
    size = len({character for sentence in text for character in spaced(sentence)}) + 6
    return train_tokenizer(text, size, "bpe", "identity")


def written(folder, *sentences):
    for language in ("en", "de"):
        (folder / f"x.{language}").write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    return {name: str(folder / "x") for name in ("train", "valid", "test")}


def test_the_rule_is_in_the_recipe_only_where_it_is_not_the_usual_one(configured, tmp_path):
    plain = configured("text", **written(tmp_path, *KEPT.values()))
    assert (plain.normalization, plain.rule) == ("auto", "nmt_nfkc")
    assert "normalization" not in plain.effective().part(Role.RECIPE)
    changed = configured("text", **written(tmp_path, *KEPT.values(), CHANGED["an ellipsis"]))
    assert changed.rule == "identity"
    assert changed.effective().part(Role.RECIPE)["normalization"] == "identity"
    asked = configured("text", **{**written(tmp_path, CHANGED["an ellipsis"]), "normalization": "nmt_nfkc"})
    assert "normalization" not in asked.effective().part(Role.RECIPE)


@pytest.mark.parametrize(("language", "rule"), [("de", "nmt_nfkc"), ("fr", "nmt_nfkc"), ("kn", "identity")])
def test_numbers_know_it_by_their_words(configured, language, rule):
    assert configured("numbers", tgt=language).rule == rule
