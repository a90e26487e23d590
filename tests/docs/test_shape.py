"""Three pages lead to all others, and their tables can be read at a glance."""

import re

import pytest

from tests.docs.pages import PAGES, ROOT

DOORS = ("start.md", "reference.md", "trust.md")
MADE = ("architecture.md", "mutants.md", "licences.md")
"""Pages that programs write, from docstrings and names of tests."""

LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")


def linked(page):
    """The pages that a page links to."""
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))}


def test_every_page_is_one_click_from_a_door_and_every_result_from_their_list():
    reached = set().union(*(linked(ROOT / "docs" / door) for door in DOORS))
    assert {ROOT / "docs" / door for door in DOORS} <= linked(ROOT / "README.md")
    assert {page for page in (ROOT / "docs").glob("*.md") if page.name not in DOORS} <= reached
    results = ROOT / "docs" / "results"
    assert set(results.glob("*.md")) <= linked(results / "README.md") | {results / "README.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in MADE], ids=lambda page: page.name)
def test_no_cell_of_a_table_holds_a_paragraph(page):
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [re.sub(r"\]\([^)]*\)", "]", cell.strip()) for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert not [cell for cell in cells if len(cell) > 140]
