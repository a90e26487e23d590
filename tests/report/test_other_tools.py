"""Runs that other tools keep: files that their own libraries wrote, and what is refused of them."""

import json
import math
import os
import shutil
import tarfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

import ablab
from ablab.errors import UserError
from ablab.judge import other_tools
from ablab.judge.other_tools import _lm_eval_words, tool_runs
from ablab.judge.selection_of_table import results_in
from ablab.judge.table_claims import TableExperiment
from tests.archives import unpack
from tests.report.conftest import typed
from tests.report.test_tool_runs import LEVEL, NOISE, loss, scores

mlflow_only = pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is an extra")
tensorboard_only = pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is an extra")
LM_EVAL = Path(__file__).parents[1] / "stores" / "lm_eval.tar.xz"
"""What lm-evaluation-harness 0.4.13 wrote of its model `dummy`, without `pretty_env_info`: 2 arms, 3 seeds, 20 items"""


@pytest.fixture(scope="module")
def lm_eval(tmp_path_factory):
    place = tmp_path_factory.mktemp("lm")
    with tarfile.open(LM_EVAL) as archive:
        unpack(archive, place)
    return place / "lm_eval"


def test_results_of_lm_eval_are_read_with_their_items_and_directions(lm_eval):
    found = results_in(str(lm_eval), TableExperiment(metric="sums/acc", metrics={"sums/brier_score": {}}))
    assert {arm: sorted(own) for arm, own in found.runs.items()} == {"large": [1, 2, 3], "small": [1, 2, 3]}
    assert found.lower == {"sums/acc": False, "sums/acc_norm": False, "sums/brier_score": True}
    for arm, own in found.runs.items():
        for seed, given in own.items():
            (path,) = lm_eval.glob(f"{arm}/seed{seed}/*/results_*.json")
            told = json.loads(path.read_text())["results"]["sums"]
            assert given.scores["sums/acc"] == pytest.approx(told["acc,none"])
            assert given.scores["sums/brier_score"] == told["brier_score,none"]
            assert (given.items["sums/acc"].shape, list(given.items)) == ((20,), ["sums/acc"])
            assert set(given.items["sums/acc"]) <= {0.0, 1.0}


def test_runs_of_lm_eval_have_the_seeds_that_were_given(lm_eval):
    for run in tool_runs(str(lm_eval)):
        given = {name for name in run.words if name.endswith("_seed")}
        assert given == {"random_seed", "numpy_seed", "torch_seed", "fewshot_seed"}


