"""Reports of names that others chose: whatever they are, they are text on the page, in LaTeX and in a spreadsheet."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.input.conftest import examples
from tests.input.forked import typed
from tests.input.laws import assert_no_fault_of_ours, assert_told_in_one_line, moving
from tests.input.vocabulary import HOSTILE

UNDRAWN = {"ablab.commands.report.write_pictures": lambda document, folder: None}

HARMFUL = (
    *("<script>alert(1)</script>", "</script><b onload=x>", "<img src=x onerror=y>", '" onmouseover="x', "' style='x"),
    *("<!--", "]]>", "&lt;script&gt;", "&#60;b&#62;", "javascript:x", "[x](javascript:y)", "</title>", "</style>"),
    *(
        "\\input{/etc/passwd}",
        "\\write18{id}",
        "^^5cinput{x}",
        "\\end{tabular}",
        "$x$",
        "a & b \\\\",
        "%",
        "{",
        "}",
        "~",
    ),
    *("=1+1", "=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", ";=1", '","=1'),
    *("${x}", "{{ x }}", "{% x %}", "%(x)s", "{0}", "__proto__", "constructor", "`id`", "$(id)", "|", "a|b"),
)
NAMES = st.sampled_from((*HARMFUL, *HOSTILE)) | st.text(min_size=1, max_size=20)

REACHING_OUT = re.compile(
    r"\\(input|include\b|write|openin|openout|read|catcode|csname|def\b|let\b|immediate|special|usepackage\{[^}]*minted)"
)


class Markup(HTMLParser):
    """Tags with their attributes' names, as a browser would see them, and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str]] = set()
        self.addresses: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src", "action")}


def _reported(names: tuple[str, str, str], place: Path) -> Path | None:
    """Report a table of two arms and a metric with these names; return the folder, or None if a name is refused."""
    with (place / "results.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["arm", "seed", "metric", "value"])
        for arm, mean in zip(names, (20.0, 21.0), strict=False):
            rows.writerows([arm, seed, names[2], mean + 0.1 * seed] for seed in (1, 2, 3))
    ended = typed(["report", "table=results.csv", "resamples=1000", "outputs=out"], place, instead=UNDRAWN)
    assert_no_fault_of_ours(ended)
    assert_told_in_one_line(ended)
    assert moving(ended.out, allowed="\n\t") == []
    return None if ended.code else next((place / "out").rglob("report.html")).parent


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, warm: None) -> tuple[Path, Path]:
    """A place to report in, and the report of names without harm."""
    place, other = (tmp_path_factory.mktemp(name) for name in ("shown", "plain"))
    found = _reported(("base", "other", "bleu"), other)
    assert found is not None
    return place, found


def _markup(folder: Path) -> Markup:
    return Markup((folder / "report.html").read_text(encoding="utf-8"))


@examples(0.15)
@given(names=st.tuples(NAMES, NAMES, NAMES))
def test_a_name_is_text_wherever_it_is_shown(names: tuple[str, str, str], plain: tuple[Path, Path]) -> None:
    place, usual = plain
    folder = _reported(names, place)
    if folder is None:
        return
    markup, expected = _markup(folder), _markup(usual)
    assert [tag for tag in markup.tags if tag == "script"] == [tag for tag in expected.tags if tag == "script"]
    assert set(markup.tags) <= set(expected.tags)
    assert markup.attributes <= expected.attributes
    assert not any(address.lower().strip().startswith(("javascript:", "data:text")) for address in markup.addresses)
    tex = (folder / "report.tex").read_text(encoding="utf-8")
    assert "^^" not in tex
    assert len(REACHING_OUT.findall(tex)) == len(REACHING_OUT.findall((usual / "report.tex").read_text()))
    assert tex.count("\\begin{tabular}") == tex.count("\\end{tabular}")
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                assert not cell.startswith(("=", "@", "\t", "\r")), (path.name, cell)
                assert not cell.startswith(("+", "-")) or cell == "-" or _is_number(cell), (path.name, cell)
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"(?<!\\)<(?=[a-zA-Z/!])", markdown)


def _is_number(cell: str) -> bool:
    try:
        number, _, unit = cell.partition(" ")
        float(number.rstrip("%"))
    except ValueError:
        return False
    return not unit or unit == "%" or bool(re.fullmatch("[A-Za-z, ]+", unit))
