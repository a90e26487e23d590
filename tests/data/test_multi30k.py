import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ablab.errors import UserError
from ablab.transformer.data import multi30k
from ablab.transformer.data.corpus import Corpus

Configured = Callable[..., Corpus]
SPLITS = ("train", "val", "test_2016_flickr")


@pytest.fixture
def folder(tmp_path: Path, write: Callable[[Path, Sequence[str]], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small stand-in for the official files, whose checksums are taken for the official ones."""
    folder = tmp_path / "official"
    checksums = {}
    for split in SPLITS:
        for language in ("en", "de"):
            lines = [f"{split} {language} {n}" for n in range(500)]
            write(folder / f"{split}.{language}.gz", lines)
            text = "".join(f"{line}\n" for line in lines).encode()
            checksums[f"{split}.{language}"] = hashlib.sha256(text).hexdigest()
    monkeypatch.setattr(multi30k, "CHECKSUMS", checksums)
    return folder


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and counts; `cut` takes that many bytes off every file without saying so."""

    cut = 0
    served: list[str]

    def log_message(self, *args: Any) -> None:
        self.served.append(self.path)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) - self.cut])


@pytest.fixture
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(Handler, "served", [], raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def online(server: ThreadingHTTPServer, configured: Configured) -> Corpus:
    return configured("multi30k", url=f"http://127.0.0.1:{server.server_port}")


def test_a_folder_is_read_plain_packed_or_as_a_clone(
    folder: Path, tmp_path: Path, configured: Configured, write: Callable[[Path, Sequence[str]], None]
) -> None:
    packed = configured("multi30k", path=str(folder))
    for other in (tmp_path / "plain", tmp_path / "clone" / "data" / "task1" / "raw"):
        for file in folder.iterdir():
            write(other / file.stem, gzip.decompress(file.read_bytes()).decode().splitlines())
    for path in (tmp_path / "plain", tmp_path / "clone"):
        corpus = configured("multi30k", path=str(path))
        corpus.check()
        assert corpus.train_digest() == packed.train_digest()
        assert corpus.test_digest() == packed.test_digest()
        assert corpus.train_split() == packed.train_split()
    assert [packed.train_split().name, packed.valid_split().name, packed.test_split().name] == list(SPLITS)
    assert packed.test_name == "test_2016_flickr"
    assert packed.test_split().pairs[7] == ("test_2016_flickr en 7", "test_2016_flickr de 7")


def test_no_more_pairs_than_there_are(folder: Path, configured: Configured) -> None:
    configured("multi30k", path=str(folder), train_pairs=500, valid_pairs=500, test_pairs=500).check_pairs()
    for split in ("train", "valid", "test"):
        corpus = configured("multi30k", path=str(folder), **{f"{split}_pairs": 501})
        with pytest.raises(UserError, match=rf"^data\.{split}_pairs=501: .* 500 \w+ pairs; allowed: 1 to 500, or null"):
            corpus.check_pairs()


def test_downloading_is_lazy_happens_once_and_names_the_same_run_as_a_folder(
    folder: Path, online: Corpus, configured: Configured
) -> None:
    local = configured("multi30k", path=str(folder))
    online.check()
    assert (online.train_digest(), online.test_digest()) == (local.train_digest(), local.test_digest())
    assert Handler.served == []
    for _ in range(2):
        assert online.train_split() == local.train_split()
        assert online.valid_split() == local.valid_split()
        assert online.test_split() == local.test_split()
    assert len(Handler.served) == 6


def test_a_damaged_cache_is_downloaded_again(online: Corpus, tmp_path: Path) -> None:
    before = online.train_split()
    cached = tmp_path / "cache" / "ablab" / "multi30k" / "train.en.gz"
    cached.write_bytes(cached.read_bytes()[:-20])
    assert online.train_split() == before


def refused(corpus: Corpus, cache: Path, reason: str) -> None:
    """One line that says why and what to do; nothing is left in the cache."""
    with pytest.raises(UserError, match=reason) as error:
        corpus.train_split()
    assert "data.path=<folder of train.en.gz>" in str(error.value)
    assert "\n" not in str(error.value)
    assert list(cache.rglob("*.gz")) == []


def test_a_wrong_checksum_is_refused(online: Corpus, folder: Path, tmp_path: Path) -> None:
    (folder / "train.en.gz").write_bytes(gzip.compress(b"something else\n"))
    refused(online, tmp_path / "cache", r"train\.en\.gz came damaged: its text has SHA-256 \w+\.\.\., expected")


def test_a_page_in_place_of_a_file_is_refused(online: Corpus, folder: Path, tmp_path: Path) -> None:
    (folder / "train.en.gz").write_bytes(b"<html>Please sign in</html>")
    refused(online, tmp_path / "cache", r"came damaged: it is not a whole \.gz file")


def test_a_missing_file_is_refused(online: Corpus, folder: Path, tmp_path: Path) -> None:
    (folder / "train.en.gz").unlink()
    refused(online, tmp_path / "cache", "the server says 404 File not found")


def test_a_truncated_download_is_refused(online: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "cut", 9)
    refused(
        online,
        tmp_path / "cache",
        r"train\.en\.gz came damaged: \d+ of \d+ bytes arrived|cannot be downloaded: Inc",
    )


def test_no_server_is_one_line(online: Corpus, server: ThreadingHTTPServer, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    refused(online, tmp_path / "cache", "cannot be downloaded: .*Connection refused")


def test_no_name_server_is_one_line(server: ThreadingHTTPServer, configured: Configured, tmp_path: Path) -> None:
    corpus = configured("multi30k", url="http://nowhere.invalid/raw")
    refused(corpus, tmp_path / "cache", r"http://nowhere\.invalid/raw/train\.en\.gz cannot be downloaded")


def test_what_has_no_checksum_must_come_from_a_folder(configured: Configured) -> None:
    with pytest.raises(UserError, match=r"train\.cs of Multi30k is not downloaded"):
        configured("multi30k", tgt="cs").check()


def test_a_test_set_that_a_language_lacks_is_refused_with_what_exists(configured: Configured) -> None:
    with pytest.raises(UserError, match=r"test_2017_mscoco does not exist in cs, only in de, en, fr; in cs there are"):
        configured("multi30k", tgt="cs", test="test_2017_mscoco").check()


def test_a_folder_without_the_files_is_refused(tmp_path: Path, configured: Configured) -> None:
    with pytest.raises(UserError, match=r"data\.path=.*: no file .*train\.en or train\.en\.gz"):
        configured("multi30k", path=str(tmp_path)).check()
    with pytest.raises(UserError, match="is not a folder"):
        configured("multi30k", path=str(tmp_path / "nowhere")).check()


@pytest.mark.multi30k
@pytest.mark.skipif("ABLAB_MULTI30K" not in os.environ, reason="ABLAB_MULTI30K names no folder")
@pytest.mark.parametrize(("test", "size"), [("test_2016_flickr", 1000), ("test_2017_mscoco", 461)])
@pytest.mark.parametrize("tgt", ["de", "fr"])
def test_the_real_files_are_the_official_ones(configured: Configured, tgt: str, test: str, size: int) -> None:
    local = configured("multi30k", path=os.environ["ABLAB_MULTI30K"], tgt=tgt, test=test)
    official = configured("multi30k", tgt=tgt, test=test)
    assert (local.train_digest(), local.test_digest()) == (official.train_digest(), official.test_digest())
    names = ("train", "valid", "test")
    assert [local.pairs_in(name) for name in names] == [official.pairs_in(name) for name in names]
    splits = (local.train_split(), local.valid_split(), local.test_split())
    assert [len(split.pairs) for split in splits] == [29000, 1014, size]
