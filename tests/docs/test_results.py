"""The pages of results say what the reports and measurements say that they rest on."""

import json
import re
import shlex
from functools import partial
from itertools import product

import numpy as np
import pytest

from ablab.config import compose
from ablab.judge.document import Document, MetricLine, SetLine, WorthLine
from ablab.judge.lines import ArmLine
from ablab.report.names import named
from ablab.report.plain_words import plain_words
from ablab.report.text import markdown
from ablab.statistics.anova import one_way
from benchmarks import claims, seeds
from benchmarks.publish import every
from benchmarks.publish import of as published
from tests.docs.pages import ROOT

RESULTS = ROOT / "docs" / "results"
PAGES = [page for page in sorted(RESULTS.glob("*.md")) if page.stem not in ("README", "claims", "seeds")]
FIGURE = re.compile(r"(?<![\w.,])[+-]?\d+(?:[.,]\d+)+|(?<![\w.,])[+-]\d+")
"""A number with decimals, thousands or a sign: others count runs, or are settings that a person may word otherwise."""


def figures_of_tables(text):
    """The figures in the cells of all tables of a page, without the first column, which names what they are of."""
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    return [figure for row in rows for cell in row.split("|")[2:] for figure in FIGURE.findall(cell)]


def rates(found):
    """Every rate of a measurement, as a page writes it in percent."""
    return {f"{100 * one['rate']:.1f}" for one in found["rates"]}


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "placebo"], ids=lambda page: page.stem)
def test_the_figures_of_a_page_stand_in_its_report(page):
    text = page.read_text(encoding="utf-8")
    figures, reports = figures_of_tables(text), {page.stem, *re.findall(r"\((\w+)/report\.md\)", text)}
    there = [path for name in sorted(reports) if (path := RESULTS / name / "report.md").exists()]
    assert figures
    assert not set(figures) - {found for path in there for found in FIGURE.findall(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/report.json")), ids=lambda path: path.parent.name)
def test_a_report_of_earlier_code_can_be_written_as_reports_are_now(path):
    document = Document.model_validate(json.loads(path.read_text(encoding="utf-8")))
    figures = {f"{arm.mean:,.{document.digits}f}" for arm in document.arms if arm.mean is not None}
    losses = [f"{arm.scores['valid_loss']:.3f}" for arm in document.arms if arm.scores.get("valid_loss")]
    written = markdown(document)
    assert all(figure in written for figure in (*figures, *losses))
    assert all(f"**{plain_words(claim, document.metric)}**" in written for claim in document.claims)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/report.json")), ids=lambda path: path.parent.name)
def test_the_text_of_a_report_is_made_of_its_figures(path):
    document = published(path.parent)
    text = (path.parent / "report.md").read_text(encoding="utf-8")
    assert text == markdown(named(document)) or not document.series, "run make results"


@pytest.mark.parametrize("made", [claims, seeds])
def test_pages_over_all_studies_are_made_of_the_reports(made):
    name = made.__name__.rpartition(".")[2]
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == made.page(every()), "run make results"


FULL = {path.stem: line for path in (ROOT / "experiments").glob("*.yaml") if (line := claims.full_form(path.stem))}


@pytest.mark.parametrize("name", sorted(FULL))
def test_the_line_of_a_study_in_full_is_one_that_can_be_typed(name):
    words = [word for word in shlex.split(FULL[name])[4:] if not word.startswith("seed=")]
    assert {"trainer=gpu", "outputs=outputs/full"} <= set(words)
    compose(words)


def test_the_rates_of_the_placebo_are_those_that_were_counted():
    found = json.loads((ROOT / "benchmarks" / "results" / "placebo.json").read_text(encoding="utf-8"))
    figures = figures_of_tables((RESULTS / "placebo.md").read_text(encoding="utf-8"))
    assert figures
    assert not set(figures) - rates(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_question_a_figure_a_table_a_command_and_is_listed(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert text.splitlines()[0].endswith("?")
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)
    assert (RESULTS / picture).is_file()
    assert "| --- |" in text
    assert "\n$ " in text.split("\n## How it was made\n")[1]
    assert f"[{text.splitlines()[0].removeprefix('# ')}]({page.name})" in (RESULTS / "README.md").read_text("utf-8")
    assert f"results/{page.name}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_noise_on_a_test_set_is_that_of_the_runs_scores_on_it():
    """The page knows a mean and a deviation an arm, of which an analysis of variance asks no more."""
    rng, arms, n = np.random.default_rng(3), 4, 3
    scores = {"2016": rng.normal(np.arange(arms)[:, None], 0.4, (arms, n)), "2017": rng.normal(5, 1.0, (arms, n))}
    sets = [
        SetLine(test_set=name, sentences=500, score="BLEU", arm=f"a{at}", mean=own.mean(), sd=own.std(ddof=1), n=n)
        for name, rows in scores.items()
        for at, own in enumerate(rows)
    ]
    whole = one_way(list(scores["2016"]))
    line = MetricLine.model_construct(metric="test_bleu", arms=arms, between=whole.between, within=whole.within)
    made = partial(Document.model_construct, metrics=[line], metric="test_bleu", baseline="a0", arms=[], worth=[])
    found = list(seeds._by_set(made(test_sets=sets)))
    expected = {name: one_way(list(rows)) for name, rows in scores.items()}
    for name, sentences, noise, ratio, _ in found[:2]:
        of_set = expected[name]
        assert (sentences, noise) == ("500", f"{of_set.within:.2f}")
        assert ratio == f"{of_set.between / of_set.within:.1f}"
    assert found[2] == ("all", "1,000", *found[0][2:])  # the whole is that of the report, here the first set's
    assert not seeds._sets({"x": made(test_sets=[])})


def test_noise_is_that_among_the_arms_of_one_level_where_others_are_not_compared_with_them():
    sets = [
        SetLine(test_set="2016", sentences=500, score="BLEU", arm=f"norm={norm},language={to}", mean=mean, sd=0.4, n=3)
        for (norm, to), mean in zip(product("pf", ("de", "fr")), (20.0, 33.0, 20.5, 33.5), strict=True)
    ]
    line = MetricLine.model_construct(metric="test_bleu", arms=2, between=1.0, within=1.0)
    fields = {"test_sets": sets, "metrics": [line], "metric": "test_bleu", "baseline": "norm=p,language=de"}
    made = partial(Document.model_construct, **fields, arms=[], worth=[])
    within, across = (float(next(seeds._by_set(made(within=factor)))[3]) for factor in ("language", None))
    assert within < 2 < 10 < across


def test_the_baseline_at_other_lengths_is_no_arm_of_the_page():
    sets = [
        SetLine(test_set="2016", sentences=500, score="BLEU", arm=arm, mean=mean, sd=0.4, n=3)
        for arm, mean in {"a": 20.0, "b": 20.5, "twice as long": 40.0}.items()
    ]
    line = MetricLine.model_construct(metric="test_bleu", arms=2, between=1.0, within=1.0)
    baseline = ArmLine.model_construct(name="a", is_baseline=True)
    fields = {"test_sets": sets, "metrics": [line], "metric": "test_bleu", "baseline": "a", "arms": [baseline]}
    made = partial(Document.model_construct, **fields)

    def ratio(*worth):
        return float(next(seeds._by_set(made(worth=worth)))[3])

    of_b = WorthLine.model_construct(arm="b", factor=1.1, refused=None)
    assert ratio(of_b) < 2 < ratio()
    assert ratio(of_b.model_copy(update={"factor": None, "refused": "no runs"})) == ratio(of_b)
    assert ratio(of_b.model_copy(update={"factor": None})) == ratio(), "a bound by its curve says nothing of lengths"
