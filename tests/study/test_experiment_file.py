"""Experiment files are read as people mean them."""

from pathlib import Path

import pytest

from ablab.errors import UserError
from ablab.study.experiment import find, is_there, names, read


def written(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(f"question: why\nseeds: [1]\n{text}")
    return path


def test_a_file_is_found_by_its_name_whichever_way_yaml_is_spelt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("experiments").mkdir()
    path = Path("experiments/mine.yml")
    path.write_text("question: why\n")
    Path("experiments/._mine.yaml").write_bytes(b"\x00\xff")
    assert find("mine") == path
    assert is_there("mine")
    assert [name for name in names() if "mine" in name] == ["mine"]
    for name in ("other", "min*", "[m]ine", str(tmp_path / "mine2"), "**mine"):
        with pytest.raises(UserError, match="allowed: mine, and "):
            find(name)


@pytest.mark.parametrize("word", ["off", "on", "yes", "no", "true", "0.1", "1e-3", "null", "2026-01-01"])
def test_a_level_may_be_called_anything(tmp_path, word):
    read_back = read(written(tmp_path, f"factors:\n  drop: {{{word}: [], other: [layerdrop=0.2]}}\n"))
    assert list(read_back.factors["drop"]) == [word, "other"]


@pytest.mark.parametrize(
    ("written_as", "value"),
    [
        *(("off", "off"), ("true", True), ("False", False), ("1e-3", 1e-3), ("1e3", 1e3), ("7", 7), ("0.5", 0.5)),
        *(
            (".5", 0.5),
            ("-2", -2),
            ("010", 10),
            ("1:30", "1:30"),
            ("null", None),
            ("'1'", "1"),
            ("1.5.2", "1.5.2"),
            ("pre", "pre"),
        ),
    ],
)
def test_values_are_those_of_yaml_1_2(tmp_path, written_as, value):
    (level, _) = read(written(tmp_path, f"factors:\n  x: [{written_as}, other]\n")).factors["x"]
    assert (level, type(level)) == (value, type(value))


def test_a_baseline_names_a_level_as_the_factor_does(tmp_path):
    text = "factors:\n  drop: {off: [], on: [layerdrop=0.2]}\nbaseline: {drop: on}\n"
    assert read(written(tmp_path, text)).baseline == {"drop": "on"}


def test_a_key_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(UserError, match="factors comes twice"):
        read(written(tmp_path, "factors:\n  norm: [pre]\nfactors:\n  norm: [post]\n"))


def test_anchors_and_merges_are_read(tmp_path):
    text = "factors:\n  a: &a {x: [layerdrop=0.1]}\n  b: {<<: *a, y: []}\n"
    assert list(read(written(tmp_path, text)).factors["b"]) == ["x", "y"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("tune: {values: [0.1, 0.1], seeds: [11]}", "tune=.*: allowed: values that differ"),
        ("search: {space: {optim.lr: [0.1, 0.2]}, trials: 2}", "allowed with search: a list of seeds"),
    ],
)
def test_what_is_wrong_with_several_keys_at_once_is_one_line(tmp_path, more, said):
    path = tmp_path / "e.yaml"
    path.write_text(f"question: q\nseeds: {{from: 3, to: 6}}\n{more}\n")
    with pytest.raises(UserError, match=said):
        read(path)
