"""Readers of what other tools keep of runs: stores of MLflow, event files of TensorBoard, results of lm-eval.

A reader is a function that returns the runs at a place, and a line of `TOOLS` that says what such a place looks like.
"""

import json
import os
import sqlite3
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ablab.errors import UserError, is_installed
from ablab.judge.tool_runs import FOLDER, Points, ToolRun, words_of_path


class Tool(NamedTuple):
    """Another tool. `package`: the library that reads its files, an extra of ablab of that name; empty: none."""

    title: str
    package: str
    keeps: Callable[[str], bool]
    runs: Callable[[str], Sequence[ToolRun]]


def tool_runs(place: str) -> Sequence[ToolRun] | None:
    """Return the runs that a tool keeps at a place, in the order in which they began; None: it is of no known tool.

    Raises UserError for a tool whose library is not installed, and for what it cannot read.
    """
    tool = next((tool for tool in TOOLS if tool.keeps(place)), None)
    if tool is None:
        return None
    if tool.package and not is_installed(tool.package):
        raise UserError(f"table={place}: {tool.title} is not installed; pip install 'ablab[{tool.package}]' brings it")
    return tool.runs(place)


SQLITE = b"SQLite format 3\0"

VARIABLES = ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY")
"""What is set unless the user did: from 3.17 on, MLflow asks whether one means a store of files."""

MOST_RUNS = 50_000
"""Runs that MLflow lists at once."""


