"""Tests that take longest: few of them take most of the time, so `make test` leaves them to `make test-long`.

python -m pytest --durations=0 --durations-min=0.05 -m 'not slow and not faults' > log.txt
python -m tests.long_tests log.txt        lists them anew
"""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

LIST = Path(__file__).with_suffix(".txt")

SHARE = 0.85
"""Of the whole time, which the long tests take together."""

FIXTURES = {
    "tests/dashboard/test_dashboard.py": "words",
    "tests/docs/test_site.py": "site",
    "tests/language_model/test_analyse.py": "analysed",
    "tests/provenance/test_called.py": "called",
    "tests/pruning/test_head_curve.py": "small",
    "tests/report/test_contrasts.py": "place",
    "tests/report/test_labels.py": "place",
    "tests/report/test_left_out.py": "made",
    "tests/report/test_looks.py": "ended",
    "tests/report/test_provisional.py": "launched",
    "tests/report/test_tuned.py": "tried",
    "tests/stages/test_analyse.py": "analysed",
    "tests/study/test_sweep.py": "swept",
    "tests/tasks/test_toy.py": "swept",
    "tests/tracking/test_events.py": "tracked",
}
"""What takes long to make for the tests of one file, which all are long if they use it."""

LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(tests/\S+?\.py::\w+)")


def listed() -> set[str]:
    """The long tests, `tests/loop/test_loop.py::test_a_spent_budget_ends_the_loop`, with all their parameters."""
    return set(LIST.read_text(encoding="utf-8").split())


def mark(items: list[pytest.Item]) -> None:
    """Give the mark `long` to what is listed, and to what uses a fixture that takes long."""
    names = listed()
    for item in items:
        made = FIXTURES.get(item.nodeid.partition("::")[0])
        if made in getattr(item, "fixturenames", ()) or item.nodeid.partition("[")[0] in names:
            item.add_marker("long")


def longest(log: str) -> list[str]:
    """The longest tests of a log, which together take SHARE of its time: as machines differ, no number of seconds."""
    times: Counter[str] = Counter()
    for seconds, name in LINE.findall(log):
        times[name] += float(seconds)
    found, left = [], SHARE * sum(times.values())
    for name, seconds in times.most_common():
        if left > 0:
            found.append(name)
        left -= seconds
    return sorted(found)


if __name__ == "__main__":
    LIST.write_text("\n".join([*longest(Path(sys.argv[1]).read_text(encoding="utf-8")), ""]), encoding="utf-8")
    print(f"{len(listed())} tests are long: {LIST}")  # noqa: T201
