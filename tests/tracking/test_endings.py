"""Without a server, without a logger, or with a failure: training goes its way, and the mirror is closed."""

from typing import Any

import pytest
import wandb

from ablab.tracking.tracker import RunCard, Tracker, WandbTracker
from tests.run.conftest import TINY, typed
from tests.tracking.seen import Seen


@pytest.mark.parametrize("where", ["ablab.stages.train.fit", "ablab.stages.evaluate.evaluate"])
def test_the_run_is_finished_as_failed_when_something_raises(where, trap, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(where, fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        typed("smoke=true", *TINY, f"outputs={tmp_path}")
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    assert Seen.of(run).exit_code == 1


def test_no_logger_leaves_no_trace(tmp_path):
    assert typed("smoke=true", *TINY, f"outputs={tmp_path}", "logger=none").code == 0
    assert not list(tmp_path.rglob("wandb"))


def test_a_server_that_refuses_makes_the_run_offline(trap, tmp_path, monkeypatch):
    """The record is the truth: training must not wait for a dashboard."""
    real, modes = wandb.init, []

    def init(**options: Any) -> Any:
        modes.append(options["mode"])
        if options["mode"] == "online":
            raise wandb.errors.CommError("refused\nand more")
        return real(**options)

    monkeypatch.setattr(wandb, "init", init)
    card = RunCard("rabc", "s1", {"seed": 1}, [], tmp_path)
    tracker = WandbTracker(card, mode="online", project="x", entity=None)
    tracker.log(1, {"train/loss": 2.0})
    tracker.finish(failed=False)
    assert modes == ["online", "offline"]
    assert tracker.offline_because == "refused"
    assert Seen.of(tmp_path).history[0]["train/loss"] == 2.0


def test_wandb_takes_whatever_a_tracker_is_given():
    """The base class does nothing, so a method that is missing here would be lost in silence."""
    assert {name for name in vars(Tracker) if not name.startswith("_")} <= set(vars(WandbTracker))
