"""A run that was killed and goes on has several sessions in W&B: together they hold every point, and none twice."""

import signal

import pytest
import wandb

from ablab.stages.callbacks import MetricsCallback, TrackerCallback
from ablab.tracking.tracker import RunCard, WandbTracker
from ablab.tracking.wandb_offline import rows_on_disk
from tests.run.conftest import TINY, typed
from tests.tracking.seen import Seen


def test_a_resumed_run_keeps_all_points_and_says_none_twice(trap, tmp_path):
    """Sessions under one id, as after kills: steps that are trained again are not logged again."""
    card = RunCard("rabc", "s1", {"seed": 1}, [], tmp_path)
    for steps in ((10, 20), (20, 30), (20, 30, 40)):
        tracker = WandbTracker(card, mode="offline", project="x", entity=None)
        for step in steps:
            tracker.log(step, {"train/loss": float(step)})
            tracker.along("layers", step, {"pruning/bleu": 1.0})
            tracker.table(step, "valid/samples", ["a"], [[1]])
        tracker.finish(failed=False)
        wandb.teardown()  # the sessions of a resumed run are processes; within one, wandb may still be writing
    rows = [row for folder in (tmp_path / "wandb").glob("offline-run-*") for row in Seen.of_folder(folder).history]
    assert sorted(row["step"] for row in rows if "train/loss" in row) == [10, 20, 30, 40]
    assert sorted(row["axis/layers"] for row in rows if "pruning/bleu" in row) == [10, 20, 30, 40]
    assert sorted(row["step"] for row in rows if "valid/samples._type" in row) == [10, 20, 30, 40]


@pytest.mark.slow
def test_what_wandb_lost_in_a_kill_is_told_again(trap, tmp_path, monkeypatch):
    """The last rows before a kill may be in our file and not in W&B's; the run goes on after them."""
    line = ("smoke=true", *TINY, f"outputs={tmp_path}", "pruning=none", "training.valid_every=2")
    real = MetricsCallback.on_log

    def on_log(self, measurements):
        real(self, measurements)
        if measurements.step == 6:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(MetricsCallback, "on_log", on_log)
        patch.setattr(TrackerCallback, "on_log", lambda *_: None)
        assert typed(*line).code == 130
    wandb.teardown()
    assert typed(*line).code == 0
    wandb.teardown()
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    rows = [row for folder in (run / "wandb").glob("offline-run-*") for row in Seen.of_folder(folder).history]
    for key in ("train/loss", "valid/loss"):
        assert sorted(row["step"] for row in rows if key in row) == [2, 4, 6, 8]


def test_a_file_that_a_kill_cut_off_is_read_as_far_as_it_goes(trap, tmp_path):
    tracker = WandbTracker(RunCard("rabc", "s1", {}, [], tmp_path), mode="offline", project="x", entity=None)
    for step in range(2000):  # over several blocks of the file
        tracker.log(step, {"train/loss": 1.0})
    tracker.finish(failed=False)
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    wandb.teardown()
    whole = rows_on_disk(tmp_path / "wandb")
    assert {place for place, _ in whole} == set(range(2000))
    content = file.read_bytes()
    assert len(content) > 3 * 32768
    for end in (0, 5, 7, 9, 32768, 40000, len(content) - 3):
        file.write_bytes(content[:end])
        assert rows_on_disk(tmp_path / "wandb") <= whole
