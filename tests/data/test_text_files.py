import gzip
import hashlib
import os
from codecs import BOM_UTF8
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablab.errors import UserError
from ablab.files import one_line, text_of
from ablab.transformer.data import kept
from ablab.transformer.data import text_files as files
from ablab.transformer.data.keys import readable
from ablab.transformer.data.text_files import (
    content_digest,
    count_pairs,
    digest_of_pair,
    locate,
    read_pairs,
    stream_lines,
)
from tests.variants import variants

characters = st.characters(exclude_categories=("Cs",), exclude_characters="\n")
sentences = st.lists(st.text(characters).map(one_line), min_size=1)
reuse_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)


def lines_in(path):
    return list(stream_lines(path))


@given(lines=sentences, chunk=st.integers(1, 40))
@reuse_folder
def test_the_same_text_reads_the_same_and_has_the_same_digest(tmp_path: Path, lines: list[str], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", chunk)
        patch.setattr(kept, "_found", {})
        for name, stored in variants(lines).items():
            path = tmp_path / name
            path.write_bytes(gzip.compress(stored) if name.endswith(".gz") else stored)
            assert lines_in(path) == lines
            assert content_digest(path) == hashlib.sha256(text_of(map(readable, lines)).encode()).hexdigest()
            assert count_pairs(path, path) == len(lines)


@given(raw=st.lists(st.text(characters), min_size=1))
@reuse_folder
def test_a_carriage_return_inside_a_sentence_ends_no_line(tmp_path: Path, raw: list[str]) -> None:
    (tmp_path / "a.en").write_bytes("".join(f"{line}\n" for line in raw).encode())
    assert lines_in(tmp_path / "a.en") == [one_line(line.removesuffix("\r")) for line in raw]


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
    for read in (lines_in, content_digest):
        with pytest.raises(UserError, match=r"train\.en is a folder"):
            read(tmp_path / "train.en")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_invalid_utf8_names_file_and_line(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.en{ending}"
    content = b"one\ntwo\ncaf\xe9\nfour\n"
    path.write_bytes(gzip.compress(content) if ending else content)
    with pytest.raises(UserError, match=rf"a\.en{ending}: line 3 is not UTF-8 \(byte 0xe9"):
        lines_in(path)


WHOLE = gzip.compress(b"one\n" * 999)


@pytest.mark.parametrize("stored", [WHOLE[:-9], b"no gzip", WHOLE[:12]], ids=["cut off", "no gzip", "begun"])
def test_a_damaged_archive_is_named(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "a.en.gz"
    path.write_bytes(stored)
    for read in (lines_in, content_digest):
        with pytest.raises(UserError, match=r"a\.en\.gz is not a whole \.gz file"):
            read(path)


def test_unequal_lengths_name_both_files_and_counts(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\n")
    for read in (read_pairs, count_pairs):
        with pytest.raises(UserError, match=r"a\.en has 2 lines, but .*a\.de has 1"):
            read(tmp_path / "a.en", tmp_path / "a.de")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.en").touch()
    (tmp_path / "b.en").write_bytes(BOM_UTF8)
    (tmp_path / "a.de").write_text("eins\n")
    for name in ("a.en", "b.en"):
        for read in (read_pairs, count_pairs):
            with pytest.raises(UserError, match=rf"{name} is empty"):
                read(tmp_path / name, tmp_path / "a.de")


def test_empty_sides_are_kept_unless_nothing_else_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\n\nthree\n")
    (tmp_path / "a.de").write_text("\nzwei\ndrei\n")
    assert read_pairs(tmp_path / "a.en", tmp_path / "a.de") == [("one", ""), ("", "zwei"), ("three", "drei")]
    (tmp_path / "a.de").write_text("\nzwei\n \n")
    with pytest.raises(UserError, match="each of the 3 pairs has an empty side"):
        read_pairs(tmp_path / "a.en", tmp_path / "a.de")
