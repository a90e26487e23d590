"""A metric of one's own: a function of a test set's translations, found by its name, and refused in one line."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ablab.errors import UserError
from ablab.files import write_lines
from ablab.store.run_folder import RunFolder
from ablab.store.shared import StoredText, keep_text
from ablab.tasks.own_metrics import check_metric, own_metrics
from ablab.tasks.registry import known_scores, of_arms

SOURCE = """
def longer(hypotheses, references):
    return sum(len(one) > len(other) for one, other in zip(hypotheses, references))

def fails(sources):
    return 1 / len(sources[0].split("zwei")[0])

def endless(sources):
    return float("inf")

def of_numpy(sources):
    import numpy
    return numpy.float32(1.5)
"""
OPTION = "_target_: parts.longer\ntitle: longer than the reference\nbetter: lower\n"


@pytest.fixture
def evaluated(tmp_path):
    """A run with translations of two sentences, and the evaluation that names them."""
    outputs = tmp_path / "outputs"
    digest = keep_text(outputs, "test", StoredText(["zwei", "eins"], ["two", "one"]))
    folder = RunFolder(outputs / "runs" / "r0123456789ab")
    write_lines(folder.translations("e1"), ["three", "one"])
    return folder, SimpleNamespace(evaluation_id="e1", references=digest)


def test_it_is_computed_from_the_texts_that_it_names(study, evaluated):
    study(SOURCE, {"metric/longer": OPTION})
    folder, evaluation = evaluated
    assert own_metrics()["longer"].value(folder, evaluation) == 1
    folder.translations("e1").unlink()
    assert own_metrics()["longer"].value(folder, evaluation) is None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("fails", r"parts_\d+.fails: parts_\d+.py, line 6: ZeroDivisionError: division by zero for r0123456789ab"),
        ("endless", r"parts_\d+.endless: gave inf for r0123456789ab; allowed: a finite number"),
    ],
)
def test_one_that_fails_is_told_in_one_line(study, evaluated, function, why):
    study(SOURCE, {"metric/mine": OPTION.replace("longer\n", f"{function}\n", 1)})
    with pytest.raises(UserError, match=f"^{why}$"):
        own_metrics()["mine"].value(*evaluated)


@pytest.mark.parametrize("name", [*known_scores(), *of_arms()])
def test_one_with_a_name_of_ours_is_refused(study, name):
    study(SOURCE, {f"metric/{name}": OPTION})
    with pytest.raises(UserError, match=f"{name}.yaml: ablab has a metric of this name"):
        check_metric(name)
    assert name not in own_metrics()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OPTION.replace("better: lower\n", ""), "better: missing"),
        (OPTION + "lower: true\n", "lower=True: no such key"),
        (OPTION.replace("longer\n", "absent\n", 1), "there is no parts_.*absent"),
        ("_target_: [", "not readable as YAML"),
    ],
)
def test_a_bad_file_is_told_where_it_is_asked_for_and_stops_nothing_else(study, text, why):
    study(SOURCE, {"metric/good": OPTION, "metric/bad": text})
    with pytest.raises(UserError, match=f"bad.yaml: .*{why}"):
        check_metric("bad")
    assert list(own_metrics()) == ["good"]


def test_of_two_with_one_name_the_first_folders_is_taken(study, tmp_path, monkeypatch):
    """As of options: what --config-dir names goes before ./conf."""
    study(SOURCE, {"metric/mine": OPTION})
    named = tmp_path / "named" / "metric"
    named.mkdir(parents=True)
    (named / "mine.yaml").write_text(Path("conf/metric/mine.yaml").read_text().replace("lower", "higher"))
    assert own_metrics()["mine"].better == "lower"
    monkeypatch.setenv("ABLAB_CONFIG_DIR", str(named.parent))
    assert own_metrics()["mine"].better == "higher"


def test_a_number_of_numpy_is_one(study, evaluated):
    """The mean of its single precision is."""
    study(SOURCE, {"metric/mean": OPTION.replace("longer\n", "of_numpy\n", 1)})
    assert own_metrics()["mean"].value(*evaluated) == 1.5
