"""MLflow: a run's parameters, metrics and artifacts in a file store beside the runs, or wherever an address says."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from ablab.config.options import Logger, models_of
from ablab.errors import UserError
from ablab.files import csv_text, json_digest, write_text
from ablab.files.disk import lock_at
from ablab.store.run_folder import RunFolder
from ablab.tracking.card import id_of, key_of
from ablab.tracking.events import STUDIES
from ablab.tracking.tracker import RunCard, Tracker

RUN = "ablab.run"
"""Tag by which a run is found again: the run id, the store's, and a number where it is trained again."""

VARIABLE = "MLFLOW_TRACKING_URI"

USUAL: Mapping[str, str] = {
    "MLFLOW_ALLOW_FILE_STORE": "true",  # from 3.17 on, MLflow asks whether one means it
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",  # seconds; with 120 and 7 attempts, a server that hangs would hold up the run
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
}
"""Values of MLflow's variables that the user has not set."""

SCHEMES = ("", "file", "sqlite", "postgresql", "mysql", "mssql", "http", "https", "databricks")
"""Kinds of stores; those that plug-ins add can be named in MLFLOW_TRACKING_URI alone."""

MOST_RUNS = 50_000
"""Runs that MLflow lists at once."""

MOST_PARAMS = 100
"""Parameters, or tags, that MLflow takes at once."""


class MLflow(Tracker):
    """A run of MLflow. `tracking_uri`: None for $MLFLOW_TRACKING_URI, or else the folder `mlruns` in the store."""

    title = "MLflow"
    shows_pictures = True

    def __init__(
        self, card: RunCard, folder: Path, experiment: Annotated[str, Field(min_length=1)], tracking_uri: str | None
    ) -> None:
        self._client, place = _connected(folder, experiment, tracking_uri)
        found = _found(self._client, place, card.id_there)
        if found is None:
            found = self._client.create_run(place, run_name=card.name, tags={RUN: card.id_there})
        self._id: str = found.info.run_id
        self._data, self._wanted = found.data, models_of(card.artifacts)
        self._steps: dict[str, set[int]] = {}
        self._client.update_run(self._id, status="RUNNING", name=card.name)
        try:
            self._describe(card)
        except Exception:  # whatever MLflow raises: nobody else would end the run there
            self._client.set_terminated(self._id, "FAILED")
            raise

    @classmethod
    def check(cls, logger: Logger) -> None:
        if find_spec("mlflow") is None:
            raise UserError("logger=mlflow: MLflow is not installed; pip install 'ablab[mlflow]'")
        _check_address(logger.own["tracking_uri"])

    @classmethod
    def join(
        cls, logger: Logger, study: str, runs: Iterable[tuple[RunFolder, str]], say: Callable[[str], None]
    ) -> None:
        arms = {id_of(run.path, run.path.name): (run.path, arm) for run, arm in runs}
        if not arms:
            return
        folder, _ = next(iter(arms.values()))
        client, place = _connected(folder, logger.own["experiment"], logger.own["tracking_uri"])
        for found in client.search_runs([place], max_results=MOST_RUNS):
            _, arm = arms.get(found.data.tags.get(RUN, ""), (folder, None))
            if arm is not None:
                client.set_tag(found.info.run_id, f"{STUDIES}.{key_of(study)}", arm)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._measure({key: (step, value) for key, value in values.items() if step not in self._told(key)})

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        """Log points at a step that is no step: MLflow has no other axis."""
        self.log(round(x), values)

    def table(
        self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: str = ""
    ) -> None:
        """Store a table as CSV."""
        self._client.log_text(self._id, csv_text([columns, *rows]), _file(key, step, of, ".csv"))

    def picture(self, step: int, key: str, path: Path, caption: str, *, of: str = "") -> None:
        place = Path(_file(key, step, of, path.suffix))
        with tempfile.TemporaryDirectory(prefix="ablab-mlflow-") as scratch:
            named = shutil.copyfile(path, Path(scratch, place.name))
            self._client.log_artifact(self._id, str(named), str(place.parent))

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        """Store a chart as a page that needs no network."""
        from plotly.graph_objects import Figure

        self._client.log_text(self._id, Figure(figure).to_html(), _file(key, step, "", ".html"))

    def summary(self, values: Mapping[str, Any]) -> None:
        """Log numbers as metrics, after all earlier values, and text as tags."""
        numbers = {key: float(value) for key, value in values.items() if _is_number(value)}
        known = self._client.get_run(self._id).data.metrics
        news = {key: value for key, value in numbers.items() if known.get(_name(key)) != value}
        self._measure({key: (max(self._told(key), default=-1) + 1, value) for key, value in news.items()})
        texts = {key: value for key, value in values.items() if key not in numbers and value is not None}
        self._batch("tags", _flat(texts))

    def model(self, kind: str, name: str, files: Sequence[Path], digest: str) -> None:
        tag = f"models.{name}.sha256"
        if kind not in self._wanted or self._data.tags.get(tag) == digest:
            return
        for path in files:
            self._client.log_artifact(self._id, str(path), f"models/{name}")
        self._client.set_tag(self._id, tag, digest)

    def dataset(self, name: str, about: Mapping[str, Any]) -> None:
        """Name the data set as an input of the run; MLflow takes digests of at most 36 characters."""
        from mlflow.entities import Dataset, DatasetInput

        source = json.dumps(dict(about), default=str)
        found = Dataset(name, json_digest(about, 11), source_type="ablab", source=source)
        self._client.log_inputs(self._id, [DatasetInput(found)])

    def finish(self, *, failed: bool) -> None:
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")

    def _describe(self, card: RunCard) -> None:
        """Set the recipe as parameters, which MLflow lets no one change, and all else that is known as tags."""
        about = {key: value for key, value in card.config.items() if key != "recipe"}
        about |= {"tags": ", ".join(card.tags), "study": card.group, "mlflow.note.content": card.notes}
        if "job_type" not in self._data.tags:
            about["job_type"] = card.job_type
        self._batch("tags", _flat({key: value for key, value in about.items() if value not in (None, "")}))
        recipe = _flat(card.config.get("recipe", {}))
        self._batch("params", {key: value for key, value in recipe.items() if key not in self._data.params})

    def _batch(self, kind: str, values: Mapping[str, str]) -> None:
        from mlflow.entities import Param, RunTag

        entity = {"params": Param, "tags": RunTag}[kind]
        made = [entity(key, value) for key, value in values.items()]
        for start in range(0, len(made), MOST_PARAMS):
            self._client.log_batch(self._id, **{kind: made[start : start + MOST_PARAMS]})

    def _measure(self, points: Mapping[str, tuple[int, float | None]]) -> None:
        from mlflow.entities import Metric

        now = round(1000 * time.time())
        there = {key: point for key, point in points.items() if point[1] is not None}
        made = [Metric(_name(key), float(value or 0), now, step) for key, (step, value) in there.items()]
        if made:
            self._client.log_batch(self._id, metrics=made)
        for key, (step, _) in there.items():
            self._told(key).add(step)

    def _told(self, key: str) -> set[int]:
        """Return the steps at which MLflow has a value: after a kill, some are trained again."""
        if key not in self._steps:
            name = _name(key)
            known = self._client.get_metric_history(self._id, name) if name in self._data.metrics else ()
            self._steps[key] = {metric.step for metric in known}
        return self._steps[key]