def test_a_folder_of_lm_eval_is_reported(lm_eval, tmp_path, undrawn):
    (tmp_path / "claims.yaml").write_text(
        "metric: sums/acc\nbaseline: small\nclaims: [{arm: large, expect: equal, margin: 0.9}]\n"
    )
    code, out, err = typed(
        f"table={lm_eval}", f"claims={tmp_path / 'claims.yaml'}", f"outputs={tmp_path / 'outputs'}", "resamples=1000"
    )
    assert (code, err) == (0, "")
    data = json.loads(
        (tmp_path / f"outputs/reports/table-{lm_eval.parent.name}-lm_eval-claims/report.json").read_text()
    )
    assert [line["baseline"] for line in data["claims"]] == ["small"]
    assert data["differences"][0]["randomisation_p"] is not None
    assert "taken as better: higher sums/acc" in out
    words = (f"table={lm_eval}", f"claims={tmp_path / 'claims.yaml'}", f"outputs={tmp_path / 'outputs'}")
    assert typed(*words, "metric=sums/brier_score", "resamples=1000")[0] == 0
    assert (tmp_path / "outputs/reports").is_dir()
    code, _, err = typed(f"table={lm_eval}", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "metric: missing, and" in err


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("versions", 2, "sums, version 2, samples 20"),
        ("n-samples", {"original": 40, "effective": 40}, "sums, version Yaml, samples 40"),
    ],
)
def test_scores_of_another_version_or_number_of_samples_are_not_compared(lm_eval, tmp_path, key, value, said):
    """Without samples beside them, the results alone tell what they are of."""
    place = shutil.copytree(lm_eval, tmp_path / "lm_eval")
    for path in place.glob("*/*/*/*.json*"):
        if path.name.startswith("samples_"):
            path.unlink()
        elif "large" in path.parts:
            path.write_text(json.dumps({**json.loads(path.read_text()), key: {"sums": value}}))
    found = results_in(str(place), TableExperiment(metric="sums/acc"))
    assert (found.corpora["large"], found.corpora["small"]) == (said, "sums, version Yaml, samples 20")
    judged = ablab.judge(place, "sums/acc", baseline="small")
    assert "corpora differ between large and small" in str(judged.verdicts[0].reason)
    (path,) = place.glob("large/seed1/*/results_*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: {"sums": 3}}))
    with pytest.raises(UserError, match=r"measured on sums, .* and other runs of large on sums, .*; allowed: the same"):
        results_in(str(place), TableExperiment(metric="sums/acc"))


def test_a_metric_that_some_runs_lack_keeps_no_other_from_being_compared(lm_eval, tmp_path):
    place = shutil.copytree(lm_eval, tmp_path / "lm_eval")
    for path in place.glob("large/*/*/results_*.json"):
        told = json.loads(path.read_text())
        told["results"]["more"] = {"acc,none": 0.5}
        path.write_text(json.dumps(told))
    found = results_in(str(place), TableExperiment(metric="sums/acc", metrics={"more/acc": {}}))
    assert set(found.corpora.values()) == {"sums, version Yaml, samples 20"}


def test_arms_of_other_prompts_are_compared_and_it_is_said(lm_eval, tmp_path):
    place = shutil.copytree(lm_eval, tmp_path / "lm_eval")
    for path in place.glob("large/*/*/results_*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "n-shot": {"sums": 5}}))
    found = results_in(str(place), TableExperiment(metric="sums/acc"))
    assert [note for note in found.notes if note.startswith("the examples")] == [
        "the examples in prompts of sums/acc differ: 5 in large; 0 in small"
    ]


def test_other_items_in_one_run_are_refused(lm_eval, tmp_path):
    with tarfile.open(LM_EVAL) as archive:
        unpack(archive, tmp_path)
    (path,) = (tmp_path / "lm_eval/large/seed2").glob("*/samples_*.jsonl")
    lines = path.read_text().replace('"doc_id": 3,', '"doc_id": 33,', 1)
    path.write_text(lines)
    with pytest.raises(UserError, match=r"of sums/acc is that of .*, and not of both"):
        results_in(str(tmp_path / "lm_eval"), TableExperiment(metric="sums/acc"))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(UserError, match="cannot be read as samples of lm-eval"):
        results_in(str(tmp_path / "lm_eval"), TableExperiment(metric="sums/acc"))


def test_a_library_that_is_missing_is_told_in_a_line(tmp_path, monkeypatch):
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("name: Default\n")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "events.out.tfevents.1.host").write_bytes(b"")
    monkeypatch.setattr(other_tools, "is_installed", lambda package: False)
    for place, title in (("mlruns", "MLflow"), ("runs", "TensorBoard")):
        code, _, err = typed(f"table={tmp_path / place}", f"outputs={tmp_path / 'outputs'}")
        extra = title.lower()
        assert (code, err.count("\n")) == (2, 1)
        assert f"{title} is not installed; pip install 'ablab[{extra}]' brings it" in err


@mlflow_only
@pytest.mark.parametrize("kind", ["file", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_a_store_of_mlflow_is_read(tmp_path, monkeypatch, kind, undrawn):
    monkeypatch.chdir(tmp_path)
    for name in other_tools.VARIABLES:
        monkeypatch.setenv(name, "true")
    place = {"file": "mlruns", "sqlite": "mlflow.db"}[kind]
    uri = (tmp_path / place).as_uri() if kind == "file" else f"sqlite:///{tmp_path / place}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_mlflow(uri)
    found = results_in(place, TableExperiment(metric="val_loss", better="lower", where={"experiment": "schedules"}))
    assert found.runs["schedule=cosine"][2].scores == {"val_loss": loss("cosine", 2)}
    assert found.runs["schedule=constant"][3] is None
    assert found.runs["schedule=constant"][4] is None
    assert found.unfinished == {("schedule=constant", 4): "failed"}
    assert found.began is not None
    (tmp_path / "claims.yaml").write_text(
        "metric: val_loss\nbetter: lower\nbaseline: schedule=linear\nwhere: {experiment: schedules}\nat: 2\n"
        "claims: [{arm: schedule=cosine, expect: less}]\n"
    )
    for words in (place, uri):
        assert typed(f"table={words}", "claims=claims.yaml", "resamples=1000")[0] == 0
        name = f"table-{Path(place).stem}-claims"
        data = json.loads((tmp_path / "outputs/reports" / name / "report.json").read_text())
        first = data["arms"][0]
        assert (first["name"], first["mean"]) == (
            "schedule=linear",
            pytest.approx(sum(loss("linear", seed, 2) for seed in NOISE) / 3),
        )


def write_mlflow(uri):
    """Three arms of three seeds, as tags, of which one diverged and one failed; a parent, and a run of elsewhere."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    other = client.create_run(client.create_experiment("other"))
    client.log_param(other.info.run_id, "seed", 1)
    client.log_metric(other.info.run_id, "val_loss", 9.0)
    client.set_terminated(other.info.run_id)
    place = client.create_experiment("schedules")
    parent = client.create_run(place)
    client.set_terminated(parent.info.run_id)
    for schedule in LEVEL:
        for seed in (*NOISE, *([4] if schedule == "constant" else [])):
            tags = {"mlflow.parentRunId": parent.info.run_id, "seed": str(seed)}
            run = client.create_run(place, tags=tags).info.run_id
            for name, value in {"schedule": schedule, "out_dir": f"{schedule}{seed}"}.items():
                client.log_param(run, name, value)
            for step in (1, 2, 4) if seed != 4 else ():
                value = math.nan if (schedule, seed) == ("constant", 3) and step == 4 else loss(schedule, seed, step)
                client.log_metric(run, "val_loss", value, step=step)
            client.set_terminated(run, "FAILED" if seed == 4 else "FINISHED")


@mlflow_only
def test_a_path_that_mlflow_would_take_for_options_is_refused(tmp_path, monkeypatch):
    """It would read another database, and make it."""
    import sqlite3

    (tmp_path / "a?b").mkdir()
    path = tmp_path / "a?b" / "m.db"
    with sqlite3.connect(path) as database:
        for table in ("runs", "params", "metrics"):
            database.execute(f"create table {table} (x)")
    database.close()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"MLflow takes what follows \? for options; allowed: its name, in its folder"):
        tool_runs(str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["a?b"]


def test_what_is_no_store_of_mlflow_is_refused_and_left_as_it_is(tmp_path):
    import sqlite3

    path = tmp_path / "mine.db"
    with sqlite3.connect(path) as database:
        database.execute("create table mine (x)")
    database.close()
    before = path.read_bytes()
    for place in (str(path), f"sqlite:///{path}"):
        if find_spec("mlflow") is not None:
            with pytest.raises(UserError, match="no database of MLflow"):
                tool_runs(place)
    assert path.read_bytes() == before
    if find_spec("mlflow") is not None:
        with pytest.raises(UserError, match="there is no such store"):
            tool_runs(f"sqlite:///{tmp_path / 'none.db'}")
        assert not (tmp_path / "none.db").exists()


@tensorboard_only
def test_event_files_of_tensorboard_are_read(tmp_path):
    from tensorboard.summary import Writer

    for schedule in LEVEL:
        for seed in NOISE:
            writer = Writer(str(tmp_path / "runs" / schedule / f"seed{seed}"))
            for step in (1, 2, 4):
                writer.add_scalar("val/loss", loss(schedule, seed, step), step)
            writer.close()
    found = results_in(str(tmp_path / "runs"), TableExperiment(metric="val/loss", better="lower", at=2))
    assert set(found.runs) == set(LEVEL)
    assert scores(found)["cosine"] == {seed: pytest.approx(loss("cosine", seed, 2)) for seed in NOISE}
    judged = ablab.judge(tmp_path / "runs", "val/loss", better="lower", baseline="linear", at="best")
    assert [one.arm for one in judged.verdicts] == ["cosine", "constant"]


@tensorboard_only
def test_a_run_that_begins_again_counts_as_it_went_on(tmp_path):
    """As in TensorBoard, what the first attempt wrote beyond the step that comes again is gone."""
    from tensorboard.summary import Writer

    for values in ([(0, 9.0), (3, 0.1), (5, 8.5), (9, 8.1)], [(3, 3.0), (5, 1.0)]):
        writer = Writer(str(tmp_path / "runs" / "a" / "seed1"))
        for step, value in values:
            writer.add_scalar("val/loss", value, step)
        writer.close()
        time.sleep(1.1)  # files are named by the second
    (run,) = tool_runs(str(tmp_path / "runs"))
    assert run.points("val/loss") == [(0, 9.0), (3, 3.0), (5, 1.0)]


@tensorboard_only
@pytest.mark.parametrize("stray", [False, True])
def test_events_beside_the_folders_of_runs_hide_none_of_these(tmp_path, stray):
    from tensorboard.summary import Writer

    folders = [f"linear/seed{seed}" for seed in NOISE] + ["linear"] * stray
    for folder in folders:
        writer = Writer(str(tmp_path / "runs" / folder))
        writer.add_scalar("val/loss", 1.0, 4)
        writer.close()
    found = tool_runs(str(tmp_path / "runs"))
    assert sorted(Path(run.where).relative_to(tmp_path / "runs").as_posix() for run in found) == sorted(folders)
    if stray:
        with pytest.raises(UserError, match="linear: has no seed; allowed: a seed of each run, or where: "):
            results_in(str(tmp_path / "runs"), TableExperiment(metric="val/loss", better="lower"))


@tensorboard_only
def test_a_run_with_neither_a_seed_nor_a_score_is_left_out_and_said_to_be(tmp_path):
    """As one that compares the others."""
    from tensorboard.summary import Writer

    for folder, scalar in [(f"{arm}/seed{seed}", "val/loss") for arm in ("a", "b") for seed in (1, 2)] + [("all", "x")]:
        writer = Writer(str(tmp_path / "runs" / folder))
        writer.add_scalar(scalar, 1.0, 4)
        writer.close()
    found = results_in(str(tmp_path / "runs"), TableExperiment(metric="val/loss", better="lower"))
    assert sum(map(len, found.runs.values())) == 4
    assert "1 run with neither seed nor val/loss left out" in found.notes


@tensorboard_only
def test_hyperparameters_and_parts_of_a_run_are_read(tmp_path):
    """PyTorch keeps hyperparameters in a folder below the run's; Keras the parts of a run in folders of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.utils.tensorboard import SummaryWriter

        for number, (schedule, seed) in enumerate((s, k) for s in ("linear", "cosine") for k in (1, 2)):
            writer = SummaryWriter(str(tmp_path / "torch" / f"version_{number}"))
            writer.add_scalar("val/loss", loss(schedule, seed), 4)
            writer.add_hparams({"schedule": schedule, "seed": seed, "lr": 0.1}, {"hparam/acc": 0.5})
            writer.close()
            for part in ("train", "validation"):
                writer = SummaryWriter(str(tmp_path / "keras" / f"{schedule}-{seed}" / part))
                writer.add_scalar("epoch_loss", loss(schedule, seed) - 0.1 * (part == "train"), 4)
                writer.close()
    found = results_in(str(tmp_path / "torch"), TableExperiment(metric="val/loss", better="lower"))
    assert scores(found)["schedule=cosine"] == {seed: pytest.approx(loss("cosine", seed)) for seed in (1, 2)}
    # The folder of hyperparameters may have any name, one with the seed among them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = SummaryWriter(str(tmp_path / "torch" / "version_3"))
        writer.add_hparams({"schedule": "cosine", "seed": 2, "lr": 0.1}, {"hparam/acc": 0.5}, run_name="seed=2")
        writer.close()
    every = tool_runs(str(tmp_path / "torch"))
    assert len(every) == 4
    assert all(set(run.metrics) >= {"val/loss", "hparam/acc"} and run.words["lr"] == "0.1" for run in every)
    parts = tool_runs(str(tmp_path / "keras"))
    assert len(parts) == 4
    # What a run's own curve says of a metric stands above its best value among the hyperparameters.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = SummaryWriter(str(tmp_path / "torch" / "version_0"))
        writer.add_hparams({"schedule": "linear", "seed": 1, "lr": 0.1}, {"val/loss": 0.01}, run_name="best")
        writer.close()
    (one,) = (run for run in tool_runs(str(tmp_path / "torch")) if run.where.endswith("version_0"))
    assert one.points("val/loss") == [(4, pytest.approx(loss("linear", 1)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = SummaryWriter(str(tmp_path / "torch" / "version_0"))
        writer.add_hparams({"schedule": "linear", "seed": 7}, {"val/loss": 0.01}, run_name="other")
        writer.close()
    with pytest.raises(UserError, match=r"seed=1 and seed=7 in other; allowed: one run in a folder"):
        tool_runs(str(tmp_path / "torch"))
    assert all(set(run.metrics) == {"train/epoch_loss", "validation/epoch_loss"} for run in parts)


def test_what_only_other_tools_have_is_refused_of_a_table(tmp_path):
    (tmp_path / "results.csv").write_text("arm,seed,metric,value\na,1,score,1\nb,1,score,2\n")
    (tmp_path / "results.yaml").write_text("at: best\n")
    code, _, err = typed(f"table={tmp_path / 'results.csv'}", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "at: " in err
    assert "allowed with runs of MLflow, TensorBoard and lm-eval" in err


def test_claims_of_no_table_are_refused(tmp_path):
    assert "allowed: with table=" in typed("claims=claims.yaml")[2]
    table = tmp_path / "results.csv"
    table.write_text("arm,seed,metric,value\na,1,score,1\n")
    assert typed(f"table={table}", f"claims={os.devnull}x")[2].endswith("x: no such file\n")


@pytest.mark.parametrize(("last", "folder"), [("m", "cosine"), ("zeta", "cosine/zeta"), ("a", "cosine/a")])
def test_the_last_folder_of_lm_eval_is_the_models_and_no_word_only_where_it_has_its_name(last, folder):
    path = Path("/x/cosine/seed1") / last / "results_1.json"
    assert _lm_eval_words(path, {"model_name_sanitized": "m"}, Path("/x")) == {"seed": "1", "folder": folder}


@mlflow_only
def test_a_run_with_a_nested_one_below_it_is_a_run(tmp_path):
    """MLflow nests what a run starts, such as an evaluation; a parent without metrics is a group of runs."""
    from mlflow import MlflowClient

    uri = (tmp_path / "mlruns").as_uri()
    write_mlflow(uri)
    client = MlflowClient(uri)
    place = client.get_experiment_by_name("schedules").experiment_id
    before = {run.where for run in tool_runs(str(tmp_path / "mlruns"))}
    nested = next(run for run in client.search_runs([place]) if run.data.tags.get("seed") == "2")
    child = client.create_run(place, tags={"mlflow.parentRunId": nested.info.run_id})
    client.log_metric(child.info.run_id, "test_bleu", 20.0)
    client.set_terminated(child.info.run_id)
    found = {run.where for run in tool_runs(str(tmp_path / "mlruns"))}
    assert before < found
    assert len(found - before) == 1


@pytest.mark.parametrize(
    "content",
    [
        {"results": {"t": None}},
        {"results": {"t": {"acc,none": 0.5}}, "config": None, "higher_is_better": None, "model_name": 3},
        {"results": {"t": {"acc,none": 0.5}}, "config": {"model_args": ["a=b"]}},
        {"results": {"t": {"acc,none": 10**400}}},
        {"results": [{"task": "t", "acc": 0.5}]},
    ],
)
def test_what_lm_eval_never_writes_is_one_line(tmp_path, content):
    place = tmp_path / "small" / "seed1"
    place.mkdir(parents=True)
    (place / "results_1.json").write_text(json.dumps(content))
    code, _, err = typed(f"table={tmp_path / 'small'}", "metric=t/acc", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)


def test_results_without_a_date_are_as_old_as_their_files(lm_eval, tmp_path):
    """Else claims registered after them would count as made before; and a truth value is no score."""
    place = shutil.copytree(lm_eval, tmp_path / "lm_eval")
    for path in place.glob("*/*/*/results_*.json"):
        told = json.loads(path.read_text())
        del told["date"]
        told["results"]["sums"]["is_good,none"] = True
        path.write_text(json.dumps(told))
        os.utime(path, (1e9, 1e9))
    found = tool_runs(str(place))
    assert {run.began for run in found} == {1e9}
    assert not any("sums/is_good" in run.metrics for run in found)


def test_a_seed_among_the_arguments_of_a_model_leaves_that_of_the_path(tmp_path):
    """That of vLLM is of its sampling."""
    path = tmp_path / "large" / "seed2" / "results_1.json"
    words = _lm_eval_words(path, {"config": {"model_args": "pretrained=x,seed=1234"}}, tmp_path)
    assert (words["seed"], words["pretrained"]) == ("2", "x")
    words = _lm_eval_words(tmp_path / "large" / "results_1.json", {"config": {"model_args": "seed=7"}}, tmp_path)
    assert words["seed"] == "7"
