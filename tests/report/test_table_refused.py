"""What a table of results cannot be, or cannot do: told in one line, and nothing is left behind."""

import pytest

from tests.report.conftest import typed
from tests.report.tables import ROWS, WIDE, reported_from, table

pytestmark = pytest.mark.usefixtures("undrawn")


def test_a_bad_line_of_json_is_told_by_its_number(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"arm": "a", "seed": 1, "metric": "score", "value": 1}\n\n{"arm": "a", seed: 2}\n')
    code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
    assert code == 2
    assert err.startswith(f"error: {path}:3: cannot be read as a line of JSON (")
    path.write_text('{"arm": "a"}\n' + "[" * 100_000)
    assert f"{path}:2: cannot be read as a line of JSON (" in typed(f"table={path}")[2]
    # Only these are ends of a line in JSON lines: other signs that end one may stand in a text.
    path.write_text('{"arm": "a\u2028b"}\r\n[1, 2]\n', encoding="utf-8")
    assert f"{path}:2: no object; allowed: lines such as" in typed(f"table={path}")[2]


REFUSED = {
    "no rows": ([], None, "has no rows"),
    "no number": (
        ["a,1,score,x"],
        None,
        ":2, score: value=x: allowed: a number such as 31.5 or 2e-3, below 1e+30, or diverged",
    ),
    "nan": (["a,1,score,nan"], None, ":2, score: value=nan: allowed: a number such as 31.5 or 2e-3, below 1e+30, or"),
    "huge": (
        ["a,1,score,1e30"],
        None,
        ":2, score: value=1e30: allowed: a number such as 31.5 or 2e-3, below 1e+30, or",
    ),
    "twice": (["a,1,score,1", "a,1,score,2"], None, ":3: the score of this run comes twice"),
    "seed": (["a,one,score,1"], None, ":2: seed=one: allowed: whole numbers from 0"),
    "no arm": ([" ,1,score,1"], None, ":2: arm='': allowed: a name on one line"),
    "short": (
        ["a,1,score"],
        None,
        ":2: has more or fewer values than there are columns, which ',' separates",
    ),
    "quotes": (['"a"b,1,score,1'], None, "cannot be read as CSV (',' expected after"),
    "both": (["a,1,score,1", "a,1,other,diverged"], None, ":3: the run has scores and is said to have diverged"),
    "baseline": (ROWS, "baseline: c", "results.yaml: baseline=c: no such arm; allowed: a, b"),
    "metric": (ROWS, "metric: bleu", "results.yaml: metric=bleu: the table has none; allowed: score"),
    "claim": (ROWS, "claims: [{arm: c, expect: greater}]", "results.yaml: claims.arm=c: no such arm"),
    "of what": (
        ROWS,
        "claims: [{arm: b, expect: greater, metric: bleu}]",
        "claims.metric=bleu: allowed: failures, score",
    ),
    "key": (ROWS, "runs: [1]", "runs"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_one_line_and_leaves_nothing(name, tmp_path):
    rows, about, said = REFUSED[name]
    path = table(tmp_path, rows, about=about)
    code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "outputs").exists()


def test_items_must_be_those_of_all_runs(tmp_path):
    rows = ["a,1,score,1,x", "a,1,score,2,y", "b,1,score,1,x"]
    path = table(tmp_path, rows, "arm,seed,metric,value,item")
    assert "item y of score is that of a, seed 1 or of b, seed 1, and not of both" in typed(f"table={path}")[2]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("arm,seed,value", "has no column metric; it needs arm, seed, metric, value"),
        (
            "arm,seed,metrics,value",
            "column metrics: allowed: arm, corpus, item, metric, seed, value; did you mean metric?",
        ),
        ("", "has no column arm; it needs arm, seed, metric, value"),
        (
            "arm,seed,loss",
            "arm, corpus, item, metric, seed, value; where a row is a run, say which of its scores to judge",
        ),
        ("arm,seed,metric,value,size", "column size: allowed: arm, corpus, item, metric, seed, value"),
    ],
)
def test_columns_are_checked(tmp_path, columns, said):
    assert said in typed(f"table={table(tmp_path, [], columns)}")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify=true",), "verify=true: a table has no translations"),
        (("runs=r1",), "table=: not together with runs="),
        (("metric=test_bleu",), "metric=test_bleu: the table has none; allowed: score"),
        (("norm=pre",), "with runs=, where= and table= allowed"),
    ],
)
def test_what_a_table_cannot_do_is_said(tmp_path, words, said):
    code, _, err = typed(f"table={table(tmp_path, ROWS)}", *words)
    assert code == 2
    assert said in err


