"""Results of runs from elsewhere: the figures of the same runs in a store, and never without saying where they lie."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ablab.judge.claims import judge
from ablab.judge.selection_of_study import of_study
from ablab.statistics.resampling import crossed_bootstrap
from tests.report.conftest import EXPERIMENT, typed
from tests.report.tables import ROWS, WIDE, reported_from, table

pytestmark = pytest.mark.usefixtures("undrawn")
OF_SCORES = [
    line for line in EXPERIMENT.splitlines() if "- {arm" in line and "depth" not in line and "pruned" not in line
]


def exported(selection, path):
    """The scores of the study's runs, to the last digit."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "seed", "metric", "value"])
        for arm in selection.arms:
            for run in arm.runs:
                scores = (
                    {f"test_{name}": run.evaluation.scores[name] for name in ("bleu", "chrf")}
                    if run.has_finished
                    else {}
                )
                for name in ("test_bleu", "test_chrf"):
                    writer.writerow([arm.name, run.seed, name, repr(scores[name]) if scores else "diverged"])


FIGURES = ("outcome", "n", "difference", "interval", "simultaneous", "p", "corrected", "detectable", "test", "other")


@pytest.mark.slow
def test_its_figures_are_those_of_the_same_runs_in_a_store(reported, tmp_path):
    """Digit by digit: p-values and ranks of claims where runs diverged; means, and differences over seeds."""
    selection = of_study(reported.study)
    exported(selection, tmp_path / "results.csv")
    claims = "\n".join(OF_SCORES)
    (tmp_path / "results.yaml").write_text(f"question: The same?\nmetric: test_bleu\nclaims:\n{claims}\n")
    data, _, _ = reported_from(tmp_path / "results.csv")
    about = [claim for claim in reported.data["claims"] if claim["metric"] in ("test_bleu", "failures")]
    assert len(data["claims"]) == len(about) == 5
    # The family is smaller by two claims about curves: all but the correction must be equal.
    for ours, theirs in zip(data["claims"], about, strict=True):
        for key in ("n", "difference", "p", "test", "unit"):
            assert ours[key] == theirs[key]
    for ours, theirs in zip(data["arms"], reported.data["arms"], strict=True):
        for key in ("name", "mean", "sd", "interval", "minimum", "maximum", "finished", "diverged", "failed_share"):
            assert ours[key] == theirs[key]
    for ours, theirs in zip(data["differences"], reported.data["differences"], strict=True):
        for key in ("arm", "n", "difference", "test", "claim", "uncorrected", "other", "refused"):
            assert ours[key] == theirs[key]


def test_a_family_of_the_same_claims_has_the_same_corrections(reported, tmp_path):
    selection = of_study(reported.study)
    exported(selection, tmp_path / "results.csv")
    (tmp_path / "results.yaml").write_text("metric: test_bleu\nclaims:\n" + "\n".join(OF_SCORES))
    data, _, _ = reported_from(tmp_path / "results.csv")
    kept = [claim for claim in selection.claims if claim.metric in ("test_bleu", "failures")]
    for ours, theirs in zip(data["claims"], judge(replace(selection, claims=kept)), strict=True):
        expected = theirs.model_dump(mode="json")
        assert {key: ours[key] for key in FIGURES} == {key: expected[key] for key in FIGURES}


def test_it_says_everywhere_that_nobody_vouches_for_it(tmp_path):
    about = "metrics: {score: {title: COMET, digits: 3}}\nclaims: [{arm: b, expect: greater}]\n"
    rows = [row if "b,2" not in row else "b,2,score,2.5" for row in ROWS]
    data, out, folder = reported_from(table(tmp_path, rows, about=about))
    assert data["origin"] == "origin not verified"
    assert data["claims"][0]["exploratory"].startswith("origin not verified: the scores are those of results.csv")
    assert "b above a in COMET: supported" in data["claims"][0]["words"]
    assert "origin not verified" in out
    for name in ("report.html", "report.md", "report.tex"):
        assert "origin not verified" in (folder / name).read_text()
    for name in ("claims.csv", "arms.csv", "differences.csv"):
        for row in csv.DictReader((folder / name).read_text().splitlines()):
            assert row["register"] == "origin not verified"
    assert not any("shared parameters" in method or "validation" in method for method in data["methods"])


