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

REFUSED = {
    "registered, half": ("studies/claims/registered.json", lambda _: "{", "not readable as JSON"),
    "registered, odd": ("studies/claims/registered.json", lambda _: '[{"claims": 5}]', "what the study registered"),
    "translations": ("runs/*/evaluations/*.txt", lambda _: b"\xff\n", "line 1 is not UTF-8"),
    "references": ("corpora/*/references.txt", lambda _: b"\xff\n", "line 1 is not UTF-8"),
}
"""What a whole report stands on: its registration, and with verify=true the texts."""

HOLES = {
    "metrics, words": ("runs/*/metrics.csv", lambda text: f"{text}abc,def\n", METRICS),
    "metrics, wide": ("runs/*/metrics.csv", lambda text: text + 20 * "1," + "1\n", METRICS),
    "metrics, infinite": ("runs/*/metrics.csv", lambda text: f"{text}1100,110,2,,inf,0,1000,,,,\n", METRICS),
    "metrics, bytes": ("runs/*/metrics.csv", lambda _: b"step\n\xff\n", METRICS),
    "record, later": ("runs/*/record.json", _json(schema_version=99), RECORD),
    "record, repeated": ("runs/*/record.json", _json(validations=2 * [{"step": 1, "loss": 1, "bleu": 1}]), RECORD),
    "record, no step": ("runs/*/record.json", _json(validations=[{"loss": 1.0}]), RECORD),
    "record, infinite": (
        "runs/*/record.json",
        _where(lambda run: run["selected"]["scores"], {"loss": math.inf}),
        RECORD,
    ),
    "evaluation, NaN": (
        "runs/*/evaluations/*.json",
        _where(lambda found: found["scores"], {"bleu": math.nan}),
        "cannot be read as Evaluation",
    ),
    "evaluation, ragged": (
        "runs/*/evaluations/*.json",
        _where(lambda found: {"x": found["items"]["bleu"][0].pop()}, {}),
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
}
"""What one run has: the report leaves it out and says so."""


def _damaged(store, reported, damage, *words):
    """Damage a file of the first run; return its path, and what the report says."""
    place, change, _ = damage
    # The evaluation and its text that the report stands on are read first.
    planned = reported.study.cells[0].planned
    found = sorted(store.glob(place))
    own = [
        path
        for path in found
        if planned.run_id in path.parts and path.stem in (planned.evaluation_id, planned.curve_id)
    ]
    path = next(iter(own), next((path for path in found if path.stem == planned.evaluation_id), found[0]))
    whole = path.read_bytes()
    damaged = change(whole.decode())
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    said = typed(reported.words[0], f"outputs={store}", "resamples=1000", *words)
    path.write_bytes(whole)
    return path, said


@pytest.mark.parametrize("damage", REFUSED)
def test_damage_of_what_all_stands_on_is_one_line(damage, store, reported):
    verify = "true" if REFUSED[damage][0].endswith(".txt") else "false"  # only what is scored again is read as text
    path, (code, _, err) = _damaged(store, reported, REFUSED[damage], f"verify={verify}")
    assert (code, err.count("\n")) == (2, 1), err
    assert f"{path}: " in err
    assert REFUSED[damage][2] in err


@pytest.mark.parametrize("damage", HOLES)
def test_damage_of_a_run_is_a_hole_that_is_marked(damage, store, reported):
    path, (code, out, err) = _damaged(store, reported, HOLES[damage])
    assert (code, err) == (0, "")
    (note,) = [line for line in out.splitlines() if line.startswith("Note: what cannot be read is left out: ")]
    assert f"{path}: " in note
    assert HOLES[damage][2] in note
    counts = path.name == "record.json" or (path.parent.name in ("evaluations", "curves") and path.suffix == ".json")
    assert ("runs is missing: 1 damaged" in out) == counts
    assert ("provisional: 1 of" in out) == counts, "no verdict rests on what is left of the runs"


@pytest.mark.parametrize("content", ["", "a: [", "- 1", "norm: {kind: layernorm}"])
def test_a_recipe_that_is_none_is_a_hole(content, store):
    path = next(store.glob("runs/*/recipe.yaml"))
    whole = path.read_bytes()
    path.write_text(content)
    code, out, err = typed("where=norm=pre", f"outputs={store}")
    path.write_bytes(whole)
    assert (code, err) == (0, "")
    assert "recipe.yaml: cannot be read as a recipe" in out


def test_a_report_that_cannot_be_written_replaces_nothing(store, reported, monkeypatch):
    folder = store / "reports" / "claims"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(document):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ablab.commands.report.latex", full)
    code, _, err = typed(reported.words[0], f"outputs={store}", "metric=test_bleu", "resamples=1001")
    assert (code, err) == (1, "error: the disk, or what the output goes to: No space left on device\n")
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
    assert f"Note: the translations of 1 run are gone: {planned.run_id}" in out
    assert f"Note: the training curves of 1 run are gone: {planned.run_id}" in out
