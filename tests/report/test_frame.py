"""Frames as users have them: holes, seeds that became floats, doubled columns, and arguments of another kind."""

import pandas as pd
import pytest

import ablab
from ablab.errors import UserError

RUNS = [
    {"size": size, "seed": seed, "bleu": 20 + big + seed / 10 + big * seed**2 / 90}
    for size, big in (("s", 0), ("l", 1))
    for seed in (1, 2, 3)
]
FRAME = pd.DataFrame(RUNS)
LONG = FRAME.rename(columns={"size": "arm", "bleu": "value"}).assign(metric="bleu")


def judged(frame, **named):
    named = {"metric": "bleu", "arm": "size", "better": "higher", **named}
    return ablab.judge(frame, **named)


def test_seeds_that_a_join_made_floats_are_the_same_seeds():
    floats = FRAME.astype({"seed": float})
    assert judged(floats).verdicts == judged(FRAME).verdicts
    assert judged(FRAME.to_dict("records")).verdicts == judged(FRAME).verdicts


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, "", " "])
def test_a_run_without_an_arm_is_refused(missing):
    rows = [*RUNS, {**RUNS[0], "size": missing}]
    with pytest.raises(UserError, match="frame, row 6: size is missing, so that the run has no arm"):
        judged(rows)
    rows = [*LONG.to_dict("records"), {**LONG.iloc[0].to_dict(), "arm": missing}]
    with pytest.raises(UserError, match=r"frame, row 6: arm=' ?': allowed: a name on one line"):
        judged(rows, arm=None)


def test_what_came_out_of_a_run_tells_no_arms_apart_beside_a_column_of_arms():
    runs = [{**run, "arm": run["size"], "converged": int((run["size"], run["seed"]) != ("l", 2))} for run in RUNS]
    rows = [{key: value for key, value in run.items() if key != "size"} for run in runs]
    found = judged(rows, arm=None)
    assert [claim.arm for claim in found.verdicts] == ["arm=l"]
    assert found.verdicts == judged(rows, arm="arm").verdicts


@pytest.mark.parametrize("arm", [None, "size"])
def test_a_run_of_several_items_has_their_mean_as_its_score(arm):
    items = [{**run, "item": item, "bleu": run["bleu"] + item - 2} for run in RUNS for item in (1, 2, 3)]
    (found,), (expected,) = judged(items, arm=arm).verdicts, judged(FRAME).verdicts
    assert (found.arm, found.difference) == (expected.arm, pytest.approx(expected.difference))


def test_an_arm_may_be_called_nan():
    assert judged(FRAME.replace({"size": {"l": "nan"}})).verdicts[0].arm == "size=nan"


@pytest.mark.parametrize(
    ("frame", "named", "why"),
    [
        (FRAME.iloc[:0], {}, "frame: has no rows"),
        ([], {}, "frame: has no rows"),
        (pd.concat([FRAME, FRAME[["size"]]], axis=1), {}, "frame: has two columns size; allowed: one of each name"),
        (FRAME.assign(seed=1.5), {}, "frame, row 0: seed=1.5: allowed: whole numbers from 0"),
        (FRAME, {"claims": {"arm": "l", "expect": "greater"}}, "judge: claims: allowed: a list of claims"),
        (FRAME, {"claims": ["l"]}, "judge: claims: allowed: a list of claims"),
        (FRAME, {"arm": 0}, "judge: column 0: allowed: a name that is text"),
        (FRAME, {"arm": "size", "seed": 1}, "judge: column 1: allowed: a name that is text"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_line(frame, named, why):
    with pytest.raises(UserError) as refused:
        judged(frame, **named)
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


def test_a_csv_with_two_columns_of_one_name_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "results.csv").write_text("arm,seed,metric,value,value\na,1,score,1,2\nb,1,score,2,3\n")
    from ablab.commands.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["report", "table=results.csv"]) == 2
    assert "results.csv: has two columns value; allowed: one of each name" in capsys.readouterr().err