def test_items_give_the_test_over_items(tmp_path):
    """A score is the mean of its items, and the crossed bootstrap resamples them as it does sentences."""
    rng = np.random.default_rng(1)
    hard = rng.normal(0, 1, 250)
    values = {arm: hard + rng.normal(mean, 0.3, (4, 250)) for arm, mean in (("a", 0.0), ("b", 0.2))}
    rows = [
        f"{arm},{seed},score,{value!r},{item:03}"
        for arm, runs in values.items()
        for seed, run in enumerate(runs)
        for item, value in enumerate(run.tolist())
    ]
    data, _, _ = reported_from(table(tmp_path, rows, "arm,seed,metric,value,item"))
    (line,) = data["differences"]
    assert line["difference"] == pytest.approx(values["b"].mean() - values["a"].mean())
    sums = [np.stack([values[arm], np.ones((4, 250))], axis=2) for arm in ("b", "a")]
    expected = crossed_bootstrap(
        *sums, np.random.default_rng(2), resamples=4000, metric=lambda sums: sums[..., 0] / sums[..., 1]
    )
    assert line["crossed"]["low"] == pytest.approx(expected.interval.low, abs=0.02)
    assert line["randomisation_p"] < 0.05
    assert data["arms"][0]["mean"] == pytest.approx(values["a"].mean())


def test_factors_in_the_names_of_arms_make_effects_of_them(tmp_path):
    rows = [
        f'"norm={norm},drop={drop}",{seed},score,{x + y + x * y + seed / 50 + (seed * 7 + x * 3 + y) % 5 / 90}'
        for x, norm in enumerate(("pre", "post"))
        for y, drop in enumerate(("off", "on"))
        for seed in (1, 2, 3, 4)
    ]
    about = "claims:\n  - {interaction: [norm, drop], expect: greater}\n  - {arm: 'norm=post', expect: greater}\n"
    data, _, _ = reported_from(table(tmp_path, rows, about=about))
    interaction, simple = data["claims"]
    assert interaction["arm"] == "norm=post with drop=on"
    assert (interaction["outcome"], simple["arm"]) == ("supported", "norm=post,drop=off")


def test_arms_of_unlike_factors_have_no_effects(tmp_path):
    arms = ["norm=pre,drop=off", "norm=pre,drop=on", "norm=post,drop=off", "norm=post,drop=on", "size=large"]
    rows = [f'"{arm}",{seed},score,{seed}' for arm in arms for seed in (1, 2, 3)]
    path = table(tmp_path, rows, about="claims: [{interaction: [norm, drop], expect: greater}]\n")
    code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
    assert code == 2
    assert "claims.interaction=norm: the arms have no factors" in err


def of_losses(tmp_path, name, about):
    scores = {"a": (1.01, 1.02, 1.03), "b": (0.81, 0.82, 0.835)}
    rows = [f"{arm},{seed},{name},{own[seed - 1]}" for arm, own in scores.items() for seed in (1, 2, 3)]
    claims = "claims: [{arm: b, expect: not_worse, margin: 0.05}]\n"
    return reported_from(table(tmp_path, rows, about=about + claims))[0]


@pytest.mark.parametrize("declared", ["", "metrics: {test_loss: {digits: 5}}\n"])
def test_what_is_declared_of_a_known_metric_leaves_the_rest_as_it_is(tmp_path, declared):
    data = of_losses(tmp_path, "test_loss", declared)
    assert (data["claims"][0]["outcome"], data["unit"], data["higher_is_better"]) == ("supported", "", False)
    assert data["digits"] == (5 if declared else 3)


