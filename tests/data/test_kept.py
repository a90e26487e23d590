"""What is known of files is found out once, and anew whenever a file may have changed."""

import json
import os

import pytest

from ablab.transformer.data import kept as module
from ablab.transformer.data import prepared, whole
from ablab.transformer.data.kept import cache_folder, kept
from ablab.transformer.data.text_files import content_digest, count_pairs
from tests.data.test_prepared import _corpus


@pytest.fixture(autouse=True)
def _everything_is_large_and_settled(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place in (module, whole):
        monkeypatch.setattr(place, "LARGE", 0)
    monkeypatch.setattr(module, "SETTLED", -60.0)
    monkeypatch.setattr(module, "_found", {})


def _asked(path, asked, answer="found"):
    """Ask as a process of its own would."""
    module._found.clear()
    return list(kept([path], ("question",), lambda: (asked.append(1), [answer])[1]))


def _file(tmp_path):
    path = tmp_path / "text"
    path.write_text("one\n")
    return path


def test_another_process_does_not_ask_again(tmp_path):
    path, asked = _file(tmp_path), []
    assert [_asked(path, asked) for _ in range(3)] == [["found"]] * 3
    assert len(asked) == 1


@pytest.mark.parametrize("change", ["content", "time", "another file"])
def test_a_changed_file_is_asked_again(tmp_path, change):
    path, asked = _file(tmp_path), []
    _asked(path, asked)
    before = path.stat()
    if change == "content":
        path.write_text("two\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the time of the change itself stays
    elif change == "time":
        os.utime(path, (1, 1))
    else:
        path.replace(tmp_path / "old")
        path.write_text("one\n")
    assert _asked(path, asked, "anew") == ["anew"]
    assert len(asked) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"found": [1]}', "digit"])
def test_what_is_damaged_is_asked_again(tmp_path, damage):
    path, asked = _file(tmp_path), []
    _asked(path, asked)
    (place,) = cache_folder("facts").iterdir()
    content = place.read_bytes()
    place.write_bytes(content.replace(b'found"\n ]', b'fount"\n ]') if damage == "digit" else damage)
    assert place.read_bytes() != content
    assert _asked(path, asked, "anew") == ["anew"]


def test_a_file_that_has_just_changed_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SETTLED", 60.0)
    path, asked = _file(tmp_path), []
    assert [_asked(path, asked) for _ in range(2)] == [["found"]] * 2
    assert len(asked) == 2


def test_without_a_cache_each_process_asks(tmp_path, monkeypatch):
    path, asked = _file(tmp_path), []
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    assert [_asked(path, asked) for _ in range(2)] == [["found"]] * 2
    assert len(asked) == 2


def test_a_start_reads_no_large_file_again(tmp_path, monkeypatch):
    corpus, store, read = _corpus(tmp_path / "text"), tmp_path / "store", []
    folder = prepared.prepare(corpus, store, lambda _: None).folder
    sha256 = whole.sha256
    monkeypatch.setattr(whole, "sha256", lambda path: (read.append(path.name), sha256(path))[1])
    prepared.prepare(corpus, store, lambda _: None)  # reads and keeps
    assert read
    read.clear()
    module._found.clear()
    with monkeypatch.context() as patch:
        patch.setattr("ablab.transformer.data.text_files._read", None)
        digest, count = content_digest(tmp_path / "text" / "train.en"), corpus.pairs_in("train")
        prepared.prepare(corpus, store, lambda _: None)
    assert not read
    module._found.clear()
    assert (digest, count) == (content_digest(tmp_path / "text" / "train.en"), 200)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text())))
    prepared.prepare(corpus, store, lambda _: None)  # another manifest: all is read again
    assert read


@pytest.mark.parametrize("damaged", ["train.src.tokens.npy", "src.model", "valid.tgt.txt", "manifest.json"])
def test_a_damage_since_shows(tmp_path, damaged):
    corpus, store = _corpus(tmp_path / "text"), tmp_path / "store"
    folder = prepared.prepare(corpus, store, lambda _: None).folder
    prepared.prepare(corpus, store, lambda _: None)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    content, times = before[damaged], (folder / damaged).stat()
    position = content.rindex(b'"') - 1 if damaged.endswith(".json") else len(content) - 1
    (folder / damaged).write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    os.utime(folder / damaged, ns=(times.st_atime_ns, times.st_mtime_ns))
    prepared.prepare(corpus, store, lambda _: None)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_numbers_of_pairs_are_kept_too(tmp_path):
    _corpus(tmp_path / "text")
    sides = [tmp_path / "text" / f"train.{language}" for language in ("en", "de")]
    assert count_pairs(*sides) == 200
    assert len(list(cache_folder("facts").iterdir())) == 2
