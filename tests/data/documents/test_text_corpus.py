"""The splits of a corpus of documents, its digests, and what it refuses."""

from itertools import chain

import pytest

from ablab.errors import UserError
from ablab.fields import Role
from ablab.transformer.data.documents.texts import check_sizes, check_texts, text_of, wanted
from tests.data.documents.corpora import corpus, documents

LINES = [f"This is document {number}." for number in range(200)]


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("\n".join(LINES))
    return path


def _splits(data):
    ((_, test),) = data.tests()
    return {"train": [*data.documents("train")], "valid": [*data.documents("valid")], "test": [*test]}


def test_held_out_parts_are_disjoint_whole_and_of_their_shares(train):
    splits = _splits(documents(train, separator="line", valid_share=0.1, test_share=0.2))
    assert {name: len(split) for name, split in splits.items()} == {"train": 140, "valid": 20, "test": 40}
    assert sorted(chain(*splits.values())) == sorted(LINES)


def test_a_larger_share_contains_a_smaller_and_leaves_the_other_part_alone(train):
    small = _splits(documents(train, separator="line", valid_share=0.05, test_share=0.1))
    large = _splits(documents(train, separator="line", valid_share=0.05, test_share=0.3))
    assert set(small["test"]) < set(large["test"])
    assert small["valid"] == large["valid"]