def _is_mlflow(place: str) -> bool:
    """Return whether it is an address of a store, a folder such as `mlruns`, or a database such as `mlflow.db`."""
    scheme = urlsplit(place).scheme
    if scheme in ("http", "https"):
        raise UserError(
            f"table={place}: servers are not read; allowed: MLflow's folder or database, sqlite:///mlflow.db"
        )
    if scheme in ("sqlite", "file"):
        return True
    path = Path(place)
    if path.is_dir():
        return any(path.glob("*/meta.yaml"))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _mlflow(place: str) -> list[ToolRun]:
    """Return the runs of a store. Their words are parameters, own tags, `experiment` and `run`.

    A parent without metrics of its own is no run, but the group of its children.
    """
    for name in VARIABLES:
        os.environ.setdefault(name, "true")
    uri = _mlflow_address(place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that MLflow imports
            from mlflow import MlflowClient

            client = MlflowClient(uri)
            experiments = {one.experiment_id: one.name for one in client.search_experiments()}
            found = client.search_runs(list(experiments), max_results=MOST_RUNS) if experiments else []
    except Exception as error:
        raise UserError(f"table={place}: MLflow cannot read it ({_first_line(error)})") from None
    parents = {run.data.tags.get("mlflow.parentRunId") for run in found}
    found = [run for run in found if run.info.run_id not in parents or run.data.metrics]
    found.sort(key=lambda run: run.info.start_time or 0)
    return [_mlflow_run(client, run, experiments, place) for run in found]


def path_of(place: str) -> Path:
    """Return the file or folder of a table or of what a tool keeps, which an address may name."""
    return Path(unquote(urlsplit(place).path) if urlsplit(place).scheme == "file" else place.removeprefix("sqlite:///"))


def _mlflow_address(place: str) -> str:
    """Return the address of a store that is there: MLflow would make one."""
    scheme, path = urlsplit(place).scheme, path_of(place)
    if not path.exists():
        raise UserError(f"table={place}: there is no such store")
    if scheme == "sqlite" or path.is_file():
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            try:
                tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
            except sqlite3.Error as error:
                raise UserError(f"table={place}: cannot be read as a database ({error})") from None
        if not tables >= {"runs", "params", "metrics"}:
            raise UserError(f"table={place}: no database of MLflow: it lacks the tables runs, params and metrics")
        if "?" in (near := os.path.relpath(path)):
            raise UserError(f"table={place}: MLflow takes what follows ? for options; allowed: its name, in its folder")
        return f"sqlite:///{near}"
    return path.resolve().as_uri()


def _mlflow_run(client: Any, run: Any, experiments: Mapping[str, str], place: str) -> ToolRun:
    def points(metric: str) -> Points:
        history = client.get_metric_history(run.info.run_id, metric)
        return [(one.step, one.value) for one in sorted(history, key=lambda one: (one.step, one.timestamp))]

    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    named = {"experiment": experiments[run.info.experiment_id], "run": run.info.run_name or run.info.run_id}
    return ToolRun(
        where=f"{place}: run {named['run']} ({run.info.run_id}, {run.info.status})",
        words={**tags, **named, **run.data.params},
        metrics=list(run.data.metrics),
        points=points,
        state=run.info.status,
        began=None if run.info.start_time is None else run.info.start_time / 1000,
    )


EVENTS = "*tfevents*"
SPLITS = ("train", "training", "validation", "valid", "val", "test", "eval")
"""Folders of events inside a run's folder, as Keras writes them: parts of a run, and no runs."""


def _is_tensorboard(place: str) -> bool:
    return Path(place).is_dir() and any(Path(place).rglob(EVENTS))


def _tensorboard(place: str) -> list[ToolRun]:
    """Return the runs of a folder, one for each folder below it. Their words are hyperparameters, else of the path."""
    top = Path(place)
    folders = sorted({path.parent for path in top.rglob(EVENTS)})
    parts: dict[Path, list[Path]] = defaultdict(list)
    for folder in folders:
        above = [one for one in folder.parents if one in folders and one != top and not _holds_runs(one, folders, top)]
        is_part = folder.name.lower() in SPLITS and folder != top
        parts[above[-1] if above else folder.parent if is_part else folder].append(folder)
    runs = [_tensorboard_run(top, folder, own) for folder, own in parts.items()]
    return sorted(runs, key=lambda run: run.began or 0)


def _holds_runs(above: Path, folders: Sequence[Path], top: Path) -> bool:
    """Return whether the folders below one are of several seeds, by their paths: runs, and no parts of one."""
    paths = (folder.relative_to(top).parts for folder in folders if above in folder.parents)
    return len({words_of_path(parts).get("seed") for parts in paths} - {None}) > 1


def _tensorboard_run(top: Path, folder: Path, parts: Sequence[Path]) -> ToolRun:
    points: dict[str, Points] = {}
    words: dict[str, str] = {}
    times = []
    for part in parts:
        events = _events_in(part)
        told = dict(_hyperparameters(events))
        for name in sorted(told.keys() & words.keys()):
            if told[name] != words[name]:
                both = f"{name}={words[name]} and {name}={told[name]}"
                raise UserError(f"{folder}: {both} in {part.name}; allowed: one run in a folder")
        words |= told
        # PyTorch writes hyperparameters, with a metric's final or best value, into a folder of their own.
        prefix = "" if part == folder or told else f"{part.relative_to(folder).as_posix()}/"
        points = {f"{prefix}{tag}": values for tag, values in _scalars(events)} | points
        with suppress(ValueError):  # of a file without events
            times.append(events.FirstEventTimestamp())
    named = words_of_path(folder.relative_to(top).parts or (top.resolve().name,))
    return ToolRun(
        where=str(folder),
        words={**named, **words},
        metrics=list(points),
        points=points.__getitem__,
        began=min(times, default=None),
    )


def _events_in(folder: Path) -> Any:
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    # All scalars are kept (0), and one of each picture, histogram and sound.
    events = EventAccumulator(str(folder), size_guidance={"tensors": 1}, tensor_size_guidance={"scalars": 0})
    try:
        events.Reload()
    except Exception as error:
        raise UserError(f"{folder}: TensorBoard cannot read its events ({_first_line(error)})") from None
    return events


def _scalars(events: Any) -> Iterator[tuple[str, Points]]:
    from tensorboard.util.tensor_util import make_ndarray

    for tag in events.PluginTagToContent("scalars") if "scalars" in events.ActivePlugins() else ():
        points: list[tuple[int, float]] = []
        for one in sorted(events.Tensors(tag), key=lambda one: one.wall_time):
            # A step that comes again resumes or restarts the run: what was beyond it counts no more.
            while points and points[-1][0] >= one.step:
                points.pop()
            points.append((one.step, float(make_ndarray(one.tensor_proto).item())))
        yield tag, points


def _hyperparameters(events: Any) -> Iterator[tuple[str, str]]:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    for content in events.PluginTagToContent("hparams").values() if "hparams" in events.ActivePlugins() else ():
        for name, value in HParamsPluginData.FromString(content).session_start_info.hparams.items():
            if (kind := value.WhichOneof("kind")) is not None:
                told = getattr(value, kind)
                yield name, str(int(told)) if isinstance(told, float) and told.is_integer() else str(told)


RESULTS = "results_*.json"


def _is_lm_eval(place: str) -> bool:
    return Path(place).is_dir() and any(map(_are_results, Path(place).rglob(RESULTS)))


def _are_results(path: Path) -> bool:
    return isinstance(_json(path).get("results"), dict)


def _lm_eval(place: str) -> list[ToolRun]:
    """Return the runs of a folder of results of lm-evaluation-harness: one for each folder and set of words.

    Their words are of the path, arguments of the model, and the seeds of the evaluation. A metric is `task/metric`, and
    `task/metric,filter` where there is a filter.
    """
    found: dict[tuple[Path, tuple[tuple[str, str], ...]], list[Path]] = defaultdict(list)
    for path in sorted(Path(place).rglob(RESULTS)):
        if _are_results(path):
            with _as_lm_eval(path):
                found[path.parent, tuple(_lm_eval_words(path, _json(path), Path(place)).items())].append(path)
    runs = []
    for (folder, words), paths in found.items():
        with _as_lm_eval(folder):
            runs.append(_lm_eval_run(folder, dict(words), paths))
    return runs


@contextmanager
def _as_lm_eval(place: Path) -> Iterator[None]:
    """Raise UserError for what lm-evaluation-harness never writes."""
    try:
        yield
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError) as error:
        raise UserError(f"{place}: cannot be read as results of lm-evaluation-harness ({_first_line(error)})") from None


