"""A sweep in which a call of any of its processes fails: the same line, typed again, completes the study."""

import errno
import os

import pytest

from tests.faults.conftest import LINE, result_of
from tests.faults.disturber import FULL, KILL, Disturber

pytestmark = pytest.mark.faults

SWEEP = ("train", "-m", *LINE[1:], "logger=none", "norm=pre,scalenorm", "retry_failed=true")
WAYS = {"killed": KILL, "no space from then on": FULL, "input/output error": errno.EIO, "quota": errno.EDQUOT}

SHARES, APART = 6, 11
"""Tests that share the calls, and every how many-th call is tried; `ABLAB_FAULTS=all` tries each."""


@pytest.fixture(scope="session")
def undisturbed_sweep(disturber, tmp_path_factory):
    outputs = tmp_path_factory.mktemp("undisturbed_sweep")
    ended = disturber.run(*SWEEP, f"outputs={outputs}", below=outputs)
    assert ended.code == 0, ended.said
    return ended.calls, result_of(outputs)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("share", range(SHARES))
def test_a_sweep_is_completed_whichever_call_fails(share, disturber: Disturber, undisturbed_sweep, tmp_path):
    calls, expected = undisturbed_sweep
    apart = 1 if os.environ.get("ABLAB_FAULTS") == "all" else APART
    for number, at in enumerate(range(1 + share, calls + 1, SHARES * apart)):
        way = [*WAYS][number % len(WAYS)]
        outputs = tmp_path / str(at)
        outputs.mkdir()
        told = f"call {at} of {calls}, {way}"
        ended = disturber.run(*SWEEP, f"outputs={outputs}", below=outputs, at=at, how=WAYS[way])
        assert "Traceback" not in ended.said, f"{told}:\n{ended.said}"
        again = disturber.run(*SWEEP, f"outputs={outputs}", below=outputs)
        assert again.code == 0, f"{told}, {ended.fired}:\n{ended.said}\nand then\n{again.said}"
        assert result_of(outputs) == expected, f"{told}, {ended.fired}"
