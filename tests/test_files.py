"""Files are whole or absent."""

import errno
import math
import os
import stat
import time

import pytest
from matplotlib.figure import Figure

from ablab.files import read_json, write_json, write_picture, write_text
from ablab.files.disk import ABANDONED, half_written, replacing


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


def _as_torch(path):
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        raise RuntimeError("unexpected pos 704 vs 598")  # noqa: B904


def _as_safetensors(path):
    raise RuntimeError("Error while serializing: I/O error: Disk quota exceeded (os error 122)")


def _as_python(path):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("write", "number"), [(_as_torch, errno.ENOSPC), (_as_safetensors, errno.EDQUOT), (_as_python, errno.EIO)]
)
def test_an_error_of_the_disk_names_the_file_whatever_a_library_makes_of_it(write, number, tmp_path):
    path = tmp_path / "it"
    path.write_text("before")
    with pytest.raises(OSError, match=os.strerror(number)) as told, replacing(path) as temporary:
        write(temporary)
    assert (told.value.errno, told.value.filename) == (number, str(path))
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_any_other_error_stays_what_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "it"):
        raise ZeroDivisionError


def test_a_picture_that_cannot_be_written_leaves_the_old_one(tmp_path):
    class OnAFullDisk(Figure):
        def savefig(self, path, **options):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    picture = tmp_path / "picture.png"
    picture.write_bytes(b"whole")
    with pytest.raises(OSError, match=r"picture\.png"):
        write_picture(picture, OnAFullDisk())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {picture: b"whole"}


def test_what_people_write_in_a_picture_is_no_mathematics(tmp_path):
    """Matplotlib takes what stands between two dollar signs for a formula, and fails where it is none."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 1000], [1, 2], label="$a% of $b#")
    axes.set_xscale("log")  # whose ticks are formulas
    for write in (axes.set_title, axes.set_xlabel, axes.set_ylabel):
        write("cost ($/M, 95% of max $)")
    axes.text(1, 1, "price $/#tokens, $")
    axes.legend()
    figure.legend()
    write_picture(tmp_path / "picture.png", figure)
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_what_a_power_cut_left_of_a_file_goes_when_it_is_written(tmp_path):
    """And nothing else: what is fresh, another process may be writing, and so with other files."""
    path = tmp_path / "runs.json"
    left = {"runs.json.9d_xlv7n": ABANDONED + 5, "runs.json.a2345678": ABANDONED - 5, "log.z2345678": 9 * ABANDONED}
    for name, age in left.items():
        half = tmp_path / f".{name}"
        half.touch()
        os.utime(half, (time.time() - age, time.time() - age))
    with replacing(path) as temporary:
        temporary.write_text("[]")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".log.z2345678", ".runs.json.a2345678", "runs.json"]


def test_what_a_kill_left_half_written_is_known_by_its_name(tmp_path):
    """safetensors writes into a file of its own, and gives it the name when it is whole."""
    left = [".last.pt.abcd_123", ".30a1117123324465.wb73111w", ".tmp679kMj"]
    for name in (*left, "last.pt", ".r1a2b.lock", ".r1a2b.pulse", ".tmp"):
        (tmp_path / name).touch()
    assert sorted(path.name for path in half_written(tmp_path)) == sorted(left)
