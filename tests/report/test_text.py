"""The report as other programs read it."""

import csv
from math import inf

import pytest
from markdown_it import MarkdownIt

from ablab.judge.document import Document, WorthLine
from ablab.report.columns import ReportTable, page_table
from ablab.report.tables import differences_table, tables, worth_table
from ablab.report.text import comma_separated, escaped, markdown
from ablab.text import number as written_number
from ablab.text import signed

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@sum(a)", "'@sum(a)"),
        ("+cmd|' /c calc'!a", "'+cmd|' /c calc'!a"),
        ("-x", "'-x"),
        ("-0.52", "-0.52"),
        ("+3", "+3"),
        ("\t=1", "'\t=1"),
        ("+1.20 BLEU", "'+1.20 BLEU"),
        ("-1+1", "'-1+1"),
        ("-1 (x)", "'-1 (x)"),
        ("-", "-"),
        ("norm=post", "norm=post"),
    ],
)
def test_no_cell_is_a_formula(cell, written, reported):
    table = ReportTable("a", "A", ["name", "value"], [[cell, "-1"]], 1, [[("name", cell), ("value", -1)]])
    document = Document.model_validate(reported.data).model_copy(update={"notes": [cell], "stamp": "stamp"})
    rows = [*csv.reader(comma_separated(document, table).splitlines())]
    assert rows == [["name", "value", "report says", "register"], [written, "-1", written, "stamp"]]


WORDS = {
    "claim",
    "verdict",
    "notes",
    "unit",
    "p is of",
    "test",
    "published",
    "source",
    "arm",
    "baseline",
    "effect",
    "kind",
}
WORDS |= {"metric", "method", "differs because", "report says", "register"}
"""Columns that hold words."""


def number(cell):
    return float(cell) if cell else None


def close(value):
    return None if value is None else pytest.approx(value, rel=1e-9)


def test_programs_read_plain_numbers_whose_units_the_headers_say(reported):
    """People read the same figures rounded, with thousands separators, and intervals in one cell."""
    document = Document.model_validate(reported.data)
    read = {table.key: [*csv.DictReader(comma_separated(document, table).splitlines())] for table in tables(document)}
    assert {"claims", "arms", "differences", "metrics", "otherwise"} <= set(read)
    for key, rows in read.items():
        words = WORDS | ({"difference"} if key == "otherwise" else set())
        for cell in [cell for row in rows for name, cell in row.items() if name not in words]:
            number(cell)  # ValueError for what is none
    arms = {arm.name: arm for arm in document.arms}
    assert any(arm.mean is None for arm in arms.values()), "one has diverged"
    for row in read["arms"]:
        arm = arms[row["arm"]]
        assert int(row["is baseline"]) == arm.is_baseline
        low, high = (None, None) if arm.interval is None else (arm.interval.low, arm.interval.high)
        assert number(row[document.title]) == close(arm.mean)
        assert (number(row["95 % interval low"]), number(row["95 % interval high"])) == (close(low), close(high))
        assert number(row["time (min)"]) == close(arm.train_seconds / 60)
        assert row["parameters"] == str(arm.parameters)
        assert "validation loss (nats per token)" in row
    for row, claim in zip(read["claims"], document.claims, strict=True):
        assert (row["arm"], row["baseline"], row["unit"]) == (claim.arm, claim.baseline, claim.unit)
        assert number(row["difference"]) == close(claim.difference)
        assert number(row["interval level (%)"]) == close(
            None if claim.interval is None else 100 * claim.interval.level
        )


