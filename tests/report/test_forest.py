"""The forest plots: every claim with an interval is in one, on its own scale, and captions tell what they show."""

import re

import pytest

from ablab.judge.document import Document
from ablab.judge.lines import FollowedLine
from ablab.report.charts import alternatives, charts
from ablab.report.drawing import alternative
from ablab.report.figures import ASIDE, styles
from ablab.report.forest import COLUMN_ROWS, column_panels, forests
from ablab.report.latex import column_figure
from ablab.report.page import page
from ablab.report.pictures import differences
from tests.report.test_pictures import drawn

OF_BLEU = 4
"""So many claims are about the report's metric, and come first."""

LOOKING = {
    "outcome": "provisional",
    "followed": FollowedLine(state="open", first=3, last=8, looks=[], chance=0.5, bias=None),
}
LOSS = {"metric": "valid_loss", "about": "validation loss", "title": "validation loss", "unit": "nats per token"}


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


def changed(document, *changes):
    """Its first claims, each with such a change."""
    claims = [claim.model_copy(update=change) for claim, change in zip(document.claims, changes, strict=False)]
    return document.model_copy(update={"claims": claims})


@pytest.mark.parametrize(
    ("change", "captions"),
    [
        ({}, ["at the level at which it is judged (9"]),
        ({"interval": None, "difference": None}, ["uncorrected; no claim about test BLEU has an interval."]),
        ({"title": "share of failures"}, ["uncorrected; no claim about test BLEU has an interval."]),
        ({"outcome": "provisional"}, ["95 % intervals of the claims so far"]),
        (LOOKING, ["at the level at which it is judged (9"]),
        (LOSS, ["at the level at which it is judged (9", "uncorrected; the claims are not about test BLEU."]),
        (None, ["uncorrected."]),
    ],
)
def test_they_tell_which_intervals_they_show(document, change, captions):
    plots = forests(changed(document, *[] if change is None else [change] * OF_BLEU))
    assert len(plots) == len(captions)
    for plot, said in zip(plots.values(), captions, strict=True):
        assert said in plot.caption


def test_every_claim_with_an_interval_has_its_row(document):
    plots = forests(document)
    assert list(plots) == ["forest", "forest_2", "forest_3"]
    drawn = [row.estimate.difference for plot in plots.values() for row in plot.rows if row.estimate]
    assert sorted(drawn) == sorted(claim.difference for claim in document.claims if claim.interval)


def test_claims_about_different_things_have_plots_of_their_own(document):
    plots = forests(changed(document, LOSS, {}, LOSS))
    assert [(key, plot.title, plot.unit, len(plot.rows)) for key, plot in plots.items()] == [
        ("forest", "Differences in test BLEU", "BLEU", 1),
        ("forest_2", "Differences in validation loss", "nats per token", 2),
    ]


def test_a_column_has_a_panel_for_each_measure_and_says_what_is_left_out(document):
    drawable = [claim for claim in document.claims if claim.difference is not None and claim.title == claim.about]
    panels = column_panels(document)
    assert len(panels) == len({claim.about for claim in drawable}) > 1
    assert next(iter(panels)) == document.title
    assert sum(map(len, panels.values())) == len(drawable) < len(document.claims)
    assert f" {len(drawable)} of {len(document.claims)} claims." in column_figure(document)
    assert " claims." not in column_figure(document.model_copy(update={"claims": drawable}))
    assert f" {COLUMN_ROWS} of {20 * len(drawable)} claims." in column_figure(
        document.model_copy(update={"claims": drawable * 20})
    )


def test_a_band_is_spoken_of_where_there_is_one(document):
    with_margins, without = (forests(changed(document, {"margin": margin}))["forest"] for margin in (0.5, 0.0))
    assert "grey band" in with_margins.caption
    assert "grey band" not in without.caption


def test_what_is_exploratory_has_a_colour_and_a_mark_of_its_own(document):
    first, *others = document.claims
    aside = first.model_copy(update={"exploratory": "it came later"})
    mixed = document.model_copy(update={"claims": [aside, *others]})
    badges = re.findall(
        r'<li class="verdict ([^"]*)">\n<div>\n<p class="badge"><span[^>]*>(.)</span> ([^<]*)</p>', page(mixed)
    )
    assert badges[0] == ("supported exploratory", "◇", aside.verdict)
    assert not any("exploratory" in classes or mark == "◇" for classes, mark, _ in badges[1:])
    plot = forests(mixed)["forest"]
    assert [row.is_exploratory for row in plot.rows] == [True, *[False] * (len(plot.rows) - 1)]
    assert plot.caption.endswith("; open marks: exploratory.")
    assert "LayerDrop 0.1 \N{MINUS SIGN} no LayerDrop exploratory: +" in alternatives(mixed)["forest"]
    assert alternative(aside) == f"Exploratory: {alternative(first)}"
    *registered, apart, seeds = charts(mixed)["forest"]["data"]
    looks = styles(document)
    assert {one["marker"]["color"] for one in registered} == {
        looks[claim.arm].colour for claim in others if claim.about == first.about and claim.interval
    }
    assert len(seeds["x"]) == sum(len(row.per_seed) for row in plot.rows if row.estimate)
    assert apart["marker"]["color"] == ASIDE
    assert apart["marker"]["symbol"] == "circle-open"
    assert apart["x"] == [aside.difference]
    means = [
        line for line in drawn(differences(mixed)[0]).lines if line.get_marker() == "o" and line.get_color() != "black"
    ][::-1]
    assert [line.get_color() == ASIDE for line in means] == [True, *[False] * (len(means) - 1)]
    assert means[0].get_markerfacecolor() == "white"
    assert next(iter(column_panels(mixed).values()))[0].outcome == "exploratory: supported"
    assert "open marks: exploratory" in column_figure(mixed)
    assert "exploratory" not in column_figure(document)
