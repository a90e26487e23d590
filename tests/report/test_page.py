"""The page in a browser: every plot drawn, nothing complained of, tables that sort and filter."""

import re
import shutil
import subprocess

import pytest

from ablab.report.charts import charts
from ablab.report.document import Document

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--virtual-time-budget=10000", "--enable-logging=stderr"),
)


def opened(page, folder, script="") -> tuple[str, list[str]]:
    """The page as the browser has made it, and what it said on its console."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    done = subprocess.run(
        [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{path}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_every_plot_is_drawn_and_nothing_is_complained_of(reported, tmp_path):
    dom, said = opened(reported.text("report.html"), tmp_path)
    assert said == []
    expected = charts(Document.model_validate(reported.data))
    assert f'data-drawn="{len(expected)}"' in dom
    for key in expected:
        place = dom[dom.index(f'id="chart-{key}"') :]
        assert place.index('class="main-svg"') < 3000


def test_tables_sort_and_filter_and_a_layer_is_chosen_for_all_maps_of_its_section(reported, tmp_path):
    script = """
        document.querySelectorAll("#arms th button")[1].click();
        const first = document.querySelectorAll("#arms tbody tr")[0].cells[0].textContent;
        const input = document.querySelector("input.filter");
        input.value = "0.2"; input.dispatchEvent(new Event("input"));
        const left = [...document.querySelectorAll("#arms tbody tr")].filter((row) => !row.hidden).length;
        document.body.dataset.seen = `${first}; ${left}`;
        const [select] = document.querySelectorAll("select[data-section]");
        const shown = () => document.getElementById("chart-looks_1-1").data[0].z;
        const slices = charts["looks_1-1"].slices, before = shown() === slices["all"];
        select.value = "layer 1"; select.dispatchEvent(new Event("change"));
        document.body.dataset.layers = [before, shown() === slices["layer 1"]];
        document.getElementById("theme").click();
    """
    dom, said = opened(reported.text("report.html"), tmp_path, script)
    assert said == []
    lowest = min((arm for arm in reported.data["arms"] if arm["mean"] is not None), key=lambda arm: arm["mean"])
    (seen,) = re.findall(r'data-seen="(.*?)"', dom)
    assert seen.split("; ")[0].removesuffix(" (baseline)") == lowest["name"]
    assert seen.split("; ")[1] == "1"
    assert 'data-layers="true,true"' in dom
    assert dom.count("<select") == 1
    assert re.search(r'<html[^>]*data-theme="dark"', dom)


def test_a_script_that_fails_would_be_noticed(reported, tmp_path):
    _, said = opened(reported.text("report.html"), tmp_path, "nonsense()")
    assert said
