"""The W&B run, read back from the disk: complete, closed whatever happens, and silent towards the network."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import wandb

from ablab import identity
from ablab.config import compose
from ablab.mirror import Mirror, NoMirror, RunCard, WandbMirror
from ablab.record import Record
from ablab.store import RunFolder
from ablab.training.listeners import ToFile, ToMirror
from ablab.wandb_files import rows_on_disk
from tests.run.conftest import TINY, typed


@dataclass(frozen=True)
class Seen:
    """An offline run as `wandb leet` reads it."""

    records: list[dict[str, Any]]

    @classmethod
    def of(cls, run: Path) -> "Seen":
        (folder,) = (run / "wandb").glob("offline-run-*")
        return cls.of_folder(folder)

    @classmethod
    def of_folder(cls, folder: Path) -> "Seen":
        wandb.teardown()  # wandb's own process ends, and has written all that it ever would
        command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(folder)]
        # Unless told otherwise, this command itself calls home; whom the run calls is another question.
        quiet = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        quiet["WANDB_ERROR_REPORTING"] = "false"
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet)
        return cls([json.loads(line) for line in done.stdout.splitlines()])

    def kind(self, name: str) -> list[dict[str, Any]]:
        return [record[name] for record in self.records if record["type"] == name]

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for run in self.kind("run"):
            config |= run["config"]["update"]
        return config

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = {}
        for update in self.kind("summary"):
            summary |= update["update"]
        return summary

    @property
    def history(self) -> list[dict[str, Any]]:
        return [row["item"] for row in self.kind("history")]

    @property
    def exit_code(self) -> int:
        (found,) = self.kind("exit")
        return int(found.get("exit_code", 0))


class Trap:
    """A proxy that answers nothing and remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            caller.settimeout(5)
            self.asked.append(caller.recv(4096))
            caller.close()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    """All ways out lead to the trap: of this process, and of wandb's own, which is started afresh."""
    trap = Trap()
    wandb.teardown()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            patch.setenv(name, trap.address)
            patch.setenv(name.lower(), trap.address)
        patch.delenv("NO_PROXY", raising=False)
        patch.delenv("no_proxy", raising=False)
        yield trap
        wandb.teardown()
    trap.close()


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


@pytest.mark.parametrize("where", ["ablab.train.fit", "ablab.complete.evaluate"])
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


def test_both_mirrors_have_the_whole_face():
    """Whoever adds a method adds it to each."""
    face = {name for name in vars(Mirror) if not name.startswith("_")}
    assert face
    for mirror in (NoMirror, WandbMirror):
        assert face <= set(vars(mirror))


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
    mirror = WandbMirror(card, mode="online", project="x", entity=None)
    mirror.log(1, {"train/loss": 2.0})
    mirror.finish(failed=False)
    assert modes == ["online", "offline"]
    assert mirror.offline_because == "refused"
    assert Seen.of(tmp_path).history[0]["train/loss"] == 2.0


def test_a_resumed_run_keeps_all_points_and_says_none_twice(trap, tmp_path):
    """Sessions under one id, as after kills: steps that are trained again are not logged again."""
    card = RunCard("rabc", "s1", {"seed": 1}, [], tmp_path)
    for steps in ((10, 20), (20, 30), (20, 30, 40)):
        mirror = WandbMirror(card, mode="offline", project="x", entity=None)
        for step in steps:
            mirror.log(step, {"train/loss": float(step)})
            mirror.along("layers", step, {"pruning/bleu": 1.0})
            mirror.table(step, "valid/samples", ["a"], [[1]])
        mirror.finish(failed=False)
        wandb.teardown()  # the sessions of a resumed run are processes; within one, wandb may still be writing
    rows = [row for folder in (tmp_path / "wandb").glob("offline-run-*") for row in Seen.of_folder(folder).history]
    assert sorted(row["step"] for row in rows if "train/loss" in row) == [10, 20, 30, 40]
    assert sorted(row["axis/layers"] for row in rows if "pruning/bleu" in row) == [10, 20, 30, 40]
    assert sorted(row["step"] for row in rows if "valid/samples._type" in row) == [10, 20, 30, 40]


def test_what_wandb_lost_in_a_kill_is_told_again(trap, tmp_path, monkeypatch):
    """The last rows before a kill may be in our file and not in W&B's; the run goes on after them."""
    line = ("smoke=true", *TINY, f"outputs={tmp_path}", "pruning=none", "training.valid_every=2")
    real = ToFile.on_look

    def on_look(self, measurements):
        real(self, measurements)
        if measurements.step == 6:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ToFile, "on_look", on_look)
        patch.setattr(ToMirror, "on_look", lambda *_: None)
        assert typed(*line).code == 130
    wandb.teardown()
    assert typed(*line).code == 0
    wandb.teardown()
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    rows = [row for folder in (run / "wandb").glob("offline-run-*") for row in Seen.of_folder(folder).history]
    for key in ("train/loss", "valid/loss"):
        assert sorted(row["step"] for row in rows if key in row) == [2, 4, 6, 8]


def test_a_file_that_a_kill_cut_off_is_read_as_far_as_it_goes(trap, tmp_path):
    mirror = WandbMirror(RunCard("rabc", "s1", {}, [], tmp_path), mode="offline", project="x", entity=None)
    for step in range(2000):  # over several blocks of the file
        mirror.log(step, {"train/loss": 1.0})
    mirror.finish(failed=False)
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    wandb.teardown()
    whole = rows_on_disk(tmp_path / "wandb")
    assert {place for place, _ in whole} == set(range(2000))
    content = file.read_bytes()
    assert len(content) > 3 * 32768
    for end in (0, 5, 7, 9, 32768, 40000, len(content) - 3):
        file.write_bytes(content[:end])
        assert rows_on_disk(tmp_path / "wandb") <= whole


def test_a_run_of_a_study_is_in_its_group_and_bears_its_arm(trap, tmp_path):
    line = ("smoke=true", *TINY, f"outputs={tmp_path}", "pruning=none", "logger.group=norms", "logger.arm='norm=pre'")
    assert typed(*line).code == 0
    (run,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    first = Seen.of(run).kind("run")[0]
    assert first["run_group"] == "norms"
    assert first["tags"] == ["norm=pre", "smoke"]
    assert Seen.of(run).config["arm"] == "norm=pre"
