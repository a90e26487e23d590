"""Records are read strictly, runs are found, and nothing is overwritten."""

import hashlib
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.errors import UserError
from ablab.files import one_line, read_lines
from ablab.files.disk import replacing
from ablab.store.finished import find_run, open_run, open_runs
from ablab.store.records import Cost, Evaluation, Record, Selected, Stretch
from ablab.store.run_folder import RunFolder, all_runs
from ablab.transformer.pruning.saved_model import find_model


def _record(run_id="rabc00000000", name="norm=post,s1", **changes) -> Record:
    cost = Cost(
        steps=2,
        epochs=0.5,
        tokens=9,
        seconds=1.0,
        train_seconds=0.5,
        tokens_per_second=18.0,
        peak_memory_bytes=1,
        parameters=2,
        flops_per_token=3.0,
    )
    values = {
        "run_id": run_id,
        "condition_id": "c0",
        "name": name,
        "choices": {},
        "state": "finished",
        "reason": "steps",
        "time_limited": False,
        "selected": Selected(steps=[2], scores={"loss": 1.0, "perplexity": math.e, "bleu": 3.0}),
        "validations": [],
        "cost": cost,
        "data": {},
        "runtime": {},
        "provenance": {},
        "config": {},
        "ended": "2026-01-01T00:00:00Z",
    }
    return Record(**{**values, **changes})


def _evaluation(evaluation_id="e0") -> Evaluation:
    return Evaluation(
        evaluation_id=evaluation_id,
        settings={},
        test_name="test",
        sentences=2,
        scores={"bleu": 1.0, "chrf": 2.0},
        signatures={},
        brevity_penalty=1.0,
        length_ratio=1.0,
        seconds=1.0,
        sentences_per_second=2.0,
        references="x",
        items={"bleu": [[1, 1], [0, 1]]},
        provenance_code="x",
        ended="x",
    )


def _run(outputs: Path, run_id: str, name: str) -> RunFolder:
    folder = RunFolder(outputs / "runs" / run_id)
    folder.begin({"seed": 1})
    folder.write_record(_record(run_id, name))
    return folder


def test_a_record_comes_back_equal(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "r1")
    assert folder.record() is None
    folder.write_record(_record())
    assert folder.record() == _record()
    assert RunFolder(tmp_path).evaluation("e0") is None
    folder.write_evaluation(_evaluation(), ["one", "two"])
    written = _evaluation().model_copy(update={"hypotheses": hashlib.sha256(b"one\ntwo\n").hexdigest()})
    assert folder.evaluation("e0") == written
    assert (folder.path / "evaluations" / "e0.txt").read_text() == "one\ntwo\n"


@given(hypotheses=st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=1))
@settings(max_examples=30)
def test_a_hypothesis_stays_beside_its_reference_whatever_its_characters(hypotheses):
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name) / "runs" / "r1")
        n_best = [[(-1.0, text), (-2.0, text)] for text in hypotheses]
        folder.write_evaluation(_evaluation(), hypotheses, n_best)
        assert folder.hypotheses("e0") == [one_line(text) for text in hypotheses]
        assert len(read_lines(folder.path / "evaluations" / "e0.n_best.tsv")) == 2 * len(hypotheses)