def test_the_direction_of_a_known_metric_can_be_declared(tmp_path):
    data = of_losses(tmp_path, "test_loss", "metrics: {test_loss: {lower_is_better: false}}\n")
    assert data["claims"][0]["outcome"] == "refuted"


def test_costs_are_compared_by_their_pairs_alone(tmp_path):
    data = of_losses(tmp_path, "memory", "")
    assert "paired" in data["claims"][0]["test"]
    # The unit is unknown, and the digits are those that show the noise: ablab's own memory has MiB and none.
    assert (data["metric"], data["unit"], data["digits"]) == ("memory", "", 3)


def test_the_first_run_may_have_diverged(tmp_path):
    rows = ["a,1,score,diverged", "a,2,score,1.0", "b,1,score,2.0", "b,2,score,2.5"]
    data, _, _ = reported_from(table(tmp_path, rows))
    assert [arm["diverged"] for arm in data["arms"]] == [1, 0]


@pytest.mark.parametrize(("noise", "digits"), [(0.4, 2), (0.03, 3), (30.0, 0), (0.0, 2)])
def test_digits_show_the_noise(tmp_path, noise, digits):
    rows = [f"{arm},{seed},score,{7 + seed * noise}" for arm in "ab" for seed in (1, 2, 3)]
    data, _, _ = reported_from(table(tmp_path, rows))
    assert data["digits"] == digits


@pytest.mark.parametrize(
    ("quiet", "loud", "digits"),
    [
        ((0.52, 0.52, 0.52), (40, 60, 85), 3),
        ((0.51, 0.52, 0.53), (0.5, 1e5, 3e8), 3),
        ((31.5, 31.9, 31.2), (30, 34, 31), 1),
        ((0, 0, 0), (40, 60, 85), 0),
    ],
)
def test_an_arm_keeps_its_digits_beside_one_that_blew_up(tmp_path, quiet, loud, digits):
    rows = [f"{arm},{n},score,{value}" for arm, own in (("a", quiet), ("b", loud)) for n, value in enumerate(own)]
    data, _, _ = reported_from(table(tmp_path, rows))
    assert data["digits"] == digits


@pytest.mark.parametrize("size", [9e29, 1e20])
def test_the_largest_values_are_judged(tmp_path, size):
    arms = {"a": (0.5, 0.7, 0.4), "b": (0.6, 0.4, 0.9)}
    rows = [f"{arm},{n},score,{size * value!r}" for arm, own in arms.items() for n, value in enumerate(own)]
    data, _, _ = reported_from(table(tmp_path, rows, about="claims: [{arm: b, expect: greater}]"))
    assert data["claims"][0]["outcome"] == "inconclusive"


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ";"), (".csv", "\t"), (".tsv", "\t")])
def test_semicolons_and_tabs_separate_too(tmp_path, ending, delimiter):
    usual, _, _ = reported_from(table(tmp_path, ROWS))
    path = (tmp_path / "results.csv").rename(tmp_path / f"other{ending}")
    path.write_text(path.read_text().replace(",", delimiter))
    shutil.rmtree(tmp_path / "outputs")
    found, _, _ = reported_from(path)
    assert found["differences"] == usual["differences"]


@pytest.mark.parametrize(
    ("scale", "about", "unit"), [(1, "", ""), (100, "", "%"), (1, "metrics: {test_accuracy: {unit: '%'}}\n", "%")]
)
def test_an_accuracy_that_is_a_share_is_not_called_percent(tmp_path, scale, about, unit):
    means = {"a": 0.5, "b": 0.6}
    rows = [f"{arm},{seed},test_accuracy,{scale * (means[arm] + seed / 50)}" for arm in means for seed in (1, 2, 3)]
    data, _, _ = reported_from(table(tmp_path, rows, about=about or None))
    assert (data["unit"], data["digits"], data["higher_is_better"]) == (unit, 2 if scale == 100 else 3, True)