def test_the_order_of_the_documents_decides_no_split(train, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("\n".join(reversed(LINES)))
    one, two = (_splits(documents(path, separator="line")) for path in (train, other))
    assert {name: sorted(split) for name, split in one.items()} == {name: sorted(split) for name, split in two.items()}


def test_equal_documents_are_in_one_part(tmp_path):
    path = tmp_path / "twins.txt"
    path.write_text("\n".join([*LINES, *LINES, *(line.replace(" ", "  ") for line in LINES)]))
    splits = [
        {" ".join(text.split()) for text in split} for split in _splits(documents(path, separator="line")).values()
    ]
    assert sum(map(len, splits)) == len(LINES) == len(set().union(*splits))


def test_a_separator_that_parts_nothing_is_refused(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("one\n***\ntwo\n***\nthree\n***\nfour\n")
    assert documents(path, separator="***").count("train") == 2
    misspelt = documents(path, separator="blank_lines")
    with pytest.raises(
        UserError, match=r"data\.separator=blank_lines: no line of .*book\.txt is this.* allowed: file,"
    ):
        misspelt.count("train")
    ended = tmp_path / "ended.txt"
    ended.write_text("a whole document\n***\n")
    assert documents(ended, separator="***").facts([str(ended)]).documents == 1


def test_a_single_document_is_cut_by_position(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("".join(chr(97 + number % 26) for number in range(1000)))
    text = path.read_text()
    assert _splits(documents(path)) == {"train": [text[:800]], "valid": [text[800:900]], "test": [text[900:]]}
    other = documents(path, test=str(path), valid_share=0.25)
    assert _splits(other) == {"train": [text[:750]], "valid": [text[750:]], "test": [text]}


def test_splits_of_their_own_files(train, tmp_path):
    for name in ("v", "t", "u"):
        (tmp_path / name).write_text(f"one {name}\ntwo {name}\n")
    tests = [str(tmp_path / "t"), str(tmp_path / "u")]
    data = documents(train, separator="line", valid=str(tmp_path / "v"), test=tests, test_documents=1)
    assert [*data.documents("train")] == LINES
    assert [*data.documents("valid")] == ["one v", "two v"]
    assert [(name, [*found]) for name, found in data.tests()] == [("t", ["one t"]), ("u", ["one u"])]
    assert not data.is_read("valid_share")


def test_a_subsample_is_nested(train):
    small, large = ([*documents(train, separator="line", train_documents=n).documents("train")] for n in (10, 50))
    assert len(small) == 10
    assert set(small) < set(large)
    assert large == [line for line in LINES if line in large]


def test_digests_change_with_the_text_alone(train, tmp_path):
    first = documents(train, separator="line")
    before = first.digests(), first.test_digest()
    moved = tmp_path / "moved.txt"
    moved.write_text(train.read_text())
    assert (documents(moved, separator="line").digests(), documents(moved, separator="line").test_digest()) == before
    moved.write_text(train.read_text().replace("document 7.", "document 8."))
    other = documents(moved, separator="line")
    assert other.train_digest() != first.train_digest()
    assert documents(train, separator="file").train_digest() != first.train_digest()
    recipe = first.effective().part(Role.RECIPE)
    assert not {"train", "separator", "field", "hard_vocab_limit", "vocab_size"} & recipe.keys()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"train": None}, "data.train is needed"),
        ({"train": "nowhere.txt"}, "data.train=nowhere.txt: no file nowhere.txt"),
        ({"valid_share": 0.5, "test_share": 0.5}, "nothing is left to train on"),
        ({"tokenizer": "nowhere.json"}, "data.tokenizer=nowhere.json: no such file"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_read(changes, problem, train):
    with pytest.raises(UserError, match=problem):
        check_texts(corpus("documents", **{"train": str(train), **changes}))


def test_a_separator_of_json_lines_is_refused(tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text('{"text": "a"}\n')
    with pytest.raises(UserError, match=r"data\.separator=line: each line of JSON is a document"):
        check_texts(documents(path, separator="line"))


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_a_file_of_json_is_no_text(packing, tmp_path):
    path = tmp_path / f"text.json{packing}"
    path.write_text('[{"text": "a"}]')
    with pytest.raises(UserError, match=rf"text\.json{packing}: JSON has more than text; allowed: \.jsonl"):
        check_texts(documents(path))


def test_a_field_of_plain_files_is_refused(train):
    with pytest.raises(UserError, match=r"data\.field=body: names what \.jsonl files have"):
        check_texts(documents(train, separator="line", field="body"))


def test_too_few_documents_and_too_many_asked_for(train, tmp_path):
    with pytest.raises(UserError, match=r"data\.valid_documents=30: there are 20 validation documents"):
        check_sizes(documents(train, separator="line", valid_documents=30))
    check_sizes(documents(train, separator="line", valid_documents=20, train_documents=160))
    with pytest.raises(UserError, match=r"there are 160 training documents"):
        check_sizes(documents(train, separator="line", train_documents=161))
    two = tmp_path / "two"
    two.write_text("one\ntwo\n")
    with pytest.raises(UserError, match="2 different documents are too few to hold out 2"):
        check_sizes(documents(two, separator="line", train_documents=1))
    two.write_text(" \n\n")
    with pytest.raises(UserError, match="no document with anything to read"):
        check_sizes(documents(two, separator="line", train_documents=1))


def test_a_parallel_corpus_is_read_by_its_side():
    sizes = {"train_size": 30, "valid_size": 5, "test_size": 4}
    sides = {side: corpus("numbers", side=side, **sizes) for side in ("src", "tgt")}
    usual = corpus("numbers", **sizes)
    assert usual == sides["tgt"]
    pairs = corpus("numbers", **sizes).train_split().pairs
    assert list(zip(*(text_of(sides[side]).documents("train") for side in ("src", "tgt")), strict=True)) == pairs
    check_texts(usual)
    assert wanted(usual, "test") is None
    recipe = usual.effective().part(Role.RECIPE)
    assert recipe["side"] == "tgt"
    assert not {"joint_vocab", "max_tokens", "normalization", "bleu_tokenizer"} & recipe.keys()
    with pytest.raises(UserError, match=r"data\.side=tgt: task=translation reads both sides"):
        usual.check()


def test_options_of_a_parallel_corpus_hold_for_its_side():
    data = corpus(
        "numbers", train_size=50, valid_size=5, test_size=6, train_pairs=20, valid_pairs=3, test_pairs=2, lowercase=True
    )
    texts = text_of(data)
    ((name, test),) = texts.tests()
    assert [len([*found]) for found in (texts.documents("train"), texts.documents("valid"), test)] == [20, 3, 2]
    assert name == "test"
    assert all(text == text.lower() for text in texts.documents("train"))


def test_a_file_is_one_test_set_alone(train, tmp_path):
    """Each of its documents would count twice in every interval."""
    for other in (f"{train.parent}/./{train.name}", str(train.parent)):
        with pytest.raises(UserError, match=f"data.test={train},.* is named twice; allowed: each file once"):
            check_texts(documents(train, separator="line", test=[str(train), other]))
