from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ablab.errors import UserError
from ablab.transformer.data.corpus import Corpus

Configured = Callable[..., Corpus]
Fill = Callable[..., dict[str, str]]

SPLITS = ("train", "valid", "test")


@pytest.fixture
def fill(write: Callable[[Path, Sequence[str]], None]) -> Fill:
    """Writes a small corpus and returns its prefixes."""

    def to(folder: Path, ending: str = "") -> dict[str, str]:
        for split in SPLITS:
            write(folder / f"{split}.en{ending}", [f"{split} one", f"{split} two"])
            write(folder / f"{split}.de{ending}", [f"{split} eins", f"{split} zwei"])
        return {split: str(folder / split) for split in SPLITS}

    return to


def digests(corpus: Corpus) -> tuple[str, str]:
    return corpus.train_digest(), corpus.test_digest()


def test_splits_are_the_files_in_order(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    corpus = configured("text", **fill(tmp_path))
    corpus.check()
    for split in (corpus.train_split(), corpus.valid_split(), corpus.test_split()):
        assert split.pairs == [
            (f"{split.name} one", f"{split.name} eins"),
            (f"{split.name} two", f"{split.name} zwei"),
        ]
    assert corpus.test_name == corpus.test_split().name == "test"


def test_digests_ignore_place_and_packing(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    plain = configured("text", **fill(tmp_path / "plain"))
    packed = configured("text", **fill(tmp_path / "packed", ".gz"))
    packed.check()
    assert digests(plain) == digests(packed)
    assert plain.train_split() == packed.train_split()


def test_as_many_pairs_are_known_as_are_read(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    corpus = configured("text", **fill(tmp_path, ".gz"))
    splits = (corpus.train_split(), corpus.valid_split(), corpus.test_split())
    assert [corpus.pairs_in(name) for name in SPLITS] == [len(split.pairs) for split in splits] == [2, 2, 2]


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("split", SPLITS)
def test_a_change_shows_in_the_digest_of_its_own_part(
    tmp_path: Path,
    configured: Configured,
    fill: Fill,
    write: Callable[[Path, Sequence[str]], None],
    split: str,
    language: str,
) -> None:
    before = digests(configured("text", **fill(tmp_path / "before")))
    changed = fill(tmp_path / "after")
    write(tmp_path / "after" / f"{split}.{language}", ["other", "words"])
    train, test = digests(configured("text", **changed))
    assert (train == before[0], test == before[1]) == ((True, False) if split == "test" else (False, True))


@pytest.mark.parametrize("missing", SPLITS)
def test_each_prefix_is_needed(tmp_path: Path, configured: Configured, fill: Fill, missing: str) -> None:
    corpus = configured("text", **{**fill(tmp_path), missing: None})
    with pytest.raises(UserError, match=f"data.{missing} is needed.*such as data.{missing}=corpus/{missing}"):
        corpus.check()


def test_a_missing_file_names_the_key(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    prefixes = fill(tmp_path)
    (tmp_path / "valid.de").unlink()
    with pytest.raises(UserError, match=r"data\.valid=.*valid: no file .*valid\.de"):
        configured("text", **prefixes).check()


def test_columns_are_fields_of_json(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    with pytest.raises(UserError, match=r"data\.columns=\[a,b\]: names fields of \.jsonl files, and there are none"):
        configured("text", **fill(tmp_path), columns=["a", "b"]).check()
    table = tmp_path / "train.tsv"
    table.write_text("one\teins\n")
    with pytest.raises(UserError, match="and there are none"):
        configured("text", **{**fill(tmp_path), "train": str(table)}, columns=["de", "en"]).check()
    lines = tmp_path / "train.jsonl"
    lines.write_text('{"a": "one", "b": "eins"}\n')
    configured("text", **{**fill(tmp_path), "train": str(lines)}, columns=["a", "b"]).check()


def test_two_languages_are_needed(tmp_path: Path, configured: Configured, fill: Fill) -> None:
    with pytest.raises(UserError, match="two languages, got en"):
        configured("text", **fill(tmp_path), tgt="en").check()


@pytest.fixture
def two(tmp_path: Path, fill: Fill, write: Callable[[Path, Sequence[str]], None]) -> dict[str, object]:
    """A corpus with two test sets of one name in two folders."""
    prefixes = fill(tmp_path / "news")
    for language in ("en", "de"):
        write(tmp_path / "talks" / f"test.{language}", [f"talk {n} {language}" for n in range(3)])
    return {**prefixes, "test": [prefixes["test"], str(tmp_path / "talks" / "test")]}


def test_several_test_sets_follow_each_other(configured: Configured, two: dict[str, object]) -> None:
    corpus = configured("text", **two)
    corpus.check()
    assert corpus.test_names == ["news/test", "talks/test"]
    assert corpus.test_name == corpus.test_split().name == "news/test + talks/test"
    news, talks = corpus.test_splits()
    assert (len(news.pairs), len(talks.pairs)) == (2, 3)
    assert corpus.test_split().pairs == [*news.pairs, *talks.pairs]


def test_a_list_of_one_test_set_is_that_test_set(configured: Configured, two: dict[str, object]) -> None:
    together, plain, single = (
        configured("text", **{**two, "test": test}) for test in (two["test"], two["test"][0], [two["test"][0]])
    )
    assert (plain.test_name, digests(plain)) == (single.test_name, digests(single))
    assert digests(together)[0] == digests(plain)[0]
    assert digests(together)[1] != digests(plain)[1]


def test_the_order_of_test_sets_counts(configured: Configured, two: dict[str, object]) -> None:
    turned = configured("text", **{**two, "test": two["test"][::-1]})
    assert turned.test_digest() != configured("text", **two).test_digest()


def test_as_many_pairs_are_taken_of_each_test_set(configured: Configured, two: dict[str, object]) -> None:
    configured("text", **two, test_pairs=2).check_pairs()
    with pytest.raises(UserError, match=r"data\.test_pairs=3: the smallest test set has 2 test pairs"):
        configured("text", **two, test_pairs=3).check_pairs()


def test_one_test_set_under_two_prefixes_is_refused(configured: Configured, two: dict[str, object]) -> None:
    first = Path(two["test"][0])
    with pytest.raises(UserError, match=r"data\.test=\[.*\]: allowed: each test set once"):
        configured("text", **{**two, "test": [str(first), f"{first.parent}/../news/test"]}).check()


def test_each_of_several_prefixes_is_needed(configured: Configured, two: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"data\.test is needed"):
        configured("text", **{**two, "test": ["", "x"]}).check()
