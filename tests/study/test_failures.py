"""A sweep ends with its failures: those that are alike said once, with whom they befell."""

from types import SimpleNamespace

from ablab.store.failures import Failure
from ablab.study.study import Cell
from ablab.sweep.progress import MOST_ARMS, failure_lines


def entry(arm, seed, line="no such file", kind="error"):
    failure = Failure(kind=kind, line=line, attempts=1, log=f"{arm}-{seed}.txt", ended="now")
    return SimpleNamespace(cell=Cell(arm, seed, (), None), failure=failure)


def test_one_failure_is_a_line_and_its_log():
    assert list(failure_lines([entry("a", 3)])) == ["a, seed 3 failed (error): no such file\n  log: a-3.txt"]


def test_what_is_alike_is_said_once_in_the_order_of_the_first():
    found = list(
        failure_lines(
            [entry("a", 1), entry("a", 2, "other"), entry("b", 1), entry("a", 3), entry("a", 4, kind="killed")]
        )
    )
    assert found == [
        "3 runs failed (error): no such file\n  log: a-1.txt\n  runs: a, seeds 1, 3; b, seed 1",
        "a, seed 2 failed (error): other\n  log: a-2.txt",
        "a, seed 4 failed (killed): no such file\n  log: a-4.txt",
    ]


def test_of_many_arms_the_first_are_named():
    (line,) = failure_lines([entry(f"arm{number}", 1) for number in range(MOST_ARMS + 3)])
    assert line.endswith(f"arm{MOST_ARMS - 1}, seed 1; 3 more arms")
