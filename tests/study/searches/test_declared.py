"""What makes two searches one; and a declared one, whose winner meets seeds that it was not chosen on."""

import json
from dataclasses import replace

import pytest

from ablab.commands.cli import main
from ablab.commands.sync import unsent
from ablab.errors import DONE, UserError
from ablab.judge.selection_of_study import of_study
from ablab.search.storage import JOURNAL
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.search import announced, define_search
from ablab.sweep.search_report import known_trials
from ablab.sweep.summary import open_study_tracker
from ablab.tracking.card import cards_of
from tests.study.conftest import SEARCH
from tests.study.pretend import pretend
from tests.study.searches.conftest import SPACE, done, searched


def test_the_name_says_what_the_trials_depend_on(tmp_path):
    one = searched(tmp_path)
    same = [
        searched(tmp_path, trials=9),
        searched(tmp_path, space=SPACE[::-1]),
        searched(tmp_path, "trainer.micro_batches=2"),
        searched(tmp_path / "elsewhere"),
    ]
    others = [
        searched(tmp_path, space=(SPACE[0], "layerdrop=interval(0,0.5)")),
        searched(tmp_path, space=(SPACE[0], "layerdrop=0,0.4")),
        searched(tmp_path, "norm=post"),
        searched(tmp_path, "seed=2"),
        searched(tmp_path, seed=2),
        searched(tmp_path, sampler="random"),
        searched(tmp_path, stopping="median"),
        searched(tmp_path, objectives=["valid_bleu"]),
    ]
    assert {search.study_name for search in same} == {one.study_name}
    assert len({search.study_name for search in [one, *others]}) == 1 + len(others)


def test_a_declared_search_ends_with_its_winner_on_fresh_seeds(place, capsys):
    words = ("experiment=find",)
    with pytest.raises(UserError, match="its search comes first"):
        define(words)
    search = define_search(words)
    assert main(["study", *words]) == 0
    said = capsys.readouterr().out
    assert "0 of 3 trials ended; 3 left" in said
    assert said.endswith(f"Results: {search.folder} (none yet)\n")
    assert not search.folder.exists()
    assert done(search)[0] == DONE
    (registered,) = json.loads((search.folder / "registered.json").read_text())
    assert registered["claims"][0]["arm"] == "best"
    study = define(words)
    for _ in range(2):
        register(study)
    first, second = json.loads((search.folder / "registered.json").read_text())
    assert first == registered  # before any trial, and unchanged
    assert set(second["conditions"]) == {"usual", "best"}
    assert [arm.name for arm in study.arms] == ["usual", "best"]
    assert {cell.seed for cell in study.cells} == {101, 102}
    best = min(known_trials(search).all(), key=lambda trial: trial.values)
    assert study.arms[1].words == best.words
    assert study.folder == search.folder
    assert main(["study", *words]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 trials ended: 3 finished" in out
    assert "4 runs: 4 planned" in out
    assert main(["study", *words, "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == 0


def test_another_winner_on_the_same_seeds_is_a_departure(place):
    """Otherwise a search could be gone on with until its winner is confirmed."""
    assert done(define_search(("experiment=find",)))[0] == DONE
    study = define(("experiment=find",))
    register(study)
    assert of_study(study).departed is None
    pretend(study.cells[0], 0.1)  # from now on, one has been seen
    usual = {cell.seed: cell.planned for cell in study.cells_of("usual")}
    # As if the usual settings had won.
    later = replace(study, cells=[replace(cell, planned=usual[cell.seed]) for cell in study.cells])
    register(later)
    assert of_study(later).departed == "settings differ from those of the first launch"


def test_a_search_and_the_study_after_it_are_two_runs_of_wandb(place):
    path = place / "experiments" / "find.yaml"
    path.write_text(SEARCH.replace("logger=none, ", ""))
    search = define_search(("experiment=find",))
    assert done(search)[0] == DONE
    with open_study_tracker(define(("experiment=find",)), print):
        pass
    (of_search,), (of_study,) = map(cards_of, sorted(unsent(search.folder.parents[1]), reverse=True))
    assert (of_search.job_type, of_study.job_type) == ("search", "study")


def test_another_space_under_the_same_name_is_another_search(place):
    assert done(define_search(("experiment=find",)))[0] == DONE
    path = place / "experiments" / "find.yaml"
    path.write_text(SEARCH.replace("high: 0.4", "high: 0.5"))
    changed = define_search(("experiment=find",))
    assert changed.winner() is None
    assert done(changed)[1] == ["trial 0", "trial 1", "trial 2"]


def test_a_word_that_half_of_the_space_reads_is_common_to_all(place):
    """The usual arm of the study that follows does not read it."""
    before = "{optim.lr: {low: 0.001, high: 0.1, log: true}, layerdrop: {low: 0, high: 0.4}}"
    text = SEARCH.replace(before, "{drophead: [none, vshape]}")
    (place / "half.yaml").write_text(text.replace("common: [", "common: [drophead.p=0.3, "))
    found = define_search((f"experiment={place / 'half.yaml'}",))
    assert [cell.seed for cell in announced(found).cells] == [101, 102]


def test_a_declared_search_names_the_storage_of_its_file(place):
    search = define_search(("experiment=find",))
    assert done(search)[0] == DONE
    (search.folder / JOURNAL).unlink()
    assert "lacks 3 earlier trials of this search; if another has them, search.storage: as it was" in done(search)[2]
