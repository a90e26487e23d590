"""Each chart names every line in it, and an arm has one colour in all of them."""

import html
import re
from pathlib import Path

import pytest

import ablab
from ablab.files import COLOURS
from ablab.judge.document import Document
from ablab.report.figures import curves, styles
from ablab.report.page import SHAPES, STROKES, page
from ablab.study.looks import styles_of

LEGEND = re.compile(r'id="chart-([^"]+)".*?<ul class="legend[^"]*">(.*?)</ul>', re.DOTALL)
ENTRY = re.compile(
    r'stroke="([^"]+)" stroke-width="2" stroke-dasharray="([^"]+)".*?<path d="([^"]+)".*?</svg>(.*?)</li>'
)


@pytest.fixture
def document(reported):
    return Document.model_validate(reported.data)


def named(document, names):
    """The document with arms of these names, and curves of all of them."""
    arms = [document.arms[0].model_copy(update={"name": name}) for name in names]
    line = document.series[0].lines[0]
    lines = [line.model_copy(update={"arm": name, "mark": ""}) for name in names]
    series = [document.series[0].model_copy(update={"lines": lines})]
    others = ("artefacts", "claims", "differences", "differing", "effects", "test_sets", "worth")
    return document.model_copy(update={"arms": arms, "series": series, **{key: [] for key in others}})


def looks_drawn(series, document):
    drawn = [one for one in curves(series, styles(document))["data"] if "name" in one]
    return [
        (one["line"]["color"], STROKES[one["line"]["dash"]], SHAPES[one["marker"]["symbol"]], one["name"])
        for one in drawn
    ]


@pytest.mark.parametrize(
    "names",
    [
        None,
        ["a = b = c", "d", "e"],
        ["norm=pre = norm=pre, tuned", "norm=post", "norm=qk", "norm=post, tuned", "norm=qk, tuned"],
        [f"arm {number}" for number in range(20)],
    ],
)
def test_the_legend_of_each_chart_has_the_looks_that_are_drawn_in_it(document, names):
    shown = document if names is None else named(document, names)
    legends = dict(LEGEND.findall(page(shown).partition('id="curves"')[2]))
    for series in shown.series:
        told = [(*entry[:3], html.unescape(entry[3])) for entry in ENTRY.findall(legends[series.key])]
        assert told == looks_drawn(series, shown)
        assert len({look[:3] for look in told}) == len(told)


def test_tuned_and_pruned_forms_of_an_arm_have_its_colour_and_another_dash_and_marker(document):
    united = "norm=pre = norm=pre, tuned"
    found = styles(named(document, [united, "norm=post", "a = b", "norm=post, tuned"]))
    for one, other in (("norm=pre", "norm=pre, tuned"), ("norm=post", "norm=post, tuned"), ("a", "b")):
        assert found[one].colour == found[other].colour
        assert found[one].dash != found[other].dash
        assert found[one].marker != found[other].marker
    assert found[united] == found["norm=pre"]
    assert len({found[name].colour for name in ("norm=pre", "norm=post", "a")}) == 3


def test_beyond_the_colours_arms_differ_in_dash_or_marker(document):
    names = [f"arm {number}{tuned}" for number in range(4 * len(COLOURS)) for tuned in ("", ", tuned")]
    found = styles(named(document, names))
    assert len(set(found.values())) == len(names)


def test_pictures_of_a_sweep_have_the_colours_of_its_report(document):
    rows = [arm.name for arm in document.arms]
    assert styles_of(rows) == styles(document)
    looks = {name: look.on_paper for name, look in styles_of(["a", "b", "a, tuned"]).items()}
    assert looks["a"]["color"] == looks["a, tuned"]["color"] != looks["b"]["color"]
    assert looks["a"]["linestyle"] != looks["a, tuned"]["linestyle"]
    named_colours = re.compile(r"""["']C\d|f["']C\{""")
    sources = [*Path(ablab.__file__).parent.rglob("*.py")]
    assert not [path.name for path in sources if named_colours.search(path.read_text(encoding="utf-8"))]
