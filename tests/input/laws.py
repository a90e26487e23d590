"""What holds of every command, whatever it is given."""

import unicodedata
from pathlib import Path

from ablab.errors import BAD_INPUT, DONE, FAILED
from tests.input.forked import Ended

LONGEST = 20_000
"""Characters of an error that is still a line for a person."""


def assert_no_fault_of_ours(ended: Ended) -> None:
    """The command ended in time, by itself, with a documented code, and without a traceback."""
    assert not ended.hung, f"still running after {ended.seconds:.1f} s"
    assert "Traceback" not in ended.out + ended.err, ended.err
    assert ended.code in (DONE, FAILED, BAD_INPUT), (ended.code, ended.err)


def assert_told_in_one_line(ended: Ended) -> None:
    """What is refused is said in one line that does nothing to a screen but stand on it; what is done says no error."""
    if ended.code == DONE:
        assert "error: " not in ended.err
        return
    assert ended.err.startswith("error: "), ended.err
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.endswith("\n")
    assert moving(ended.err[:-1], allowed="\t") == []
    assert len(ended.err) < LONGEST


def moving(text: str, *, allowed: str = "") -> list[str]:
    """Return the characters that move a cursor, colour a screen or turn the order of a line."""
    turning = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return [
        one
        for one in text
        if one not in allowed and (unicodedata.category(one) == "Cc" or unicodedata.bidirectional(one) in turning)
    ]


def tree(folder: Path) -> set[Path]:
    """Everything below a folder."""
    return set(folder.rglob("*"))
