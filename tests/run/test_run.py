"""One command trains, selects, decodes, scores and records; the same command again does nothing twice."""

import io
import json
import os
import statistics
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import yaml
from filelock import FileLock
from safetensors.torch import load_file

from ablab.code.code import Code, code
from ablab.commands.cli import main
from ablab.config import compose
from ablab.store.metrics import read_metrics
from ablab.store.spent import read_spent
from ablab.tasks import identity
from tests.run.conftest import TINY, make_store, typed

ROOT = Path(__file__).parents[2]


def _evaluations(run) -> set[str]:
    return {path.stem for path in (run.path / "evaluations").iterdir()}


def _weights(run) -> dict[str, torch.Tensor]:
    return load_file(run.checkpoints / "selected.safetensors")


def _equal(one, other) -> bool:
    return set(one) == set(other) and all(torch.equal(one[name], other[name]) for name in one)


# What a run leaves


def test_the_recipe_on_disk_is_the_recipe(store):
    recipe = identity.recipe(compose(store.words).config)
    assert yaml.safe_load((store.run.path / "recipe.yaml").read_text()) == recipe
    assert store.run.run_id == identity.run_id(recipe) == store.record.run_id
    assert store.record.condition_id == identity.condition_id(recipe)


def test_the_record_says_what_was_trained(store):
    record = store.record
    assert record.cost.steps == 8
    assert record.reason
    assert record.cost.tokens > 0
    assert record.cost.parameters == sum(tensor.numel() for tensor in _weights(store.run).values())
    assert record.data["train"]["kept"] == 400
    assert record.selected.steps
    assert [validation["step"] for validation in record.validations] == [4, 8]
    assert record.runtime["threads"] == 1
    assert {"code", "versions", "machine"} <= set(record.provenance)
    (stretch,) = record.stretches
    assert (stretch.first_step, stretch.last_step, stretch.threads) == (1, 8, 1)
    assert stretch.code == record.provenance["code"] == code("training", store.run.recipe()).digest
    assert record.mixed is None


