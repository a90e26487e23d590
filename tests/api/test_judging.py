"""Verdicts on data frames and tables with a row for each run: those that a table of scores gets, in the same words."""

import json

import numpy as np
import pandas as pd
import pytest

import ablab
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.judge.document import WorthLine
from ablab.judge.selection_of_table import beside_of
from ablab.report.tables import _times, claims_table
from ablab.statistics.power import Layout, seeds_for
from ablab.text import p_text

SCORES = {"post": (30.1, 30.4, 29.8, 30.6), "pre": (33.2, 33.0, 33.9, 33.4), "scale": (33.1, 33.6, 33.8, 32.9)}
RUNS = [
    {"norm": norm, "seed": seed, "bleu_of_mine": score}
    for norm, scores in SCORES.items()
    for seed, score in enumerate(scores, 1)
]


def judged(frame=RUNS, **more):
    asked = {"arm": "norm", "metric": "bleu_of_mine", "better": "higher"}
    return ablab.judge(frame, **{**asked, **({} if "claims" in more else {"margin": 0.5}), **more})


def test_each_arm_is_judged_against_the_first():
    found = judged()
    outcomes = [(one.arm, one.baseline, one.outcome) for one in found.verdicts]
    assert outcomes == [("norm=pre", "norm=post", "supported"), ("norm=scale", "norm=post", "supported")]
    assert all(one.exploratory for one in found.verdicts)
    assert "norm=pre is better than norm=post" in str(found)


def test_frames_and_lists_are_judged_alike():
    frame = pd.DataFrame(RUNS)
    assert list(judged(frame).to_rows()) == list(judged().to_rows())
    shown = judged(frame).to_rows().to_pandas()
    assert list(shown["arm"]) == ["norm=pre", "norm=scale"]
    assert (shown["low"] < shown["difference"]).all()
    assert sorted(shown["level"]) == pytest.approx([0.95, 0.975])
    assert shown["exploratory"].str.contains("its claims were not registered").all()
    assert shown.attrs["notes"] == list(judged(frame).document.notes)


@pytest.mark.parametrize("expect", ["greater", "less", "equal", "not_worse"])
def test_the_p_of_a_row_is_that_of_its_verdict(expect):
    """As the table of claims has it: a claim of equality is not supported by a p of 0.6."""
    found = judged(claims=[{"arm": "norm=scale", "baseline": "norm=pre", "expect": expect, "margin": 2.5}])
    (row,) = found.to_rows()
    table = claims_table(found.document)
    (cells,) = [dict(zip(table.columns, cells, strict=True)) for cells in table.rows]
    assert p_text(row["p"]) == cells["p (corrected)"]
    assert row["p_is_of"] == cells.get("p is of", row["p_is_of"])
    assert row["p_no_difference"] == found.verdicts[0].p
    assert (row["outcome"] == "supported") == (row["p"] <= 0.05 and expect in ("equal", "not_worse"))


def test_a_table_of_scores_gets_the_same_verdicts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long = [
        {"arm": f"norm={run['norm']}", "seed": run["seed"], "metric": "bleu_of_mine", "value": run["bleu_of_mine"]}
        for run in RUNS
    ]
    wanted = list(judged().to_rows())
    assert list(ablab.judge(long, "bleu_of_mine", better="higher", margin=0.5).to_rows()) == wanted
    for name, frame in (("long", long), ("wide", RUNS)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, frame)))
        arm = "arm: [norm]\n" if name == "wide" else ""
        (tmp_path / f"{name}.yaml").write_text(
            f"{arm}metric: bleu_of_mine\nclaims: [{{arm: each, expect: greater, margin: 0.5}}]\n"
            "metrics: {bleu_of_mine: {lower_is_better: false}}\n"
        )
        assert main(["report", f"table={name}.jsonl"]) == 0
        claims = json.loads((tmp_path / f"outputs/reports/table-{name}-jsonl/report.json").read_text())["claims"]
        assert [claim["p"] for claim in claims] == [row["p_no_difference"] for row in wanted]


def test_columns_of_arms_are_found_where_nobody_names_them():
    """Not the run's own name, what is the same in all, or numbers that may be scores."""
    told = [
        {**run, "name": f"run {number}", "seeded": 10 * run["seed"], "epochs": 3, "other": 0.5 + run["seed"] % 2}
        for number, run in enumerate(RUNS)
    ]
    found = judged(told, arm=None)
    assert list(found.to_rows()) == list(judged().to_rows())
    assert "norm tells arms apart, and seed is the seed" in str(found)
    both = [{**run, "layers": layers} for run in RUNS for layers in (3, 6)]
    assert {one.arm for one in judged(both, arm=None).verdicts} >= {"norm=pre,layers=3", "norm=pre,layers=6"}


