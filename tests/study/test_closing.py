"""A study ends with its comparison: a table, pictures, and a W&B run of its own in the group of its runs."""

import csv

import pytest

from ablab.config.labels import label
from ablab.store.run_folder import all_runs
from tests.study.test_sweep import started
from tests.tracking.seen import Seen

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("ended")
    words = ("norm=pre,post", "seed=1,2", "logger=wandb", "pruning=every_other", f"outputs={outputs}")
    process = started(*words)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")
    (folder,) = (outputs / "smoke" / "studies").iterdir()
    return outputs, folder, out


def test_the_table_on_disk_is_the_one_on_the_screen(ended):
    _, folder, out = ended
    with (folder / "arms.csv").open(newline="") as file:
        rows = {row["arm"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"norm=pre", "norm=post"}
    for arm, row in rows.items():
        assert row["seeds"] == "2"
        line = next(line for line in out.splitlines() if line.startswith(f"{label(arm)} ") and "±" in line)
        for key in ("test_bleu", "test_bleu_sd", "test_chrf"):
            assert f"{float(row[key]):.2f}" in line
        assert f"{int(row['parameters']):,}" in line


def test_the_pictures_are_there(ended):
    _, folder, _ = ended
    for name in ("learning_curves.png", "depth_quality.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_wandb_has_the_comparison_in_the_group_of_the_runs(ended):
    outputs, folder, _ = ended
    study = Seen.of(folder)
    assert study.card.job_type == "study"
    assert study.card.group == study.card.name == folder.name
    assert [event["failed"] for event in study.kind("closed")] == [False]
    assert {"study/arms", "study/learning_curves", "study/depth_quality"} <= study.keys
    for run in all_runs(outputs / "smoke"):
        card = Seen.of(run.path).card
        assert card.group == folder.name
        assert any(tag in map(label, ("norm=pre", "norm=post")) for tag in card.tags)
