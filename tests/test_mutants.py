"""The list of deliberate faults keeps up with the sources and the tests; benchmarks/mutants tries them out."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks.mutants.fault import Fault
from benchmarks.mutants.faults import FAULTS
from benchmarks.mutants.judged import LIVED, UNJUDGED, Judged, edit_of
from benchmarks.mutants.page import page

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


def test_the_page_and_the_readme_tell_of_all_and_none_lived():
    told = (ROOT / "docs/mutants.md").read_text(encoding="utf-8")
    assert [fault.name for fault in FAULTS if f"| {fault.name} |" not in told] == []
    assert f"{len(FAULTS)} faults, {len(FAULTS)} noticed. " in told
    for name in ("README.md", "docs/trust.md"):
        said = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert f"{len(FAULTS)} deliberate faults were put into the code" in said
        assert f"The tests detected all {len(FAULTS)}" in said


def test_the_page_keeps_the_last_result_of_each_fault_with_its_commit(tmp_path):
    """Whatever the sources are by now; but a result of another edit, under the same name, is none."""
    one, other, edited, *_ = FAULTS
    found = {
        fault.name: {"by": by, "commit": commit, "digest": "of other sources", "edit": edit_of(fault)}
        for fault, by, commit in ((one, "tests/a.py::test_b", "abc1234"), (other, LIVED, "abc1234"))
    }
    found[edited.name] = {"by": "tests/a.py::test_b", "commit": "def5678", "digest": "0", "edit": "0"}
    path = tmp_path / "mutants.json"
    path.write_text(json.dumps({"faults": found}), encoding="utf-8")
    told = page(Judged(path))
    assert f"{len(FAULTS)} faults, 1 noticed, 1 lived, {len(FAULTS) - 2} not judged. " in told
    assert "Last tried at commit abc1234 (2)." in told
    assert "def5678" not in told
    assert f"| {other.name} | `{other.file}` | **{LIVED}** |" in told
    assert f"| {edited.name} | `{edited.file}` | **{UNJUDGED}** |" in told
