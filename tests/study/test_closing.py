"""A study ends with its comparison: a table, pictures, and a W&B run of its own in the group of its runs."""

import csv

import pytest

from ablab.store.run_folder import all_runs
from tests.study.test_sweep import started
from tests.tracking.seen import Seen

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("ended")
    words = ("norm=pre,post", "seed=1,2", "logger=wandb", "pruning=every_other", f"outputs={outputs}")
    # In a process of its own: wandb's service in this one would be handed on to the runs.
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
        line = next(line for line in out.splitlines() if line.startswith(f"{arm} ") and "±" in line)
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
    first = study.kind("run")[0]
    assert first["job_type"] == "study"
    assert first["run_group"] == first["display_name"] == folder.name
    assert study.exit_code == 0
    keys = {key.partition(".")[0] for row in study.history for key in row}
    assert {"study/arms", "study/learning_curves", "study/depth_quality"} <= keys
    for run in all_runs(outputs / "smoke"):
        mirrored = Seen.of(run.path).kind("run")[0]
        assert mirrored["run_group"] == folder.name
        assert any(tag in ("norm=pre", "norm=post") for tag in mirrored["tags"])
