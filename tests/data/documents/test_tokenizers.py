"""Tokenizers give back every text."""

import base64
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from ablab.errors import UserError
from ablab.transformer.data.documents.encoding import count_words, encoded
from ablab.transformer.data.documents.preparation import as_it_is
from ablab.transformer.data.documents.tokenizers import (
    REPLACED,
    Bytes,
    Characters,
    Subwords,
    TokenizersFile,
    given_tokenizer,
    load_tokenizer,
    save_tokenizer,
)
from ablab.transformer.data.normalization import IDENTITY
from ablab.transformer.data.vocabulary import TrainingTask, train_on_counts, write_counts
from ablab.transformer.language_model.verbs.generate import continuation

TEXT = "The quick brown fox jumps over the lazy dog.\nIt was the best of times, it was the worst of times.\n" * 3


def _subwords(folder, kind):
    write_counts(folder / "words", [count_words([TEXT])])
    options = {"byte_fallback": True, "character_coverage": 0.9995}
    return Subwords(as_it_is(train_on_counts(TrainingTask(folder / "words", 320, kind, IDENTITY, False, options))))


def _of_tokenizers(folder):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
        ),
    )
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return given_tokenizer(path)


def _of_tiktoken(folder):
    tokens = [*(bytes([value]) for value in range(256)), b"th", b"the", b" w", b"as"]
    path = folder / "gpt2.tiktoken"
    path.write_text("".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(tokens)))
    return given_tokenizer(path)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    return {
        "byte": Bytes(),
        "bpe": _subwords(folder, "bpe"),
        "unigram": _subwords(folder, "unigram"),
        "tokenizers": _of_tokenizers(folder),
        "tiktoken": _of_tiktoken(folder),
    }


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("The \n\t▁<0xA>s/\r ", max_size=30)


@pytest.mark.parametrize("name", ["byte", "bpe", "unigram", "tokenizers", "tiktoken"])
@settings(max_examples=30)
@given(text=TEXTS)
@example(TEXT)
@example("")
@example("\n\n a  b\t▁▁c\x00\u2585\r\n<s></s><unk><0x0A> <|endoftext|> ")
def test_every_text_comes_back(name, tokenizers, text):
    tokenizer = tokenizers[name]
    ids = tokenizer.encode(text)
    assert ids.dtype == np.uint32
    assert tokenizer.end not in ids
    assert all(0 <= i < len(tokenizer) for i in ids.tolist())
    assert tokenizer.decode(ids.tolist()) == text
    assert tokenizer.decode([*ids.tolist(), tokenizer.end]) == text
    assert tokenizer.unknown_in(ids) == 0


@pytest.mark.parametrize("name", ["byte", "bpe", "unigram", "tokenizers", "tiktoken"])
@pytest.mark.parametrize("text", [TEXT, "the old cat sees\na bird\n\nand  a tree"])
def test_a_continuation_is_what_comes_after_its_prompt(name, text, tokenizers):
    """Wherever the tokens of a text begin with those of a part of it."""
    tokenizer = tokenizers[name]
    ids, joins = tokenizer.encode(text).tolist(), 0
    for cut in range(len(text) + 1):
        prompt = tokenizer.encode(text[:cut]).tolist()
        if ids[: len(prompt)] == prompt:
            assert continuation(tokenizer, prompt, ids[len(prompt) :]) == text[cut:]
            joins += 1
    assert joins > text.count(" ") / 2


@settings(max_examples=30)
@given(st.text(max_size=30, alphabet=st.characters(exclude_categories=["Cs"])))
def test_characters_come_back_but_for_those_that_are_unknown(text):
    tokenizer = Characters("the quick\n")
    ids = tokenizer.encode(text)
    known = "".join(character if character in "the quick\n" else REPLACED for character in text)
    assert tokenizer.decode(ids.tolist()) == known
    assert tokenizer.unknown_in(ids) == sum(character not in "the quick\n" for character in text)


def test_trained_subwords_are_shorter_than_bytes_and_cut_a_word_alike_everywhere(tokenizers):
    tokenizer = tokenizers["bpe"]
    assert len(tokenizer.encode(TEXT)) <= len(TEXT) / 2
    alone, inside, after = (tokenizer.encode(text).tolist() for text in ("times", "worst times", "x\ntimes"))
    assert inside[-len(alone) :] == alone == after[-len(alone) :]