def _break(text: str, how: str) -> str:
    content = json.loads(text)
    if how == "half":
        return text[: len(text) // 2]
    if how == "no object":
        return "[]"
    if how == "empty":
        return ""
    if how == "unknown field":
        content["surprise"] = 1
    if how == "missing field":
        del content[next(reversed(content))]
    if how == "wrong type":
        content[next(reversed(content))] = {"a": 1}
    return json.dumps(content)


@pytest.mark.parametrize("how", ["half", "no object", "empty", "unknown field", "missing field", "wrong type"])
@pytest.mark.parametrize("kind", ["record", "evaluation"])
def test_a_broken_record_is_said_in_one_line(how, kind, tmp_path):
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.write_record(_record())
    folder.write_evaluation(_evaluation(), [])
    path = folder.path / ("record.json" if kind == "record" else "evaluations/e0.json")
    path.write_text(_break(path.read_text(), how))
    with pytest.raises(UserError) as caught:
        folder.record() if kind == "record" else folder.evaluation("e0")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "validation error" not in str(caught.value)  # says nothing of what is wrong


def _stretches(**changes) -> list[Stretch]:
    machine = {"threads": 1, "device": "x", "devices": 1, "micro_batches": 1, "compile": False}
    first = {"code": "a", "versions": {"torch": "1"}, **machine, "first_step": 1, "last_step": 5}
    return [Stretch(**first), Stretch(**{**first, "first_step": 6, "last_step": 9, **changes})]


@pytest.mark.parametrize(
    ("changes", "mixed"),
    [
        ({}, None),
        ({"code": "b"}, "code"),
        ({"versions": {"torch": "2"}}, "library versions"),
        ({"threads": 2}, "threads"),
        ({"device": "y", "devices": 2}, "device, number of devices"),
        ({"micro_batches": 2, "compile": True}, "micro-batches, compilation"),
    ],
)
def test_a_record_says_what_changed_during_training(changes, mixed):
    assert _record().model_copy(update={"stretches": _stretches(**changes)}).mixed == mixed


def test_an_older_record_has_no_stretches_and_is_not_mixed():
    content = _record().model_dump()
    del content["stretches"]
    assert Record.model_validate(content).mixed is None


def test_a_run_is_found_by_id_prefix_name_and_path(tmp_path):
    one = _run(tmp_path, "rabc11111111", "norm=post,s1")
    two = _run(tmp_path, "rabd22222222", "norm=pre,s1")
    for reference in ("rabc11111111", "rabc", "norm=post,s1", str(one.path)):
        assert find_run(reference, tmp_path).run_id == one.run_id
    assert find_run("rabd2", tmp_path).path == two.path


def test_an_id_is_not_ambiguous_for_being_the_prefix_of_another(tmp_path):
    _run(tmp_path, "rabc", "a")
    _run(tmp_path, "rabcd", "b")
    assert find_run("rabc", tmp_path).run_id == "rabc"


@pytest.mark.parametrize("reference", ["rab", "same,s1"])
def test_a_reference_to_several_runs_lists_them(reference, tmp_path):
    _run(tmp_path, "rabc11111111", "same,s1")
    _run(tmp_path, "rabd22222222", "same,s1")
    with pytest.raises(UserError, match=r"several runs match: rabc11111111, rabd22222222") as caught:
        find_run(reference, tmp_path)
    assert f"run={reference}" in str(caught.value)


def test_an_unknown_run_lists_what_there_is(tmp_path):
    with pytest.raises(UserError, match=r"run=rxyz: no such run .* none"):
        find_run("rxyz", tmp_path)
    _run(tmp_path, "rabc11111111", "a")
    with pytest.raises(UserError, match=r"rabc11111111"):
        find_run("rxyz", tmp_path)
    for number in range(11):
        _run(tmp_path, f"rabd{number:08}", "b")
    with pytest.raises(UserError, match=r"there are rabc11111111, rabd00000000, .* and 2 more$"):
        find_run("rxyz", tmp_path)


def test_an_empty_reference_finds_nothing(tmp_path):
    _run(tmp_path, "rabc11111111", "a")
    with pytest.raises(UserError, match="no such run"):
        find_run("", tmp_path)


def test_a_damaged_record_hides_no_run_of_another_name(tmp_path):
    damaged = _run(tmp_path, "raaa00000000", "norm=pre,s1")
    (damaged.path / "record.json").write_text("{")
    one = _run(tmp_path, "rabc11111111", "norm=post,s1")
    assert find_run("norm=post,s1", tmp_path).run_id == one.run_id


def test_runs_are_opened_once_each_in_the_order_typed(tmp_path):
    one = _run(tmp_path, "rabc11111111", "norm=post,s1")
    two = _run(tmp_path, "rabd22222222", "norm=pre,s1")
    opened = open_runs(None, f"rabd,{one.path},,rabd22222222", tmp_path)
    assert [run.run_id for run in opened] == [two.run_id, one.run_id]
    (run,) = open_runs("norm=post,s1", None, tmp_path)  # a display name has commas
    assert (run.run_id, run.record) == (one.run_id, one.record())


@pytest.mark.parametrize(
    ("run", "runs", "line"),
    [
        (None, None, "run: say which finished run, run=<id>, or several, runs=<id>,<id>"),
        ("rabc", "rabc", "run: say which finished run, run=<id>, or several, runs=<id>,<id>"),
        (None, ",", "runs=,: names no run; allowed: run ids or paths with commas between"),
        (None, "rabc,rx", "runs=rx: no such run in "),
        ("rnew", None, "run=rnew: rnew33333333 has not finished; type its train line again"),
        ("rhot", None, "run=rhot: rhot44444444 diverged (too hot); it has no weights to use"),
    ],
)
def test_a_run_that_cannot_be_opened_is_one_line_with_its_key(run, runs, line, tmp_path):
    _run(tmp_path, "rabc11111111", "norm=post,s1")
    RunFolder(tmp_path / "runs" / "rnew33333333").begin({"seed": 1})
    hot = _run(tmp_path, "rhot44444444", "hot")
    hot.write_record(_record(hot.run_id, "hot", state="diverged", reason="too hot", selected=None))
    with pytest.raises(UserError) as caught:
        open_runs(run, runs, tmp_path, selected=True)
    assert str(caught.value).startswith(line)


def test_a_diverged_run_is_finished(tmp_path):
    folder = _run(tmp_path, "rhot44444444", "hot")
    folder.write_record(_record(folder.run_id, "hot", state="diverged", reason="too hot", selected=None))
    assert open_run("rhot", tmp_path).run_id == folder.run_id


def test_a_model_that_cannot_be_read_is_one_line_with_its_key(tmp_path):
    folder = _run(tmp_path, "rabc11111111", "a")
    with pytest.raises(UserError, match=r"^init_from=rabc: .*selected.safetensors: the weights are gone; "):
        find_model("rabc", tmp_path, key="init_from")
    (folder.path / "record.json").unlink()
    (folder.path / "model.json").write_text("{}")
    with pytest.raises(UserError, match=rf"^run={folder.path}: .*model.json: cannot be read"):
        find_model(str(folder.path), tmp_path)
    with pytest.raises(UserError, match=rf"^run={folder.path}: a model that was cut out of a run; "):
        find_run(str(folder.path), tmp_path)


def test_only_runs_that_began_are_runs(tmp_path):
    _run(tmp_path, "r1", "a")
    (tmp_path / "runs" / "stray").mkdir()
    (tmp_path / "runs" / ".r1.lock").write_text("")
    assert [run.run_id for run in all_runs(tmp_path)] == ["r1"]
    assert list(all_runs(tmp_path / "nowhere")) == []


def test_setting_aside_never_overwrites(tmp_path):
    places = []
    for number in range(3):
        folder = _run(tmp_path, "r1", f"attempt {number}")
        places.append(folder.set_aside())
        assert not folder.path.exists()
    assert folder.set_aside() is None
    assert [RunFolder(place).record().name for place in places] == ["attempt 0", "attempt 1", "attempt 2"]
    assert {place.parent for place in places} == {tmp_path / "superseded"}


def test_only_what_a_kill_left_is_tidied_away(tmp_path):
    run = RunFolder(tmp_path / "runs" / "rabc00000000")
    run.begin({"seed": 1})
    run.checkpoints.mkdir()
    with replacing(run.checkpoints / "last.pt") as temporary:
        kept = temporary.with_name(f"{temporary.name}.link")
        kept.hardlink_to(temporary)
    kept.rename(temporary)  # as a kill leaves it
    (run.path / ".keep").write_text("")
    (run.path / ".notes.txt").write_text("mine")
    run.tidy()
    assert [path.name for path in run.checkpoints.iterdir()] == ["last.pt"]
    assert sorted(path.name for path in run.path.glob(".*")) == [".keep", ".notes.txt"]


def test_the_share_of_the_limit_is_what_was_done_of_what_could_be():
    record = _record()
    assert record.share_of_limit is None  # of a time when nobody measured
    measured = record.model_copy(update={"cost": record.cost.model_copy(update={"matmul_flops": 540.0})})
    assert measured.share_of_limit == pytest.approx(18.0 * 3.0 / 540.0)
    one, *others = _stretches(devices=4)
    on_four = measured.model_copy(update={"stretches": others})
    assert on_four.share_of_limit == pytest.approx(18.0 * 3.0 / 540.0 / 4)  # one device alone was timed
    chosen = one.model_copy(update={"first_step": 10, "last_step": 9})  # on one device, and no step was left
    assert on_four.model_copy(update={"stretches": [*others, chosen]}).share_of_limit == on_four.share_of_limit
    mixed = measured.model_copy(update={"stretches": [one, *others]})
    assert mixed.share_of_limit is None  # the median speed is of one device, or of four
