"""The workflows run what the project has, and constraints.txt can be installed on each of their versions of Python."""

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def matrix(workflow):
    text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
    return yaml.safe_load(text)["jobs"]["test"]["strategy"]["matrix"]


PYTHONS = matrix("ci.yml")["python"]


def requires_python(pin):
    """The versions of Python that the pinned release asks for; None if another release is installed, or none."""
    try:
        found = metadata(pin.name)
    except PackageNotFoundError:
        return None
    return SpecifierSet(found.get("Requires-Python", "")) if found["Version"] in pin.specifier else None


@pytest.mark.parametrize("python", PYTHONS)
def test_every_pin_suits_each_python_that_it_is_meant_for(python):
    meant = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate({"python_version": python})]
    known = {pin.name: needed for pin in meant if (needed := requires_python(pin)) is not None}
    assert known
    assert not {name: str(needed) for name, needed in known.items() if f"{python}.99" not in needed}


def test_the_workflow_runs_on_every_python_that_is_supported():
    needed = metadata("ablab")["Requires-Python"]
    assert [version for version in (f"3.{minor}" for minor in range(30)) if version in SpecifierSet(needed)] == PYTHONS


def test_what_takes_hours_runs_every_week():
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()}
    assert set(matrix("weekly.yml")["target"]) <= targets
