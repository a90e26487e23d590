import subprocess
import sys
from collections.abc import Callable

import pytest

from ablab.errors import UserError
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.numbers import Numbers, _generated, _languages

Configured = Callable[..., Corpus]

SMALL = {"train_size": 400, "valid_size": 50, "test_size": 60}


def splits(corpus: Corpus) -> list[list[tuple[str, str]]]:
    return [split.pairs for split in (corpus.train_split(), corpus.valid_split(), corpus.test_split())]


def test_sizes_are_as_asked(configured: Configured) -> None:
    corpus = configured("numbers", **SMALL)
    assert [len(pairs) for pairs in splits(corpus)] == [400, 50, 60]
    assert [corpus.pairs_in(split) for split in ("train", "valid", "test")] == [400, 50, 60]


@pytest.mark.parametrize(("src", "tgt"), [("en", "de"), ("de", "en"), ("en", "fr"), ("cs", "ja")])
def test_no_sentence_occurs_twice_on_either_side(configured: Configured, src: str, tgt: str) -> None:
    pairs = [pair for part in splits(configured("numbers", **SMALL, src=src, tgt=tgt)) for pair in part]
    for side in zip(*pairs, strict=True):
        assert len(set(side)) == len(side) == 510
    assert all(text == text.strip() and "\n" not in text for pair in pairs for text in pair)


def test_the_same_options_give_the_same_text_again_and_in_another_process(configured: Configured) -> None:
    here = splits(configured("numbers", **SMALL))
    configured("numbers", **SMALL, tgt="fr").train_split()
    _generated.cache_clear()
    assert splits(configured("numbers", **SMALL)) == here
    there = subprocess.run(
        [
            sys.executable,
            "-c",
            "from ablab.transformer.data.numbers import _generated; print(_generated('en', 'de', 1, 60))",
        ],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert there.stdout.decode().strip() == str(tuple(here[0][:60]))


def test_a_longer_test_set_changes_no_training_and_begins_with_the_shorter(configured: Configured) -> None:
    short, long = configured("numbers", **SMALL), configured("numbers", **{**SMALL, "test_size": 90})
    assert short.train_digest() == long.train_digest()
    assert short.test_digest() != long.test_digest()
    assert splits(short)[:2] == splits(long)[:2]
    assert splits(short)[2] == splits(long)[2][:60]


@pytest.mark.parametrize(
    "change", [{"src": "fr"}, {"tgt": "fr"}, {"corpus_seed": 2}, {"train_size": 401}, {"valid_size": 51}]
)
def test_options_that_change_text_change_both_digests(configured: Configured, change: dict[str, object]) -> None:
    before, after = configured("numbers", **SMALL), configured("numbers", **{**SMALL, **change})
    assert before.train_digest() != after.train_digest()
    assert before.test_digest() != after.test_digest()


@pytest.mark.parametrize("change", [{"vocab_size": 500}, {"train_pairs": 10}, {"max_tokens": 9}])
def test_options_that_leave_the_text_leave_the_digests(configured: Configured, change: dict[str, object]) -> None:
    before, after = configured("numbers", **SMALL), configured("numbers", **{**SMALL, **change})
    assert (before.train_digest(), before.test_digest()) == (after.train_digest(), after.test_digest())


def test_another_version_of_num2words_is_another_corpus(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = configured("numbers").train_digest()
    monkeypatch.setattr("ablab.transformer.data.numbers._speller_version", lambda: "9.9.9")
    assert configured("numbers").train_digest() != before


def test_lengths_and_kinds_vary(configured: Configured) -> None:
    pairs = splits(configured("numbers", **{**SMALL, "train_size": 2000}))[0]
    lengths = [len(source.split()) for source, _ in pairs]
    assert min(lengths) <= 3
    assert max(lengths) >= 25
    text = " ".join(source for source, _ in pairs)
    for sign in ("million", "teenth", "eighteen ", "euro", "dollars", "pence", "point", "minus", "thousand"):
        assert sign in text


def test_an_unknown_language_is_refused_with_those_known(configured: Configured) -> None:
    with pytest.raises(UserError, match=r"data\.tgt=ger is unknown to num2words; allowed: .*de, en,"):
        configured("numbers", tgt="ger").check()


def test_the_languages_read_off_file_names_are_those_of_num2words() -> None:
    from num2words import CONVERTER_CLASSES

    assert _languages() == set(CONVERTER_CLASSES)


def test_languages_that_run_out_of_sentences_say_so(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablab.transformer.data.numbers.speller", lambda language: lambda number: "one")
    monkeypatch.setattr("ablab.transformer.data.numbers.ITEMS", (1,))
    _generated.cache_clear()
    with pytest.raises(UserError, match="no more than"):
        configured("numbers", **{**SMALL, "train_size": 5000}).train_split()
    monkeypatch.setattr("ablab.transformer.data.numbers.speller", lambda language: lambda number: None)
    with pytest.raises(UserError, match="no kind of number"):
        configured("numbers", **SMALL).train_split()


def test_the_interface_is_light() -> None:
    heavy = "num2words, mtdata, sacrebleu, urllib.request, torch, numpy"
    corpora = (
        "ablab.transformer.data.mtdata, ablab.transformer.data.multi30k, ablab.transformer.data.numbers, "
        "ablab.transformer.data.text"
    )
    code = f"import sys, {corpora}; print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    env = {"PYTHONPATH": ":".join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True)
    assert result.stdout.strip() == "[]"
    assert Numbers.marks()
