"""What W&B knows of a run: an id of its store's, a name by what differs, a job type, and the user's own words."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.store.register import Register
from ablab.study.definition import define
from ablab.tasks.plan import plan
from ablab.tracking.card import STORE, card_of_run, spoken, store_id
from ablab.tracking.events import EVENTS, FOLDER, Events
from ablab.tracking.open import open_tracker
from ablab.tracking.tracker import RunCard
from tests.tracking.conftest import CARD
from tests.tracking.seen import Seen


def planned(tmp_path, *words):
    return plan(compose([*words, f"outputs={tmp_path}"]))


def card_of(tmp_path, *words) -> RunCard:
    found = planned(tmp_path, *words)
    return card_of_run(found, found.config.logger)


@pytest.mark.parametrize(
    ("display", "name"),
    [
        ("s1", "baseline, seed 1"),
        ("norm=scalenorm,layerdrop=0.2,s3", "ScaleNorm with LayerDrop 0.2, seed 3"),
        ("init=stds,s12", "init=stds, seed 12"),
    ],
)
def test_a_single_run_is_named_by_what_differs_from_the_defaults(display, name):
    assert spoken(display) == name


def test_the_runs_of_a_study_are_named_by_what_people_call_their_arms(tmp_path):
    study = define(("norm=pre,scalenorm", "layerdrop=0,0.2", "seed=1", f"outputs={tmp_path}"))
    names = [study.name_of(cell) for cell in study.cells]
    assert names == [
        "PreNorm without LayerDrop (baseline), seed 1",
        "PreNorm with LayerDrop 0.2, seed 1",
        "ScaleNorm without LayerDrop, seed 1",
        "ScaleNorm with LayerDrop 0.2, seed 1",
    ]


def test_words_of_a_run_of_a_study_carry_study_arm_and_the_users_name(tmp_path, monkeypatch):
    study = define(("norm=pre,scalenorm", "seed=1", f"outputs={tmp_path}", "logger.name='it is mine'"))
    logger = compose(study.words_of(study.cells[1])).config.logger
    assert (logger.study, logger.arm) == (study.name, "norm=scalenorm")
    assert logger.name == "it is mine, ScaleNorm, seed 1"
    card = card_of(tmp_path, *study.words_of(study.cells[1]))
    assert (card.group, card.config["studies"]) == (study.name, {study.name.replace(".", "_"): "norm=scalenorm"})
    assert study.name in card.tags


def test_settings_win_over_variables_and_variables_over_what_is_usual(tmp_path, monkeypatch):
    for name, value in {"TAGS": "a, b", "NOTES": "heard", "NAME": "named", "RUN_GROUP": "grouped"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    heard = card_of(tmp_path, "logger.study=s")
    assert (heard.tags, heard.notes, heard.name, heard.group) == (["s", "a", "b"], "heard", "named", "grouped")
    set_ = card_of(tmp_path, "logger.tags=[c]", "logger.notes=n", "logger.name=x", "logger.group=g", "logger.study=s")
    assert (set_.tags, set_.notes, set_.name, set_.group) == (["s", "c"], "n", "x", "g")


def test_a_long_arm_is_a_shortened_tag(tmp_path):
    (arm,) = card_of(tmp_path, f"logger.arm={'x' * 100}").tags
    assert len(arm) == 64


@pytest.mark.parametrize("words", ["logger.tags=['']", f"logger.tags=[{'x' * 65}]", "logger.tags=x"])
def test_tags_that_wandb_refuses_are_refused_first(words, tmp_path, capsys):
    assert main(["train", words, f"outputs={tmp_path}"]) == 2
    assert capsys.readouterr().err.startswith("error: logger.tags")


def test_so_are_those_of_its_variable(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_TAGS", f"good,{'x' * 65}")
    for words in (["train"], ["train", "-m", "seed=1,2"]):
        assert main([*words, "smoke=true", f"outputs={tmp_path}"]) == 2
        assert "allowed: 1 to 64 characters on one line, with commas between" in capsys.readouterr().err


def test_commit_and_code_are_in_the_config(tmp_path):
    config = card_of(tmp_path).config
    assert len(config["code"]) == len(config["evaluation_code"]) == len("2:") + 12
    assert config["commit"] is None or len(config["commit"]) == 40
    assert str(Path.home()) not in json.dumps(card_of(tmp_path).model_dump())


def test_a_run_that_is_trained_without_wandb_and_evaluated_with_it_is_an_evaluation(tmp_path):
    found = planned(tmp_path)
    assert card_of_run(found, found.config.logger).job_type == "train"
    found.folder.path.mkdir(parents=True)
    events = Events(found.folder.path, card_of_run(found, found.config.logger), print)
    events.finish(failed=False)
    (found.folder.path / "record.json").touch()
    (found.folder.path / FOLDER / EVENTS).rename(tmp_path / "kept")
    assert _job_type(found) == "evaluate"
    (tmp_path / "kept").rename(found.folder.path / FOLDER / EVENTS)
    assert _job_type(found) == "train"


def _job_type(found) -> str | None:
    from ablab.tracking.card import card

    logger = found.config.logger
    return card(logger, found.folder.path, run_id=found.run_id, name="x", config={}, tags=[], group=None).job_type


def test_stores_have_ids_of_their_own_and_a_run_keeps_the_id_it_was_sent_under(tmp_path):
    mine, theirs = card_of(tmp_path / "mine"), card_of(tmp_path / "theirs")
    assert mine.run_id == theirs.run_id
    assert mine.id_there != theirs.id_there
    assert mine.id_there == f"{mine.run_id}-{store_id(tmp_path / 'mine')}"
    # Events of an earlier version: their card has no id but the run's.
    found = planned(tmp_path / "older")
    old = RunCard(run_id=found.run_id, name="s1", config={}, tags=[], project="p")
    Events(found.folder.path, old, print).finish(failed=False)
    assert card_of(tmp_path / "older").id_there == found.run_id


def test_a_run_that_is_trained_again_does_not_continue_the_rows_of_the_first(tmp_path):
    found = planned(tmp_path)
    first = card_of(tmp_path).id_there
    for number in (2, 3):
        found.folder.path.mkdir(parents=True)
        found.folder.set_aside()
        assert card_of(tmp_path).id_there == f"{first}-{number}"


def test_one_that_was_deleted_does_not_either(tmp_path):
    found = planned(tmp_path)
    first = card_of(tmp_path).id_there
    Register(tmp_path).append("written", run=found.run_id, file="record.json", digest="0")
    assert card_of(tmp_path).id_there == f"{first}-2"  # by hand
    Register(tmp_path).append("set aside", run=found.run_id)
    assert card_of(tmp_path).id_there == f"{first}-2"  # with ablab rm forever=true


def _id_of(store: Path) -> str:
    return store_id(store)


def test_launchers_that_start_at_once_agree_on_the_id(tmp_path):
    with ProcessPoolExecutor(8) as pool:
        assert len(set(pool.map(_id_of, [tmp_path / "new"] * 50))) == 1


def test_a_damaged_id_costs_a_line_and_no_run(tmp_path):
    (tmp_path / STORE).write_text('{"id": 1}')
    with pytest.raises(UserError, match="names no store"):
        store_id(tmp_path)
    said: list[str] = []
    with open_tracker(planned(tmp_path), said.append) as tracker:
        tracker.log(1, {"train/loss": 1.0})
    assert len(said) == 1
    assert "W&B is told nothing of r" in said[0]


WANTED = {"none": [], "selected": ["selected"], "pruned": ["small"], "all": ["selected", "small"]}


@pytest.mark.parametrize("wanted", WANTED)
def test_models_are_told_once_and_only_those_that_are_wanted(wanted, tmp_path):
    for _ in range(2):
        events = Events(tmp_path, CARD.model_copy(update={"artifacts": wanted}), print)
        events.model("selected", "selected", [tmp_path / "w"], "d")
        events.model("pruned", "small", [tmp_path / "w"], "d")
        events.finish(failed=False)
    assert [event["key"] for event in Seen.of(tmp_path).kind("model")] == WANTED[wanted]
