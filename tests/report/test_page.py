"""The page in a browser: nothing cut off, charts drawn when looked at, all of it within reach of a keyboard."""

import base64
import json
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest

from ablab.judge.document import Document
from ablab.report.charts import alternatives, charts
from ablab.report.names import named
from tests.report.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

DRAWN = "new Promise((go) => { const look = () => %s ? go(true) : setTimeout(look, 20); look(); })"
"""Waits until something is so."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser, reported):
    """The report, opened anew on a screen of 1,280 pixels; its console stays empty."""
    browser.said.clear()
    browser.show(1280)
    browser.open(reported.folder / "report.html")
    yield browser
    assert browser.said == []


@pytest.fixture(scope="module")
def document(reported):
    return named(Document.model_validate(reported.data))


def test_every_chart_that_can_be_seen_is_drawn_without_scrolling(page, document):
    unfolded = "places.filter((place) => place.getClientRects().length)"
    page.value(DRAWN % f"{unfolded}.length && {unfolded}.every((place) => place.querySelector('.main-svg'))")
    assert page.value("scrollY") == 0


def test_a_page_printed_before_it_has_loaded_has_all_its_charts_and_goes_on(page, reported, document):
    drawn = "document.querySelectorAll('.chart .main-svg:first-of-type').length"
    at_once = f"dispatchEvent(new Event('beforeprint')); globalThis.printed = {drawn};"
    early = page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"addEventListener('DOMContentLoaded', () => {{ {at_once} dispatchEvent(new Event('afterprint')); }})",
    )
    page.open(reported.folder / "report.html")
    page.call("Page.removeScriptToEvaluateOnNewDocument", **early)
    assert page.value("printed") == len(charts(document))
    widths = "places.map((place) => [place.clientWidth, place.querySelector('.main-svg').clientWidth])"
    assert all(chart == pytest.approx(place, abs=2) for place, chart in page.value(widths) if place)


@pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="no pdftoppm here")
def test_no_printed_page_is_nearly_empty(page, reported, tmp_path):
    page.open(reported.folder / "report.html")
    (tmp_path / "page.pdf").write_bytes(
        base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    )
    subprocess.run(["pdftoppm", "-gray", "-r", "20", "page.pdf", "page"], cwd=tmp_path, check=True)
    for path in sorted(tmp_path.glob("*.pgm")):
        _, width, height, _, pixels = path.read_bytes().split(maxsplit=4)
        inked = np.frombuffer(pixels, np.uint8).reshape(int(height), int(width)).min(1) < 200
        assert np.ptp(np.flatnonzero(inked)) > int(height) / 4, path.name


def test_a_chart_of_a_folded_section_is_drawn_when_it_is_opened(page, document):
    page.value("open_all()")
    for key in charts(document):
        page.value(f"document.getElementById('chart-{key}').scrollIntoView({{behavior: 'instant'}})")
        page.value(DRAWN % f"document.querySelector('#chart-{key} .main-svg')")


def test_printing_draws_and_opens_everything(page, document):
    page.show(1280, scheme="dark")
    ink = "getComputedStyle(document.querySelector('.chart .gtitle')).fill"
    on_paper = "dispatchEvent(new Event('beforeprint')); globalThis.printed = " + ink
    page.value(f"globalThis.print = () => {{ {on_paper}; }}")
    page.value("document.getElementById('print').click()")
    page.value(DRAWN % "globalThis.printed")
    assert int(page.value("document.documentElement.dataset.drawn")) == len(charts(document))
    assert page.value("[...document.querySelectorAll('details:not(.figures)')].every((one) => one.open)")
    page.value("dispatchEvent(new Event('afterprint'))")
    assert page.value(ink) != page.value("printed")  # on paper it is dark


def test_on_paper_tables_keep_their_heads_and_buttons_go(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = "getComputedStyle(document.querySelector('%s')).display !== 'none'"
    assert page.value(shown % "#arms th button")
    assert not page.value(shown % "#theme")
    page.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off(page, width, reported):
    page.show(width)
    page.open(reported.folder / "report.html")
    page.value("open_all()")
    assert page.value("document.documentElement.scrollWidth") <= width
    beyond = "(place) => place.scrollWidth > place.clientWidth + 1"
    tables = f"[...document.querySelectorAll('.scroll')].filter({beyond}).map((place) => place.innerText.slice(0, 60))"
    assert page.value(tables) == []


def test_every_chart_has_an_alternative_in_words_and_one_in_figures(page, document):
    said = page.value("Object.fromEntries(places.map((place) => [key_of(place), place.getAttribute('aria-label')]))")
    assert said == alternatives(document)
    assert set(said) == set(charts(document))
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    filled = "[...document.querySelectorAll('details.figures')].every((one) => one.querySelectorAll('td').length > 0)"
    page.value(DRAWN % filled)
    drawings = page.value("[...document.querySelectorAll('svg.drawing')].map((one) => one.getAttribute('aria-label'))")
    assert len(drawings) == sum(claim.difference is not None for claim in document.claims)
    assert all(drawing.startswith("The difference is ") for drawing in drawings)


def test_the_figures_of_a_chart_are_those_that_it_draws(page, document):
    series = document.series[0]
    page.value(f"document.querySelector('details[data-chart={series.key}]').open = true")
    page.value(DRAWN % f"document.querySelector('details[data-chart={series.key}] td')")
    cells = page.value(
        f"[...document.querySelectorAll('details[data-chart={series.key}] tbody tr')].map((row) => row.innerText)"
    )
    last = re.split(r"\s+", cells[-1].strip())
    assert [float(text) for text in last] == pytest.approx(
        [series.lines[0].x[-1], *(line.mean[-1] for line in series.lines)], rel=1e-4
    )


def test_the_figures_of_a_chart_are_those_of_all_its_lines(page):
    lines = "[{name: 'a', x: [1, 3], y: [10, 30]}, {name: '&lt;s>', x: [1, 2, 4], y: [5, 6, 7]}]"
    shown = page.value(f"figures({{data: {lines}, layout: {{xaxis: {{title: {{text: 'step'}}}}}}}})")
    assert shown == [["step", "a", "<s>"], [1, "10", "5"], [2, "", "6"], [3, "30", ""], [4, "", "7"]]


def test_columns_sort_by_what_their_cells_mean(page):
    cells = [
        "48 s",
        "9 min 58 s",
        "2 h 5 min",
        "2e-05",
        "1.5e+06",
        "0.5",
        "1,234 MB",
        "\N{MINUS SIGN}3.5 [-4, -3]",
        "+2 s more",
    ]
    assert page.value(f"{cells}.map(figure)") == [48, 598, 7500, 2e-5, 1.5e6, 0.5, 1234, -3.5, 2]
    assert page.value("figure('no figure')") is None


def test_the_keyboard_reaches_everything_and_sorts(page, document):
    focusable = "a[href], button, input, select, summary"
    shown = f"[...document.querySelectorAll('{focusable}')].filter((one) => one.checkVisibility())"
    page.value(f"globalThis.wanted = new Set({shown})")
    wanted = page.value("wanted.size")
    for _ in range(wanted + 5):
        page.press("Tab")
        page.value("wanted.delete(document.activeElement)")
    assert page.value("[...wanted].map((one) => one.outerHTML.slice(0, 80))") == []
    page.value("document.querySelectorAll('#arms th button')[1].focus()")
    page.press("Enter")
    assert page.value("document.querySelectorAll('#arms th')[1].getAttribute('aria-sort')") == "ascending"
    lowest = min((arm for arm in document.arms if arm.mean is not None), key=lambda arm: arm.mean)
    first = page.value("document.querySelector('#arms tbody tr').cells[0].firstChild.textContent")
    assert first.removesuffix(" (baseline)") == lowest.name


def test_a_layer_is_chosen_for_all_maps_of_its_section(page):
    page.value("open_all()")
    page.value("document.querySelector('select[data-section]').scrollIntoView({behavior: 'instant'})")
    page.value(DRAWN % "document.getElementById('chart-looks_1-1').data")
    shown = "document.getElementById('chart-looks_1-1').data[0].z"
    slices = "chart_of('looks_1-1').slices"
    assert page.value(f"{shown} === {slices}['all']")
    select = "document.querySelector('select[data-section]')"
    page.value(f"{select}.value = 'layer 1'; {select}.dispatchEvent(new Event('change'))")
    assert page.value(f"{shown} === {slices}['layer 1']")
    assert page.value("document.querySelectorAll('select').length") == 1


def test_it_is_dark_where_people_prefer_that_and_light_where_they_say_so(page, reported):
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.value(background)
    page.show(1280, scheme="dark")
    page.open(reported.folder / "report.html")
    dark = page.value(background)
    assert dark != light
    page.value("document.getElementById('theme').click()")
    assert page.value(background) == light
    page.value("localStorage.clear()")


def test_long_tables_are_cut_and_shown_whole_on_demand(browser, reported, tmp_path):
    from ablab.report.page import page as rendered

    document = Document.model_validate(reported.data)
    arms = [document.arms[0].model_copy(update={"name": f"arm {n}", "is_baseline": n == 0}) for n in range(60)]
    many = document.model_copy(update={"arms": arms, "series": [], "artefacts": [], "differing": []})
    (tmp_path / "page.html").write_text(rendered(many.model_copy(update={"claims": [], "differences": []})))
    browser.open(tmp_path / "page.html")
    rows = "[...document.querySelectorAll('#arms tbody tr')].filter((row) => row.checkVisibility()).length"
    assert browser.value(rows) == 20
    browser.value("document.querySelector('.show-all').click()")
    assert browser.value(rows) == 60
    assert browser.value("getComputedStyle(document.querySelector('.show-all')).display") == "none"


def test_rows_that_a_filter_hides_are_hidden_on_every_screen_and_printed(page):
    shown = "[...document.querySelectorAll('#arms tbody tr')].filter((row) => row.checkVisibility()).length"
    page.value("document.querySelector('#arms tbody tr').hidden = true")
    every = page.value("document.querySelectorAll('#arms tbody tr').length")
    for width in (1280, 390):
        page.show(width)
        assert page.value(shown) < every
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.value(shown) == every
    page.call("Emulation.setEmulatedMedia", media="")


def test_a_link_opens_what_is_folded_every_time(page):
    folded = "<details id=fold><p>in it</p></details><a id=to href=#fold>to it</a>"
    page.value(f"document.body.insertAdjacentHTML('beforeend', '{folded}')")
    for _ in range(2):
        page.value("document.getElementById('to').click()")
        assert page.value("document.getElementById('fold').open")
        page.value("document.getElementById('fold').open = false")


def test_names_without_a_space_and_from_right_to_left_stay_in_their_place(browser, reported, tmp_path):
    from ablab.report.page import page as rendered

    name = "learning_rate=0.0003,batch_size=64,warmup_steps=4000,weight_decay=0.01,label_smoothing=0.1"
    content = json.dumps(reported.data).replace("layerdrop=0.1", name).replace("layerdrop=0.2", "مرحبا")
    (tmp_path / "page.html").write_text(rendered(Document.model_validate(json.loads(content))))
    browser.show(390)
    browser.open(tmp_path / "page.html")
    assert browser.value("document.documentElement.scrollWidth") <= 390
    left = "((one) => (part) => one.querySelector(part).getBoundingClientRect().left)"
    summary = "[...document.querySelectorAll('summary')].find((one) => one.textContent.includes('مرحبا · '))"
    name, number = browser.value(f"['bdi', '.soft'].map({left}({summary}))")
    assert name < number, "the number of its runs stands behind an Arabic name"


def test_a_script_that_fails_would_be_noticed(browser):
    browser.said.clear()
    browser.value("setTimeout(() => nonsense(), 0); new Promise((go) => setTimeout(go, 50))")
    assert browser.said
    browser.said.clear()


@pytest.mark.parametrize(
    ("level", "strategy"), [(0, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_FIXED), (9, zlib.Z_DEFAULT_STRATEGY)]
)
def test_the_page_unpacks_every_kind_of_block(page, level, strategy):
    """Which kinds there are depends on Plotly's version and on zlib."""
    text = "".join(f"{n * n} ä {n % 7}\n" for n in range(20_000))
    packer = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    packed = base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()
    unpacked = page.value(f"gunzipped(Uint8Array.from(atob('{packed}'), (one) => one.charCodeAt(0)))")
    assert unpacked == text