def _connected(folder: Path, experiment: str, tracking_uri: str | None) -> tuple[Any, str]:
    """Return a client and the id of the experiment. Runs that start at once must not both create it."""
    for name, value in USUAL.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    store = folder.parents[1].resolve()
    store.mkdir(parents=True, exist_ok=True)
    with lock_at(store / ".mlflow.lock"):
        if not (address := tracking_uri or os.environ.get(VARIABLE)):
            _follow(own := store / "mlruns")
            address = own.as_uri()
        client = MlflowClient(address)
        known = client.get_experiment_by_name(experiment)
        return client, client.create_experiment(experiment) if known is None else known.experiment_id


def _follow(folder: Path) -> None:
    """Let experiments and runs of a folder that was moved or copied name where they lie: MLflow keeps whole paths."""
    for experiment in folder.glob("*/meta.yaml"):
        if _placed(experiment, "artifact_location", experiment.parent.as_uri()):
            for run in experiment.parent.glob("*/meta.yaml"):
                _placed(run, "artifact_uri", f"{run.parent.as_uri()}/artifacts")


def _placed(file: Path, key: str, place: str) -> bool:
    """Write a place into a file of MLflow's; return whether it named another."""
    before = file.read_text(encoding="utf-8")
    text = re.sub(rf"^{key}: .*$", lambda _: f"{key}: {place}", before, flags=re.MULTILINE)
    if text != before:
        write_text(file, text)
    return text != before


def _found(client: Any, experiment: str, run: str) -> Any:
    return next(iter(client.search_runs([experiment], f"tags.`{RUN}` = '{run}'", max_results=1)), None)


def _check_address(uri: str | None) -> None:
    """Refuse what MLflow has no store for, and a password, since records keep their settings."""
    if uri is None:
        return
    if not uri.strip() or urlsplit(uri).scheme.partition("+")[0] not in SCHEMES:
        raise UserError(
            f"logger.tracking_uri={uri}: no store of MLflow; allowed: a folder, or an address that begins with "
            f"{', '.join(f'{scheme}:' for scheme in SCHEMES if scheme)}"
        )
    if urlsplit(uri).password is not None:
        raise UserError(f"logger.tracking_uri has a password, which records would keep; allowed: {VARIABLE} instead")


def _flat(values: Mapping[str, Any]) -> dict[str, str]:
    """Return nested values under dotted names, as text; a later one of the same name in MLflow's letters is marked."""
    found: dict[str, str] = {}
    for key, value in _leaves(values):
        name = _name(key).replace("/", ".").strip(".")  # those of files would be folders, and `model/` none
        found[f"{name}_{json_digest(key, 6)}" if name in found else name] = value
    return found


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, default=str)


def _name(key: str) -> str:
    """Return a key with the characters that MLflow takes."""
    return re.sub(r"[^\w\-. :/]", "_", key)


def _file(key: str, step: int, of: str, suffix: str) -> str:
    return f"{_name(key)}-{step}{f'-{of}' if of else ''}{suffix}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