@pytest.mark.parametrize(("scale", "about", "digits"), [(1, None, 2), (0.01, None, 4), (0.01, 3, 3)])
def test_a_known_score_has_the_digits_that_show_its_noise(tmp_path, scale, about, digits):
    """Such as BLEU as a share."""
    rows = [f"{arm},{seed},test_bleu,{scale * (30 + seed / 5)}" for arm in ("a", "b") for seed in (1, 2, 3)]
    said = None if about is None else f"metrics: {{test_bleu: {{digits: {about}}}}}\n"
    data, _, _ = reported_from(table(tmp_path, rows, about=said))
    assert data["digits"] == digits


def test_arms_from_elsewhere_have_no_labels_of_options_here(tmp_path):
    """`norm=pre` of another program need not be a PreNorm."""
    rows = [
        f"{arm},{seed},acc,{10 * arm.count('post') + seed ** (1 + arm.count('post'))}"
        for arm in ("norm=pre", "norm=post")
        for seed in (1, 2, 3)
    ]
    about = "question: q\nlabels: {norm=post: after cropping}\nclaims: [{arm: norm=post, expect: greater}]\n"
    data, out, _ = reported_from(table(tmp_path, rows, about=about))
    assert "xploratory: after cropping is better than norm=pre" in out
    assert "PreNorm" not in out + json.dumps(data)


def test_a_table_with_a_row_for_each_run_needs_no_file(tmp_path):
    """Its column of seeds may begin with a capital; without claims, the differences stand on the screen."""
    data, out, _ = reported_from(table(tmp_path, WIDE, "Norm,Seed,Acc"), "metric=Acc")
    assert [arm["name"] for arm in data["arms"]] == ["Norm=pre", "Norm=post"]
    (line,) = data["differences"]
    assert "Differences from Norm=pre, uncorrected (verdicts need claims, in an experiment file):" in out
    assert f"+{line['difference']:.2f}" in out


def test_the_line_says_what_is_better_in_a_table_without_a_file(tmp_path):
    path = table(tmp_path, WIDE, "Norm,seed,loss_at_end")
    assert "as in better=lower" in typed(f"table={path}", "metric=loss_at_end")[2]
    for better in ("lower", "higher"):
        _, out, _ = reported_from(path, "metric=loss_at_end", f"better={better}")
        assert f"taken as better: {better} loss_at_end" in out


@pytest.mark.parametrize(
    ("shift", "outcome", "low"), [(0.409, "Supported", "[+0.0001, "), (0.408, "Inconclusive", "[-0.001, ")]
)
def test_an_interval_reads_on_the_side_of_0_on_which_its_verdict_lies(tmp_path, shift, outcome, low):
    scores = {"a": [70.1, 70.5, 69.8, 70.3, 69.9], "b": [70.2, 70.4, 69.7, 70.6, 70.0]}
    rows = [
        f"{arm},{seed},score,{value + shift * (arm == 'b'):.4f}"
        for arm, values in scores.items()
        for seed, value in enumerate(values)
    ]
    about = "baseline: a\nclaims: [{arm: b, expect: greater}]\n"
    _, out, _ = reported_from(table(tmp_path, rows, about=about))
    assert outcome in out
    assert low in out


def test_one_column_tells_arms_apart_as_a_name_or_as_a_list(tmp_path):
    for said in ("Norm", "[Norm]"):
        path = table(tmp_path, [f"{row},2" for row in WIDE], "Norm,seed,Acc,Layers", f"metric: Acc\narm: {said}\n")
        data, _, _ = reported_from(path)
        assert [arm["name"] for arm in data["arms"]] == ["Norm=pre", "Norm=post"]
        shutil.rmtree(tmp_path / "outputs")


