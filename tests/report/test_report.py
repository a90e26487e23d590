"""The same figures whatever a report is rendered as; verdicts, holes and provenance where a reader looks for them."""

import csv
import json
import re
import shutil

import pytest

from ablab.judge.document import Document
from ablab.judge.selection_of_study import of_study
from ablab.report.charts import charts
from ablab.report.latex import breakable, escaped
from ablab.report.names import named
from ablab.report.plain_words import plain_words
from ablab.report.sentences import cost_words, document_of
from ablab.report.tables import tables
from ablab.statistics.paired import paired_difference
from ablab.study.definition import define
from ablab.text import duration
from tests.report.conftest import EXPERIMENT, typed
from tests.report.synthetic import fill


def test_it_says_where_it_lies_and_what_it_found(reported):
    assert reported.code == 0
    assert "Is an arm that errs less a better arm?" in reported.out
    assert f"Results: {reported.folder / 'report.html'}" in reported.out
    assert (
        "LayerDrop 0.1 is better than no LayerDrop by at least 0.5 BLEU.\n"
        "  Supported, above the margin of 0.5. The difference" in reported.out
    )


def test_verdicts_follow_the_effects_that_were_planted(reported):
    outcomes = [claim["outcome"] for claim in reported.data["claims"]]
    assert outcomes[0] == "supported"
    assert outcomes[1] in ("inconclusive", "equivalent")
    assert outcomes[2] == "supported"
    assert outcomes[3] != "supported"
    assert outcomes[5] == "refuted"  # a better model has more to lose


def test_an_arm_with_a_diverged_run_shows_its_share_and_no_mean(reported):
    (arm,) = [arm for arm in reported.data["arms"] if arm["name"] == "layerdrop=0.5"]
    assert arm["diverged"] == 1
    assert arm["mean"] is None
    assert arm["failed_share"]["low"] < 0.2 < arm["failed_share"]["high"]
    assert "1 of 5 runs diverged" in arm["notes"]
    (claim,) = [
        claim for claim in reported.data["claims"] if claim["metric"] == "test_bleu" and claim["arm"] == arm["name"]
    ]
    assert (claim["title"], claim["unit"]) == ("ranks of all runs", "of pairs, won less lost")


def test_the_means_are_those_of_the_records(reported):
    selection = of_study(reported.study)
    for arm, line in zip(selection.arms, reported.data["arms"], strict=True):
        scores = [run.evaluation.scores["bleu"] for run in arm.finished]
        if line["mean"] is not None:
            assert line["mean"] == pytest.approx(sum(scores) / len(scores))
            assert (line["minimum"], line["maximum"]) == (min(scores), max(scores))
    ours, theirs = (
        [run.evaluation.scores["bleu"] for run in selection.arm(f"layerdrop={level}").finished]
        for level in ("0.1", "0")
    )
    paired = paired_difference(ours, theirs)
    other = reported.data["differences"][0]["other"]
    assert reported.data["differences"][0]["randomisation_p"] is not None  # of BLEU, which is made of sentences
    assert other["test"] == "paired t"
    assert other["p"] == pytest.approx(paired.p)
    assert other["interval"]["low"] == pytest.approx(paired.at(0.95).low)


