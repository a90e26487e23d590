"""Pictures on paper: they say what the tables say, lie where the texts look, and do not change by themselves."""

import re

import pytest
from matplotlib.figure import Figure

from ablab.report import printed
from ablab.report.document import Document
from ablab.report.forest import forest_rows
from ablab.report.plain import latex, markdown
from ablab.report.tables import claims_table, differences_table


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


def drawn(picture):
    axes = Figure().subplots()
    picture.draw(axes)
    return axes


def test_the_forest_plot_has_the_figures_of_the_tables(document):
    (picture,) = printed.forest(document)
    texts = [text.get_text() for text in drawn(picture).texts]
    judged = {(row[2], row[3], row[1]) for row in claims_table(document).rows}
    assert len(texts) == len(forest_rows(document)) > 0
    for text in texts:
        figures, outcome = text.split("\n")
        assert (*figures.split(" ", 1), outcome) in judged

    without = document.model_copy(update={"claims": []})
    texts = [text.get_text() for text in drawn(printed.forest(without)[0]).texts]
    assert texts[::-1] == [f"{row[1]} {row[2]}" for row in differences_table(without).rows if row[2]]


def test_every_arm_has_its_line(document):
    for series, picture in zip(document.series, printed.curves(document), strict=True):
        axes = drawn(picture)
        assert [line.get_label() for line in axes.lines] == [line.arm for line in series.lines] == picture.arms
        assert [list(line.get_ydata()) for line in axes.lines] == [line.mean for line in series.lines]


def test_what_cannot_be_read_on_paper_is_left_to_the_page(document):
    series = document.series[0]
    crowd = series.model_copy(update={"lines": series.lines[:1] * (printed.MOST_LINES + 1)})
    many = document.model_copy(
        update={"series": [crowd], "claims": [], "differences": document.differences[:1] * (printed.MOST_ROWS + 1)}
    )
    assert printed.curves(many) == []
    assert printed.forest(many) == []
    assert ".png" not in markdown(many)
    assert ".pdf" not in latex(many)


def test_the_texts_show_what_was_drawn(reported):
    shown = set(re.findall(r"\]\((\w+\.png)\)", reported.text("report.md")))
    assert shown == {path.name for path in reported.folder.glob("*.png")}
    assert "forest.png" in shown
    included = set(re.findall(r"\{(\w+\.pdf)\}", reported.text("report.tex")))
    assert included == {path.name for path in reported.folder.glob("*.pdf")}


def test_equal_reports_give_equal_files(document, reported, tmp_path):
    printed.write_pictures(document, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 2 * len([*printed.forest(document), *printed.curves(document)])
    for name in names:
        assert (tmp_path / name).read_bytes() == (reported.folder / name).read_bytes(), name
