"""A comparison has one interval to quote, the one that decides, in every place; others stand aside with a reason."""

from dataclasses import replace

import pytest

from ablab.judge.differences import decided, difference_line
from ablab.judge.document import Document
from ablab.judge.estimates import borrowed
from ablab.judge.lines import interval_text
from ablab.judge.selection_of_study import of_study
from ablab.report.claim_words import answers
from ablab.report.forest import forests
from ablab.report.latex import column_table, escaped
from ablab.report.page import page
from ablab.report.sentences import document_of
from ablab.report.tables import differences_table, otherwise_table
from ablab.report.text import markdown
from ablab.statistics.moderated import moderated
from ablab.statistics.paired import paired_difference
from ablab.text import p_text, signed
from tests.report.conftest import unclaimed
from tests.report.test_estimates import bleus
from tests.report.test_plain_words import claim


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


@pytest.fixture(scope="module")
def selection(reported):
    return of_study(reported.study)


def rows(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_interval_of_a_claim_is_the_one_of_its_pair_everywhere(document, reported):
    lines = [line for line in document.differences if line.claim is not None]
    assert [document.claims[line.claim].arm for line in lines] == ["layerdrop=0.1", "layerdrop=0.2"]
    cells = {row["arm"]: row for row in rows(differences_table(document))}
    for line in lines:
        own = document.claims[line.claim]
        assert (line.interval, line.p, line.difference, line.test) == (
            *(own.interval, own.corrected, own.difference, own.test),
        )
        said = interval_text(own.interval, own.digits)
        assert cells[line.arm]["interval"] == f"{said} at {100 * own.interval.level:.4g} %"
        assert (cells[line.arm]["p"], cells[line.arm]["p is of"]) == (
            p_text(own.corrected),
            "no difference, as claimed",
        )
        assert f"{100 * own.interval.level:.4g} % interval {said}" in own.words
        assert f"{signed(own.difference, 2)} {said}" in [row.figures for row in forests(document)["forest"].rows]
        assert escaped(said) in column_table(document)
    assert "the interval of its claim (97.5 to 99.29 \\%)" in column_table(document)
    assert reported.text("report.html").count("<summary>How else it can be computed</summary>") == 1


def test_without_a_claim_it_is_the_one_that_would_decide_at_95_percent(selection):
    document = document_of(replace(selection, claims=[]), 1000)
    usual, lower, higher, _ = selection.arms
    expected = moderated(bleus(lower), bleus(usual), [bleus(higher)])
    line = next(line for line in document.differences if line.arm == lower.name)
    assert borrowed(selection, [lower, usual], selection.measure) == [bleus(higher)]
    assert (line.interval.low, line.interval.high) == pytest.approx((expected.at(0.95).low, expected.at(0.95).high))
    assert (line.p, line.test, line.claim) == (pytest.approx(expected.p), expected.method, None)
    paired = paired_difference(bleus(lower), bleus(usual))
    assert (line.other.test, line.other.p) == ("paired t", pytest.approx(paired.p))
    assert "95 % interval" in differences_table(document).columns
    assert "an uncorrected 95 \\% interval (moderated t)" in column_table(document)
    pairs = document_of(replace(selection, claims=[], error="paired"), 1000)
    line = next(line for line in pairs.differences if line.arm == lower.name)
    assert (line.test, line.p) == ("paired t", pytest.approx(paired.p))
    assert line.other.test == expected.method


def test_what_asks_something_else_stands_aside_with_its_reason(document):
    table = rows(otherwise_table(document))
    first = [row for row in table if row["difference"] == "layerdrop=0.1 - layerdrop=0"]
    assert [row["differs because"] for row in first] == [
        "not corrected for other claims",
        "noise of these pairs of runs alone",
        "other sentences of this kind, too",
        "other sentences alone, for these very runs",
    ]
    assert {row["interval"].partition(" at ")[2] for row in first[:3]} == {"95 %"}
    # A second claim about a pair has another level: its other method is told at that.
    assert table[-1]["difference"] == "layerdrop=0.2 - layerdrop=0, test BLEU"
    folded = page(document).partition('<details class="more" id="table-otherwise">')[2].partition("</details>")[0]
    assert "noise of these pairs of runs alone" in folded
    assert markdown(document).index("## Further figures") < markdown(document).index("### How else it can be computed")
    assert not any("alone gives" in one.words for one in document.claims)


def test_a_primary_claim_goes_before_a_secondary_one_and_others_do_not_count(document, selection):
    line = unclaimed(document).differences[0]
    own = document.claims[0]
    secondary, loss = own.model_copy(update={"secondary": True}), own.model_copy(update={"metric": "valid_loss"})
    ranks, other = own.model_copy(update={"title": "ranks"}), own.model_copy(update={"arm": "layerdrop=0.2"})
    assert decided(line, [loss, ranks, other], selection) == line
    assert decided(line, [secondary, own], selection).claim == 1
    assert decided(line, [other, secondary], selection).claim == 1
    settled = own.model_copy(update={"n": 4, "difference": 20.0})
    assert (decided(line, [settled], selection).n, decided(line, [settled], selection).difference) == (4, 20.0)


def test_a_line_by_itself_is_of_no_claim(selection):
    line = difference_line(selection, selection.arms[1], selection.arms[0], None)
    assert (line.claim, line.uncorrected, line.interval.level) == (None, None, 0.95)


def test_all_answers_stand_in_one_sentence(document, reported):
    said = answers(document.claims)
    assert said == (
        "3 supported, 2 refuted, 2 inconclusive. Each interval is at the level at which its claim is judged (97.5 to "
        "99.29 %): 7 claims share an error rate of 5 %, and the share of a settled one passes on (Holm)."
    )
    for name in ("report.html", "report.md"):
        assert said in reported.text(name)
    assert escaped(said.partition(".")[0]) in reported.text("report.tex")
    assert said in reported.out
    later = [document.claims[0].model_copy(update={"exploratory": "later"}), *document.claims[1:]]
    assert answers(later).startswith("2 supported, 2 refuted, 2 inconclusive; exploratory: 1 supported.")
    assert answers([claim()]) == "1 supported."
    assert answers([claim(exploratory="later")]) == "Exploratory: 1 supported."
