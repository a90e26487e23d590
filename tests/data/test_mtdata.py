import gzip
import logging
import os
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError

import pytest

from ablab.errors import UserError
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.kept import cache_folder

Configured = Callable[..., Corpus]
NEWS = "Statmt-news_commentary-16-deu-eng"


@pytest.fixture
def _index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index lies in the user's cache, as building it takes 20 s; it cannot be had smaller."""
    if "MTDATA" not in os.environ:
        monkeypatch.setenv("MTDATA", str(cache_folder("mtdata")))
    Path(os.environ["MTDATA"]).mkdir(parents=True, exist_ok=True)


def sacrebleu_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.dataset import DATASETS

    monkeypatch.setattr(DATASETS["wmt19"], "_outdir", str(folder))
    monkeypatch.setattr(DATASETS["wmt19"], "_rawdir", str(folder / "raw"))


def test_a_missing_package_is_one_line_with_the_remedy(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("ablab.transformer.data.mtdata.metadata.version", absent)
    corpus = configured("mtdata")
    for ask in (corpus.check, corpus.train_digest, corpus.test_digest):
        with pytest.raises(UserError, match=r"pip install 'ablab\[mtdata\]'"):
            ask()


@pytest.fixture
def _any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablab.transformer.data.mtdata.metadata.version", lambda name: "0.5.1")


@pytest.mark.usefixtures("_any_version")
class TestWithoutTheIndex:
    def test_the_shipped_defaults_hold(self, configured: Configured) -> None:
        corpus = configured("mtdata")
        corpus.check()
        assert corpus.test_name == "wmt19"

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"train": []}, "at least one mtdata id"),
            ({"train": ["wmt19"]}, r"data\.train=wmt19 is no mtdata id"),
            ({"test": "wmt91"}, r"data\.test=wmt91 is no mtdata id .* nor a test set of sacrebleu"),
            ({"tgt": "sw"}, r"wmt18 has no en-sw; allowed: .*en-de"),
        ],
    )
    def test_what_cannot_be_is_refused(self, configured: Configured, change: dict[str, object], reason: str) -> None:
        with pytest.raises(UserError, match=reason):
            configured("mtdata", **change).check()

    def test_names_decide_the_digests_and_the_folder_does_not(self, configured: Configured) -> None:
        plain = configured("mtdata")
        assert configured("mtdata", path="/elsewhere").train_digest() == plain.train_digest()
        assert configured("mtdata", test="wmt20").train_digest() == plain.train_digest()
        assert configured("mtdata", test="wmt20").test_digest() != plain.test_digest()
        assert configured("mtdata", test=["wmt19"]).test_digest() == plain.test_digest()
        several = configured("mtdata", test=["wmt18", "wmt19"])
        several.check()
        assert several.test_name == "wmt18 + wmt19"
        assert several.test_digest() != plain.test_digest()
        assert configured("mtdata", valid="wmt17").train_digest() != plain.train_digest()
        assert configured("mtdata", train=[NEWS, NEWS]).train_digest() != plain.train_digest()

    def test_a_test_set_of_sacrebleu_is_read_from_its_cache(
        self, configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sacrebleu.dataset import DATASETS

        sacrebleu_cache(tmp_path, monkeypatch)
        for field in DATASETS["wmt19"].fieldnames("en-de"):
            (tmp_path / f"wmt19.en-de.{field}").write_text(f"{field} 1\n{field} 2\n")
        split = configured("mtdata").test_split()
        assert (split.name, split.pairs) == ("wmt19", [("src 1", "ref 1"), ("src 2", "ref 2")])

    def test_a_test_set_without_a_network_is_one_line(
        self, configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def offline(*args: object) -> None:
            raise URLError("no route to host")

        sacrebleu_cache(tmp_path, monkeypatch)
        monkeypatch.setattr("urllib.request.urlopen", offline)
        with pytest.raises(UserError, match="sacrebleu cannot download wmt19 en-de: no route to host"):
            configured("mtdata").test_split()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mtdata") is None, reason="the optional extra mtdata is not installed")
@pytest.mark.usefixtures("_index")
class TestWithTheIndex:
    @pytest.fixture
    def filled(self, tmp_path: Path, configured: Configured) -> Path:
        """A folder that holds the news commentary as if it had been downloaded."""
        with pytest.raises(UserError):  # our way in first: it imports mtdata without losing the logger
            configured("mtdata", path=str(tmp_path), train=["Statmt-nothing-0-deu-eng"]).train_split()
        from mtdata.cache import Cache
        from mtdata.entry import DatasetId
        from mtdata.index import INDEX

        cache, entry = Cache(tmp_path), INDEX[DatasetId.parse(NEWS)]
        path = cache.get_local_path(entry.url, filename=entry.filename, fix_missing=False)
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(b"eins\tone\nzwei\rdrei\ttwo three\n\t\n"))
        cache.get_flag_file(path).touch()
        return tmp_path

    def test_a_corpus_is_read_in_either_direction(self, configured: Configured, filled: Path) -> None:
        there = configured("mtdata", path=str(filled)).train_split().pairs
        back = configured("mtdata", path=str(filled), src="de", tgt="en").train_split().pairs
        assert there == [("one", "eins"), ("two three", "zwei drei"), ("", "")]
        assert back == [(target, source) for source, target in there]

    def test_a_held_out_set_may_be_an_id(self, configured: Configured, filled: Path) -> None:
        split = configured("mtdata", path=str(filled), valid=NEWS).valid_split()
        assert (split.name, len(split.pairs)) == (NEWS, 3)

    def test_more_pairs_than_it_has_are_refused_when_it_is_read(self, configured: Configured, filled: Path) -> None:
        corpus = configured("mtdata", path=str(filled), valid=NEWS, train_pairs=4, valid_pairs=4, test_pairs=4)
        corpus.check_pairs()
        for split, read in (("train", corpus.train_split), ("valid", corpus.valid_split)):
            with pytest.raises(UserError, match=rf"^data\.{split}_pairs=4: the corpus has 3 \w+ pairs"):
                read()

    def test_other_languages_are_refused(self, configured: Configured, filled: Path) -> None:
        with pytest.raises(UserError, match=r"is in deu-eng, not in data\.src=en and data\.tgt=fr"):
            configured("mtdata", path=str(filled), tgt="fr").train_split()

    def test_an_unknown_id_names_the_nearest(self, configured: Configured, tmp_path: Path) -> None:
        wrong = NEWS.replace("commentary", "comentary")
        with pytest.raises(UserError, match=f"{wrong} is not in mtdata's index; did you mean .*{NEWS}"):
            configured("mtdata", path=str(tmp_path), train=[wrong]).train_split()

    def test_no_network_is_one_line(
        self, configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import requests

        def offline(*args: object, **options: object) -> None:
            raise requests.ConnectionError("no route\nto host")

        monkeypatch.setattr(requests, "get", offline)
        with pytest.raises(UserError, match=f"mtdata cannot get {NEWS} from http.*: no route to host"):
            configured("mtdata", path=str(tmp_path)).train_split()

    def test_the_root_logger_stays_ours(self, configured: Configured, filled: Path) -> None:
        before = list(logging.getLogger().handlers), logging.getLogger().level
        configured("mtdata", path=str(filled)).train_split()
        assert (list(logging.getLogger().handlers), logging.getLogger().level) == before
