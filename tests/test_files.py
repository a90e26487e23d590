"""Files are whole or absent."""

import math
import stat

import pytest

from ablab.files import read_json, replacing, write_json, write_text


def test_a_writer_that_fails_leaves_the_old_content_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_meanwhile_sees_the_old_content(tmp_path):
    path = tmp_path / "deep" / "file"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_others_may_read_what_is_written(tmp_path):
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "replaced", "x")
    assert stat.S_IMODE((tmp_path / "replaced").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan_and_the_old_content_stays(number, tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": number})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_text_comes_back_as_it_was(tmp_path):
    content = {"text": "zwölf\u2028 \r\n 数", "nested": [1, 2.5, None, True]}
    write_json(tmp_path / "x.json", content)
    assert read_json(tmp_path / "x.json") == content
