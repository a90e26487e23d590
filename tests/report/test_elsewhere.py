"""Pages about other people's tables: the claims judged again give the verdicts that the pages and reports say."""

import csv
import json
import re
from collections import Counter

import numpy as np
import pytest

import ablab
from tests.docs.pages import ROOT
from tests.report.conftest import typed

pytestmark = pytest.mark.usefixtures("undrawn")
ELSEWHERE = ROOT / "docs" / "results" / "elsewhere"
NAMES = sorted(page.stem for page in ELSEWHERE.glob("*.md") if page.stem != "README")
TYPED = "transformer_modifications"
"""The table that is typed from a paper."""

HERE = [name for name in NAMES if name == TYPED or (ELSEWHERE / name / f"{name}.csv").exists()]
"""Those that a checkout has: benchmarks/elsewhere.py makes the others from clones."""


def verdicts(report):
    """The verdict of each claim, by its words, from the first table of a report in Markdown."""
    table = report.split("\n## Claims\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert rows
    return {re.sub(r" \[\d+\]$", "", row[0].removeprefix("| ")): row[1].split(",")[0].split()[-1] for row in rows}


@pytest.mark.parametrize("name", HERE)
def test_the_table_judged_again_has_the_verdicts_of_the_report(name, tmp_path):
    path = ELSEWHERE / name / f"{name}.csv"
    code, _, err = typed(f"table={path}", f"outputs={tmp_path}", "resamples=1000")
    assert (code, err) == (0, "")
    made = tmp_path / "reports" / f"table-{name}"
    assert verdicts((made / "report.md").read_text("utf-8")) == verdicts((path.parent / "report.md").read_text("utf-8"))
    if (kept := path.parent / "report.json").exists():
        ours, theirs = (json.loads(file.read_text("utf-8"))["claims"] for file in (made / "report.json", kept))
        assert [(one["arm"], one["outcome"]) for one in ours] == [(one["arm"], one["outcome"]) for one in theirs]


@pytest.mark.parametrize("name", NAMES)
def test_the_list_counts_the_verdicts_of_the_report(name):
    (row,) = (line for line in (ELSEWHERE / "README.md").read_text("utf-8").splitlines() if f"({name}.md)" in line)
    claims, supported, refuted, undecided = (int(cell) for cell in row.strip("| ").split(" | ")[-4:])
    found = Counter(verdicts((ELSEWHERE / name / "report.md").read_text("utf-8")).values())
    assert (found["supported"], found["refuted"], found["inconclusive"]) == (supported, refuted, undecided)
    assert found.total() == claims


def test_any_five_values_of_a_mean_and_a_deviation_give_the_same_verdicts():
    with (ELSEWHERE / TYPED / "means.csv").open(encoding="utf-8", newline="") as file:
        means = list(csv.DictReader(file))
    rng = np.random.default_rng(7)
    rows = []
    for row in means:
        values = rng.uniform(size=5)
        values = (values - values.mean()) / values.std(ddof=1) * float(row["sd"]) + float(row["mean"])
        rows += [{"arm": row["arm"], "seed": seed, "early_loss": value} for seed, value in enumerate(values, 1)]
    claims = [{"arm": "each", "expect": "less"}]
    found = ablab.judge(rows, "early_loss", better="lower", baseline=means[0]["arm"], claims=claims)
    kept = json.loads((ELSEWHERE / TYPED / "report.json").read_text("utf-8"))["claims"]
    assert [row["outcome"] for row in found.to_rows()] == [claim["outcome"] for claim in kept]
