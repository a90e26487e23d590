"""A study that has not ended has estimates and no verdicts; runs that will never come are given up on record."""

import json
import shutil
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.errors import BAD_INPUT
from ablab.judge.selection_of_study import of_study
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.conftest import ERRORS, typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")


MISSING = frozenset({("layerdrop=0.2", 4), ("layerdrop=0.2", 5)})
DIVERGED = frozenset({("layerdrop=0.5", 4)})


@pytest.fixture(scope="module")
def launched(reported, tmp_path_factory):
    """The store of the study without the runs of the last two seeds of one arm."""
    outputs = tmp_path_factory.mktemp("launched") / "outputs"
    register(define((reported.words[0], f"outputs={outputs}")))
    fill((reported.words[0],), ERRORS, outputs=outputs, diverged=DIVERGED, missing=MISSING, pruned=True)
    return outputs


@pytest.fixture
def unfinished(reported, launched, tmp_path):
    """The words of a copy of that study."""
    return (reported.words[0], f"outputs={shutil.copytree(launched, tmp_path / 'outputs')}")


def report(words):
    code, out, err = typed(*words, "resamples=1000")
    assert (code, err) == (0, "")
    outputs = next(word.partition("=")[2] for word in words if word.startswith("outputs="))
    return json.loads((Path(outputs) / "reports" / "claims" / "report.json").read_text()), out


def close(words, reason, capsys):
    code = main(["study", *words, f"close={reason}"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_no_verdict_before_all_registered_runs_have_ended(unfinished, reported):
    data, out = report(unfinished)
    assert {claim["outcome"] for claim in data["claims"]} == {"provisional"}
    (note,) = [note for note in data["notes"] if note.startswith("provisional")]
    assert note.startswith("provisional: 2 of 20 runs have not ended; there are estimates and no verdicts")
    assert "provisional: 2 of 20 runs" in out
    for claim in data["claims"]:
        assert claim["corrected"] is claim["p"] is claim["other"] is None
        _, provisional, after = claim["words"].partition(": provisional")
        assert provisional
        assert "p " not in after.partition(". ")[2]
        if claim["interval"]:
            assert claim["interval"]["level"] == 0.95
    # Also of arms that are whole: which claims come to rest early must not choose the verdicts.
    (whole,) = [claim for claim in data["claims"] if (claim["arm"], claim["metric"]) == ("layerdrop=0.1", "test_bleu")]
    (ended,) = [
        claim for claim in reported.data["claims"] if (claim["arm"], claim["metric"]) == ("layerdrop=0.1", "test_bleu")
    ]
    assert whole["difference"] == ended["difference"]
    assert "The difference so far is" in whole["words"]


def test_runs_that_are_given_up_end_the_study(unfinished, capsys):
    code, out, _ = close(unfinished, "the machine is gone", capsys)
    assert code == 0
    assert "2 missing runs of claims are given up: the machine is gone" in out
    data, _ = report(unfinished)
    assert "provisional" not in {claim["outcome"] for claim in data["claims"]}
    note, *_ = [note for note in data["notes"] if "given up" in note]
    assert note.startswith("2 runs were given up on 20")
    assert note.endswith(": the machine is gone")
    given_up = "2 runs of its arms were given up after 18 runs of the study had ended"
    assert {claim["arm"]: claim["exploratory"] for claim in data["claims"]} == {
        "layerdrop=0.1": None,
        "layerdrop=0.2": given_up,
        "layerdrop=0.5": None,
    }


def test_a_run_that_comes_after_all_makes_the_claims_exploratory(unfinished, reported, capsys):
    """Otherwise a study could be closed, looked at, and gone on with."""
    assert close(unfinished, "no time", capsys)[0] == 0
    fill((reported.words[0],), ERRORS, outputs=define(unfinished).outputs, diverged=DIVERGED, pruned=True)
    data, _ = report(unfinished)
    assert {claim["exploratory"] for claim in data["claims"]} == {"2 runs were given up, and finished after that"}


SHARED = """
question: Does LayerDrop help, and does the choice of layers matter?
common: [smoke=false, logger=none]
design: arms
arms: {plain: [], lowest: [pruning=first], dropped: [layerdrop=0.1]}
seeds: [1, 2, 3]
claims: [{arm: dropped, expect: greater}]
"""


def test_a_curve_that_is_given_up_is_not_its_run(tmp_path, capsys):
    """Arms that differ by pruning alone share their runs, which have finished under the other arm."""
    (tmp_path / "shared.yaml").write_text(SHARED)
    words = (f"experiment={tmp_path / 'shared.yaml'}", f"outputs={tmp_path / 'outputs'}")
    register(define(words))
    fill(words[:1], {"plain": 0.3, "lowest": 0.3, "dropped": 0.2}, outputs=tmp_path / "outputs")
    assert len(of_study(define(words)).awaited) == 3
    code, out, _ = close(words, "no time for curves", capsys)
    assert (code, "3 missing runs" in out) == (0, True)
    selection = of_study(define(words))
    assert (selection.awaited, selection.late) == ([], [])


def test_seeds_added_after_the_launch_are_not_awaited(reported, tmp_path):
    outputs = shutil.copytree(reported.study.outputs, tmp_path / "outputs")
    data, _ = report((reported.words[0], f"outputs={outputs}"))
    assert "provisional" not in {claim["outcome"] for claim in data["claims"]}


@pytest.mark.parametrize(
    ("reason", "missing", "line"),
    [
        (" ", True, "close=: says nothing"),
        ("enough", False, "each of the 20 runs of claims has ended or was given up"),
    ],
)
def test_what_cannot_be_closed_is_one_line(unfinished, reported, tmp_path, capsys, reason, missing, line):
    words = unfinished
    if not missing:
        outputs = shutil.copytree(reported.study.outputs, tmp_path / "whole")
        words = (reported.words[0], f"outputs={outputs}")
    code, _, err = close(words, reason, capsys)
    assert code == BAD_INPUT
    assert line in err
    assert err.count("\n") == 1
    assert not (define(words).folder / "closed.json").exists()


def test_a_study_that_was_never_launched_has_nothing_to_close(unfinished, capsys):
    (define(unfinished).folder / "registered.json").unlink()
    code, _, err = close(unfinished, "enough", capsys)
    assert code == BAD_INPUT
    assert "was never launched" in err


def test_an_arm_that_came_later_is_no_claim_that_did(reported, tmp_path):
    """What has not ended then is of no claim at all."""
    path = tmp_path / "claims.yaml"
    path.write_text(Path(reported.words[0].partition("=")[2]).read_text().replace("0.5]", "0.5, 0.6]"))
    outputs = shutil.copytree(reported.study.outputs, tmp_path / "outputs")
    data, _ = report((f"experiment={path}", f"outputs={outputs}"))
    assert any("runs are missing" in note for note in data["notes"])
    assert not any(note.startswith("provisional") for note in data["notes"])
