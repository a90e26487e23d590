"""The index of a store is a cache: whatever becomes of it, a list of runs is the one of the files themselves."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.api import open as open_store
from ablab.commands.ls import listing
from ablab.store import index, records
from ablab.store.run_folder import RunFolder
from tests.made_once import made_once
from tests.report import synthetic

ARMS = {"layerdrop=0.0": 0.3, "layerdrop=0.1": 0.4}
WORDS = ("layerdrop=0.0,0.1", "seed=1,2,3")


DIVERGED = frozenset({("layerdrop=0.1", 2)})


def _make(place: Path) -> None:
    synthetic.fill(WORDS, ARMS, outputs=place, diverged=DIVERGED, pruned=True)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return made_once("index", _make, tmp_path_factory)[0]


@pytest.fixture
def store(made, tmp_path, monkeypatch):
    """Six runs, one of which has diverged, and evaluations of pruned models."""
    monkeypatch.setattr(index, "WORTH_KEEPING", 1)
    monkeypatch.setattr(index, "SETTLED", 0)
    return Path(shutil.copytree(made, tmp_path / "outputs"))


def forget():
    """What another process would not know."""
    index._index_of.cache_clear()


def plain(store):
    """The list as of the files alone."""
    return [
        (run.model_dump_json(), found.values, found.row())
        for run, found in _listed(store, [type(one)(one.folder, one.arm) for one in open_store(store).runs()])
    ]


def fast(store):
    """The list as another process would make it."""
    forget()
    return [
        (run.model_dump_json(), found.values, found.row()) for run, found in _listed(store, open_store(store).runs())
    ]


def _listed(store, runs):
    runs = type(open_store(store).runs())(runs)
    return zip(listing(runs).runs, runs, strict=True)


def content(store):
    return json.loads((store / index.INDEX).read_bytes().partition(b"\n")[2])


def test_lists_are_the_same_before_it_is_there_and_with_it(store):
    assert not (store / index.INDEX).exists()
    expected = plain(store)
    assert len(expected) == 6
    assert fast(store) == expected
    assert len([found for _, found in content(store).values() if found is not None]) == 5  # one has diverged
    assert fast(store) == expected


def test_what_a_mac_leaves_beside_files_is_none_of_the_store(store):
    expected = fast(store)
    for folder in (path for path in (store / "runs").iterdir() if path.is_dir()):
        for place in ("evaluations", "curves", "artefacts"):
            (folder / place).mkdir(exist_ok=True)
            (folder / place / "._one.json").write_bytes(b"\x00\x05\x16\x07")
    assert fast(store) == expected
    assert all(run.evaluations is not None for run in open_store(store).runs())


def test_it_saves_reading(store, monkeypatch):
    expected = fast(store)

    def read(*arguments):
        raise AssertionError("a file was read that is in the index")

    monkeypatch.setattr(RunFolder, "evaluation", read)
    monkeypatch.setattr(index, "is_of_pruned", read)
    assert fast(store) == expected


def test_sentences_are_not_in_it(store):
    fast(store)
    assert "statistics" not in (store / index.INDEX).read_text()


def _of_whole(store):
    folder = next(run.folder for run in open_store(store).runs() if run.scores.get("test_bleu"))
    (path,) = [path for path in (folder.path / "evaluations").glob("*.json") if b'"kept"' not in path.read_bytes()]
    return path


@pytest.mark.parametrize("keep_time", [False, True])
@pytest.mark.parametrize("keep_size", [False, True])
def test_a_newer_file_counts(store, keep_time, keep_size):
    """With its former time of modification and size too: the system's time of the change is another."""
    before = fast(store)
    path = _of_whole(store)
    times, text = path.stat(), path.read_text()
    digit = re.search(r'"chrf": (\d)', text)[1]
    other = str((int(digit) + 1) % 10) if keep_size else f"1{digit}"
    time.sleep(0.02)  # a tick of the system's clock
    path.write_text(text.replace(f'"chrf": {digit}', f'"chrf": {other}'))
    if keep_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (path.stat().st_size == times.st_size) == keep_size
    assert path.stat().st_ino == times.st_ino
    after = fast(store)
    assert after != before
    assert after == plain(store)


def test_what_is_told_to_be_of_a_pruned_model_is_never_the_latest(store):
    """Wherever its settings say so: by their beginning, the file is one of the whole model."""
    path = _of_whole(store)
    whole = json.loads(path.read_text())
    settings = {**whole["settings"], "kept": {"encoder": [0], "decoder": [0]}}
    later = {**whole, "evaluation_id": "e0", "settings": settings, "ended": "2027-01-01T00:00:00Z"}
    path.with_name("e0.json").write_text(json.dumps(later, indent=1))
    folder = RunFolder(path.parents[1])
    for found in (index.Index(store), index.Index(store)):
        assert found.evaluation(folder, "e0").evaluation_id == "e0"
        assert found.latest_evaluation(folder).evaluation_id == whole["evaluation_id"]
        found.keep()
    assert folder.latest_evaluation().evaluation_id == whole["evaluation_id"]