def test_no_arms_are_guessed_from_numbers_that_may_be_scores():
    rates = [{"lr": 0.1 if run["norm"] == "post" else 0.2, **run, "norm": "x"} for run in RUNS if run["norm"] != "pre"]
    with pytest.raises(UserError, match="arm: missing, and no column tells arms apart for certain; allowed: lr, norm"):
        judged(rates, arm=None)
    assert judged(rates, arm="lr").verdicts[0].arm == "lr=0.2"


def test_the_page_is_written(tmp_path):
    path = judged().page(tmp_path / "norms.html")
    assert "norm=pre" in path.read_text()
    with pytest.raises(UserError, match="is a folder; allowed: the name of a file"):
        judged().page(tmp_path)


def test_a_metric_that_nobody_asks_about_needs_no_direction():
    """It is left out, and said to be; one that a claim is about is refused."""
    long = [
        {"arm": run["norm"], "seed": run["seed"], "metric": metric, "value": run["bleu_of_mine"]}
        for run in RUNS
        for metric in ("bleu_of_mine", "val_loss")
    ]
    found = ablab.judge(long, "bleu_of_mine", better="higher")
    assert [one.outcome for one in found.verdicts] == ["supported", "supported"]
    (note,) = [note for note in found.document.notes if "val_loss" in note]
    assert note.startswith("val_loss is left out: better: missing, and by its name val_loss may be better when lower")
    about_it = [{"arm": "pre", "metric": "val_loss", "expect": "less"}]
    with pytest.raises(UserError, match="better: missing, and by its name val_loss"):
        ablab.judge(long, "bleu_of_mine", better="higher", claims=about_it)


def test_a_file_of_claims_beside_a_table_is_read_as_the_report_reads_it(tmp_path):
    table = tmp_path / "runs.csv"
    pd.DataFrame(RUNS).to_csv(table, index=False)
    said = "{arm: [norm], metric: bleu_of_mine, better: lower, baseline: norm=scale,"
    (tmp_path / "runs.yaml").write_text(f"{said} claims: [{{arm: norm=pre, expect: less}}]}}")
    (only,) = ablab.judge(table).verdicts
    assert (only.arm, only.baseline, only.higher_is_better) == ("norm=pre", "norm=scale", False)
    with pytest.raises(UserError, match=r"metric: not beside claims=.*runs\.yaml; allowed: in that file"):
        ablab.judge(table, "bleu_of_mine")


def test_claims_can_be_said():
    found = judged(claims=[{"arm": "norm=scale", "baseline": "norm=pre", "expect": "equal", "margin": 2}])
    (only,) = found.verdicts
    assert (only.outcome, only.expect) == ("supported", "equal")


