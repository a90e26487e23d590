"""Stores that people, disks and other versions have been at: what is wrong is one line, no report is half of one."""

import errno
import json
import math
import shutil

import pytest

from tests.report.conftest import typed

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def store(reported, tmp_path_factory):
    """A copy that may be damaged, if that is put right again."""
    return shutil.copytree(reported.study.outputs, tmp_path_factory.mktemp("damaged") / "outputs")


def _json(**changes):
    return lambda text: json.dumps({**json.loads(text), **changes})


def _where(where, change):
    def changed(text):
        content = json.loads(text)
        where(content).update(change)
        return json.dumps(content)

    return changed


METRICS, RECORD = "cannot be read as metrics", "cannot be read as Record of this version"
DAMAGE = {
    "registered, half": ("studies/claims/registered.json", lambda _: "{", "not readable as JSON"),
    "registered, odd": ("studies/claims/registered.json", lambda _: '[{"claims": 5}]', "what the study registered"),
    "metrics, words": ("runs/*/metrics.csv", lambda text: f"{text}abc,def\n", METRICS),
    "metrics, wide": ("runs/*/metrics.csv", lambda text: text + 20 * "1," + "1\n", METRICS),
    "metrics, infinite": ("runs/*/metrics.csv", lambda text: f"{text}1100,110,2,,inf,0,1000,,,,\n", METRICS),
    "metrics, bytes": ("runs/*/metrics.csv", lambda _: b"step\n\xff\n", METRICS),
    "record, later": ("runs/*/record.json", _json(schema_version=99), RECORD),
    "record, repeated": ("runs/*/record.json", _json(validations=2 * [{"step": 1, "loss": 1, "bleu": 1}]), RECORD),
    "record, no BLEU": ("runs/*/record.json", _json(validations=[{"step": 1.0, "loss": 1.0}]), RECORD),
    "record, infinite": ("runs/*/record.json", _where(lambda run: run["selected"], {"loss": math.inf}), RECORD),
    "evaluation, NaN": ("runs/*/evaluations/*.json", _json(bleu=math.nan), "cannot be read as Evaluation"),
    "evaluation, ragged": (
        "runs/*/evaluations/*.json",
        _where(lambda found: {"x": found["statistics"][0].pop()}, {}),
        "cannot be read as Evaluation",
    ),
    "evaluation, short": ("runs/*/evaluations/*.json", _json(sentences=7), "cannot be read as Evaluation"),
    "curve, later": ("runs/*/curves/*.json", _json(schema_version=99), "cannot be read as Curve"),
    "line, ragged": (
        "runs/*/artefacts/gain.json",
        _where(lambda found: found["series"][0], {"x": [1]}),
        "cannot be read as an artefact",
    ),
    "matrix, ragged": (
        "runs/*/artefacts/worth.json",
        _where(lambda found: found["slices"][0], {"values": [[1.0]]}),
        "cannot be read as an artefact",
    ),
    "matrix, empty": ("runs/*/artefacts/worth.json", _json(slices=[]), "cannot be read as an artefact"),
    "translations": ("runs/*/evaluations/*.txt", lambda _: b"\xff\n", "line 1 is not UTF-8"),
    "references": ("corpora/*/references.txt", lambda _: b"\xff\n", "line 1 is not UTF-8"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_line(damage, store, reported):
    place, change, said = DAMAGE[damage]
    # What is read first is read of every run: the evaluation and its text that the report stands on.
    planned = reported.study.cells[0].planned
    found = sorted(store.glob(place))
    path = next((path for path in found if path.stem == planned.evaluation_id), found[0])
    whole = path.read_bytes()
    damaged = change(whole.decode())
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    verify = "true" if path.suffix == ".txt" else "false"  # only what is scored again is read as text
    code, _, err = typed(reported.words[0], f"outputs={store}", f"verify={verify}", "resamples=1000")
    path.write_bytes(whole)
    assert (code, err.count("\n")) == (2, 1), err
    assert f"{path}: " in err
    assert said in err


@pytest.mark.parametrize("content", ["", "a: [", "- 1", "norm: {kind: layernorm}"])
def test_a_recipe_that_is_none_is_one_line(content, store):
    path = next(store.glob("runs/*/recipe.yaml"))
    whole = path.read_bytes()
    path.write_text(content)
    code, _, err = typed("where=norm=pre", f"outputs={store}")
    path.write_bytes(whole)
    assert (code, err.count("\n")) == (2, 1)
    assert "recipe.yaml: cannot be read as a recipe" in err


def test_a_report_that_cannot_be_written_replaces_nothing(store, reported, monkeypatch):
    folder = store / "reports" / "claims"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(document):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ablab.commands.report.latex", full)
    code, _, err = typed(reported.words[0], f"outputs={store}", "metric=test_bleu", "resamples=1001")
    assert (code, err) == (1, "error: the disk: No space left on device\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []
    code, _, _ = typed(reported.words[0], f"outputs={store}", "metric=test_chrf", "resamples=1001")
    assert code == 1
    assert not (folder.parent / "claims-in-test_chrf").exists()
    aside = store / "away"
    (store / "reports").rename(aside)
    (store / "reports").touch()
    monkeypatch.undo()
    code, _, err = typed(reported.words[0], f"outputs={store}", "resamples=1000")
    (store / "reports").unlink()
    aside.rename(store / "reports")
    assert (code, err.count("\n")) == (1, 1)
    assert f"error: {store / 'reports'}" in err


def test_what_is_gone_is_said(store, reported):
    planned = reported.study.cells[0].planned
    run = store / "runs" / planned.run_id
    gone = {
        path: path.read_bytes() for path in (run / "metrics.csv", run / "evaluations" / f"{planned.evaluation_id}.txt")
    }
    for path in gone:
        path.unlink()
    _, out, _ = typed(reported.words[0], f"outputs={store}", "resamples=1000")
    for path, content in gone.items():
        path.write_bytes(content)
    assert f"Note: the translations of 1 runs are gone: {planned.run_id}" in out
    assert f"Note: the training curves of 1 runs are gone: {planned.run_id}" in out