def test_a_page_of_a_table_links_to_no_run(tmp_path):
    """There are no folders of runs, only the file."""
    rows = [f"{arm},{seed},acc,{seed}" for arm in "ab" for seed in (1, 2, 3)]
    _, _, folder = reported_from(table(tmp_path, rows))
    assert 'href="../' not in (folder / "report.html").read_text()


@pytest.mark.parametrize("first", [True, False])
def test_a_row_of_the_whole_is_no_item_wherever_it_stands(tmp_path, first):
    items = [f"{arm},{seed},acc,{30 + seed + item},{item}" for arm in "ab" for seed in (1, 2, 3) for item in (1, 2)]
    whole = [f"{arm},{seed},acc,999," for arm in "ab" for seed in (1, 2, 3)]
    code, _, err = typed(
        f"table={table(tmp_path, [*whole, *items] if first else [*items, *whole], 'arm,seed,metric,value,item')}"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "item is empty" in err or "comes twice" in err


def test_a_column_of_corpora_keeps_arms_apart_where_a_row_is_a_run(tmp_path):
    """As in a long table; named as `arm`, it is a factor like any other."""
    rows = [
        f"{norm},{seed},{level + seed / 10},{text}"
        for norm, level, text in (("pre", 31, "news"), ("post", 32, "wiki"))
        for seed in (1, 2, 3)
    ]
    path = table(tmp_path, rows, "norm,seed,acc,corpus")
    (tmp_path / "claims.yaml").write_text("metric: acc\narm: norm\nclaims: [{arm: norm=post, expect: greater}]\n")
    code, out, err = typed(f"table={path}", f"claims={tmp_path / 'claims.yaml'}", f"outputs={tmp_path}")
    assert (code, err) == (0, "")
    assert "corpora differ" in out
    (tmp_path / "claims.yaml").write_text("metric: acc\narm: corpus\nclaims: [{arm: corpus=wiki, expect: greater}]\n")
    code, out, _ = typed(f"table={path}", f"claims={tmp_path / 'claims.yaml'}", f"outputs={tmp_path}")
    assert "corpora differ" not in out
    assert "corpus=wiki" in out


def test_a_delimiter_within_quotes_is_none(tmp_path):
    path = tmp_path / "h.tsv"
    path.write_text(
        'arm\tseed\t"val, with, commas, many"\n' + "".join(f"{a}\t{s}\t{s}.5\n" for a in "ab" for s in (1, 2, 3))
    )
    (tmp_path / "h.yaml").write_text('metric: "val, with, commas, many"\narm: arm\nbetter: higher\n')
    assert typed(f"table={path}", f"outputs={tmp_path}")[0] == 0


def test_tables_of_one_name_have_reports_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{arm},{seed},acc,{seed}.5" for arm in "ab" for seed in (1, 2, 3)]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        table(tmp_path / folder, rows)
        assert typed(f"table={folder}/results.csv")[0] == 0
    table(tmp_path, rows)
    Path("results.tsv").write_text(Path("results.csv").read_text().replace(",", "\t"))
    for name in ("results.csv", "results.tsv"):
        assert typed(f"table={name}")[0] == 0
    found = {path.name for path in (tmp_path / "outputs/reports").iterdir()}
    assert found == {"table-one-results", "table-two-results", "table-results", "table-results-tsv"}


def test_the_direction_of_the_only_metric_needs_no_name(tmp_path):
    rows = [f"{arm},{seed},{{}},{seed}.5" for arm in "ab" for seed in (1, 2, 3)]
    path = table(tmp_path, [row.format("loss") for row in rows])
    assert typed(f"table={path}", "better=lower", f"outputs={tmp_path}")[0] == 0
    table(tmp_path, [row.format(metric) for row in rows for metric in ("loss", "ppl")])
    code, _, err = typed(f"table={path}", "better=lower", f"outputs={tmp_path}")
    assert code == 2
    assert "of which metric is not said; allowed: metric=loss, or another one" in err
