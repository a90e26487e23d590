"""The events of a run hold all that a dashboard shows of it: complete, once, and without W&B."""

import os
import sys
from dataclasses import dataclass
from inspect import isfunction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ablab.config import compose
from ablab.config.labels import label
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from ablab.tasks import identity
from ablab.tracking.card import cards_of
from ablab.tracking.events import EVENTS, FOLDER, Events
from ablab.tracking.open import Guarded
from ablab.tracking.sender import About
from ablab.tracking.tracker import Tracker
from tests.run.conftest import TINY, typed
from tests.tracking.conftest import CARD
from tests.tracking.seen import Seen


@dataclass(frozen=True)
class Tracked:
    seen: Seen
    record: Record
    recipe: dict[str, Any]
    run: RunFolder
    line: tuple[str, ...]


@pytest.fixture(scope="module")
def tracked(tmp_path_factory) -> Tracked:
    folder = tmp_path_factory.mktemp("tracked")
    line = ("smoke=true", *TINY, "norm=scalenorm", "seed=3", f"outputs={folder}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "wandb", None)  # offline, W&B is not even imported
        assert typed(*line).code == 0
    recipe = identity.recipe(compose(line).config)
    run = RunFolder(folder / "smoke" / "runs" / identity.run_id(recipe))
    record = run.record()
    assert record is not None
    return Tracked(Seen.of(run.path), record, recipe, run, line)


def test_the_arms_are_top_level_keys_and_the_recipe_is_there(tracked):
    config = tracked.seen.card.config
    arms = {"norm": "scalenorm", "drophead": "vshape", "model": "tiny", "layerdrop": 0.2, "seed": 3}
    assert {key: config[key] for key in arms} == arms
    assert config["run_id"] == tracked.record.run_id
    assert config["recipe"] == tracked.recipe


def test_the_id_begins_with_the_run_id_and_the_name_is_the_display_name_in_words(tracked):
    assert tracked.seen.card.run_id == tracked.record.run_id
    assert tracked.seen.card.id_there.startswith(f"{tracked.record.run_id}-")
    assert tracked.seen.card.name == label(tracked.record.name.removesuffix(",s3")) + ", seed 3"


@pytest.mark.parametrize(
    "curve",
    [
        *(
            f"train/{name}"
            for name in ("loss", "learning_rate", "grad_norm", "drophead", "tokens_per_second", "padding")
        ),
        *(f"valid/{name}" for name in ("loss", "perplexity", "bleu")),
    ],
)
def test_every_curve_has_points_at_our_steps(curve, tracked):
    assert [step for step, _ in tracked.seen.points(curve)] == [4, 8]


def test_the_points_are_those_of_the_record(tracked):
    for key in ("loss", "bleu"):
        expected = [(validation["step"], validation[key]) for validation in tracked.record.validations]
        assert tracked.seen.points(f"valid/{key}") == expected


def test_a_table_of_samples_and_a_picture_per_validation(tracked):
    tables = [event for event in tracked.seen.kind("table") if event["key"] == "valid/samples"]
    pictures = [event for event in tracked.seen.kind("picture") if event["key"] == "valid/cross_attention"]
    assert [event["x"] for event in tables] == [event["x"] for event in pictures] == [4, 8]
    assert all(table["columns"] == ["source", "reference", "translation"] for table in tables)
    assert all(len(table["rows"]) == 8 for table in tables)
    drawn = [(tracked.run.path / FOLDER / event["file"]).read_bytes() for event in pictures]
    assert all(content.startswith(b"\x89PNG") for content in drawn)
    assert drawn[0] != drawn[1]  # the run itself keeps the last one alone


def test_depth_quality_is_a_table_a_picture_and_lines_over_layers(tracked):
    (curve,) = tracked.run.curves()
    for name in ("decoder", "both"):
        points = {len(p.decoder if name == "decoder" else p.encoder): p for p in curve.points if p.curve == name}
        drawn = dict(tracked.seen.points(f"pruning/{name}/every_other/test_bleu", f"axis/{name}_layers"))
        assert drawn == {layers: point.scores["bleu"] for layers, point in points.items()}
    assert {"pruning/every_other", "pruning/depth_quality"} <= tracked.seen.keys


def test_the_summary_has_the_scores(tracked):
    summary, record = tracked.seen.summary, tracked.record
    evaluation = tracked.run.evaluation(identity.evaluation_id(identity.evaluation(compose(tracked.line).config)))
    expected = {
        **{f"test/{key}": evaluation.scores[key] for key in ("bleu", "chrf", "loss", "loss_per_character")},
        **{f"selected/{key}": record.selected.scores[key] for key in ("bleu", "loss", "loss_per_character")},
        **{key: getattr(record.cost, key) for key in ("parameters", "tokens_per_second")},
        **{"test/bleu_signature": evaluation.signatures["bleu"], "state": record.state},
    }
    assert {key: summary[key] for key in expected} == expected


def test_the_run_is_closed_and_has_not_failed(tracked):
    assert [event["failed"] for event in tracked.seen.kind("closed")] == [False]


@pytest.mark.parametrize(
    "where", ["ablab.transformer.stages.train.fit", "ablab.transformer.translation.evaluate.evaluate"]
)
def test_a_run_that_raises_is_closed_as_failed(where, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(where, fail)
    with pytest.raises(RuntimeError, match="out of order"):
        typed("smoke=true", *TINY, f"outputs={tmp_path}")
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    assert [event["failed"] for event in Seen.of(run).kind("closed")] == [True]


def test_a_run_of_a_study_is_in_its_group_and_bears_its_arm(tmp_path):
    line = ("smoke=true", *TINY, f"outputs={tmp_path}", "pruning=none", "logger.group=norms", "logger.arm='norm=pre'")
    assert typed(*line).code == 0
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    card = Seen.of(run).card
    assert (card.group, card.tags, card.config["arm"]) == ("norms", ["PreNorm", "smoke"], "norm=pre")


def test_no_logger_leaves_no_trace(tmp_path):
    assert typed("smoke=true", *TINY, f"outputs={tmp_path}", "logger=none").code == 0
    assert not list(tmp_path.rglob(FOLDER))


def test_a_resumed_run_tells_all_points_and_none_twice(tmp_path):
    """As after kills: steps that are trained again are not told again, and a torn line is taken back."""
    for steps in ((10, 20), (20, 30), (20, 30, 40)):
        events = Events(tmp_path, CARD, print)
        for step in steps:
            events.log(step, {"train/loss": float(step)})
            events.along("layers", step, {"pruning/bleu": 1.0})
            events.table(step, "valid/samples", ["a"], [[1]])
        events.finish(failed=True)
        with (tmp_path / FOLDER / EVENTS).open("ab") as file:
            file.write(b'{"event": "row", "axis": "step", "x": 99')
    seen = Seen.of(tmp_path)
    steps = [10, 20, 30, 40]
    assert [step for step, _ in seen.points("train/loss")] == steps
    assert [step for step, _ in seen.points("pruning/bleu", "axis/layers")] == steps
    assert [event["x"] for event in seen.kind("table")] == steps
    assert [event["failed"] for event in seen.kind("closed")] == [True] * 3
    assert len(seen.kind("opened")) == 3


def test_a_second_curve_of_one_label_is_told_and_the_first_only_once(tmp_path):
    """As of another test set: the step is the last of training, and the key has the label alone."""
    for curves in (("c1", "c2"), ("c2", "c3")):
        events = Events(tmp_path, CARD, print)
        for curve in curves:
            (tmp_path / "curve.png").write_text(curve)
            events.table(20, "pruning/every_other", ["bleu"], [[curve]], of=curve)
            events.picture(20, "pruning/depth_quality", tmp_path / "curve.png", "a curve", of=curve)
        events.finish(failed=False)
    seen = Seen.of(tmp_path)
    assert [event["rows"] for event in seen.kind("table")] == [[["c1"]], [["c2"]], [["c3"]]]
    files = [tmp_path / FOLDER / event["file"] for event in seen.kind("picture")]
    assert [file.read_text() for file in files] == ["c1", "c2", "c3"]


def test_a_damaged_line_hides_no_other(tmp_path):
    events = Events(tmp_path, CARD, print)
    for step in range(5):
        events.log(step, {"loss": 1.0})
    events.finish(failed=False)
    path = tmp_path / FOLDER / EVENTS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\xff\n", b"[1]\n", *lines[4:]]))
    assert [step for step, _ in Seen.of(tmp_path).points("loss")] == [0, 1, 3, 4]


def test_an_opening_without_its_card_names_no_run_and_hides_no_other(tmp_path):
    """As after damage: the run trains, and is told from then on."""
    Events(tmp_path, CARD, print).finish(failed=False)
    path = tmp_path / FOLDER / EVENTS
    whole = path.read_bytes()
    path.write_bytes(b'{"event": "opened"}\n{"event": "opened", "card": {"run_id": 1}}\n' + whole)
    assert [card.run_id for card in cards_of(tmp_path)] == [CARD.run_id]
    assert About.of(tmp_path).card == CARD
    path.write_bytes(b'{"event": "opened"}\n')
    with pytest.raises(LookupError, match="names no run"):
        About.of(tmp_path)


def test_a_full_disk_ends_the_telling_and_not_the_run(tmp_path):
    said: list[str] = []
    events = Events(tmp_path, CARD, said.append)
    assert events._file is not None
    with Path("/dev/full").open("wb", buffering=0) as full:
        os.dup2(full.fileno(), events._file.fileno())
    for step in range(3):
        events.log(step, {"loss": 1.0})
        events.picture(step, "valid/map", tmp_path / "gone.png", "a map")
    events.finish(failed=False)
    (line,) = said
    assert "No space left on device" in line
    assert str(tmp_path / FOLDER / EVENTS) in line


METHODS = [name for name, value in vars(Tracker).items() if isfunction(value)]


def test_events_take_whatever_they_are_given():
    """The base class does nothing, so a method that is missing here would be lost in silence."""
    assert set(METHODS) <= set(vars(Events))


def test_a_guarded_tracker_is_given_all():
    tracker = Mock()
    guarded = Guarded(tracker, "a tracker", print)
    for name in METHODS:
        getattr(guarded, name)()
    assert [call[0] for call in tracker.method_calls] == METHODS