def test_figures_agree_across_all_renderings(reported):
    page, latex = reported.text("report.html"), reported.text("report.tex")
    markdown = reported.text("report.md")
    listed = [cell for line in markdown.splitlines() if line.startswith("| ") for cell in line[2:-2].split(" | ")]
    in_markdown = {re.sub(r" \[[\d, ]+\]$", "", cell) for cell in listed}
    in_markdown |= {"", *re.findall(r"^\d+\. (.*)$", markdown, flags=re.M)}
    document = named(Document.model_validate(reported.data))
    assert [table.key for table in tables(document)] == [
        "claims",
        "arms",
        "differences",
        "worth",
        "metrics",
        "otherwise",
    ]
    for table in tables(document):
        with (reported.folder / f"{table.key}.csv").open(newline="") as file:
            head, *rows = csv.reader(file)
            assert head[-2:] == ["report says", "register"]
            assert [row[-2:] for row in rows] == [["; ".join(document.notes), document.stamp]] * len(table.rows)
            assert [row[0] for row in rows] == [str(dict(row)[head[0]]) for row in table.data]
        assert len(set(table.columns)) == len(table.columns)
        cells = re.findall(r"<(?:td|li id)[^>]*>(.*?)</(?:td|li)>", page, flags=re.S)
        parts = [cell.partition("<sup>")[0] for cell in cells]
        written = {part.replace("&lt;", "<").replace("&#39;", "'").strip() for part in parts} | {""}
        for row in table.rows:
            assert set(row) <= in_markdown
            assert " & ".join(map(escaped, row)) in latex.replace("~", " ").replace(r"\allowbreak{}", "")
            assert set(row) <= written
    stamp = f"register {document.stamp}"
    assert all(stamp in text for text in (page, latex, markdown, reported.out))


def test_every_claim_of_a_report_is_said_and_the_formats_say_the_same(reported):
    for line in Document.model_validate(reported.data).claims:
        said = plain_words(line, "test_bleu")
        assert all(said in reported.text(name) for name in ("report.html", "report.md"))
        assert breakable(said) in reported.text("report.tex")
        assert said in reported.out


def test_notes_stand_below_a_table_and_not_in_its_cells(reported):
    markdown = reported.text("report.md")
    assert "| notes |" not in markdown
    notes = re.findall(r"^(\d+)\. .*$", markdown, flags=re.M)
    assert notes
    assert all(f"[{number}] |" in markdown for number in notes)


def test_the_report_says_how_its_runs_were_made_and_what_they_cost(reported):
    made = reported.data["setup"]
    assert (made["fixed_seeds"], made["fixed_runs"]) == (None, 0)
    hours = duration(made["training_seconds"] + made["evaluation_seconds"])
    for name in ("report.md", "report.html"):
        text = reported.text(name)
        assert "How it was made" in text
        assert f"{made['runs']} runs took {hours} of machine time." in text
        assert "train -m experiment=" in text
        assert "outputs=" not in text.partition("How it was made")[2].partition("Machine:")[0]


def test_a_study_that_adds_seeds_says_what_a_fixed_design_would_have_cost(reported):
    made = Document.model_validate(reported.data).setup
    assert made is not None
    spent = made.training_seconds + made.evaluation_seconds
    added = made.model_copy(update={"fixed_seeds": 10, "fixed_runs": 2 * made.runs, "tuning_runs": 3})
    words = cost_words(added.model_copy(update={"tuning_seconds": 90.0}))
    assert f"{made.runs} runs took {duration(spent)} of machine time, and 3 runs of tuning another 1 min 30 s." in words
    assert words.endswith(f"10 seeds of each arm would have needed {2 * made.runs} runs, about {duration(2 * spent)}.")


def test_it_says_where_lower_is_better(reported):
    said = [method for method in reported.data["methods"] if method.startswith("Lower")]
    assert said == ["Lower is better for decoder layers at a fall of 5 BLEU."]  # of a claim; the metric is BLEU


def test_the_page_needs_nothing_from_outside(reported):
    page = reported.text("report.html")
    own = page[: page.index('<script type="text/plain" id="plotly">')]
    assert not re.search(r'(src|href)="(https?:)?//', own)
    assert '<link rel="icon" href="data:,">' in own
    for key in charts(Document.model_validate(reported.data)):
        assert f'id="chart-{key}"' in own