def test_a_run_tells_where_its_time_went(store, capsys):
    spent = read_spent(store.run.spent)
    cost = store.record.cost
    assert spent["train"] == pytest.approx(cost.train_seconds, abs=0.5)
    assert spent["validate"] > 0
    assert spent["evaluate"] > 0
    assert main(["show", f"run={store.run.run_id}", f"outputs={store.outputs}"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("time"))
    told = [part for part, seconds in spent.items() if seconds >= 0.1]
    assert told
    assert [word.split()[0] for word in line.removeprefix("time").partition(";")[0].split(",")] == told
    assert line.endswith("times the steps")


def test_what_bleu_can_reach_is_on_record_and_shown(store, capsys):
    assert store.record.data["ceiling"] == {"itself": pytest.approx(100), "through": pytest.approx(100)}
    assert store.record.data["unknown"] == {"src": 0, "tgt": 0}
    assert main(["show", f"run={store.run.run_id}", f"outputs={store.outputs}"]) == 0
    assert "ceiling     validation BLEU 100.00" in capsys.readouterr().out


def test_an_evaluation_has_a_line_and_statistics_per_sentence(store):
    (name,) = (
        {path.stem for path in (store.run.path / "evaluations").glob("*.json")}
        & _evaluations(store.run)
        & {identity.evaluation_id(identity.evaluation(compose(store.words).config))}
    )
    evaluation = store.run.evaluation(name)
    lines = (store.run.path / "evaluations" / f"{name}.txt").read_text().split("\n")[:-1]
    assert len(lines) == evaluation.sentences == len(evaluation.items["bleu"]) == 16
    assert set(evaluation.signatures) == {"bleu", "chrf"}
    raw = store.outputs / "corpora" / evaluation.references
    assert len((raw / "references.txt").read_text().splitlines()) == 16
    assert f"{evaluation.scores['bleu']:.2f}   {evaluation.signatures['bleu']}" in store.said.out


def test_checkpoints_are_tensors_and_plain_data(store):
    last = torch.load(store.run.checkpoints / "last.pt", weights_only=True)
    assert last["course"]["step"] == 8
    assert set(_weights(store.run)) == set(last["model"])
    assert {path.name for path in store.run.checkpoints.iterdir()} == {
        *("last.pt", "selected.safetensors", "src.model", "tgt.model")
    }


def test_curves_and_artefacts_are_there(store):
    rows = read_metrics(store.run.metrics)
    assert [row["step"] for row in rows if "valid_bleu" in row] == [4, 8]
    assert all(0 <= row["padding"] < 1 for row in rows if "loss" in row)
    assert (store.run.artefacts / "cross_attention.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    matrix = json.loads((store.run.artefacts / "cross_attention.json").read_text())
    (values,) = (part["values"] for part in matrix["slices"])
    assert [len(values)] == [len(matrix["y"]["labels"])]
    assert {len(row) for row in values} == {len(matrix["x"]["labels"])}
    assert all(sum(row) == pytest.approx(1, abs=0.01) for row in values)


def test_the_speed_of_a_run_is_that_of_its_median_look(store):
    """So that it is the recipe's, and not that of a machine which was paused or shared for a while."""
    looks = [row["tokens_per_second"] for row in read_metrics(store.run.metrics) if "tokens_per_second" in row]
    assert len(looks) == 2
    assert store.record.cost.tokens_per_second == statistics.median(looks)


def test_the_end_says_where_it_lies_and_what_comes_next(store):
    assert "Next:" in store.said.out
    assert store.said.out.rstrip().endswith(str(store.run.path))
    assert "mean nothing" in store.said.out


# The same command again


def test_nothing_is_trained_twice(store):
    path = store.run.path / "record.json"
    before, evaluations = path.stat().st_mtime_ns, _evaluations(store.run)
    said = typed(*store.words)
    assert said.code == 0
    assert "nothing is trained again" in said.out
    assert "other code or versions" not in said.out
    assert f"{store.run.run_id}" in said.out
    assert path.stat().st_mtime_ns == before
    assert _evaluations(store.run) == evaluations


def test_again_is_fast_since_torch_stays_away(store):
    program = (
        "import sys; from ablab.commands.cli import main\n"
        "code = main(sys.argv[1:]); print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "train", *store.words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 False"
    assert "nothing is trained again" in done.stdout


def _other(stage, store, name):
    """The code of a stage in which one definition is another."""
    definitions = {**code(stage, store.run.recipe()).definitions, name: "0" * 8}
    return Code("2:000000000000", {"spine": "2:000000000000"}, lambda: definitions)


def test_other_code_is_said_in_one_line(store, monkeypatch):
    changed = _other("training", store, "derive")
    monkeypatch.setattr("ablab.code.differences.code", lambda stage, recipe: changed)
    lines = [line for line in typed(*store.words).out.splitlines() if "other code or versions" in line]
    assert len(lines) == 1
    assert "rerun=true" in lines[0]
    assert "code differs in derive (training)" in lines[0]


def test_judging_by_other_code_than_that_of_the_run_is_said_and_on_record(store, monkeypatch):
    evaluations = _evaluations(store.run)
    changed = _other("evaluation", store, "beam_search")
    monkeypatch.setattr("ablab.code.differences.code", lambda stage, recipe: changed)
    monkeypatch.setattr(
        "ablab.transformer.translation.evaluate.code", lambda stage, recipe: {"evaluation": changed}[stage]
    )
    out = typed(*store.words, "decoding.beam_size=3").out
    assert out.count("Judged by other code than when it was trained: code differs in beam_search (evaluation)") == 1
    (added,) = _evaluations(store.run) - evaluations
    assert store.run.evaluation(added).provenance_code == changed.digest


def test_other_versions_are_said_too(store, monkeypatch):
    now = {**store.record.provenance["versions"], "torch": "1.0", "nltk": "3", "wandb": "1.0"}
    monkeypatch.setattr("ablab.code.differences.versions", lambda: now)
    lines = [line for line in typed(*store.words).out.splitlines() if "other code or versions" in line]
    recorded = store.record.provenance["versions"]["torch"]
    assert lines == [f"It was trained with other code or versions: torch {recorded}; rerun=true trains it again"]


@pytest.mark.parametrize("word", ["decoding=greedy", "data.test_pairs=3"])
def test_another_judgement_adds_an_evaluation_and_nothing_else(word, store):
    path = store.run.path / "record.json"
    before, evaluations = path.read_bytes(), _evaluations(store.run)
    assert typed(*store.words, word).code == 0
    assert path.read_bytes() == before
    (added,) = _evaluations(store.run) - evaluations
    assert store.run.evaluation(added).settings != store.run.evaluation(min(evaluations)).settings
    assert typed(*store.words, word).code == 0
    assert _evaluations(store.run) == evaluations | {added}


@pytest.mark.parametrize("word", ["trainer.micro_batches=2", "logger=none", "trainer.progress=false"])
def test_runtime_settings_find_the_same_run(word, store):
    count = len(store.runs)
    assert "nothing is trained again" in typed(*store.words, word).out
    assert len(store.runs) == count


def test_two_at_once_is_refused_in_one_line(store, capsys):
    with FileLock(store.run.lock):
        code = main(["train", *store.words])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err.startswith(f"error: {store.run.run_id} is being worked on")
    assert err.count("\n") == 1


def test_one_can_wait_for_the_other(store):
    lock = FileLock(store.run.lock, thread_local=False)
    lock.acquire()
    threading.Timer(0.5, lock.release).start()
    said = typed(*store.words, "wait=true")
    assert said.code == 0
    assert f"{store.run.run_id} is being worked on by another process; waiting for it" in said.out
    assert "nothing is trained again" in said.out


# The same recipe elsewhere, and other recipes


def test_equal_recipes_give_bit_equal_weights_and_another_seed_another_run(store, tmp_path):
    other = make_store(tmp_path, "logger=none")
    first = _weights(store.run)
    assert other.run.run_id == store.run.run_id
    assert _equal(_weights(other.run), first)

    typed(*other.words, "seed=2")
    (second,) = [run for run in other.runs if run.run_id != store.run.run_id]
    assert not _equal(_weights(second), first)
    assert second.record().condition_id == store.record.condition_id

    said = typed(*other.words, "rerun=true")
    aside = other.outputs / "superseded" / f"{store.run.run_id}-1"
    assert (aside / "record.json").exists()
    assert str(aside) in said.out
    assert _equal(_weights(other.run), first)
    assert len(other.runs) == 2


# Translation


class _Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


def _translate(store, capsys, monkeypatch, content: bytes, *words: str):
    monkeypatch.setattr(sys, "stdin", _Stdin(content))
    code = main(["translate", f"outputs={store.outputs}", *words])
    return code, *capsys.readouterr()


def test_a_line_in_is_a_line_out_empty_ones_too(store, capsys, monkeypatch):
    content = "twelve\n\none hundred and five\u2028x".encode()
    code, out, _ = _translate(store, capsys, monkeypatch, content, f"run={store.run.run_id}")
    assert code == 0
    assert out.count("\n") == 3


def test_nothing_in_is_nothing_out(store, capsys, monkeypatch):
    code, out, _ = _translate(store, capsys, monkeypatch, b"", f"run={store.run.run_id}")
    assert (code, out) == (0, "")


def test_a_test_set_typed_in_is_translated_as_it_was_scored(store, capsys, monkeypatch):
    """What users get is what was judged."""
    name = identity.evaluation_id(identity.evaluation(compose(store.words).config))
    evaluation = store.run.evaluation(name)
    content = (store.outputs / "corpora" / evaluation.references / "sources.txt").read_bytes()
    code, out, _ = _translate(store, capsys, monkeypatch, content, f"run={store.run.path}")
    assert code == 0
    assert out == (store.run.path / "evaluations" / f"{name}.txt").read_text()


def test_a_line_in_is_a_line_out_whatever_is_in_it(store, capsys, monkeypatch):
    lines = ["twelve\u2028one", "\x85\x0btwo\x0c", "thirty one", ""]
    typed_in = "\n".join(lines).encode(), "\ufefftwelve\u2028one\r\n\x85\x0btwo\x0c\r\nthirty\rone".encode()
    said = [_translate(store, capsys, monkeypatch, content, f"run={store.run.run_id}") for content in typed_in]
    assert said[0] == said[1]
    assert said[0][1].count("\n") == 3


def test_n_best_lists_and_attention_pictures(store, capsys, monkeypatch, tmp_path):
    words = [f"run={store.run.run_id[:5]}", "n_best=3", "beam_size=3", f"attention={tmp_path}/maps"]
    code, out, err = _translate(store, capsys, monkeypatch, b"twelve\n\n", *words)
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["0"] * 3 + ["1"], "an empty line has one translation"
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    assert rows[3][2] == ""
    pictures = sorted((tmp_path / "maps").iterdir())
    assert [path.name for path in pictures] == ["1.png", "2.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert f"{tmp_path}/maps" in err


@pytest.mark.parametrize(
    ("content", "words", "parts"),
    [
        (b"", ["run=rnone"], ["run=rnone", "no such run"]),
        (b"", [], ["run: missing"]),
        (b"", ["run=r", "beam=3"], ["beam=3", "did you mean beam_size?"]),
        (b"", ["run=r", "beam_size=no"], ["beam_size=no", "a whole number"]),
        (b"", ["run=r", "n_best=9"], ["n_best=9", "beam_size=4"]),
        (b"good\nb\xffad\n", ["run=THIS"], ["line 2", "UTF-8"]),
    ],
)
def test_what_translate_cannot_do_is_said_in_one_line(content, words, parts, store, capsys, monkeypatch):
    words = [word.replace("THIS", store.run.run_id) for word in words]
    code, out, err = _translate(store, capsys, monkeypatch, content, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_the_tiny_words_are_all_of_the_recipe_or_runtime():
    """A guard for this file: the shared run must not depend on an evaluation setting."""
    assert not any(word.startswith(("decoding", "data.test")) for word in TINY)
