"""A sweep that finds runs of another study finished lets W&B find them in its own study too."""

from ablab.commands.cli import main
from ablab.config import compose
from ablab.sweep.sweep import Policy, sweep
from ablab.tasks.plan import plan
from ablab.tracking.card import card_of_run, cards_of
from ablab.tracking.console import Console
from ablab.tracking.events import Events
from tests.report.synthetic import fill
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
