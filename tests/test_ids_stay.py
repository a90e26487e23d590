"""A run id of SCHEMA 2 means the same for ever: lines, and the ids that they had when SCHEMA 2 began."""

import json
from pathlib import Path

import pytest

from ablab.config import compose
from ablab.tasks.plan import plan

IDS = json.loads((Path(__file__).parent / "references" / "ids.json").read_text())
"""Line: run, evaluation and curve id, display name."""


@pytest.mark.parametrize("line", IDS)
def test_a_line_keeps_its_ids(line):
    planned = plan(compose(line.split()))
    assert [planned.run_id, planned.evaluation_id, planned.curve_id, planned.name] == IDS[line]