def test_a_run_that_is_set_aside_or_new_counts(store):
    before = fast(store)
    folder = open_store(store).runs()[0].folder
    aside = folder.set_aside()
    assert fast(store) == plain(store) == before[1:]
    aside.rename(folder.path)
    assert fast(store) == before


def test_a_new_evaluation_counts(store):
    fast(store)
    run = next(run for run in open_store(store).runs() if run.evaluation)
    later = run.evaluation.model_copy(
        update={"evaluation_id": "e0", "scores": {"bleu": 99.0}, "ended": "2026-02-01T00:00:00Z"}
    )
    run.folder.write_evaluation(later, run.hypotheses())
    assert fast(store) == plain(store)
    assert 99.0 in [run.scores.get("test_bleu") for run in open_store(store).runs()]


@pytest.mark.parametrize("what", ["record.json", "evaluations"])
def test_a_damaged_run_is_damaged_with_it_too(store, what):
    fast(store)
    run = next(run for run in open_store(store).runs() if run.evaluation)
    path = run.path / (what if what == "record.json" else f"evaluations/{run.evaluation.evaluation_id}.json")
    path.write_text("{")
    found = fast(store)
    assert found == plain(store)
    assert sum('"damage":"' in one for one, _, _ in found) == 1


def _emptied(text):
    return b""


def _cut(text):
    return text[: len(text) // 2]


def _edited(text):
    return text.replace(b'"bleu":', b'"bleu":1', 1)


def _of_another_version(text):
    return b"0.0.1-0" + text


def _other_json(text):
    return b"[1, 2]"


@pytest.mark.parametrize("damage", [_emptied, _cut, _edited, _of_another_version, _other_json])
def test_a_damaged_index_is_ignored_and_written_anew(store, damage):
    expected = fast(store)
    path = store / index.INDEX
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert fast(store) == expected
    assert path.read_bytes() == whole


def test_an_index_of_other_code_is_ignored(store, monkeypatch):
    expected = fast(store)
    monkeypatch.setattr(index, "_version", lambda: "another")
    assert not index.read_index(store / index.INDEX)
    assert fast(store) == expected


@pytest.mark.parametrize("module", [index, records])
def test_other_code_of_outlines_is_another_version(module, monkeypatch, tmp_path):
    def version():
        index._version.cache_clear()
        return index._version()

    before, copy = version(), tmp_path / "copy.py"
    copy.write_bytes(Path(module.__file__).read_bytes())
    monkeypatch.setattr(module, "__file__", str(copy))
    assert version() == before
    copy.write_bytes(copy.read_bytes() + b"\n")
    assert version() != before
    index._version.cache_clear()


def test_a_folder_in_its_place_is_no_obstacle(store):
    expected = plain(store)
    (store / index.INDEX).mkdir()
    assert fast(store) == expected


def test_a_store_that_cannot_be_written_does_without(store, monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(index, "write_index", refuse)
    assert fast(store) == plain(store)
    assert not (store / index.INDEX).exists()


def test_files_that_just_changed_are_not_kept(store, monkeypatch):
    monkeypatch.setattr(index, "SETTLED", 3600 * 10**9)
    fast(store)
    assert not (store / index.INDEX).exists()


def test_few_files_are_not_worth_an_index(store, monkeypatch):
    monkeypatch.undo()
    fast(store)
    assert not (store / index.INDEX).exists()


LIST = """
import sys
from ablab.api import open
from ablab.commands.ls import listing
from ablab.store import index
index.WORTH_KEEPING, index.SETTLED = 1, 0
for _ in range(5):
    index._index_of.cache_clear()
    (open(sys.argv[1]).path / index.INDEX).unlink(missing_ok=True)
    found = listing(open(sys.argv[1]).runs())
print(found.model_dump_json())
"""


def test_two_processes_that_write_it_at_once_see_the_same(store):
    expected = listing(open_store(store).runs()).model_dump_json()
    line = [sys.executable, "-c", LIST, str(store)]
    path = os.pathsep.join(sys.path)
    both = [
        subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in both] == [expected, expected]
    assert not [path for path in Path(store).iterdir() if path.name.startswith(f"{index.INDEX}.")]


def test_a_study_is_the_same_with_it(store):
    from ablab.study.definition import define
    from ablab.study.ledger import entry_of, ledger
    from ablab.sweep.summary import rows_of, table_lines

    study = define((*WORDS, f"outputs={store}"))
    whole = {key: entry_of(cell) for key, cell in study.runs.items()}
    expected = table_lines(study, whole), rows_of(study, whole)
    for _ in range(2):
        forget()
        found = ledger(study)
        assert {key: entry.state for key, entry in found.items()} == {key: entry.state for key, entry in whole.items()}
        assert [entry.other_origin for entry in found.values()] == [entry.other_origin for entry in whole.values()]
        assert (table_lines(study, found), rows_of(study, found)) == expected
