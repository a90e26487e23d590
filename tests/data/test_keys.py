"""Keys: what a tokenizer reads alike has one key; what nobody sees is blank."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.transformer.data.keys import has_both_sides, is_blank, key, near_key, readable
from ablab.transformer.data.normalization import IDENTITY, USUAL, normalizer

ODD = (
    "\x00\x01\t\x0b\x1c\x85\xa0\xad\u0301\u0344\u061c\u1680\u200b\u200c\u200d\u2028\u2060\u2581\u3000\ufeff\uff5e\ufffd"
)
texts = st.text(
    st.sampled_from(f"{ODD} aéÉ①ﬁ，") | st.characters(exclude_categories=("Cs", "Cn"), exclude_characters="\n")
)


def as_read(sentences):
    """The sentences as SentencePiece normalises them before it cuts them into pieces."""
    return normalizer(USUAL).normalize(sentences)


@pytest.mark.parametrize("form", ["{}", "a{}b", " {} "])
def test_every_character_that_is_read_alike_has_one_key(form):
    characters = [chr(code) for code in range(1, 0x20000) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    sentences = [form.format(each) for each in characters if each != "\n"]
    read = as_read(sentences)
    assert [each for each, found in zip(sentences, read, strict=True) if key(found) != key(each)] == []
    assert [each for each, found in zip(sentences, read, strict=True) if not found and not is_blank(each)] == []


@pytest.mark.parametrize("form", ["a{}b", " {} "])
def test_every_character_that_identity_reads_alike_has_one_key_but_for_five(form):
    """It reads them as spaces, as Python does; the usual rule leaves them out."""
    characters = [chr(code) for code in range(1, 0x20000) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    sentences = [form.format(each) for each in characters if each != "\n"]
    keys: dict[str, set[str]] = {}
    for each, found in zip(sentences, normalizer(IDENTITY).normalize(sentences), strict=True):
        if not set(each) & set("\x0b\x1c\x1d\x1e\x1f"):
            keys.setdefault(found, set()).add(key(each))
    assert [found for found, several in keys.items() if len(several) > 1] == []
    for each in "\x0b\x1c\x1d\x1e\x1f":
        assert [normalizer(rule).normalize(f"a{each}b") for rule in (IDENTITY, USUAL)] == ["▁a▁b", "▁ab"]
        assert key(f"a{each}b") == "ab" != key("a b")


@given(texts, texts)
def test_sentences_that_are_read_alike_have_one_key(one, other):
    first, second = as_read([one, other])
    assert key(first) == key(one)
    assert (first == second) <= (key(one) == key(other))
    assert key(key(one)) == key(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a b", " a  b\t"), ("a b", "a\xa0b"), ("a b", "a\u200bb"), ("é", "e\u0301"), ("a,b", "a，b"), ("ab", "a\u200db")],
)
def test_twins_have_one_key(one, other):
    assert key(one) == key(other)


def test_near_twins_differ_in_case_punctuation_and_spaces_alone():
    assert near_key("A dog, a cat.") == near_key("a dog - a cat") == near_key("Adog a cat!")
    assert near_key("ein Fuß") == near_key("EIN FUSS")
    assert len({near_key(text) for text in ("5 + 5", "5 - 5", "5 = 5", "6 + 6", "कि", "का", "क")}) == 7
    assert near_key("...") == "..." != near_key("!")


@pytest.mark.parametrize("nothing", ["", " ", "\t", "\u200b", " \u200b\ufeff ", "\xad", "\x01", "\u2581"])
def test_what_nobody_sees_is_blank(nothing):
    assert is_blank(nothing)
    assert not has_both_sides(("a", nothing))
    assert not has_both_sides((nothing, "a"))
    assert readable(nothing).strip() == ""
    assert not is_blank(f"{nothing}.")
    assert readable(f"{nothing}.") == f"{nothing}."


def test_what_was_always_blank_is_read_as_before():
    assert [readable(text) for text in (" ", "\t", "\x1c", "\u200b", "a\u200b")] == [" ", "\t", "\x1c", "", "a\u200b"]
