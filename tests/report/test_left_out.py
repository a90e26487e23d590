"""Runs that a report leaves out are told, with what they would have said: the seeds shown may be the best of many."""

import json
import shutil

import pytest

from ablab.commands.cli import main
from ablab.statistics.moderated import moderated
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.conftest import typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")

ARMS = ("layerdrop=0", "layerdrop=0.1")
SEEDS = "seed=1,2,3,4,5,6,7,8"
SWEEP = ("layerdrop=0,0.1", "logger=none")
EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1]}
seeds: [2, 3, 5]
claims: [{arm: layerdrop=0.1, expect: greater}]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two arms of equal quality under eight seeds."""
    outputs = tmp_path_factory.mktemp("left") / "outputs"
    register(define((*SWEEP, SEEDS, f"outputs={outputs}")))
    fill((*SWEEP, SEEDS), dict.fromkeys(ARMS, 0.3), outputs=outputs)
    return outputs


@pytest.fixture
def outputs(made, tmp_path):
    return shutil.copytree(made, tmp_path / "outputs")


def notes(outputs, *words):
    shutil.rmtree(outputs / "reports", ignore_errors=True)
    code, _, err = typed(*words, f"outputs={outputs}", "resamples=1000")
    assert (code, err) == (0, "")
    (folder,) = (outputs / "reports").iterdir()
    return json.loads((folder / "report.json").read_text())["notes"]


def over_all(outputs):
    """The difference over all eight seeds, as the note says it: by the test of the report."""
    cells = define((*SWEEP, SEEDS, f"outputs={outputs}")).cells
    scores = {arm: [_bleu(cell) for cell in cells if cell.arm == arm] for arm in ARMS}
    found = moderated(scores[ARMS[1]], scores[ARMS[0]])
    interval = found.at(0.95)
    figures = f"{found.difference:+.2f} BLEU [{interval.low:+.2f}, {interval.high:+.2f}], p = {found.p:.3f}"
    return f"with them, {ARMS[1]} less {ARMS[0]} is {figures}, over 8 seeds"


def _bleu(cell):
    return cell.planned.folder.evaluation(cell.planned.evaluation_id).scores["bleu"]


def ids(outputs, seeds):
    cells = define((*SWEEP, SEEDS, f"outputs={outputs}")).cells
    return ",".join(cell.planned.run_id for cell in cells if cell.seed in seeds)


LEFT = "10 more runs of these recipes had ended (seeds 1, 4, 6, 7, 8)"
CHOSEN = "leaves them out, so the figures are exploratory"


def test_three_seeds_of_eight_however_they_are_chosen(outputs):
    tail = over_all(outputs)
    by_words = tail.replace("layerdrop=0 ", "the defaults ")
    assert notes(outputs, *SWEEP, "seed=2,3,5") == [f"{LEFT}; the choice of seeds {CHOSEN}; {tail}"]
    assert notes(outputs, f"runs={ids(outputs, (2, 3, 5))}") == [f"{LEFT}; runs= {CHOSEN}; {by_words}"]
    where = "where=seed!=1 seed!=4 seed<6"
    assert notes(outputs, where) == [f"{LEFT}; {where} {CHOSEN}; {by_words}"]


def test_a_run_without_a_partner_adds_nothing_to_a_difference(outputs):
    """The same pairs, by the same test, are the same figures."""
    (note,) = notes(outputs, f"runs={ids(outputs, (2, 3, 5))}")
    assert "with them" in note
    others = define((*SWEEP, SEEDS, f"outputs={outputs}")).cells
    for cell in others:
        if cell.seed in (1, 4, 6, 7, 8) and cell.arm == ARMS[1]:
            shutil.rmtree(cell.planned.folder.path)
    (note,) = notes(outputs, f"runs={ids(outputs, (2, 3, 5))}")
    assert "5 more runs" in note or "10 more runs" in note
    assert "with them" not in note


def test_all_runs_leave_out_none(outputs):
    assert notes(outputs, *SWEEP, SEEDS) == []
    assert notes(outputs, "where=data=numbers") == []
    fill(("layerdrop=0.2", "logger=none", "seed=1,2,3"), {"one arm": 0.3}, outputs=outputs)
    assert notes(outputs, *SWEEP, SEEDS) == []  # other recipes are other questions


def test_runs_that_are_gone_are_counted(outputs):
    """A seed that was bad may have been removed before."""
    assert main(["rm", f"runs={ids(outputs, (1, 4))}", f"outputs={outputs}"]) == 0
    assert main(["rm", f"runs={ids(outputs, (7, 8))}", f"outputs={outputs}"]) == 0
    removed = ",".join(path.name for path in (outputs / "superseded").iterdir() if path.name[:12] in ids(outputs, (8,)))
    assert main(["rm", f"runs={removed}", f"outputs={outputs}", "forever=true"]) == 0
    (note,) = notes(outputs, *SWEEP, "seed=2,3,5")
    assert note.startswith(f"{LEFT[:-1]}; not in the store: 8); ")
    assert note.endswith("over 4 seeds")


def study(outputs, tmp_path):
    (tmp_path / "picked.yaml").write_text(EXPERIMENT)
    return (f"experiment={tmp_path / 'picked.yaml'}", f"outputs={outputs}")


def test_a_study_of_seeds_that_were_chosen_says_so(outputs, tmp_path):
    words = study(outputs, tmp_path)
    register(define(words))
    note, *_ = notes(outputs, words[0])
    assert note == f"{LEFT}; the choice of seeds {CHOSEN}; {over_all(outputs)}"
    (claim,) = json.loads((outputs / "reports" / "picked" / "report.json").read_text())["claims"]
    assert claim["exploratory"] == "6 of the runs had finished when the claim was registered"


def test_a_study_whose_seeds_were_registered_before_chose_none(tmp_path):
    words = study(tmp_path / "outputs", tmp_path)
    register(define(words))
    errors = dict.fromkeys(ARMS, 0.3)
    fill(words[:1], errors, outputs=tmp_path / "outputs")
    fill((*SWEEP, SEEDS), errors, outputs=tmp_path / "outputs")
    (note,) = notes(tmp_path / "outputs", words[0])
    assert note == f"{LEFT}; they are no part of the study; {over_all(tmp_path / 'outputs')}"
    (claim,) = json.loads((tmp_path / "outputs" / "reports" / "picked" / "report.json").read_text())["claims"]
    assert claim["exploratory"] is None


@pytest.mark.parametrize(("file", "left"), [("recipe.yaml", 10), ("record.json", 9)])
def test_runs_that_cannot_be_read_hide_no_other(outputs, file, left):
    (outputs / "runs" / ids(outputs, (8,)).split(",")[0] / file).write_text("{")
    (note,) = notes(outputs, *SWEEP, "seed=2,3,5")
    assert note.startswith(f"{left} more runs of these recipes had ended (seeds 1, 4, 6, 7, 8); ")
    assert note.endswith("over 7 seeds")
