"""Every tracker gets the same events, and has each once however often a run was killed and told again."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ablab.commands.cli import main
from ablab.store.run_folder import RunFolder
from ablab.tracking.events import FOLDER, Events
from ablab.tracking.tracker import RunCard, Tracker
from tests.run.conftest import TINY, typed
from tests.tracking.seen import Seen
from tests.tracking.test_sending import PIXEL

mlflow_only = pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is an extra")

CARD = RunCard(
    run_id="rabc",
    tracker_id="rabc-1",
    name="norm=post, seed 1",
    config={"seed": 1, "arm": "norm=post", "recipe": {"seed": 1, "norm": {"kind": "post"}, "sites": ["a", "b"]}},
    tags=["norm=post", "draft"],
    group="norms",
    notes="mine",
    artifacts="selected",
)


@dataclass
class Has:
    """What a tracker has of a run in the end; `files`: tables as lines, pictures and models as bytes."""

    name: str = ""
    recipe: dict[str, str] = field(default_factory=dict)
    tags: str = ""
    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    tables: list[list[str]] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    models: list[bytes] = field(default_factory=list)
    datasets: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    failed: bool = True


class Memory(Tracker):
    """A tracker in memory, the plainest that keeps the contract: a dict of what it was told."""

    store: Mapping[Path, dict[Any, Any]]

    def __init__(self, card: RunCard, folder: Path) -> None:
        self.told = self.store[folder]
        self.told["card"] = card

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            self.told.setdefault(("point", key, step), value)

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        self.log(round(x), values)

    def table(self, step: int, key: str, columns: Sequence[str], rows: Any, *, of: str = "") -> None:
        self.told.setdefault(("table", key, step, of), [",".join(map(str, row)) for row in (columns, *rows)])

    def picture(self, step: int, key: str, path: Path, caption: str, *, of: str = "") -> None:
        self.told.setdefault(("picture", key, step, of), path.read_bytes())

    def summary(self, values: Mapping[str, Any]) -> None:
        self.told.update({("summary", key): value for key, value in values.items()})

    def model(self, kind: str, name: str, files: Sequence[Path], digest: str) -> None:
        if kind == self.told["card"].artifacts:
            self.told.setdefault(("model", name, digest), files[0].read_bytes())

    def dataset(self, name: str, about: Mapping[str, Any]) -> None:
        self.told.setdefault(("dataset", name), dict(about))

    def finish(self, *, failed: bool) -> None:
        self.told["failed"] = failed


def tell(tracker: Tracker, folder: Path, steps: Sequence[int], *, failed: bool) -> None:
    """The recorded events of a run: its data set, two curves, a table, pictures, a pruning curve, scores and models."""
    tracker.dataset("numbers", {"digest": "abc", "size": 3})
    for step in steps:
        tracker.log(step, {"train/loss": 1 / step, "valid/bleu": float(step)})
        tracker.table(step, "valid/samples", ("source", "translation"), [("a", "b"), (step, 1.5)])
        (folder / "map.png").write_bytes(PIXEL + bytes([step]))
        tracker.picture(step, "valid/map", folder / "map.png", "a map")
    for layers in (2, 1):
        tracker.along("decoder_layers", layers, {"pruning/decoder/test_bleu": 10.0 * layers})
    tracker.chart(40, "report/curves", {"data": [{"y": [1, 2]}], "layout": {}})
    for score in (0.1, 20.5):
        tracker.summary({"test/bleu": score, "state": "finished"})
    (folder / "weights").write_bytes(b"weights")
    tracker.model("selected", "selected", [folder / "weights"], "d")
    tracker.model("pruned", "small", [folder / "weights"], "e")
    tracker.finish(failed=failed)


def in_memory(folder: Path) -> Has:
    told = Memory.store[folder]
    of = {kind: {key[1:]: value for key, value in told.items() if key[0] == kind} for kind, *_ in told}
    has = Has(told["card"].name, recipe_of(told["card"]), ", ".join(told["card"].tags), failed=told["failed"])
    for key, step in sorted(of["point"]):
        has.points.setdefault(key, []).append((step, of["point"][key, step]))
    has.tables, has.pictures = list(of["table"].values()), list(of["picture"].values())
    has.models = list(of["model"].values())
    has.datasets = [(name, about) for (name,), about in of["dataset"].items()]
    has.numbers = {key: value for (key,), value in of["summary"].items() if isinstance(value, float)}
    has.texts = {key: value for (key,), value in of["summary"].items() if isinstance(value, str)}
    return has


def in_events(folder: Path) -> Has:
    seen = Seen.of(folder)
    has = Has(seen.card.name, recipe_of(seen.card), ", ".join(seen.card.tags))
    for row in seen.kind("row"):
        for key, value in row["values"].items():
            has.points.setdefault(key, []).append((row["x"], value))
    has.points = {key: sorted(points) for key, points in has.points.items()}
    has.tables = [[",".join(map(str, row)) for row in (e["columns"], *e["rows"])] for e in seen.kind("table")]
    has.pictures = [(folder / FOLDER / event["file"]).read_bytes() for event in seen.kind("picture")]
    has.models = [(folder / event["files"][0]).read_bytes() for event in seen.kind("model")]
    has.datasets = [(event["key"], event["about"]) for event in seen.kind("dataset")]
    has.numbers = {key: value for key, value in seen.summary.items() if isinstance(value, float)}
    has.texts = {key: value for key, value in seen.summary.items() if isinstance(value, str)}
    has.failed = seen.kind("closed")[-1]["failed"]
    return has


def in_mlflow(folder: Path) -> Has:
    client, run = mlflow_run(folder)
    has = Has(run.info.run_name, dict(run.data.params), run.data.tags["tags"], failed=run.info.status != "FINISHED")
    for key in ("train/loss", "valid/bleu", "pruning/decoder/test_bleu"):
        has.points[key] = sorted(
            (metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, key)
        )
    place = Path(run.info.artifact_uri.removeprefix("file://"))
    has.tables = [path.read_text().splitlines() for path in sorted(place.rglob("*.csv"))]
    has.pictures = [path.read_bytes() for path in sorted(place.rglob("*.png"))]
    has.models = [path.read_bytes() for path in sorted((place / "models").rglob("*")) if path.is_file()]
    inputs = [one.dataset for one in run.inputs.dataset_inputs]
    has.datasets = [(one.name, json.loads(one.source)) for one in inputs]
    has.numbers, has.texts = {"test/bleu": run.data.metrics["test/bleu"]}, {"state": run.data.tags["state"]}
    assert run.data.tags.items() >= {"ablab.run": "rabc-1", "arm": "norm=post", "study": "norms", "seed": "1"}.items()
    assert run.data.tags["mlflow.note.content"] == "mine"
    assert len(list(place.rglob("curves-40.html"))) == 1
    return has


def mlflow_run(folder: Path) -> tuple[Any, Any]:
    """The client of the store in which the run of `folder` lies, and the only run there."""
    from mlflow import MlflowClient

    client = MlflowClient((folder.parents[1] / "mlruns").as_uri())
    known = client.get_experiment_by_name("ablab")
    (run,) = client.search_runs([known.experiment_id])
    return client, run


def recipe_of(card: RunCard) -> dict[str, str]:
    assert card.config["recipe"] == CARD.config["recipe"]
    return {"seed": "1", "norm.kind": "post", "sites": '["a", "b"]'}


@mlflow_only
def test_mlflow_has_settings_of_any_name(tmp_path):
    """Those of files are paths, which its store would make folders of."""
    inputs = {"model/": "a", "model/a.txt": "b", "./model.a.txt": "c", "../x [1].py": "d"}
    folder = tmp_path / "runs" / "rabc"
    tracker = make_mlflow(CARD.model_copy(update={"config": {**CARD.config, "recipe": {"inputs": inputs}}}), folder)
    tracker.log(1, {"loss": 2.0})
    tracker.finish(failed=False)
    _, run = mlflow_run(folder)
    assert sorted(run.data.params.values()) == ["a", "b", "c", "d"]
    assert (run.info.status, run.data.metrics["loss"]) == ("FINISHED", 2.0)


@mlflow_only
def test_a_store_that_was_moved_keeps_what_is_told_from_then_on(tmp_path):
    before = tmp_path / "here" / "runs" / "r1"
    before.mkdir(parents=True)
    make_mlflow(CARD, before).finish(failed=True)
    shutil.move(tmp_path / "here", tmp_path / "there")
    folder = tmp_path / "there" / "runs" / "r1"
    tracker = make_mlflow(CARD, folder)
    tracker.table(1, "t", ["a"], [[1]])
    tracker.finish(failed=False)
    client, run = mlflow_run(folder)
    assert [one.path for one in client.list_artifacts(run.info.run_id)]
    assert not (tmp_path / "here").exists()


@mlflow_only
def test_a_run_that_mlflow_cannot_describe_is_not_left_running(tmp_path, monkeypatch):
    from ablab.tracking.mlflow import MLflow

    monkeypatch.setattr(MLflow, "_describe", lambda *_: 1 / 0)
    folder = tmp_path / "runs" / "rabc"
    with pytest.raises(ZeroDivisionError):
        make_mlflow(CARD, folder)
    assert mlflow_run(folder)[1].info.status == "FAILED"


def make_mlflow(card: RunCard, folder: Path) -> Tracker:
    from ablab.tracking.mlflow import MLflow

    return MLflow(card, folder, "ablab", None)


TRACKERS = [
    pytest.param(Memory, in_memory, id="memory"),
    pytest.param(lambda card, folder: Events(folder, card, print), in_events, id="wandb"),
    pytest.param(make_mlflow, in_mlflow, id="mlflow", marks=mlflow_only),
]


@pytest.mark.parametrize("kills", [0, 2])
@pytest.mark.parametrize(("make", "read"), TRACKERS)
def test_all_are_told_the_same_once(
    make: Callable[[RunCard, Path], Tracker], read: Callable[[Path], Has], kills: int, tmp_path: Path, monkeypatch: Any
) -> None:
    """Each attempt tells all that the one before has told, as a run does that goes on from a checkpoint."""
    folder = tmp_path / "runs" / "rabc"
    folder.mkdir(parents=True)
    monkeypatch.setattr(Memory, "store", {folder: {}}, raising=False)
    for attempt in range(kills + 1):
        last = attempt == kills
        tell(make(CARD, folder), folder, (10, 20, 30, 40) if last else (10, 20, 30), failed=not last)
    steps = (10, 20, 30, 40)
    assert read(folder) == Has(
        "norm=post, seed 1",
        {"seed": "1", "norm.kind": "post", "sites": '["a", "b"]'},
        "norm=post, draft",
        {
            "train/loss": [(step, 1 / step) for step in steps],
            "valid/bleu": [(step, float(step)) for step in steps],
            "pruning/decoder/test_bleu": [(1, 10.0), (2, 20.0)],
        },
        [["source,translation", "a,b", f"{step},1.5"] for step in steps],
        [PIXEL + bytes([step]) for step in steps],
        [b"weights"],
        [("numbers", {"digest": "abc", "size": 3})],
        {"test/bleu": 20.5},
        {"state": "finished"},
        failed=False,
    )


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nowhere://x", "logger.tracking_uri=nowhere://x: no store of MLflow; allowed: a folder, or"),
        ("", "logger.tracking_uri=: no store of MLflow"),
        ("http://me:secret@host", "logger.tracking_uri has a password, which records would keep; allowed: MLFLOW_TR"),
    ],
)
@mlflow_only
def test_addresses_that_cannot_be_are_refused_first(address, words, tmp_path, capsys):
    assert main(["train", "logger=mlflow", f"logger.tracking_uri='{address}'", f"outputs={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {words}")
    assert "secret" not in said
    assert not list(tmp_path.iterdir())


def test_without_the_library_the_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ablab.tracking.mlflow.find_spec", lambda name: None)
    assert main(["train", "logger=mlflow", f"outputs={tmp_path}"]) == 2
    assert capsys.readouterr().err == "error: logger=mlflow: MLflow is not installed; pip install 'ablab[mlflow]'\n"


@mlflow_only
def test_a_server_that_is_not_there_costs_a_line(tmp_path, monkeypatch):
    from ablab.config import compose
    from ablab.tasks.plan import plan
    from ablab.tracking.open import open_tracker

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    words = ["logger=mlflow", "logger.tracking_uri=http://127.0.0.1:9", f"outputs={tmp_path}"]
    planned, said = plan(compose(words)), list[str]()
    with open_tracker(planned, said.append) as tracker:
        tracker.log(1, {"train/loss": 1.0})
    (line,) = said
    assert line.startswith(f"MLflow is told nothing of {planned.run_id} (MlflowException: API request to http://127")


@mlflow_only
@pytest.mark.slow
def test_a_run_is_in_mlflow_with_its_scores_and_joins_a_study(tmp_path):
    from ablab.config import compose
    from ablab.tracking.mlflow import MLflow

    line = ("smoke=true", *TINY, "logger=mlflow", "logger.arm=mine", "pruning=none", f"outputs={tmp_path}")
    assert typed(*line).code == 0
    (folder,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    run = RunFolder(folder)
    record = run.record()
    assert record is not None
    MLflow.join(compose(line).config.logger, "x.y", [(run, "plain")], print)
    client, there = mlflow_run(folder)
    assert there.info.status == "FINISHED"
    assert there.data.tags.items() >= {"run_id": record.run_id, "arm": "mine", "studies.x_y": "plain"}.items()
    assert there.data.tags["code"] == record.provenance["code"]
    assert there.data.params["norm.kind"] == "layernorm"
    assert [m.step for m in client.get_metric_history(there.info.run_id, "train/loss")] == [4, 8]
    assert there.data.metrics["selected/bleu"] == record.selected.scores["bleu"]
    assert "test/bleu" in there.data.metrics
    assert not (folder / FOLDER).exists()
