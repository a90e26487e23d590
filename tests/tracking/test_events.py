"""What W&B holds of one run, read back from the disk: complete, closed, and silent towards the network."""

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest
import wandb

from ablab import identity
from ablab.config import compose
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from tests.run.conftest import TINY, typed
from tests.tracking.seen import Seen


@dataclass(frozen=True)
class Mirrored:
    seen: Seen
    record: Record
    recipe: dict[str, Any]
    run: RunFolder
    line: tuple[str, ...]
    asked: list[bytes]


@pytest.fixture(scope="module")
def mirrored(trap, tmp_path_factory) -> Mirrored:
    folder = tmp_path_factory.mktemp("mirror")
    line = ("smoke=true", *TINY, "norm=scalenorm", "seed=3", f"outputs={folder}")
    assert typed(*line).code == 0
    wandb.teardown()  # its process ends, and has asked for all that it ever would
    asked = list(trap.asked)
    recipe = identity.recipe(compose(line).config)
    run = RunFolder(folder / "smoke" / "runs" / identity.run_id(recipe))
    record = run.record()
    assert record is not None
    return Mirrored(Seen.of(run.path), record, recipe, run, line, asked)


def test_the_arms_are_top_level_keys_and_the_recipe_is_there(mirrored):
    config = mirrored.seen.config
    arms = {"norm": "scalenorm", "drophead": "vshape", "model": "tiny", "layerdrop": 0.2, "seed": 3}
    assert {key: config[key] for key in arms} == arms
    assert config["run_id"] == mirrored.record.run_id
    assert config["recipe"] == mirrored.recipe


def test_the_id_is_the_run_id_and_the_name_the_display_name(mirrored):
    first = mirrored.seen.kind("run")[0]
    assert first["run_id"] == mirrored.record.run_id
    assert first["display_name"] == mirrored.record.name


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
def test_every_curve_has_points_at_our_steps(curve, mirrored):
    points = {row["step"]: row[curve] for row in mirrored.seen.history if curve in row}
    assert set(points) == {4, 8}


def test_the_points_are_those_of_the_record(mirrored):
    for validation in mirrored.record.validations:
        (row,) = [r for r in mirrored.seen.history if r.get("step") == validation["step"] and "valid/loss" in r]
        assert row["valid/loss"] == pytest.approx(validation["loss"])
        assert row["valid/bleu"] == pytest.approx(validation["bleu"])


def test_curves_are_drawn_over_our_step(mirrored):
    metrics = mirrored.seen.kind("metric")
    assert any(metric.get("glob_name") == "*" and metric.get("step_metric") == "step" for metric in metrics)


def test_a_table_of_samples_and_a_picture_per_validation(mirrored):
    tables = [row for row in mirrored.seen.history if row.get("valid/samples._type") == "table-file"]
    pictures = [row for row in mirrored.seen.history if row.get("valid/cross_attention._type") == "image-file"]
    assert [row["step"] for row in tables] == [row["step"] for row in pictures] == [4, 8]
    (media,) = (mirrored.run.path / "wandb").glob("offline-run-*/files/media")
    for path in media.rglob("valid/*.table.json"):
        table = json.loads(path.read_text())
        assert table["columns"] == ["source", "reference", "translation"]
        assert len(table["data"]) == 8
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in media.rglob("valid/*.png"))
    assert len(list(media.rglob("valid/*.png"))) == 2


def test_depth_quality_is_a_table_a_picture_and_lines_over_layers(mirrored):
    (curve,) = mirrored.run.curves()
    for name in ("decoder", "both"):
        points = {len(p.decoder if name == "decoder" else p.encoder): p for p in curve.points if p.curve == name}
        key = f"pruning/{name}/every_other/test_bleu"
        drawn = {row[f"axis/{name}_layers"]: row[key] for row in mirrored.seen.history if key in row}
        assert drawn == {layers: pytest.approx(point.bleu) for layers, point in points.items()}
    axes = {metric["name"]: metric.get("step_metric") for metric in mirrored.seen.kind("metric") if "name" in metric}
    assert axes["pruning/both/every_other/test_bleu"] == "axis/both_layers"
    assert axes["pruning/decoder/every_other/speed_ratio"] == "axis/decoder_layers"
    tables = [row for row in mirrored.seen.history if row.get("pruning/every_other._type") == "table-file"]
    pictures = [row for row in mirrored.seen.history if row.get("pruning/depth_quality._type") == "image-file"]
    assert len(tables) == len(pictures) == 1


def test_the_summary_has_the_scores(mirrored):
    summary, record = mirrored.seen.summary, mirrored.record
    evaluation = mirrored.run.evaluation(identity.evaluation_id(identity.evaluation(compose(mirrored.line).config)))
    assert summary["test/bleu"] == pytest.approx(evaluation.bleu)
    assert summary["test/chrf"] == pytest.approx(evaluation.chrf)
    assert summary["test/loss"] == pytest.approx(evaluation.loss)
    assert summary["test/bleu_signature"] == evaluation.signatures["bleu"]
    assert summary["selected/bleu"] == pytest.approx(record.selected.bleu)
    assert summary["selected/loss"] == pytest.approx(record.selected.loss)
    assert summary["state"] == record.state
    assert summary["parameters"] == record.cost.parameters
    assert summary["tokens_per_second"] == pytest.approx(record.cost.tokens_per_second)
    assert summary["padding"] == pytest.approx(record.data["padding"])


def test_the_run_is_finished(mirrored):
    assert mirrored.seen.exit_code == 0


def test_offline_nobody_asks_the_network(mirrored, trap):
    assert mirrored.asked == []
    with pytest.raises(OSError, match=r".*"):
        # An opener of its own: the module's remembers the proxies of whoever used it first.
        urllib.request.build_opener().open("http://nobody.invalid", timeout=5)
    assert any(b"nobody.invalid" in request for request in trap.asked), "the trap would not have noticed"


def test_a_run_of_a_study_is_in_its_group_and_bears_its_arm(trap, tmp_path):
    line = ("smoke=true", *TINY, f"outputs={tmp_path}", "pruning=none", "logger.group=norms", "logger.arm='norm=pre'")
    assert typed(*line).code == 0
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    first = Seen.of(run).kind("run")[0]
    assert first["run_group"] == "norms"
    assert first["tags"] == ["norm=pre", "smoke"]
    assert Seen.of(run).config["arm"] == "norm=pre"
