"""The experiments that ship: each can be run as it stands, and in the full form that its first lines name."""

import re

import pytest

from ablab.study.definition import define
from ablab.study.experiment import Added, read
from ablab.study.search import define_search
from tests.study.test_sweep import ROOT

FILES = sorted((ROOT / "experiments").glob("*.yaml"))
GENUINE = 3
"""Fewer seeds cannot judge a claim."""


def full_form(file):
    """The words of the comment at the top."""
    comment = " ".join(re.findall(r"^# ?(.*)$", file.read_text(), flags=re.M))
    return re.findall(r"[\w.]+=[\w,/.]+", comment) if comment.startswith("Full form") else []


@pytest.mark.parametrize("form", ["small", "full"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_be_run(file, form, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    more = full_form(file) if form == "full" else []
    if form == "full" and not more:
        pytest.skip("it has one form")
    words = (f"experiment={file.stem}", *more, f"outputs={tmp_path}")
    experiment = read(file)
    if "data=documents" in experiment.common:  # a text of the user's own
        words = (*words, f"data.train={ROOT / 'README.md'}")
    if experiment.search is not None:
        found = define_search(words)
        assert found is not None
        assert len(found.seeds) >= GENUINE
        return
    study = define(words)
    assert len(study.runs) > 0
    seeds = experiment.seeds
    assert (seeds.first if isinstance(seeds, Added) else len(seeds)) >= GENUINE
    conditions = {cell.arm: cell.planned.recipe for cell in study.cells if cell.seed == study.seeds[0]}
    curves = {cell.arm: cell.planned.curve_id for cell in study.cells}
    assert len({(str(recipe), curves[arm]) for arm, recipe in conditions.items()}) == len(study.arms)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_expected_is_said_beforehand(file):
    experiment = read(file)
    assert experiment.question.endswith("?")
    if len(experiment.factors) + len(experiment.arms) > 1:
        assert experiment.claims
