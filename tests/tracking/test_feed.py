"""What W&B has in the end: extremes of curves, models once, the tags of everyone, and the run in each study."""

import json
import sys
from pathlib import Path

import pytest

import ablab
from ablab.files import sha256
from ablab.store.run_folder import RunFolder
from ablab.tracking import sender
from ablab.tracking.events import Events
from ablab.tracking.wandb import share
from tests.tracking.conftest import CARD
from tests.tracking.seen import Seen
from tests.tracking.test_sending import synced


@pytest.fixture
def run(tmp_path):
    return tmp_path / "runs" / "rabc"


def config_of(server) -> dict:
    return {key: entry["value"] for key, entry in json.loads(server.runs["rabc"].about["config"]).items()}


def told(run, card=CARD, *, bleu=(), then=lambda events: None) -> None:
    events = Events(run, card, print)
    for step, score in bleu:
        events.log(step, {"valid/bleu": score, "valid/loss": 10 - score, "train/tokens_per_second": score})
    then(events)
    events.finish(failed=False)


def test_what_is_sent_in_parts_is_whole_in_the_end(serve, run):
    """Extremes of all rows, the tags of everyone, and each study that found the run finished."""
    server = serve()
    first = {"config": {"studies": {"first": "norm=pre"}}, "tags": ["first"]}
    card = CARD.model_copy(update=first)
    told(run, card, bleu=[(1, 1.0), (2, 5.0)], then=lambda events: events.along("n", 1, {"pruning/test_bleu": 7.0}))
    assert not share(RunFolder(run), "first", "norm=pre")
    assert synced(run) == 0
    there = server.runs["rabc"]
    there.about["tags"].append("by hand")
    told(run, card, bleu=[(3, 2.0), (4, 4.0)])
    assert share(RunFolder(run), "second", "plain")
    assert not share(RunFolder(run), "second", "plain")
    assert synced(run) == 0
    assert there.exit_code == 0
    assert there.summary["valid/bleu"] == {"max": 5.0}
    assert there.summary["valid/loss"] == {"min": 5.0}
    assert there.summary["pruning/test_bleu"] == {"max": 7.0}
    assert there.summary["train/tokens_per_second"] == 4.0
    assert config_of(server)["studies"] == {"first": "norm=pre", "second": "plain"}
    assert set(there.about["tags"]) == {"first", "by hand", "second"}
    assert len(there.points("valid/bleu")) == 4
    sent = json.dumps(there.about)
    for path in (run.parents[1], sys.executable, Path(ablab.__file__).parent):
        assert str(path) not in sent


def test_a_torn_line_does_not_swallow_the_study(run):
    told(run, bleu=[(1, 1.0)])
    path = run / "tracking" / "events.jsonl"
    path.write_bytes(path.read_bytes() + b'{"event": "ro')
    assert share(RunFolder(run), "x.y", "plain")
    assert [event["studies"] for event in Seen.of(run).kind("study")] == [{"x_y": "plain"}]


def test_a_run_without_wandb_is_left_alone(tmp_path):
    assert not share(RunFolder(tmp_path / "runs" / "r1"), "study", "plain")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_model_is_stored_once_however_often_its_run_is_sent(serve, run):
    server = serve()
    weights, tokenizer = run / "checkpoints" / "selected.safetensors", run / "checkpoints" / "src.model"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights" * 100)
    tokenizer.write_bytes(b"pieces")
    card = CARD.model_copy(update={"artifacts": "all"})
    digest = sha256(weights)

    def models(events):
        events.model("selected", "selected", [weights, tokenizer], digest)
        events.model("pruned", "gone", [run / "gone"], "d")

    told(run, card, then=models)
    assert synced(run) == 0
    (run / "tracking" / sender.OUTCOME).unlink()  # as after a kill before the outcome was written
    assert synced(run) == 0
    (stored,) = server.artifacts.of_kind("model")
    assert stored.name == "rabc-selected"
    assert json.loads(stored.metadata) == {"run_id": "rabc", "sha256": digest}
    assert stored.files["selected.safetensors"] == weights.read_bytes()
    assert sorted(server.artifacts.uploads) == ["manifest", "selected.safetensors", "src.model"]
    assert "not the file that was written" in (run / "tracking" / "log.txt").read_text()


def test_a_data_set_is_one_artifact_that_its_runs_use(serve, run):
    """It has what identifies the data, and no file of it; other data are another version."""
    server = serve()
    for name, digest in (("rabc", "abc"), ("rdef", "abc"), ("rghi", "xyz")):
        folder = run.parent / name
        about = {"kind": "numbers", "digest": digest}
        told(
            folder,
            CARD.model_copy(update={"run_id": name}),
            bleu=[(1, 1.0)],
            then=lambda events, about=about: events.dataset("numbers", about),
        )
    assert synced(run) == 0
    stored = server.artifacts.of_kind("dataset")
    assert {one.name for one in stored} == {"numbers"}
    same, other = sorted(stored, key=lambda one: json.loads(one.metadata)["digest"])
    assert [json.loads(one.metadata)["digest"] for one in (same, other)] == ["abc", "xyz"]
    assert all(set(one.files) == {"dataset.json", "manifest"} for one in stored)
    assert server.artifacts.used == {"rabc": [same.digest], "rdef": [same.digest], "rghi": [other.digest]}
