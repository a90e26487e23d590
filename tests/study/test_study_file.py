"""In a store, the name of a study belongs to one file: another file of that name is another study."""

import shutil
from pathlib import Path

import pytest

from ablab.errors import UserError
from ablab.files import read_json
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.search import announced, define_search
from ablab.study.study_file import kept_file
from tests.study.conftest import SEARCH, STUDY

OTHER = STUDY.replace("Does it help?", "Does something else?")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write the experiment `exp` into a folder, and return the words that mean it."""
    monkeypatch.chdir(tmp_path)

    def write(folder, text):
        path = Path(folder, "exp.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return (f"experiment={path}", f"outputs={tmp_path / 'o'}")

    return write


def test_another_file_of_the_name_is_refused_before_and_at_the_launch(written):
    register(define(written("a", STUDY)))
    with pytest.raises(UserError, match=r"^b/exp.yaml: .* that of another file, a/exp.yaml.*; allowed: another name"):
        define(written("b", OTHER))
    one, other = (written(folder, text) for folder, text in (("c", STUDY), ("d", OTHER)))
    shutil.rmtree("o")
    first, second = define(one), define(other)  # planned at once
    register(first)
    with pytest.raises(UserError, match=r"^d/exp\.yaml: "):
        register(second)


def test_the_same_content_is_the_same_study_wherever_it_lies(written):
    register(define(written("a", STUDY)))
    assert not register(define(written("b", f"# copied\n{STUDY}")))


def test_an_edit_in_place_goes_on_and_is_told(written):
    assert not register(define(written("a", STUDY)))
    assert register(define(written("a", OTHER)))
    assert not register(define(written("a", OTHER)))
    register(define(written("b", STUDY)))  # what it said before is still this study
    with pytest.raises(UserError, match=r"^b/exp\.yaml: "):
        define(written("b", OTHER.replace("0.2", "0.1")))


def test_a_project_may_move(written, tmp_path):
    register(define(written("project/a", STUDY)))
    Path("project").rename("moved")
    assert register(define(written("moved/a", OTHER)))


def test_a_project_may_move_with_its_store_beside_a_copy_of_it(written, tmp_path):
    words = written("project/a", STUDY)
    register(define((words[0], "outputs=project/o")))
    shutil.copytree("project", "copy")
    words = written("copy/a", OTHER)
    assert register(define((words[0], "outputs=copy/o")))


def test_a_registration_of_before_names_no_file(written):
    study = define(written("a", STUDY))
    register(study)
    path = study.folder / "registered.json"
    text = path.read_text()
    assert [entry["file"] for entry in read_json(path)] == ["../a/exp.yaml"]
    path.write_text(text.replace('"file"', '"former"'))
    assert define(written("b", OTHER)).name == "exp"


def test_tuning_and_search_belong_to_the_file_too(written):
    tune = "tune: {values: [0.001, 0.01], seeds: [101]}\n"
    trials = define(written("a", STUDY + tune))
    assert trials.is_tuning
    register(trials)
    with pytest.raises(UserError, match="exp-tuning is that of another file"):
        define(written("b", OTHER + tune))
    shutil.rmtree("o")
    register(announced(define_search(written("a", SEARCH))))
    with pytest.raises(UserError, match=r"^b/exp\.yaml: .* another file"):
        define_search(written("b", SEARCH.replace("0.4", "0.3")))


def test_a_kill_before_the_file_is_kept_is_made_up_for(written, monkeypatch):
    study = define(written("a", STUDY))
    register(study)
    path = kept_file(study.folder)
    edited = define(written("a", OTHER))
    with monkeypatch.context() as patch:
        patch.setattr("ablab.study.ledger.keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            register(edited)
    assert path.read_text() == STUDY
    register(edited)
    assert path.read_text() == OTHER
