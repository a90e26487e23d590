"""Prepared text: what is stored, told and counted; made once, whole or absent."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from ablab.errors import UserError
from ablab.transformer.data.documents import encoding
from ablab.transformer.data.documents.preparation import TrainingDocuments
from ablab.transformer.data.documents.prepared import (
    PreparedText,
    check_vocabulary,
    overlaps,
    prepare,
    read_tests,
    text_id,
    told_overlap,
)
from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.vocabulary import told_size
from tests.data.documents.corpora import corpus, documents

LINES = [f"The number of this line is {number * number}, ä." for number in range(120)]


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("\n".join(LINES))
    return path


def _prepared(data, tmp_path, say=lambda _: None):
    return prepare(data, tmp_path / "corpora", say)


@pytest.mark.parametrize("tokenizer", ["byte", "char", "bpe", "unigram"])
def test_the_documents_come_back_from_the_store(tokenizer, train, tmp_path):
    data = documents(train, separator="line", tokenizer=tokenizer, vocab_size=320)
    prepared = _prepared(data, tmp_path)
    ((name, found),) = read_tests(data)
    test = Shard.of(prepared.tokenizer, found)
    shards = {"train": prepared.train, "valid": prepared.valid}
    for split, shard in shards.items():
        texts = [prepared.tokenizer.decode(shard.document(i).tolist()) for i in range(len(shard))]
        assert texts == [*data.documents(split)]
        assert shard.sizes.tolist() == [len(text.encode()) for text in texts]
        facts = prepared.manifest[split]
        assert facts == {
            "documents": len(texts),
            "tokens": len(shard.tokens),
            "bytes": sum(len(text.encode()) for text in texts),
            "unknown": 0,
            "inexact": 0,
        }
        assert isinstance(shard.tokens, np.memmap)
        assert shard.tokens.dtype == np.uint16
        assert (shard.tokens[shard.starts[1:] - 1] == prepared.tokenizer.end).all()
    assert name == "test"
    assert len(test) == 12
    assert prepared.manifest["vocab"] == len(prepared.tokenizer)


def test_a_text_is_prepared_once_and_anew_when_it_is_damaged(train, tmp_path):
    said, data = [], documents(train, separator="line")
    folder = _prepared(data, tmp_path, said.append).folder
    _prepared(data, tmp_path, said.append)
    assert len(said) == 1
    content = (folder / "train.tokens.npy").read_bytes()
    (folder / "train.tokens.npy").write_bytes(content[:-1] + b"x")
    assert (_prepared(data, tmp_path, said.append).folder / "train.tokens.npy").read_bytes() == content
    assert len(said) == 2


@pytest.mark.slow
def test_parts_and_processes_change_nothing(train, tmp_path, monkeypatch):
    data = documents(train, separator="line", tokenizer="bpe", vocab_size=320)
    whole = _prepared(data, tmp_path / "whole")
    monkeypatch.setattr(encoding, "PART", 500)
    monkeypatch.setattr("ablab.transformer.data.documents.preparation.PART", 500)
    parts = _prepared(data, tmp_path / "parts")
    assert parts.manifest == whole.manifest


def test_unknown_characters_are_counted_and_told(train, tmp_path):
    prepared = _prepared(documents(train, separator="line", tokenizer="char", vocab_size=10), tmp_path)
    assert len(prepared.tokenizer) == 12
    frequent = set("".join(character for character in prepared.tokenizer.characters))
    texts = [*documents(train, separator="line").documents("valid")]
    expected = [sum(character not in frequent for character in text) for text in texts]
    assert prepared.valid.unknown.tolist() == expected
    assert prepared.manifest["valid"]["unknown"] == sum(expected) > 0
    assert any(f"valid: {sum(expected):,} unknown characters" in line for line in prepared.remarks())


def test_overlap_is_told_and_dropped(train, tmp_path):
    valid, test = tmp_path / "valid", tmp_path / "test"
    valid.write_text("\n".join([LINES[3], LINES[5].upper(), "something else"]))
    test.write_text(LINES[7].lower())
    data = documents(train, separator="line", valid=str(valid), test=str(test))
    prepared = _prepared(data, tmp_path)
    assert prepared.manifest["overlap"] == {"of": 3, "same": 1, "near": 2}
    (line,) = prepared.remarks()
    assert line.startswith("1 of 3 validation documents are training documents too; 1 more differ from one in case")
    assert overlaps(prepared, [LINES[7].lower(), LINES[8], "something else"]) == {
        "train": {"of": 3, "same": 1, "near": 2},
        "valid": {"of": 3, "same": 1, "near": 1},
    }
    assert overlaps(PreparedText(tmp_path / "gone"), LINES) is None
    assert told_overlap({"of": 1, "same": 0, "near": 0}, "test") is None
    dropped = _prepared(data.model_copy(update={"overlap": "drop"}), tmp_path)
    assert dropped.manifest["train"]["documents"] == len(LINES) - 3
    assert dropped.manifest["train"]["dropped_overlap"] == 3
    assert dropped.manifest["overlap"] == {"of": 3, "same": 0, "near": 0}
    assert [*dropped.remarks()] == ["data.overlap=drop leaves out 3 training documents"]


def test_what_is_left_out_does_not_depend_on_how_much_is_evaluated(train, tmp_path):
    test = tmp_path / "test"
    test.write_text("\n".join([LINES[7], LINES[9]]))
    data = documents(train, separator="line", test=str(test), overlap="drop")
    fewer = data.model_copy(update={"test_documents": 1})
    assert text_id(fewer) == text_id(data)
    whole, part = ([*TrainingDocuments(each)] for each in (data, fewer))
    assert whole == part
    assert not {LINES[7], LINES[9]} & {*whole}


def test_another_process_is_given_the_folder_alone(train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepared = prepare(documents(train, separator="line"), Path("corpora"), lambda _: None)
    before = pickle.dumps(prepared)
    count = len(prepared.train)
    assert pickle.dumps(prepared) == before
    monkeypatch.chdir("/")
    assert len(pickle.loads(before).train) == count


def test_the_unigram_loss_is_that_of_the_frequencies_of_training(tmp_path):
    for name, text in (("train", "aab"), ("valid", "ab")):
        (tmp_path / name).write_text(text)
    data = documents(tmp_path / "train", valid=str(tmp_path / "valid"), test=str(tmp_path / "valid"))
    counts = {"a": 3, "b": 2, "end": 2}
    expected = -sum(math.log(count / sum(counts.values())) for count in counts.values()) / 3
    assert _prepared(data, tmp_path).manifest["unigram_loss"] == pytest.approx(expected)


def test_a_vocabulary_that_the_text_does_not_support(train, tmp_path):
    data = documents(train, separator="line", tokenizer="bpe", vocab_size=4000, hard_vocab_limit=True)
    with pytest.raises(UserError, match=r"data\.vocab_size=4000: the text gives \d+ pieces at most"):
        check_vocabulary(data, tmp_path / "corpora")
    with pytest.raises(UserError, match=r"data\.vocab_size=100: the text needs \d+ pieces"):
        _prepared(data.model_copy(update={"vocab_size": 100}), tmp_path)
    assert not [path for path in (tmp_path / "corpora").iterdir() if path.is_dir()]
    nearest = _prepared(data.model_copy(update={"hard_vocab_limit": False}), tmp_path)
    found = nearest.manifest["vocab"]
    assert 260 < found < 4000
    assert (
        told_size(4000, [found], hard=False) == f"a vocabulary of {found} pieces in place of 4,000, which the text "
        "does not support"
    )
    with pytest.raises(
        UserError, match=rf"data\.vocab_size=4000: the text was prepared with {found} pieces.*: {found}, or"
    ):
        told_size(4000, [found], hard=True)
    exact = _prepared(data.model_copy(update={"vocab_size": found}), tmp_path)
    assert told_size(found, [exact.manifest["vocab"]], hard=True) is None


def test_the_name_of_a_text_follows_what_decides_it(train, tmp_path):
    data = documents(train, separator="line", tokenizer="bpe")
    same = {"hard_vocab_limit": True, "test_documents": 1}
    other = {"vocab_size": 300, "tokenizer": "byte", "overlap": "drop", "train_documents": 5, "valid_share": 0.2}
    assert all(text_id(data.model_copy(update={key: value})) == text_id(data) for key, value in same.items())
    ids = {text_id(data.model_copy(update={key: value})) for key, value in other.items()}
    assert len(ids | {text_id(data)}) == len(other) + 1


def test_a_given_tokenizer_is_named_by_its_content(train, tmp_path):
    from tests.data.documents.test_tokenizers import _of_tokenizers

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        _of_tokenizers(tmp_path / name)
    one, two = (
        documents(train, separator="line", tokenizer=str(tmp_path / name / "tokenizer.json")) for name in ("one", "two")
    )
    assert text_id(one) == text_id(two)
    prepared = _prepared(one, tmp_path)
    assert prepared.manifest["train"]["inexact"] == 0
    path = tmp_path / "two" / "tokenizer.json"
    path.write_text(path.read_text().replace("}", "} ", 1))
    assert text_id(one) != text_id(two)


def test_a_tokenizer_that_folds_text_is_told(train, tmp_path):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "number": 2}, unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "folding.json"))
    prepared = _prepared(documents(train, separator="line", tokenizer=str(tmp_path / "folding.json")), tmp_path)
    assert prepared.manifest["train"]["inexact"] == prepared.manifest["train"]["documents"] == 96
    assert "the tokenizer does not give back 96 of 96 train documents: bits per byte are too few" in prepared.remarks()


def test_numbers_are_a_text_at_once(tmp_path):
    data = corpus("numbers", train_size=200, valid_size=20, test_size=10, vocab_size=400, hard_vocab_limit=False)
    prepared = _prepared(data, tmp_path)
    assert len(prepared.train) == 200
    ((_, test),) = read_tests(data)
    assert len(test) == len(Shard.of(prepared.tokenizer, test)) == 10
