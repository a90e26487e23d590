"""Documents are read alike from every format, and what cannot be read is told in one line."""

import gzip
import json

import pytest
import zstandard

from ablab.errors import UserError
from ablab.transformer.data.documents.reading import files_of, read_documents
from tests.data.documents.corpora import documents

TEXTS = ["One\ntwo\n\nthree.", "Ünï çode 字 \U0001f600", "last"]


def _read(path, separator="file"):
    return list(read_documents(path, separator, "text"))


def _written(folder, ending):
    """Write the texts with a line between two of them, or as JSON lines."""
    is_json = ".jsonl" in ending
    lines = [json.dumps({"text": text}) for text in TEXTS]
    content = ("\n".join(lines) if is_json else "\n<|endoftext|>\n".join(TEXTS)).encode()
    path = folder / f"text{ending}"
    if ending.endswith(".gz"):
        content = gzip.compress(content)
    elif ending.endswith(".zst"):
        half = len(content) // 2
        content = b"".join(zstandard.ZstdCompressor().compress(part) for part in (content[:half], content[half:]))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".txt.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_every_format_holds_the_same_documents_and_has_the_same_digest(ending, tmp_path):
    path = _written(tmp_path, ending)
    plain = documents(_written(tmp_path, ".plain"), separator="<|endoftext|>")
    same = documents(path, separator="file" if ".jsonl" in ending else "<|endoftext|>")
    assert list(same.read([str(path)])) == TEXTS
    assert same.train_digest() == plain.train_digest()


def test_documents_are_parted_as_the_user_says(tmp_path):
    path = tmp_path / "text"
    path.write_text("a\nb\n\n  \nc\n---\nd\n")
    assert _read(path) == ["a\nb\n\n  \nc\n---\nd\n"]
    assert _read(path, "line") == ["a", "b", "c", "---", "d"]
    assert _read(path, "blank_line") == ["a\nb", "c\n---\nd"]
    assert _read(path, "---") == ["a\nb\n\n  \nc", "d"]


def test_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    unix, windows = tmp_path / "unix", tmp_path / "windows"
    unix.write_bytes("ä\nb\n\nc".encode())
    windows.write_bytes("\ufeffä\r\nb\r\n\r\nc".encode())
    for separator in ("file", "line", "blank_line"):
        assert _read(windows, separator) == _read(unix, separator)


def test_long_lines_and_many_lines_are_read_whole(tmp_path):
    text = "\n".join(["x" * 3_000_000, *map(str, range(20_000)), "y" * 2_000_000])
    path = tmp_path / "text"
    path.write_text(text)
    assert _read(path) == [text]
    assert _read(path, "line") == text.split("\n")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": "a"', "not readable as JSON"),
        (b"[1]", "no JSON object"),
        (b'{"body": "a", "n": 1}', "no text in the field text; fields with text: body"),
        (b'{"text": 3}', "no text in the field text; fields with text: none"),
        (b'{"text": "\\ud800"}', "half a surrogate pair"),
        (b'{"text": "\xff"}', "is not UTF-8"),
    ],
)
def test_a_bad_line_is_named(line, problem, tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line + b'\n{"text": "fine"}\n')
    with pytest.raises(UserError, match=r"text\.jsonl: line 2") as raised:
        _read(path)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("target", "said"), [("gone.txt", "what is not there"), (".", "a folder, which is not followed")]
)
def test_no_link_is_left_out_in_silence(target, said, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    (tmp_path / "texts" / "b.txt").symlink_to(tmp_path / target)
    names = [str(tmp_path / "texts"), *([f"{tmp_path}/texts/*.txt"] if target != "." else [])]
    for name in names:
        with pytest.raises(UserError, match=f"b.txt is a link to {said}"):
            files_of([name])


@pytest.mark.parametrize("content", ["one\ntwo".encode("utf-16-le"), b"one" + bytes(509)])
def test_what_has_zero_bytes_is_no_text(content, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"fine\n" + content)
    with pytest.raises(UserError, match="text: line 2 has a zero byte"):
        _read(path)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_file_that_is_cut_short_is_refused(ending, tmp_path):
    path = _written(tmp_path, f".txt{ending}")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=f"not a whole {ending} file"):
        _read(path)
    path.write_bytes(b"plain text")
    with pytest.raises(UserError, match=f"not a whole {ending} file"):
        _read(path)


def test_a_dump_that_refers_far_back_is_read(tmp_path):
    """Dumps of a whole year are packed with `zstd --long=31`."""
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "text.zst"
    path.write_bytes(stream.compress(b"one\ntwo") + stream.flush())
    assert _read(path) == ["one\ntwo"]


@pytest.mark.parametrize("name", ["text.JSONL", "text.ndjson", "text.Jsonl.GZ"])
def test_the_case_of_an_ending_means_nothing_and_a_null_is_no_document(name, tmp_path):
    content, path = b'{"text": "one"}\n{"text": null}\n{"text": "two"}\n', tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    assert _read(path) == ["one", "two"]


def test_files_folders_and_patterns(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    names = [path.relative_to(tmp_path).as_posix() for path in files_of([str(tmp_path)])]
    assert names == ["a.txt", "b.txt", "sub/c.txt"]
    assert [path.name for path in files_of([f"{tmp_path}/*.txt"])] == ["a.txt", "b.txt"]
    assert [path.name for path in files_of([f"{tmp_path}/b.txt", f"{tmp_path}/a.txt"])] == ["b.txt", "a.txt"]
    for again in (f"{tmp_path}/a.txt", f"{tmp_path}/sub/../a.txt"):
        with pytest.raises(UserError, match="named twice"):
            files_of([f"{tmp_path}/*.txt", again])
    with pytest.raises(UserError, match="no file"):
        files_of([f"{tmp_path}/*.json"])
