"""The list of deliberate faults keeps up with the sources and the tests; benchmarks/mutants tries them out."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutants.fault import Fault
from benchmarks.mutants.faults import FAULTS

ROOT = Path(__file__).parents[1]


def test_no_two_have_one_name():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_no_two_are_one_fault():
    assert len({(fault.file, fault.right, fault.wrong) for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_applies_and_leaves_a_program(fault):
    assert fault.misfit(ROOT) is None
    ast.parse(fault.applied((ROOT / fault.path).read_text(encoding="utf-8")))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_its_tests_are_there(fault):
    assert fault.tests
    for path, _, name in (test.partition("::") for test in fault.test_paths):
        source = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        found = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
        assert not name or name in found


@pytest.mark.parametrize(("right", "found"), [("x", 2), ("y", 0)])
def test_one_that_does_not_apply_says_why(right, found, tmp_path):
    (tmp_path / "src/ablab").mkdir(parents=True)
    (tmp_path / "src/ablab/a.py").write_text("x = x")
    assert f"a.py has the text to replace {found} times" in Fault("a fault", "a.py", right, "z", ("b",)).misfit(
        tmp_path
    )