def test_a_table_that_is_not_there(tmp_path):
    assert typed(f"table={tmp_path / 'no.csv'}")[2].endswith("no.csv: no such file\n")
    assert "allowed: .csv, .tsv, .jsonl" in typed(f"table={tmp_path}")[2]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("{norm=post: small}", "labels: norm=post is called small, and so is another; allowed: names that differ"),
        ("{norm=rms: small one}", "labels: norm=rms: no level or arm of this design; allowed: "),
    ],
)
def test_a_label_is_of_an_arm_and_no_other_arms_name(tmp_path, labels, said):
    """What is called as another is would be taken for it, as a baseline too."""
    rows = [f"{arm},{seed},acc,{seed}" for arm in ("small", "norm=post") for seed in (1, 2, 3)]
    path = table(tmp_path, rows, about=f"baseline: small\nlabels: {labels}\n")
    code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
    assert (code, said in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "about", "said"),
    [
        (["better=up"], None, "better=up: allowed: 'higher' or 'lower'"),
        (["better=lower"], None, "say which of its scores to judge, as in metric=accuracy"),
        (
            ["better=lower", "metric=Acc"],
            "better: lower\nmetric: Acc",
            "results.yaml says what is better; allowed without",
        ),
    ],
)
def test_a_direction_that_nothing_reads_is_refused(tmp_path, words, about, said):
    code, _, err = typed(f"table={table(tmp_path, WIDE, 'Norm,seed,Acc', about)}", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert "better=lower: runs of a store say" in typed("runs=r1", "better=lower")[2]


@pytest.mark.parametrize(
    ("columns", "rows", "said"),
    [
        ("Norm,S,Acc", WIDE, "results.csv: has no column seed; allowed: Acc, Norm, S; seed, in a file of claims"),
        ("Norm,seed,Acd", WIDE, "results.csv: has no column Acc; allowed: Acd, Norm, seed; did you mean Acd?"),
        ("Norm,seed,Seed,Acd", [], "results.csv: has no column Acc"),
        ("Norm,seed,Acc", [], "results.csv: has no rows; allowed: one for each run"),
        ("", [], "results.csv: has no rows; allowed: one for each run"),
        ("Norm,seed,Acc", ["pre,1,71.2", "pre,2,71.4"], "results.csv: has one arm; allowed: two and more"),
        ("Norm,seed,Acc", ["pre,1,", *WIDE[1:]], "results.csv:2, Acc: the value is empty: allowed: a number such as"),
        (
            "Norm,seed,Acc",
            ['pre,1,"71,2"', *WIDE[1:]],
            "results.csv:2, Acc: value=71,2: allowed: a number such as",
        ),
        ("Norm,seed,Acc", ['pre,1,"71,2"', *WIDE[1:]], ", with a point and not a comma, or diverged"),
    ],
)
def test_what_is_wrong_in_a_row_for_each_run_is_named_as_in_the_table(tmp_path, columns, rows, said):
    code, _, err = typed(f"table={table(tmp_path, rows, columns)}", f"outputs={tmp_path}", "metric=Acc")
    assert (code, err.count("\n")) == (2, 1)
    assert said in err


def test_a_typed_metric_whose_direction_is_unknown_is_told_so(tmp_path):
    """And not that the table has none."""
    rows = [
        f"{arm},{seed},{name},{value + seed}"
        for arm in "ab"
        for seed in (1, 2)
        for name, value in (("acc", 1), ("loss", 2))
    ]
    path = table(tmp_path, rows)
    code, _, err = typed(f"table={path}", "metric=loss", f"outputs={tmp_path}")
    assert code == 2
    assert "better: missing" in err
    assert typed(f"table={path}", "metric=loss", "better=lower", f"outputs={tmp_path}")[0] == 0
    losses_first = table(tmp_path, sorted(rows, key=lambda row: "acc" in row))
    data, _, _ = reported_from(losses_first, "metric=acc")
    assert data["higher_is_better"]


@pytest.mark.parametrize("key", ["title", "unit"])
def test_titles_and_units_are_on_one_line(key, tmp_path):
    about = f'metrics: {{acc: {{{key}: "a\\nb"}}}}\n'
    path = table(tmp_path, [f"{arm},{seed},acc,{seed}.5" for arm in "ab" for seed in (1, 2)], about=about)
    code, _, err = typed(f"table={path}", f"outputs={tmp_path}")
    assert (code, err.count("\n")) == (2, 1)
    assert "allowed: text on one line" in err


def test_the_index_that_pandas_writes_is_named(tmp_path):
    path = table(tmp_path, [f"0,{arm},{seed},acc,1.5" for arm in "ab" for seed in (1, 2)], ",arm,seed,metric,value")
    code, _, err = typed(f"table={path}", f"outputs={tmp_path}")
    assert code == 2
    assert "column '': " in err
    assert "pandas writes its index so, unless it is told index=False" in err
