import gzip
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablab.corpora.files import content_digest, digest_of_pair, locate, read_lines, read_pairs
from ablab.errors import UserError

sentences = st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=("Cs",))), min_size=1)
reuse_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)


@given(lines=sentences)
@reuse_folder
def test_what_is_written_is_read_whatever_the_line_ends_mark_and_packing(tmp_path: Path, lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    for name, stored in {
        "plain.en": content,
        "packed.en.gz": gzip.compress(content),
        "windows.en": content.replace(b"\n", b"\r\n"),
        "marked.en": b"\xef\xbb\xbf" + content,
    }.items():
        (tmp_path / name).write_bytes(stored)
        assert read_lines(tmp_path / name) == lines


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"one\ntwo")
    assert read_lines(tmp_path / "a.en") == ["one", "two"]


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_only_a_newline_ends_a_line(tmp_path: Path, sign: str) -> None:
    (tmp_path / "a.en").write_text(f"one{sign}half\ntwo\n", encoding="utf-8")
    assert len(read_lines(tmp_path / "a.en")) == 2


@given(lines=sentences, level=st.integers(0, 9))
@reuse_folder
def test_the_digest_is_of_the_text_not_of_its_packing(tmp_path: Path, lines: list[str], level: int) -> None:
    content = "\n".join(lines).encode()
    (tmp_path / "a.en").write_bytes(content)
    (tmp_path / "b.en.gz").write_bytes(gzip.compress(content, level))
    expected = hashlib.sha256(content).hexdigest()
    assert content_digest(tmp_path / "a.en") == content_digest(tmp_path / "b.en.gz") == expected


def test_the_digest_follows_every_byte_and_the_side(tmp_path: Path) -> None:
    one, other = tmp_path / "a.en", tmp_path / "a.de"
    one.write_bytes(b"one\n")
    other.write_bytes(b"eins\n")
    before = digest_of_pair(one, other)
    assert digest_of_pair(other, one) != before
    one.write_bytes(b"ONE\n")
    os.utime(one, ns=(1, 1))
    assert digest_of_pair(one, other) != before


def test_plain_comes_before_packed(tmp_path: Path) -> None:
    for name in ("a.en", "a.en.gz", "b.en.gz"):
        (tmp_path / name).touch()
    assert locate(tmp_path / "a", "en").name == "a.en"
    assert locate(tmp_path / "b", "en").name == "b.en.gz"


def test_a_prefix_may_hold_dots_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "train.v1.2.en").touch()
    assert locate("~/train.v1.2", "en") == tmp_path / "train.v1.2.en"


def test_a_missing_file_names_what_was_tried_and_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.en").touch()
    with pytest.raises(UserError, match=r"no file .*/tran\.en or tran\.en\.gz; nearest there: train\.en"):
        locate(tmp_path / "tran", "en")
    with pytest.raises(UserError, match=r"there is no folder .*/nowhere"):
        locate(tmp_path / "nowhere" / "train", "en")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "train.en").mkdir()
    with pytest.raises(UserError, match=r"train\.en is a folder"):
        locate(tmp_path / "train", "en")
    for read in (read_lines, content_digest):
        with pytest.raises(UserError, match=r"train\.en is a folder"):
            read(tmp_path / "train.en")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_invalid_utf8_names_file_and_line(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.en{ending}"
    content = b"one\ntwo\ncaf\xe9\nfour\n"
    path.write_bytes(gzip.compress(content) if ending else content)
    with pytest.raises(UserError, match=rf"a\.en{ending}, line 3: not UTF-8 \(byte 0xe9"):
        read_lines(path)


@pytest.mark.parametrize("stored", [gzip.compress(b"one\n" * 999)[:-9], b"no gzip", gzip.compress(b"a" * 99)[:12]])
def test_a_damaged_archive_is_named(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "a.en.gz"
    path.write_bytes(stored)
    for read in (read_lines, content_digest):
        with pytest.raises(UserError, match=r"a\.en\.gz is not a whole \.gz file"):
            read(path)


def test_unequal_lengths_name_both_files_and_counts(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\n")
    with pytest.raises(UserError, match=r"a\.en has 2 lines, but .*a\.de has 1"):
        read_pairs(tmp_path / "a.en", tmp_path / "a.de")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.en").touch()
    with pytest.raises(UserError, match=r"a\.en is empty"):
        read_lines(tmp_path / "a.en")


def test_empty_sides_are_kept_unless_nothing_else_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\n\nthree\n")
    (tmp_path / "a.de").write_text("\nzwei\ndrei\n")
    assert read_pairs(tmp_path / "a.en", tmp_path / "a.de") == [("one", ""), ("", "zwei"), ("three", "drei")]
    (tmp_path / "a.de").write_text("\nzwei\n \n")
    with pytest.raises(UserError, match="each of the 3 pairs has an empty side"):
        read_pairs(tmp_path / "a.en", tmp_path / "a.de")
