"""Each call that changes the store fails in turn: the same line, typed again, ends as if nothing had happened.

By default each call fails in one of the ways; `ABLAB_FAULTS=all` lets each fail in all of them.
"""

import errno
import os

import pytest

from tests.faults.conftest import LINE, result_of
from tests.faults.disturber import FULL, HALF_AND_KILL, KILL, READ_ONLY, SHORT, Disturber

pytestmark = pytest.mark.faults

WAYS = {
    "killed": KILL,
    "half written, then killed": HALF_AND_KILL,
    "a short write": SHORT,
    "no space": errno.ENOSPC,
    "no space from then on": FULL,
    "quota": errno.EDQUOT,
    "input/output error": errno.EIO,
    "read-only from then on": READ_ONLY,
}

REASONS = {FULL: errno.ENOSPC, READ_ONLY: errno.EROFS}

SHARES = 12
"""Tests that share the calls, so that several processes can run them."""


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("share", range(SHARES))
def test_a_call_that_fails_loses_nothing(share, disturber: Disturber, undisturbed, tmp_path):
    calls, expected = undisturbed
    every = os.environ.get("ABLAB_FAULTS") == "all"
    tried = 0
    for at in range(1 + share, calls + 1, SHARES):
        names = list(WAYS)
        for way in names if every else [names[at % len(names)]]:
            outputs = tmp_path / f"{at}-{WAYS[way]}"
            outputs.mkdir()
            told = f"call {at} of {calls}, {way}"
            line = (*LINE, "logger=none", f"outputs={outputs}")
            ended = disturber.run(*line, below=outputs, at=at, how=WAYS[way])
            assert "Traceback" not in ended.said, f"{told}:\n{ended.said}"
            number = REASONS.get(WAYS[way], WAYS[way])
            if number > 0 and ended.code:
                last = ended.said.splitlines()[-1]
                assert last.startswith("error: "), f"{told}:\n{ended.said}"
                assert os.strerror(number) in last, f"{told}:\n{ended.said}"
            again = disturber.run(*line, below=outputs)
            assert again.code == 0, f"{told}, {ended.fired}:\n{ended.said}\nand then\n{again.said}"
            assert result_of(outputs) == expected, f"{told}, {ended.fired}"
            tried += 1
    assert tried
