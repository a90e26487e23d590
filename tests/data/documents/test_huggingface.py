"""Data sets of the library `datasets`, made here and read by the library itself."""

import json
from itertools import chain

import pytest

from ablab.errors import UserError
from ablab.transformer.data.documents.texts import check_texts
from tests.data.documents.corpora import corpus, documents

datasets = pytest.importorskip("datasets")

TEXTS = {
    "train": [f"Story {number}." for number in range(50)],
    "validation": ["One.", "  ", "Two.\n"],
    "test": ["Three."],
}


@pytest.fixture
def saved(tmp_path):
    splits = {name: datasets.Dataset.from_dict({"story": texts}) for name, texts in TEXTS.items()}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def _corpus(place, **changes):
    given = {"field": "story", "valid": "validation", "test": "test", "tokenizer": "byte", **changes}
    return corpus("huggingface", name=str(place), **given)


def test_a_data_set_of_save_to_disk_is_read_by_its_splits(saved):
    data = _corpus(saved)
    check_texts(data)
    assert [*data.documents("train")] == TEXTS["train"]
    assert [*data.documents("valid")] == ["One.", "Two.\n"]
    assert [(name, [*found]) for name, found in data.tests()] == [("test", ["Three."])]


def test_files_that_the_library_reads_are_the_same_text(saved, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name, texts in TEXTS.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"story": text}) + "\n" for text in texts))
    data = _corpus(folder)
    assert [*data.documents("train")] == TEXTS["train"]
    assert data.digests() == _corpus(saved).digests()
    own = documents(folder / "train.jsonl", field="story", valid=str(folder / "validation.jsonl"))
    assert own.train_digest() == data.train_digest()


def test_text_without_other_splits_is_held_out_of(saved):
    data = _corpus(saved, valid=None, test=None)
    ((name, test),) = data.tests()
    splits = [[*data.documents("train")], [*data.documents("valid")], [*test]]
    assert [len(split) for split in splits] == [40, 5, 5]
    assert sorted(chain(*splits)) == sorted(TEXTS["train"])
    assert name == "test"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"field": "text"}, r"data\.field=text: no such field of .*story"),
        ({"valid": "dev"}, r"no split dev"),
        ({"valid": "dev[:10%]"}, r"no split dev\[:10%\]; allowed: .*, and slices"),
        ({"name": None}, r"data\.name is needed"),
        ({"config": "en"}, r"data\.config=en: .* is a folder of save_to_disk, which has none; allowed: null"),
        ({"revision": "main"}, r"data\.revision=main: .* is a folder of save_to_disk"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(changes, problem, saved):
    data = _corpus(saved).model_copy(update=changes)
    with pytest.raises(UserError, match=problem) as raised:
        check_texts(data)
    assert "\n" not in str(raised.value)


def test_slices_of_what_was_saved_are_those_that_the_library_takes(saved):
    data = _corpus(saved, train="train[10:20]+test", valid="train[:10%]", test="train[90%:]")
    check_texts(data)
    assert [*data.documents("train")] == [*TEXTS["train"][10:20], *TEXTS["test"]]
    assert [*data.documents("valid")] == TEXTS["train"][:5]
    assert data.test_digest() != _corpus(saved, test="train[:5]").test_digest()


def test_a_row_without_text_is_no_document(tmp_path):
    datasets.Dataset.from_dict({"story": ["One.", None, "Two."] * 10}).save_to_disk(tmp_path / "gaps")
    assert _corpus(tmp_path / "gaps", valid=None, test=None).facts(["train"]).documents == 20


def test_another_field_of_numbers_is_no_text(tmp_path):
    datasets.Dataset.from_dict({"story": [1, 2, 3]}).save_to_disk(tmp_path / "numbers")
    with pytest.raises(UserError, match="int in place of text"):
        _corpus(tmp_path / "numbers", valid=None, test=None).train_digest()


def test_slices_of_one_split_are_texts_of_their_own(tmp_path):
    """They lie in one file, of which each slice has other rows."""
    folder = tmp_path / "files"
    folder.mkdir()
    texts = [f"Story {number}." for number in range(100)]
    (folder / "train.jsonl").write_text("".join(json.dumps({"story": text}) + "\n" for text in texts))
    halves = {"valid": "train[80%:90%]", "test": "train[90%:]"}
    one = _corpus(folder, train="train[:80%]", **halves)
    assert [one.count(split) for split in ("train", "valid", "test")] == [80, 10, 10]
    other = _corpus(folder, train="train[:80%]", valid=halves["test"], test=halves["valid"])
    assert one.train_digest() != other.train_digest()
    assert one.test_digest() != other.test_digest()
    assert one.test_digest() == other.facts([halves["test"]]).digest
    assert [*other.documents("valid")] == texts[90:]
