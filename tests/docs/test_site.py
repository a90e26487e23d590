"""The documentation site: built without a warning, searched from disk, copied without prompts, words explained."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture
def browser(tmp_path):
    found = Browser(tmp_path)
    yield found
    found.close()


def test_it_is_built_without_a_warning_and_fetches_nothing(site):
    for page in ("index", "start", "reference", "trust", "reference/settings", "reference/verbs"):
        html = (site / f"{page}.html").read_text(encoding="utf-8")
        assert "https://fonts" not in html
        assert "unpkg.com" not in html
    assert "learn_g" in (site / "reference" / "settings.html").read_text(encoding="utf-8")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_its_search_works_from_disk(site, browser):
    browser.open(site / "studies.html")
    found = """
        new Promise((go) => {
          const query = document.querySelector("[data-md-component=search-query]");
          query.focus();
          query.value = "scalenorm";
          query.dispatchEvent(new Event("input", {bubbles: true}));
          query.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
          const look = () => {
            const count = document.querySelectorAll(".md-search-result__item").length;
            count ? go(count) : setTimeout(look, 50);
          };
          look();
        })
    """
    assert browser.value(found) > 5
    assert not browser.said


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_what_is_copied_of_a_console_is_what_is_typed(site, browser):
    browser.open(site / "start.html")
    copied = """
        [...document.querySelectorAll("pre code")].filter((each) => each.querySelector(".gp")).map((each) => {
          each.setAttribute("data-md-copying", "");
          return each.innerText.trim();
        })
    """
    blocks = browser.value(copied)
    assert "mkdir -p ~/first/experiments && cd ~/first\nablab demo" in blocks
    assert not [line for block in blocks for line in block.splitlines() if line.startswith("$")]


def test_a_word_of_the_glossary_is_a_link_where_it_first_stands():
    spec = importlib.util.spec_from_file_location("glossary", ROOT / "docs/hooks/glossary.py")
    glossary = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(glossary)
    code = "# The arms\n\n`arm` is code.\n\n```\narm\n```\n\n"
    page = f"{code}Two arms, and [an arm](x.md); the arm again. The noise floor. Harm.\n"
    assert glossary.linked(page, "../glossary.md") == page.replace(
        "Two arms", "Two [arms](../glossary.md#arm)"
    ).replace("The noise floor", "The [noise floor](../glossary.md#noise-floor)")
    assert all(anchor == word.replace(" ", "-") for word, anchor in glossary.words().items())
