"""docs/architecture.md is what benchmarks/architecture makes of the code as it is."""

import ast
import re

import pytest

from benchmarks.architecture import __main__ as command
from benchmarks.architecture.names import QUESTIONS, RUN, names
from benchmarks.architecture.numbers import LIMITS, floors, names_a_score, numbers
from benchmarks.architecture.sources import (
    ROOT,
    StaleNameError,
    definition,
    first_sentence,
    modules,
    package,
    reduced,
    tree,
)

PACKAGES = sorted(name for name, path in modules().items() if path.name == "__init__.py")


@pytest.fixture(scope="module")
def counted():
    return numbers()


def test_the_page_is_up_to_date(capsys):
    assert command.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", names())
def test_every_name_on_the_page_exists(name):
    definition(name)


@pytest.mark.parametrize("name", [step.name for outer in RUN for step in (outer, *outer.inner)])
def test_every_step_of_a_run_has_a_docstring(name):
    assert definition(name).docstring


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_has_a_docstring(name):
    assert ast.get_docstring(tree(modules()[name]))


def test_the_map_for_contributors_names_every_package_and_nothing_that_is_gone():
    tables = [line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    named = {place for line in tables for place in re.findall(r"`([\w./]+(?:/|\.py))`", line)}
    assert not [place for place in named if not any((at / place).exists() for at in (ROOT, ROOT / "src" / "ablab"))]
    packages = {f"{path.parent.name}/" for path in (ROOT / "src" / "ablab").glob("*/__init__.py")}
    assert packages <= named


def test_questions_name_three_definitions_at_most():
    assert all(1 <= len(found) <= 3 for _, found in QUESTIONS)


def test_check_tells_a_stale_page_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "PAGE", tmp_path / "architecture.md")
    assert command.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/architecture.md is stale: run python -m benchmarks.architecture\n"
    assert command.main([]) == 0
    assert command.main(["--check"]) == 0


def test_a_name_that_is_gone_is_told_in_one_line():
    with pytest.raises(StaleNameError, match=r"no ablab\.runs\.run; nearest: ablab\.run\.run") as told:
        definition("ablab.runs.run")
    assert "\n" not in str(told.value)


def test_a_graph_is_reduced_to_the_edges_that_no_longer_path_implies():
    edges = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert reduced(edges) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("One. Two.", "One."),
        ("A norm (Ba et al. 2016)", "A norm (Ba et al. 2016)."),
        ("By Fan et al. (2020).\n\nMore.", "By Fan et al. (2020)."),
        ("Over\n    two lines. `x`: more.", "Over two lines."),
        (None, ""),
    ],
)
def test_first_sentence(docstring, sentence):
    assert first_sentence(docstring) == sentence


@pytest.mark.parametrize("name", LIMITS)
def test_no_number_of_the_house_is_above_its_limit(name, counted):
    assert counted[name] <= LIMITS[name], "lower it, or raise the limit and give the reason in the commit"


def test_outside_the_transformer_no_module_names_a_score_but_these():
    """A reader of older files, and the list of libraries: only ever fewer."""
    outside = {name for name in modules() if not f"{name}.".startswith("ablab.transformer.")}
    naming = {name for name in outside if name.startswith("ablab") and names_a_score(name)}
    assert naming <= {"ablab.store.former", "ablab.code.machine"}


def test_the_numbers_are_printed_beside_their_limits(capsys):
    assert command.main(["--numbers"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["now", "limit"]
    assert [row.rsplit(maxsplit=2)[0].strip() for row in rows] == list(LIMITS)


def test_a_floor_is_one_above_the_highest_that_it_imports_and_a_circle_is_on_one():
    arrows = {"a": {"b", "d"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert floors(arrows) == {"a": 3, "b": 2, "c": 2, "d": 1}


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("ablab", "ablab"),
        ("ablab.errors", "errors"),
        ("ablab.commands.options", "commands"),
        ("ablab.transformer", "transformer"),
        ("ablab.transformer.data.scoring", "transformer.data"),
        ("ablab.transformer.model.norms", "transformer.model"),
    ],
)
def test_a_room_is_a_package_and_in_a_wing_a_package_inside(module, room):
    assert package(module) == room
