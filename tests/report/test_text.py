"""The report as other programs read it."""

import csv

import pytest

from ablab.judge.document import Document
from ablab.report.columns import ReportTable
from ablab.report.text import comma_separated


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@sum(a)", "'@sum(a)"),
        ("+cmd|' /c calc'!a", "'+cmd|' /c calc'!a"),
        ("-x", "'-x"),
        ("-0.52", "-0.52"),
        ("+1.20", "+1.20"),
        ("+1.20 BLEU", "+1.20 BLEU"),
        ("+1,234 target tokens/s", "+1,234 target tokens/s"),
        ("-1,234.5 MiB", "-1,234.5 MiB"),
        ("-5 %", "-5 %"),
        ("-1+1", "'-1+1"),
        ("-1 (x)", "'-1 (x)"),
        ("-", "-"),
        ("norm=post", "norm=post"),
    ],
)
def test_no_cell_is_a_formula(cell, written, reported):
    table = ReportTable("a", "A", ["name", "value"], [[cell, "1"]], 1)
    document = Document.model_validate(reported.data).model_copy(update={"notes": [cell], "stamp": "stamp"})
    rows = [*csv.reader(comma_separated(document, table).splitlines())]
    assert rows == [["name", "value", "report says", "register"], [written, "1", written, "stamp"]]
