"""Pictures on paper: they say what the tables say, lie where the texts look, and do not change by themselves."""

import re

import pytest
from matplotlib.figure import Figure

from ablab.commands.report import _write
from ablab.judge.document import Document
from ablab.report import pictures as printed
from ablab.report.forest import forests, wrapped
from ablab.report.latex import latex
from ablab.report.names import named
from ablab.report.pictures import write_column_picture
from ablab.report.tables import claims_table, differences_table
from ablab.report.text import markdown
from tests.report.conftest import typed, unclaimed


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


def drawn(picture):
    axes = Figure().subplots()
    picture.draw(axes)
    return axes


def test_the_forest_plot_has_the_figures_of_the_tables(document):
    pictures = printed.differences(document)
    texts = [text.get_text().replace("\n", " ") for picture in pictures for text in drawn(picture).texts]
    judged = {
        f"{row['difference'].partition(' ')[0]} {row['interval'].partition(' at ')[0]} {row['verdict']}"
        for row in as_rows(claims_table(document))
    }
    assert len(texts) == sum(len(plot.rows) for plot in forests(document).values()) == 6
    assert sum(text in judged for text in texts) == 5
    assert "by ranks of all runs" in texts[0]  # on another scale: named, and without a place on this one

    without = unclaimed(document)
    texts = [text.get_text() for text in drawn(printed.differences(without)[0]).texts][::-1]
    shown = [f"{row['difference']} {row['95 % interval']}" for row in as_rows(differences_table(without))]
    assert texts[:2] == shown[:2]
    assert texts[2] == "1 of 5 runs diverged, 0 of\n5 in the baseline"


@pytest.mark.usefixtures("undrawn")
def test_a_report_without_a_figure_leaves_no_file_of_the_one_before(document, tmp_path):
    there = []
    for each in (document, document.model_copy(update={"claims": [], "differences": []})):
        _write({}, named(each), tmp_path / "report")
        there.append((tmp_path / "report" / "column_figure.tex").exists())
    assert there == [True, False]


def as_rows(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_every_arm_has_its_line(document):
    for series, picture in zip(document.series, printed.curves(document), strict=True):
        axes = drawn(picture)
        assert [wrapped(line.marked, 40) for line in series.lines] == picture.arms
        assert [list(line.get_ydata()) for line in axes.lines] == [line.mean for line in series.lines]


def test_what_cannot_be_read_on_paper_is_left_to_the_page(document):
    series = document.series[0]
    crowd = series.model_copy(update={"lines": series.lines[:1] * (printed.MOST_LINES + 1)})
    plain = unclaimed(document)
    many = plain.model_copy(update={"series": [crowd], "differences": plain.differences[:1] * (printed.MOST_ROWS + 1)})
    assert printed.curves(many) == []
    assert printed.differences(many) == []
    assert ".png" not in markdown(many)
    assert ".pdf" not in latex(many).replace("column_figure.pdf", "")


def test_any_name_has_its_own_line_in_the_legend(document, tmp_path):
    names = ["_post", "$x$", "norm=scalenorm_fixnorm," * 5, "a" * 90]
    arms = [arm.model_copy(update={"name": name}) for arm, name in zip(document.arms, names, strict=True)]
    lines = [document.series[0].lines[0].model_copy(update={"arm": name}) for name in names]
    differences = [document.differences[0].model_copy(update={"arm": name}) for name in names]
    update = {"arms": arms, "series": [document.series[0].model_copy(update={"lines": lines})], "claims": []}
    # No name breaks the layout: that would be a warning.
    printed.write_pictures(document.model_copy(update={**update, "differences": differences}), tmp_path)
    (picture,) = printed.curves(document.model_copy(update=update))
    assert [name.replace("\n", "") for name in picture.arms] == names
    assert max(len(line) for name in picture.arms for line in name.split("\n")) <= 40


@pytest.mark.parametrize("name", ["归一化", "सामान्य", "a\u07fd"])
def test_signs_that_no_installed_font_has_are_no_news(name, document, tmp_path):
    """matplotlib would warn of each, and here a warning is an error."""
    arms = {arm.name: f"{name}{number}" for number, arm in enumerate(document.arms)}
    differences = [line.model_copy(update={"arm": arms[line.arm]}) for line in document.differences]
    update = {"title": name, "differences": differences, "claims": [], "series": []}
    printed.write_pictures(document.model_copy(update=update), tmp_path)
    write_column_picture(document.model_copy(update=update), tmp_path)
    assert (tmp_path / "column_figure.pdf").exists()


def test_nothing_of_an_earlier_report_stays_but_what_people_made_of_it(reported):
    names = {path.name for path in reported.folder.iterdir()}
    for name in ("forest_9.pdf", "speed.png", "effects.csv", "report.pdf"):
        (reported.folder / name).touch()
    assert typed(*reported.words, "resamples=1000")[0] == 0
    assert {path.name for path in reported.folder.iterdir()} - names == {"report.pdf"} - names
    (reported.folder / "report.pdf").unlink()
    assert [path.name for path in reported.folder.parent.glob(".*")] == []


def test_the_texts_show_what_was_drawn(reported):
    shown = set(re.findall(r"\]\((\w+\.png)\)", reported.text("report.md")))
    assert shown == {path.name for path in reported.folder.glob("*.png")}
    assert "forest.png" in shown
    included = set(re.findall(r"\{(\w+\.pdf)\}", reported.text("report.tex")))
    assert included == {path.name for path in reported.folder.glob("*.pdf")}


def test_equal_reports_give_equal_files(document, reported, tmp_path):
    printed.write_pictures(named(document), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 2 * len([*printed.differences(document), *printed.curves(document)])
    for name in names:
        assert (tmp_path / name).read_bytes() == (reported.folder / name).read_bytes(), name
