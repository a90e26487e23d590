"""What a report holds of many runs: items as arrays, and what was found of an arm once."""

import pytest

from ablab.judge.runs import SMALL, ArmRuns, with_arrays
from ablab.store.records import Evaluation

EDGE = 2**31 - 1


def evaluation(rows):
    return Evaluation(
        evaluation_id="e1",
        settings={},
        test_name="test",
        sentences=len(rows),
        scores={},
        items={"loss": rows},
        seconds=1.0,
        provenance_code="",
        ended="2026-01-01T00:00:00+00:00",
    )


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[3, 0], [-SMALL, SMALL]], "int16"),
        ([[3, 0], [SMALL + 1, 7]], "int32"),
        ([[3, 0], [-EDGE, EDGE]], "int32"),
        ([[3, 0], [EDGE + 1, 7]], "int64"),
        ([[0.5, 3], [1, 7]], "float64"),
        ([[], []], "int16"),
        ([], "int16"),
    ],
)
def test_items_keep_their_values_in_an_array(rows, kind):
    found = with_arrays(evaluation(rows)).items["loss"]
    assert (found.tolist(), str(found.dtype)) == (rows, kind)


def test_an_arm_is_asked_once():
    arm, asked = ArmRuns("PreNorm", []), []
    assert [arm.once("what", lambda: asked.append(1) or len(asked)) for _ in range(2)] == [1, 1]
    assert arm.once("other", lambda: 5) == 5
    assert ArmRuns("PreNorm", []).once("what", lambda: 7) == 7, "each arm by itself"
