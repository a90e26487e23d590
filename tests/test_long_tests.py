"""What is listed as long is there, and is what takes longest."""

import ast
from pathlib import Path

import pytest

from tests.long_tests import FIXTURES, SHARE, listed, longest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted({name.partition("::")[0] for name in listed()}))
def test_each_has_a_function_of_its_name(path):
    names = {name.partition("::")[2] for name in listed() if name.startswith(f"{path}::")}
    there = {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert names <= there


@pytest.mark.parametrize("path", FIXTURES)
def test_each_fixture_is_one_of_its_file(path):
    assert FIXTURES[path] in {
        node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)
    }


def test_the_longest_take_the_share_together_with_all_their_parameters():
    log = "\n".join(
        [
            "0.30s setup    tests/a.py::test_one",
            "5.00s call     tests/a.py::test_one[x-1.5]",
            "4.00s call     tests/b/c.py::test_two",
            "3.20s call     tests/a.py::test_one[y]",
            "1.00s call     tests/b/c.py::test_three",
            "0.50s teardown tests/a.py::test_four",
            "FAILED tests/a.py::test_five",
        ]
    )
    assert 8.5 < SHARE * 14 <= 8.5 + 4.0
    assert longest(log) == ["tests/a.py::test_one", "tests/b/c.py::test_two"]