@pytest.mark.parametrize("name", ["byte", "bpe", "unigram", "tokenizers", "tiktoken"])
def test_texts_are_encoded_together_as_they_are_one_by_one(name, tokenizers, monkeypatch):
    monkeypatch.setattr("ablab.transformer.data.documents.tokenizers.MANY", 2)
    texts = [TEXT, "", "x", "\n", "a ▁b\n\nc"]
    one_by_one = [tokenizers[name].encode(text).tolist() for text in texts]
    assert [ids.tolist() for ids in tokenizers[name].encode_all(texts)] == one_by_one


def test_a_tokenizer_is_saved_and_loaded(tokenizers, tmp_path):
    for name, tokenizer in {**tokenizers, "char": Characters("abc\u2028\\")}.items():
        save_tokenizer(tmp_path / name, tokenizer)
        loaded = load_tokenizer(tmp_path / name)
        assert (len(loaded), loaded.end, loaded.unknown) == (len(tokenizer), tokenizer.end, tokenizer.unknown)
        assert loaded.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()


def test_what_is_shown_of_tokens():
    assert Bytes().shown([*b"a \n", 256, 0xC3]) == ["a", "▁", "↵", "█", REPLACED]


def test_a_token_is_shown_with_its_space_though_the_decoder_takes_it_from_a_text():
    from tokenizers import Tokenizer, decoders, models

    tokenizer = Tokenizer(models.BPE({"▁the": 0, "the": 1, "▁": 2, "</s>": 3}, []))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)])
    assert TokenizersFile(tokenizer.to_str()).shown([0, 1, 2, 3]) == ["▁the", "the", "▁", "█"]


@pytest.mark.parametrize("tokens", [{b"a": 3}, {b"ab": 0}, {b"\xff": None}])
def test_a_damaged_file_of_tiktoken_is_told_in_one_line(tokens, tmp_path):
    """The library itself ends the process."""
    ranks = {**{bytes([value]): value for value in range(256)}, **tokens}
    path = tmp_path / "gpt2.tiktoken"
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items() if rank is not None)
    path.write_text("".join(lines))
    with pytest.raises(UserError, match="a rank stands twice, or a byte has none"):
        given_tokenizer(path)


def test_an_end_of_its_own_is_taken_and_a_lacking_one_added(tokenizers, tmp_path):
    assert tokenizers["tokenizers"].end == 0
    content = json.loads(tokenizers["tokenizers"].text)
    content["added_tokens"] = []
    del content["model"]["vocab"]["<|endoftext|>"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    tokenizer = given_tokenizer(path)
    assert tokenizer.end == len(tokenizer) - 1 == max(content["model"]["vocab"].values()) + 1


@pytest.mark.parametrize("name", ["tokenizer.json", "gpt2.tiktoken", "unheard.tiktoken"])
def test_a_file_that_is_no_tokenizer_is_told_in_one_line(name, tmp_path):
    (tmp_path / name).write_text("{}")
    with pytest.raises(
        UserError, match=r"data\.tokenizer=.*(not readable as a tokenizer|no encoding unheard)"
    ) as raised:
        given_tokenizer(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_a_tokenizer_that_fails_at_some_text_is_told_before_anything_is_trained(tmp_path):
    vocabulary = {"a": 0, "b": 1}
    path = tmp_path / "tokenizer.json"
    path.write_text(Tokenizer(WordLevel(vocabulary, unk_token="[UNK]")).to_str())
    with pytest.raises(UserError, match="not readable as a tokenizer"):
        given_tokenizer(path)
    path.write_text(Tokenizer(WordLevel({**vocabulary, "[UNK]": 2}, unk_token="[UNK]")).to_str())
    assert given_tokenizer(path).encode("c").tolist() == [2]


def test_a_tokenizer_that_is_gone_or_damaged(tmp_path):
    with pytest.raises(UserError, match="the tokenizer is gone"):
        load_tokenizer(tmp_path)
    (tmp_path / "text_tokenizer.json").write_text('{"kind": "subwords", "model": "AAAA"}')
    with pytest.raises(UserError, match="not readable as a tokenizer"):
        load_tokenizer(tmp_path)


@settings(max_examples=30)
@given(st.lists(TEXTS, max_size=5))
def test_bytes_and_unknown_characters_are_counted_for_each_document(texts):
    found = encoded(Characters("the"), texts)
    assert found.sizes.tolist() == [len(text.encode()) for text in texts]
    assert found.unknown.tolist() == [sum(character not in "the" for character in text) for text in texts]
    assert found.lengths.tolist() == [len(text) + 1 for text in texts]
    assert encoded(Bytes(), texts).lengths.tolist() == (found.sizes + 1).tolist()
    assert encoded(Bytes(), texts).inexact == 0
