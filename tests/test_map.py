"""docs/architecture.md is what docs/architecture.py makes of the code as it is."""

import ast
import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("architecture", Path(__file__).parents[1] / "docs" / "architecture.py")
architecture = importlib.util.module_from_spec(SPEC)  # by its path: some distributions install a package called docs
SPEC.loader.exec_module(architecture)

PACKAGES = sorted(name for name, path in architecture.modules().items() if path.name == "__init__.py")


def test_the_page_is_up_to_date(capsys):
    assert architecture.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", architecture.names())
def test_every_name_on_the_page_exists(name):
    architecture.definition(name)


@pytest.mark.parametrize("name", [step.name for outer in architecture.RUN for step in (outer, *outer.inner)])
def test_every_step_of_a_run_has_a_docstring(name):
    assert architecture.definition(name).docstring


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_has_a_docstring(name):
    assert ast.get_docstring(architecture.tree(architecture.modules()[name]))


def test_questions_name_three_definitions_at_most():
    assert all(1 <= len(found) <= 3 for _, found in architecture.QUESTIONS)


def test_check_tells_a_stale_page_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(architecture, "PAGE", tmp_path / "architecture.md")
    assert architecture.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/architecture.md is stale: run python docs/architecture.py\n"
    assert architecture.main([]) == 0
    assert architecture.main(["--check"]) == 0


def test_a_name_that_is_gone_is_told_in_one_line():
    with pytest.raises(architecture.StaleNameError, match=r"no ablab\.runs\.run; nearest: ablab\.run\.run,") as told:
        architecture.definition("ablab.runs.run")
    assert "\n" not in str(told.value)


def test_a_graph_is_reduced_to_the_edges_that_no_longer_path_implies():
    edges = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert architecture.reduced(edges) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


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
    assert architecture.first_sentence(docstring) == sentence