def test_null_frames_are_seldom_supported():
    """A single claim of seeds that are alike: about one in forty is supported by chance, on one side."""
    draw, supported = np.random.default_rng(7), 0
    for _ in range(200):
        rows = [{"side": side, "seed": seed, "accuracy": draw.normal()} for side in ("a", "b") for seed in range(5)]
        (only,) = ablab.judge(rows, metric="accuracy", arm="side", better="higher").verdicts
        supported += only.outcome == "supported"
    assert supported <= 14


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"arm": "nrom"}, "has no column nrom"),
        ({"metric": "loss", "better": None, "arm": "norm"}, "has no column loss"),
        ({"better": "greater"}, "better=greater: allowed: higher, lower"),
        ({"metric": None, "arm": None}, "better=higher: of which metric is not said"),
        ({"baseline": "norm=none"}, "baseline=norm=none: no such arm"),
        ({"claims": [{"arm": "norm=pre", "expect": "bigger"}]}, "expect"),
        ({"claims": [{"arm": "norm=pre", "expect": "less"}], "margin": 1}, "margin: not beside claims; allowed: in"),
        ({"where": "study=lr"}, "where=study=lr: allowed: a mapping"),
        ({"outputs": None}, "outputs=None: allowed: a folder"),
        ({"frame": [1, 2]}, "list; allowed: a frame of pandas or polars, or a list of dicts"),
        ({"frame": [{**RUNS[0], "seed": 1.5}]}, "seed=1.5: allowed: whole numbers"),
        ({"frame": [{**RUNS[0], "bleu_of_mine": None}]}, "value=None: allowed: a number"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_line(more, why):
    with pytest.raises(UserError, match=r".") as refused:
        judged(**more)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("column", ["norm", "bleu_of_mine"])
def test_columns_that_pandas_numbers_are_judged_too(column):
    named = {"arm": "norm", "metric": "bleu_of_mine"}
    asked = {key: "0" if name == column else name for key, name in named.items()}
    found = judged(pd.DataFrame(RUNS).rename(columns={column: 0}), **asked)
    assert [one.outcome for one in found.verdicts] == ["supported", "supported"]
    assert [one.difference for one in found.verdicts] == [one.difference for one in judged().verdicts]


def test_seeds_that_pandas_writes_with_points_are_whole_numbers(tmp_path):
    frame = pd.DataFrame(RUNS).astype({"seed": float})
    frame.to_csv(tmp_path / "runs.csv", index=False)
    assert "1.0" in (tmp_path / "runs.csv").read_text()
    of_file, of_frame, of_list = (
        [(row["outcome"], row["p"], row["low"]) for row in judged(one).to_rows()]
        for one in (tmp_path / "runs.csv", frame, RUNS)
    )
    assert of_file == of_frame == of_list


def test_a_half_seed_is_refused(tmp_path):
    frame = pd.DataFrame(RUNS).assign(seed=lambda rows: rows["seed"] + 0.5)
    frame.to_csv(tmp_path / "runs.csv", index=False)
    for place in (frame, tmp_path / "runs.csv"):
        with pytest.raises(UserError, match=r"seed=1\.5: allowed: whole numbers"):
            judged(place)


def test_a_notebook_shows_the_verdicts():
    assert repr(judged()) == str(judged())


def test_arms_of_another_level_lend_nothing_to_the_seeds_that_are_needed():
    """Ten languages, whose claims share the error: with three seeds, even the interval is wider than the margin."""
    rng = np.random.default_rng(3)

    def scores(mean):
        drawn = rng.normal(size=3)
        return mean + (drawn - drawn.mean()) / drawn.std(ddof=1)

    rows = [
        {"arm": f"norm={norm},lang={language}", "seed": seed, "metric": "score", "value": value}
        for language in range(10)
        for norm, mean in (("usual", 80), ("new", 82.2))
        for seed, value in enumerate(scores(mean), 1)
    ]
    found = ablab.judge(rows, "score", better="higher", within="lang", margin=4.5).verdicts[0]
    assert found.outcome == "inconclusive"
    assert found.interval.high - found.difference > 4.5
    assert found.advice.seeds == seeds_for("greater", 4.5, 1.0, Layout((1.0, -1.0), 0), 0.05 / 10)


def test_margins_and_levels_are_written_as_the_numbers_that_they_are(tmp_path):
    """Of six digits of a margin the headline said more than the interval allowed; 1 and 1.0 are one number in JSON."""
    path = tmp_path / "t.jsonl"
    levels = [(1, 5e6), (2, 5e6 + 1234568.8), (1.0, 5e6 + 0.1), (2.0, 5e6 + 1234568.9), (1, 5e6 + 0.2), (2, 6234569.4)]
    rows = [{"lr": level, "seed": number // 2, "tokens": value} for number, (level, value) in enumerate(levels)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = ablab.judge(path, "tokens", arm="lr", better="higher", margin=1234567)
    assert [(one.arm, one.baseline) for one in found.verdicts] == [("lr=2", "lr=1")]
    assert "lr=2 is better than lr=1 by at least 1,234,567" in str(found)


def test_an_interval_that_excludes_0_does_not_read_as_0():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=5) * 100
    rows = [
        {"arm": arm, "seed": seed, "score": shared[seed] + (arm == "b") * (2e-6 + 1e-7 * rng.normal())}
        for seed in range(5)
        for arm in "ab"
    ]
    found = ablab.judge(rows, "score", arm="arm", better="higher", error="paired", margin=1e-6)
    assert found.verdicts[0].outcome == "supported"
    assert "interval [+0.000002, +0.000002]" in str(found)


def test_a_run_that_comes_twice_for_want_of_a_column_says_which_was_taken():
    rows = [
        {"lr": lr, "schedule": schedule, "seed": seed, "score": lr + seed / 10}
        for lr in (0.1, 0.2)
        for schedule in ("cosine", "wsd")
        for seed in (1, 2, 3)
    ]
    with pytest.raises(UserError, match="comes twice; arms were told apart by schedule alone: arm= names more columns"):
        ablab.judge(rows, "score", better="higher")


@pytest.mark.parametrize("baseline", [0, 0.0, False, "0"])
def test_a_baseline_that_is_a_number_is_that_arm(baseline):
    levels = {"0": 0.0 if isinstance(baseline, float) else False if baseline is False else 0}
    rows = [
        {"arm": level, "seed": seed, "metric": "bleu", "value": 30 + seed / 7}
        for level in (1, levels["0"])
        for seed in (1, 2, 3)
    ]
    found = ablab.judge(rows, "bleu", baseline=baseline)
    assert found.document.baseline == str(baseline)


@pytest.mark.parametrize("claims", [iter([{"arm": "norm=pre"}]), pd.DataFrame([{"arm": "norm=pre"}]), 5, {"arm": "b"}])
def test_claims_that_are_no_list_of_mappings_are_refused(claims):
    with pytest.raises(UserError, match="judge: claims: allowed: a list of claims, such as"):
        judged(claims=claims)


def test_what_pandas_names_in_its_index_is_a_column():
    frame = pd.DataFrame(RUNS)
    wanted = list(judged(frame).to_rows())
    for index in ("seed", ["norm", "seed"]):
        assert list(judged(frame.set_index(index)).to_rows()) == wanted
    with pytest.raises(UserError, match="has two columns seed"):
        judged(frame.set_index("seed", drop=False))
    with pytest.raises(UserError, match=r"has no column sed; .*; seed, in a file of claims or in Python, names"):
        judged(frame, seed="sed")


def test_a_huge_number_tells_arms_apart_like_any_other():
    sizes = {"post": 1, "pre": 10**400, "scale": 2}
    rows = [{"size": sizes[each["norm"]], **each} for each in RUNS]
    assert len(ablab.judge(rows, "bleu_of_mine", better="higher").document.arms) == 3


def test_speed_of_a_table_is_as_good_as_the_table_says():
    """Here it is seconds per step: less is better, and nothing trains faster."""
    noise = {"s": (0.01, 0.05, 0.02), "l": (0.03, 0.02, 0.06)}
    rows = [
        {"size": size, "seed": seed, "training_speed": 1 + (size == "l") + each}
        for size, of_it in noise.items()
        for seed, each in enumerate(of_it, 1)
    ]
    slower = ablab.judge(rows, "training_speed", arm="size", better="lower")
    assert "size=l is worse than size=s" in slower.text
    faster = ablab.judge(rows, "training_speed", arm="size", better="higher")
    assert "size=l trains faster than size=s" in faster.text
    with pytest.raises(UserError, match="metric depth: that is read from the curves of runs; allowed: another name"):
        ablab.judge([{**row, "depth": row["seed"]} for row in rows], "depth", arm="size", better="lower")


def test_seconds_of_which_two_are_equal_tell_no_arms_apart():
    rows = [{**run, "runtime": 100 + max(1, place)} for place, run in enumerate(RUNS)]
    found = ablab.judge(rows, "bleu_of_mine", better="higher")
    assert {arm.name for arm in found.document.arms} == {"norm=post", "norm=pre", "norm=scale"}
    assert any("norm tells arms apart" in note for note in found.document.notes)


def test_a_folder_with_a_dot_has_the_file_of_its_own_name(tmp_path):
    (tmp_path / "lm-1.5").mkdir()
    assert beside_of(str(tmp_path / "lm-1.5")) == tmp_path / "lm-1.5.yaml"
    assert str(beside_of("sqlite:///mlflow.db")) == "mlflow.yaml"
    assert str(beside_of("a/results.csv")) == "a/results.yaml"


def test_a_claim_the_other_way_round_is_the_figure_of_its_pair():
    """Each comparison has one interval to quote."""
    claims = [{"arm": "norm=post", "baseline": f"norm={arm}", "expect": "less"} for arm in ("pre", "scale")]
    found = judged(claims=claims).document
    for line, claim in zip(found.differences, found.claims, strict=True):
        assert (line.claim, line.p) == (found.claims.index(claim), claim.corrected)
        assert line.difference == -claim.difference
        assert (line.interval.low, line.interval.high) == (-claim.interval.high, -claim.interval.low)
        assert line.interval.level == claim.interval.level
        assert [one.difference for one in line.per_seed] == [-one.difference for one in claim.per_seed]


def test_a_worse_arm_of_a_saturated_baseline_is_not_said_to_gain():
    line = WorthLine(
        arm="a", baseline="b", factor=None, low=0.0, high=None, saturated=True, refused=None, at_least=None, n=3
    )
    assert _times(line) == "unbounded: twice the compute is not shown to gain"
    assert _times(line.model_copy(update={"is_loss": True})) == "unbounded: half the compute is not shown to lose"