@pytest.mark.usefixtures("undrawn")
def test_what_people_write_cannot_break_the_page(tmp_path):
    (tmp_path / "x.yaml").write_text(EXPERIMENT.replace("Is an arm", "</script><b>Is & an 100 % $arm_"))
    fill(
        (f"experiment={tmp_path / 'x.yaml'}",),
        {f"layerdrop={v}": 0.3 for v in ("0", "0.1", "0.2", "0.5")},
        outputs=tmp_path,
    )
    code, _, err = typed(f"experiment={tmp_path / 'x.yaml'}", f"outputs={tmp_path}", "resamples=1000")
    assert (code, err) == (0, "")
    page = (tmp_path / "reports" / "x" / "report.html").read_text()
    assert "&lt;/script&gt;&lt;b&gt;Is &amp; an" in page
    assert page.count("</script>") == page.count("<script")


def test_every_figure_leads_to_its_runs(reported):
    for arm in reported.data["arms"]:
        for run in arm["runs"]:
            assert (reported.folder / run["folder"] / "record.json").exists()
            assert run["code"] == "abc"
    assert reported.data["arms"][1]["differs"]["layerdrop.encoder"] == 0.1


def test_sentences_show_both_arms(reported):
    group = reported.data["differing"][0]
    gaps = [line["arm_score"] - line["baseline_score"] for line in group["lines"]]
    assert gaps[0] == max(gaps) > 0 > min(gaps)
    assert all(line["arm_text"] != line["baseline_text"] for line in group["lines"])


@pytest.mark.slow
def test_another_metric_or_baseline_is_a_report_of_its_own(reported):
    declared = reported.text("report.json")
    code, out, _ = typed(*reported.words, "metric=test_chrf", "baseline=layerdrop=0.2", "resamples=1000")
    assert code == 0
    assert "not judged here, but in the report claims: 7 claims" in out
    folder = reported.folder.parent / "claims-in-test_chrf-against-layerdrop=0.2"
    other = json.loads((folder / "report.json").read_text())
    assert (other["claims"], other["metric"], other["baseline"]) == ([], "test_chrf", "layerdrop=0.2")
    assert reported.text("report.json") == declared
    code, out, _ = typed(*reported.words, "metric=test_bleu", "resamples=1000")  # what it says anyway
    assert f"Results: {reported.folder / 'report.html'}" in out


@pytest.mark.usefixtures("undrawn")
def test_scores_are_made_again_from_their_hypotheses(reported, tmp_path):
    copy = tmp_path / "outputs"
    shutil.copytree(reported.study.outputs, copy)
    two = [reported.study.cells[number].planned for number in (0, 5)]
    words = (f"runs={','.join(planned.run_id for planned in two)}", f"outputs={copy}", "verify=true", "resamples=1000")
    code, out, _ = typed(*words)
    assert code == 0
    assert "8 evaluations scored again from their hypotheses: none differ" in out
    whole = copy / "runs" / two[0].run_id / "evaluations" / f"{two[0].evaluation_id}.txt"
    pruned = next(path for path in whole.parent.glob("*.txt") if path != whole)
    for hypotheses in (whole, pruned):
        hypotheses.write_text("a\n" + hypotheses.read_text().partition("\n")[2])
    (curve,) = whole.parents[1].glob("curves/*.json")
    content = json.loads(curve.read_text())
    content["points"][-1]["scores"]["bleu"] = 99.0
    curve.write_text(json.dumps(content))
    code, out, _ = typed(*words)
    assert code == 1
    for hypotheses in (whole, pruned):
        assert f"its statistics per sentence in {hypotheses.stem} are not those of its hypotheses" in out
    assert "8 evaluations scored again from their hypotheses: 3 differ" in out
    assert "bleu 99.0" in out
    assert "No report was written" in out


def test_it_says_by_which_scores_settings_were_chosen(tmp_path):
    experiment = EXPERIMENT.replace(
        "seeds: [1", "tune: {key: optim.lr, values: [0.001, 0.002], seeds: [101]}\nseeds: [1"
    )
    (tmp_path / "x.yaml").write_text(experiment)
    selection = of_study(define((f"experiment={tmp_path / 'x.yaml'}", f"outputs={tmp_path}")))
    assert selection.choosing == (
        "optim.lr of each arm was chosen among 2 values on validation loss, with seeds 101: "
        "no score of this report took part in it."
    )