def test_two_columns_of_one_name_are_both_there(reported):
    table = ReportTable("a", "A", ["n", "n"], [["1", "2"]], 0, [[("n", 1), ("n", 2)]])
    document = Document.model_validate(reported.data)
    assert [line.split(",")[:2] for line in comma_separated(document, table).splitlines()] == [["n", "n"], ["1", "2"]]


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        ({"factor": 2.0, "low": 1.5, "high": None}, {"factor": 2.0, "low": 1.5, "high": inf}),
        ({"factor": None, "low": 3.0, "high": None, "saturated": True}, {"factor": None, "low": 3.0, "high": inf}),
        ({"factor": None, "low": 0.0, "high": 0.8, "saturated": True}, {"factor": None, "low": 0.0, "high": 0.8}),
        ({"factor": None, "low": None, "high": None, "at_least": 4.0}, {"factor": None, "low": None, "high": None}),
    ],
)
def test_what_has_no_end_is_infinite(changed, cells, reported):
    usual = dict.fromkeys(("refused", "at_least")) | {"saturated": False, "n": 3}
    line = WorthLine.model_validate({"arm": "b", "baseline": "a", **usual, **changed})
    document = Document.model_validate(reported.data).model_copy(update={"worth": [line]})
    (row,) = worth_table(document).data
    found = dict(row)
    names = {"factor": "times the baseline's compute", "low": "95 % interval low", "high": "95 % interval high"}
    assert {key: found.get(name) for key, name in names.items()} == cells


@pytest.mark.parametrize(
    "name",
    [
        "&amp; &lt;",
        "&#42;",
        "<",
        "a<b>c",
        "a~~b~~",
        "~x~",
        "_em_ *star* `code`",
        "a_b_c",
        "[l](x)",
        "[1]",
        "a|b",
        "c\\*d",
        "e\\f",
    ],
)
def test_markdown_shows_a_name_as_it_is(name):
    """By the renderer that GitHub's rules are written for, with tables and strikethrough."""
    (row,) = [token for token in RENDERER.parse(f"| a |\n| --- |\n| {escaped(name)} |") if token.content][1:]
    assert {each.type for each in row.children} <= {"text", "text_special"}
    assert "".join(each.content for each in row.children) == name


def test_of_two_columns_of_one_title_each_has_its_own_cells():
    """A score of the user's may be called as a column of every table."""
    table = ReportTable("arms", "Arms", ["arm", "score", "time", "time"], [["a", "1", "5 s", "7.5"]])
    (row,) = page_table(table).rows
    assert row.cells == ["a", "1", "5 s", "7.5"]


@pytest.mark.parametrize("lead", [{"arm": "a"}, {"arm": "a", "notes": "one seed"}])
def test_a_score_titled_notes_keeps_its_column(lead):
    table = ReportTable("arms", "Arms", [*lead, "loss", "notes"], [[*lead.values(), "2.0", "0.5"]], len(lead))
    page = page_table(table)
    assert [column.title for column in page.columns] == ["arm", "loss", "notes"]
    assert page.rows[0].cells == ["a", "2.0", "0.5"]
    assert page.notes == [*lead.values()][1:]


def test_a_difference_has_the_digits_that_tell_it_from_0_as_its_interval_has(reported):
    document = Document.model_validate(reported.data)
    span = document.differences[0].interval.model_copy(update={"low": -0.0031, "high": -0.0021})
    line = document.differences[0].model_copy(update={"difference": -0.0026, "interval": span, "claim": None})
    table = differences_table(document.model_copy(update={"differences": [line]}))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["difference"] == "-0.003"
    assert "[-0.003, -0.002]" in row.values()


@pytest.mark.parametrize(("value", "written"), [(-0.001, "0.00"), (0.004, "0.00"), (-0.006, "-0.01"), (None, "")])
def test_what_rounds_to_0_has_no_minus(value, written):
    assert written_number(value, 2) == written
    assert signed(value, 2) == (f"+{written}" if written == "0.00" else written)


def test_a_block_of_yaml_is_one_line_of_markdown(reported):
    document = Document.model_validate(reported.data)
    first, *others = document.claims
    claim = first.model_copy(update={"published": "+1 %", "source": "table\n\n3"})
    said = markdown(document.model_copy(update={"question": "Is it?\n\nReally?", "claims": [claim, *others]}))
    assert said.startswith("# Is it? Really?\n")
    assert "(table 3)" in said