def _lm_eval_words(path: Path, content: Mapping[str, Any], top: Path) -> dict[str, str]:
    config, parts = content.get("config", {}), path.parent.relative_to(top).parts
    model = str(content.get("model_name_sanitized") or "")
    own = parts[:-1] if parts[-1:] == (model,) else parts  # the last folder is the model's, as it was loaded
    of_path = words_of_path(own)
    if "seed" not in of_path or FOLDER not in of_path:
        of_path = {**words_of_path(parts or (model,)), **of_path}
    given = config.get("model_args") or {}
    pairs = dict(pair.split("=", 1) for pair in given.split(",") if "=" in pair) if isinstance(given, str) else given
    seeds = {name: str(value) for name, value in config.items() if name.endswith("_seed") and value is not None}
    given = {name: str(value) for name, value in pairs.items()}
    # The seed of a path is that of a training, and those of the arguments may be of sampling, as vLLM has one.
    return {**seeds, **given, **of_path} if "seed" in of_path else {**seeds, **of_path, **given}


def _lm_eval_run(folder: Path, words: Mapping[str, str], paths: Sequence[Path]) -> ToolRun:
    values: dict[str, float] = {}
    lower: dict[str, bool] = {}
    places: dict[str, tuple[Path, str, str, str]] = {}
    corpora: dict[str, str] = {}
    shots: dict[str, str] = {}
    dates = []
    for path in paths:
        content = _json(path)
        dates.append(content.get("date"))
        for task, own in content["results"].items():
            higher = content.get("higher_is_better", {}).get(task) or {}
            for key, value in own.items():
                metric, _, by = key.partition(",")
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if not by or metric.endswith("_stderr") or not is_number:
                    continue
                name = f"{task}/{metric}" if by == "none" else f"{task}/{metric},{by}"
                if name in values:
                    other = places[name][0].name
                    raise UserError(f"{path}: {other} has {name} too; allowed: one of them in this folder")
                values[name], places[name] = float(value), (path, task, metric, by)
                corpora[name], shots[name] = (
                    _lm_eval_corpus(content, task),
                    str((content.get("n-shot") or {}).get(task, "")),
                )
                if isinstance(higher.get(metric), bool):
                    lower[name] = not higher[metric]

    @cache
    def samples(name: str) -> Mapping[str, float]:
        path, task, metric, by = places[name]
        beside = path.with_name(f"samples_{task}_{path.stem.removeprefix('results_')}.jsonl")
        return dict(_samples(beside, metric, by)) if beside.exists() else {}

    began = [date for date in dates if isinstance(date, int | float)] or [path.stat().st_mtime for path in paths]
    return ToolRun(
        where=str(folder),
        words=words,
        metrics=list(values),
        points=lambda name: [(0, values[name])],
        items=samples,
        lower=lower,
        began=min(began, default=None),
        corpora=corpora,
        shots=shots,
        not_seeds=frozenset(word for word in words if word.endswith("_seed") and word in (content.get("config") or {})),
    )


def _lm_eval_corpus(content: Mapping[str, Any], task: str) -> str:
    """Return the version of a task and how many of its samples were taken, as far as they are told."""
    version, samples = ((content.get(name) or {}).get(task) for name in ("versions", "n-samples"))
    taken = samples.get("effective") if isinstance(samples, Mapping) else (content.get("config") or {}).get("limit")
    told = [("version", version), ("samples", taken)]
    return ", ".join([task, *(f"{name} {value}" for name, value in told if value is not None)])


def _samples(path: Path, metric: str, by: str) -> Iterator[tuple[str, float]]:
    """Yield each item, by its number and the digest of its text, with its value of a metric."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        for sample in (json.loads(line) for line in lines if line.strip()):
            if sample.get("filter", by) == by and isinstance(value := sample.get(metric), int | float):
                yield f"{sample['doc_id']:>9} {str(sample.get('doc_hash'))[:8]}", float(value)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path}: cannot be read as samples of lm-eval ({_first_line(error)})") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({_first_line(error)})") from None
    return content if isinstance(content, dict) else {}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


TOOLS = (
    Tool("MLflow", "mlflow", _is_mlflow, _mlflow),
    Tool("TensorBoard", "tensorboard", _is_tensorboard, _tensorboard),
    Tool("lm-evaluation-harness", "", _is_lm_eval, _lm_eval),
)