@pytest.mark.usefixtures("undrawn")
def test_runs_are_compared_ad_hoc(reported):
    outputs = reported.words[1]
    ids = [reported.study.cells[i].planned.run_id for i in (0, 5)]
    code, out, _ = typed(f"runs={','.join(ids)}", outputs, "resamples=1000")
    assert code == 0
    assert "one seed" in (reported.folder.parent / re.search(r"reports/(runs-\w+)/", out)[1] / "report.md").read_text()
    code, out, _ = typed("where=layerdrop=0.1 norm=pre", outputs, "resamples=1000")
    assert code == 0
    assert "layerdrop=0.1" in out
    for zero in ("0", "0.0", "0e-3"):  # a number is its value
        code, out, _ = typed(f"where=layerdrop={zero}", outputs, "resamples=1000")
        assert code == 0
        assert re.search(r"^the defaults.* 5$", out, flags=re.M), out


@pytest.mark.usefixtures("undrawn")
def test_smoke_runs_are_told(tmp_path):
    words = ("norm=pre,post", "seed=1,2", "smoke=true", "logger=none")
    fill(words, {"norm=pre": 0.2, "norm=post": 0.3}, outputs=tmp_path)
    _, out, _ = typed(*words, f"outputs={tmp_path}", "resamples=1000")
    assert "Note: smoke runs: " in out


@pytest.mark.usefixtures("undrawn")
def test_a_design_with_a_hole_says_why_it_has_no_effects(tmp_path):
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, post]"
    )
    (tmp_path / "x.yaml").write_text(text[: text.index("claims:")])
    words, arms = (
        (f"experiment={tmp_path / 'x.yaml'}",),
        [f"layerdrop={d},norm={n}" for d in (0, 0.1) for n in ("pre", "post")],
    )
    study = fill(words, dict.fromkeys(arms, 0.3), outputs=tmp_path, diverged=frozenset({(arms[3], 2)}))
    document = document_of(of_study(study), 1000)
    assert document.effects == []
    assert document.notes == ["no main effects and interactions: 1 of 4 cells of the design has diverged runs"]
    assert any(said.startswith("Diverged arms were compared by worst ranks") for said in document.methods)


def test_more_seeds_are_advised_only_where_a_claim_is_open(reported):
    document = Document.model_validate(reported.data)
    assert any(claim.advice for claim in document.claims)
    for claim in document.claims:
        is_open = claim.outcome == "inconclusive" and claim.margin and claim.interval
        assert (claim.advice is not None) == bool(is_open)
        if claim.advice is not None:
            few, seeds, many = claim.advice.fewest, claim.advice.seeds, claim.advice.most
            assert few <= seeds <= many
            assert seeds > claim.n
            assert claim.advice.seconds == pytest.approx(2 * seeds * 100, rel=0.01)
            told = f"new study of {seeds} seeds ({few} to {many}) would"
            aim = {"equal": f"If nothing differs, a {told} support the claim"}.get(
                claim.expect, f"A {told} detect the margin"
            )
            assert f"{aim} with 80 % power" in claim.words


def test_a_pruned_model_is_compared_with_a_small_one(reported):
    (claim,) = [claim for claim in reported.data["claims"] if claim["metric"] == "pruned_bleu"]
    assert claim["title"] == "test BLEU with 2 decoder layers"
    ours, theirs = (
        [
            next(point.scores["bleu"] for point in run.curve.points if len(point.decoder) == 2)
            for run in of_study(reported.study).arm(f"layerdrop={level}").finished
        ]
        for level in ("0.1", "0")
    )
    assert claim["difference"] == pytest.approx(sum(ours) / 5 - sum(theirs) / 5)
    assert claim["outcome"] == "supported"
