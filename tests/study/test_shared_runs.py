"""A sweep that finds runs of another study finished lets W&B find them in its own study too."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.errors import BusyError
from ablab.store.locks import held, locked
from ablab.store.run_folder import RunFolder
from ablab.sweep.sweep import Policy, sweep
from ablab.tasks.plan import plan
from ablab.tracking.card import card_of_run, cards_of
from ablab.tracking.console import Console
from ablab.tracking.events import Events
from ablab.tracking.wandb import share
from tests.report.synthetic import fill
from tests.tracking.conftest import CARD
from tests.tracking.seen import Seen


def _never(*_: object, **__: object) -> bool:
    raise AssertionError("every run is there")


def test_a_finished_run_is_in_each_study_that_has_it(tmp_path, capsys):
    first = fill(("norm=pre,scalenorm", "seed=1"), {"norm=pre": 0.3, "norm=scalenorm": 0.2}, outputs=tmp_path)
    for cell in first.cells:
        planned = plan(compose(first.words_of(cell)))
        Events(planned.folder.path, card_of_run(planned, planned.config.logger), print).finish(failed=False)
    second = fill(
        ("norm=pre", "layerdrop=0,0.2", "seed=1"), {"layerdrop=0": 0.3, "layerdrop=0.2": 0.2}, outputs=tmp_path
    )
    shared, not_logged = first.cells[0].planned.folder, second.cells[1].planned.folder
    assert second.cells[0].planned.folder == shared
    for _ in range(2):
        for study in (first, second):
            assert sweep(study, _never, Policy(), Console()) == 0
    assert cards_of(shared.path)[0].config["studies"] == {first.name: "norm=pre"}
    assert [event["studies"] for event in Seen.of(shared.path).kind("study")] == [{second.name: "layerdrop=0"}]
    assert not Seen.of(first.cells[1].planned.folder.path).kind("study")
    assert not list(not_logged.path.glob("tracking/*"))
    capsys.readouterr()
    assert main(["sync", f"outputs={tmp_path}", "dry_run=true"]) == 0
    assert f"{shared.run_id} to ablab as {shared.run_id}-" in capsys.readouterr().out


def test_a_run_in_work_is_left_to_the_next_sweep(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "r1")
    Events(folder.path, CARD, print).finish(failed=False)
    with locked(folder):
        assert not share(folder, "first", "norm=pre")
    assert share(folder, "first", "norm=pre")
    assert not share(folder, "first", "norm=pre"), "it is known by now"


def test_a_line_in_a_run_takes_its_lock_and_looks_at_no_other_run(tmp_path, monkeypatch):
    """A sweep joins each run that another study made: of 10,000, a list of all for each takes many minutes."""
    folder = RunFolder(tmp_path / "runs" / "r1")
    Events(folder.path, CARD, print).finish(failed=False)
    monkeypatch.delattr("os.listdir")
    monkeypatch.delattr("os.scandir")
    assert share(folder, "first", "norm=pre")
    with held(folder), pytest.raises(BusyError), locked(folder):
        pass
