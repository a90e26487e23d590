"""What a table could be misread by: noise of other data, other seeds, the direction, rounding, the scale, numerals."""

from decimal import Decimal

import pytest

from tests.report.conftest import typed
from tests.report.tables import ROWS, reported_from, table

pytestmark = pytest.mark.usefixtures("undrawn")

OF_DE = {"norm=pre": (30.0, 30.4, 30.3), "norm=post": (30.9, 31.6, 31.2)}
FR = {"little": 0.01, "ten times as much": 3.0}


def of_languages(tmp_path, spread, about, columns="arm,seed,metric,value", corpus=("", "")):
    """Arms of German, and two of French that scatter so much; without, none of these."""
    tmp_path.mkdir()
    rows = [
        f'"{norm},lang=de",{seed},score,{value}{corpus[0]}'
        for norm, values in OF_DE.items()
        for seed, value in enumerate(values, 1)
    ]
    if spread is not None:
        rows += [
            f'"{norm},lang=fr",{seed},score,{20 + scale * spread * shape}{corpus[1]}'
            for norm, scale in zip(OF_DE, (1, 1.01), strict=True)
            for seed, shape in enumerate((0, 0.1, 1.1), 1)
        ]
    about += "\nclaims: [{arm: 'norm=post,lang=de', baseline: 'norm=pre,lang=de', expect: greater}]"
    data, _, _ = reported_from(table(tmp_path, rows, columns, about))
    (claim,) = data["claims"]
    return claim


@pytest.mark.parametrize("spread", FR.values(), ids=FR)
def test_arms_of_another_level_of_within_lend_no_noise(tmp_path, spread):
    """A store lends none either: it knows that they were trained on other data."""
    alone = of_languages(tmp_path / "a", None, "")
    beside = of_languages(tmp_path / "b", spread, "within: lang")
    for key in ("p", "interval", "corrected", "test", "outcome"):
        assert beside[key] == alone[key]
    undeclared = of_languages(tmp_path / "c", spread, "")
    assert undeclared["p"] != alone["p"]  # nothing says that these are other data


@pytest.mark.parametrize("spread", FR.values(), ids=FR)
def test_arms_of_another_corpus_lend_no_noise(tmp_path, spread):
    alone = of_languages(tmp_path / "a", None, "")
    columns = "arm,seed,metric,value,corpus"
    other = of_languages(tmp_path / "b", spread, "", columns, (",news", ",wiki"))
    same = of_languages(tmp_path / "c", spread, "", columns, (",news", ",news"))
    assert (other["p"], other["test"]) == (alone["p"], alone["test"])
    assert same["p"] != alone["p"]


def test_arms_of_several_corpora_are_not_compared(tmp_path):
    rows = [f"{row},{'news' if row.startswith('a') else 'wiki'}" for row in ROWS]
    columns, about = "arm,seed,metric,value,corpus", "claims: [{arm: b, expect: greater}]"
    data, _, _ = reported_from(table(tmp_path, rows, columns, about))
    reason = "corpora differ between b and a: news; wiki"
    assert (data["claims"][0]["outcome"], data["claims"][0]["reason"]) == ("not testable", reason)
    assert data["differences"][0]["refused"] == reason


def test_items_are_those_of_a_corpus(tmp_path):
    rows = [
        f"{arm},{seed},score,{value}.{seed},{corpus},{item}"
        for arm, corpus in (("a", "news"), ("b", "news"), ("c", "wiki"))
        for seed in (1, 2)
        for value, item in ((1, f"{corpus} 1"), (2, f"{corpus} 2"))
    ]
    columns = "arm,seed,metric,value,corpus,item"
    data, _, _ = reported_from(table(tmp_path, rows, columns))
    assert [line["refused"] is None for line in data["differences"]][1] is False
    path = table(tmp_path, [row.replace("c,2,score,1.2,wiki,wiki 1", "c,2,score,1.2,wiki,x") for row in rows], columns)
    assert "item wiki 1 of score is that of c, seed 1 or of c, seed 2, and not of both" in typed(f"table={path}")[2]


NOTE = "arms have different seeds; differences are taken over the seeds that both have"


@pytest.mark.parametrize(("seeds", "is_said"), [((3, 4, 5), True), ((1, 2), True), ((1, 2, 3), False)])
def test_seeds_that_arms_do_not_share_are_said_also_where_their_numbers_are_equal(tmp_path, seeds, is_said):
    rows = [f"a,{seed},score,{seed + 0.5}" for seed in (1, 2, 3)] + [f"b,{seed},score,{2 * seed}" for seed in seeds]
    data, out, _ = reported_from(table(tmp_path, rows))
    assert (NOTE in data["notes"]) == (f"Note: {NOTE}" in out) == is_said


LOWER = (
    *("loss", "dev_loss", "valLoss", "test loss", "perplexity", "ppl", "val_ppl", "error", "error_rate", "TER"),
    *("wer", "CER", "mae", "RMSE", "latency_ms", "nll", "cross-entropy", "train time", "errors"),
)


@pytest.mark.parametrize("name", LOWER)
def test_the_direction_must_be_said_where_the_name_suggests_lower(tmp_path, name):
    rows = [row.replace("score", name) for row in ROWS]
    code, out, err = typed(f"table={table(tmp_path, rows)}", f"outputs={tmp_path / 'outputs'}")
    said = f"better: missing, and by its name {name} may be better when lower"
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"results.yaml, which is not there yet: {said}; allowed: lower, higher" in err
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("name", ["score", "comet", "accuracy", "test_bleu", "F1", "winner", "closed", "lossless"])
def test_other_names_need_no_direction(tmp_path, name):
    rows = [row.replace("score", name) for row in ROWS]
    assert reported_from(table(tmp_path, rows))[0]["higher_is_better"] is True


def test_a_score_is_not_called_as_the_share_of_diverged_runs(tmp_path):
    code, out, err = typed(f"table={table(tmp_path, [row.replace('score', 'failures') for row in ROWS])}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "metric failures: that is the share of runs that diverge; allowed: another name in the table" in err


@pytest.mark.parametrize("is_lower", [True, False])
def test_the_direction_that_was_taken_is_said(tmp_path, is_lower):
    """The arm's loss is higher: it is not worse only where higher is better."""
    scores = {"a": (1.01, 1.02, 1.03), "b": (1.21, 1.23, 1.24)}
    rows = [f"{arm},{seed},loss,{own[seed - 1]}" for arm, own in scores.items() for seed in (1, 2, 3)]
    about = f"metrics: {{loss: {{lower_is_better: {str(is_lower).lower()}}}}}\n"
    about += "claims: [{arm: b, expect: not_worse, margin: 0.05}]"
    data, out, folder = reported_from(table(tmp_path, rows, about=about))
    said = f"taken as better: {'lower' if is_lower else 'higher'} loss"
    assert data["claims"][0]["outcome"] == ("refuted" if is_lower else "supported")
    assert said in data["notes"]
    assert f"Note: {said}" in out
    for name in ("report.html", "report.md", "report.tex"):
        assert said in (folder / name).read_text()


def constant(size, step):
    """The arm is above the baseline by the step under each seed, in decimals as people write them."""
    return [
        f"{arm},{seed},score,{Decimal(size) + Decimal(noise) + Decimal(more)}"
        for arm, more in (("a", "0"), ("b", step))
        for seed, noise in ((1, "0.13"), (2, "1.27"), (3, "2.41"))
    ]


@pytest.mark.parametrize("error", ["paired", "moderated"])
@pytest.mark.parametrize(("size", "step"), [("30.1", "0.3"), ("12345.1", "0.3"), ("86420975.3", "0.7"), ("0", "0.2")])
def test_a_constant_difference_is_no_verdict_whatever_the_size_of_the_scores(tmp_path, error, size, step):
    about = f"error: {error}\nclaims: [{{arm: b, expect: greater}}]"
    data, _, _ = reported_from(table(tmp_path, constant(size, step), about=about))
    (claim,), (line,) = data["claims"], data["differences"]
    assert claim["outcome"] == "not testable"
    assert claim["reason"].startswith(f"the difference is {step} under each of 3 seeds, and noise is not so regular")
    assert (line["p"], line["refused"]) == (None, claim["reason"])


def test_a_difference_that_varies_by_a_thousandth_has_a_verdict_at_any_size(tmp_path):
    rows = [*constant("12345.1", "0.3")[:-1], "b,3,score,12347.811"]
    data, _, _ = reported_from(table(tmp_path, rows, about="claims: [{arm: b, expect: greater}]\nerror: paired"))
    assert data["claims"][0]["reason"] is None


@pytest.mark.parametrize(("unit", "digits"), [(1e-8, 9), (1e-9, 9), (1e-12, None), (1e-30, None)])
def test_scores_that_no_digits_show_are_refused(tmp_path, unit, digits):
    """At 1e-9 the last digit is that of the noise; below, every figure would be 0."""
    rows = [
        f"{arm},{seed},score,{value * unit!r}"
        for arm, of in (("a", (3, 5, 4)), ("b", (6, 9, 8)))
        for seed, value in enumerate(of)
    ]
    path = table(tmp_path, rows)
    if digits is not None:
        data, _, _ = reported_from(path)
        assert (data["digits"], data["differences"][0]["refused"]) == (digits, None)
    else:
        code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
        assert code == 2
        assert (
            f"metrics.score: its values differ by about {unit:.1g}, which the 9 digits of a report do not show" in err
        )


def test_a_table_of_constants_shows_the_size_of_its_scores(tmp_path):
    rows = [f"{arm},{seed},score,{value}" for arm, value in (("a", 0.00012), ("b", 0.00013)) for seed in (1, 2, 3)]
    assert reported_from(table(tmp_path, rows))[0]["digits"] == 6


NUMERALS = ("31_5", "٣١", "３１.5", "1e1_0", "0x1f", "inf", "1,5", "", "--1", "1e", ".")


@pytest.mark.parametrize("value", NUMERALS)
def test_only_plain_numerals_are_numbers(tmp_path, value):
    rows = [*ROWS[:-1], f'b,3,score,"{value}"']
    code, _, err = typed(f"table={table(tmp_path, rows)}", f"outputs={tmp_path / 'outputs'}")
    assert code == 2
    given = f"value={value}" if value else "the value is empty"
    assert f"results.csv:{len(rows) + 1}, score: {given}: allowed: a number such as 31.5 or 2e-3" in err


@pytest.mark.parametrize("seed", ["1_0", "٣", "３", "-1", "+1", "1.5", ".0"])
def test_only_plain_numerals_are_seeds(tmp_path, seed):
    rows = [*ROWS[:-1], f"b,{seed},score,1"]
    code, _, err = typed(f"table={table(tmp_path, rows)}", f"outputs={tmp_path / 'outputs'}")
    assert code == 2
    assert f"results.csv:{len(rows) + 1}: seed={seed}: allowed: whole numbers from 0, in the digits 0 to 9" in err


@pytest.mark.parametrize("value", ["31.5", "+2.0", "-.5", "3.", "2E-3", " 7 "])
def test_what_is_a_number_is_read(tmp_path, value):
    data, _, _ = reported_from(table(tmp_path, [*ROWS, f'c,1,score,"{value}"']))
    arm = next(arm for arm in data["arms"] if arm["name"] == "c")
    assert arm["mean"] == float(value)


@pytest.mark.parametrize(
    ("lacking", "said"), [((3,), "seed 3 of b has no chrf"), ((2, 3), "seed 2 of b, seed 3 of b have no chrf")]
)
def test_one_run_has_no_score_and_two_have_none(tmp_path, lacking, said):
    chrf = [row.replace("score", "chrf") for row in ROWS if not (row[0] == "b" and int(row[2]) in lacking)]
    about = "metric: chrf\nerror: paired\nclaims: [{arm: b, expect: greater}]"
    data, _, _ = reported_from(table(tmp_path, [*ROWS, *chrf], about=about))
    assert data["differences"][0]["refused"] == data["claims"][0]["reason"] == said
    (arm,) = [arm for arm in data["arms"] if arm["name"] == "b"]
    assert f"{len(lacking)} of 3 runs {said.split()[-3]} no chrf" in arm["notes"]


def test_a_metric_of_the_table_alone_can_be_asked_for(tmp_path):
    rows = [*ROWS, *(row.replace("score", "chrf") for row in ROWS)]
    data, _, _ = reported_from(table(tmp_path, rows), "metric=chrf")
    assert (data["metric"], data["name"]) == ("chrf", f"table-{tmp_path.name}-results-in-chrf")


def test_names_alone_make_no_tuned_arms(tmp_path):
    scores = {"base": 30.0, "big": 30.9, "base, tuned": 31.0, "big, tuned": 31.05}
    noise = (0.1, 0.3, 0.25, 0.05)
    rows = [
        f'"{arm}",{seed},score,{mean + noise[(seed + place) % 4]}'
        for place, (arm, mean) in enumerate(scores.items())
        for seed in range(4)
    ]
    about = "claims: [{arm: big, expect: greater}, {arm: 'big, tuned', baseline: 'base, tuned', expect: greater}]"
    data, out, _ = reported_from(table(tmp_path, rows, about=about))
    assert [claim["tuning"] for claim in data["claims"]] == [None, None]
    assert "usual settings" not in out
    assert "With tuned settings" not in out


def test_a_name_that_reads_as_two_is_refused(tmp_path):
    """`norm = pre` would be judged in the place of an arm `norm` or `pre`."""
    rows = [f"{arm},{seed},acc,{seed}" for arm in ("base", "norm = pre", "pre") for seed in (1, 2, 3)]
    code, _, err = typed(f"table={table(tmp_path, rows)}", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "arm norm = pre: ' = ' joins names of one arm in reports; allowed: such as norm=pre" in err


def test_of_several_levels_the_metrics_are_compared_in_that_of_the_baseline(tmp_path):
    """French scores 15 more than German: that is no difference between norms that a next study could see."""
    noise = (0.1, -0.2, 0.15, -0.1, 0.05, 0.2)
    rows = [
        f'"norm={norm},lang={lang}",{seed},{metric},{level + noise[(seed + place) % 6]}'
        for lang, level in (("de", 30.0), ("fr", 45.0))
        for place, norm in enumerate(("pre", "post", "rms"))
        for seed in (1, 2, 3, 4)
        for metric in ("a", "b")
    ]
    about = "metric: a\nbetter: higher\nmetrics: {b: {}}\nbaseline: norm=pre,lang=de\nwithin: lang\n"
    found, *_ = reported_from(table(tmp_path, rows, about=about))
    assert [(line["arms"], line["runs"]) for line in found["metrics"]] == [(3, 12)] * 2
    assert all(line["between"] < 1.0 for line in found["metrics"])


def test_levels_that_would_be_one_arm_are_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('x,y,seed,acc\n"1,y=2",3,1,50\n1,"2,y=3",2,50\n')
    about = tmp_path / "c.yaml"
    about.write_text("arm: [x, y]\nmetric: acc\nbetter: higher\n")
    code, _, err = typed(f"table={path}", f"claims={about}", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "are both named x=1,y=2,y=3" in err


def test_a_line_of_json_that_names_a_field_twice_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"arm": "a", "seed": 1, "metric": "acc", "value": 49.2, "value": 3}\n')
    code, _, err = typed(f"table={path}", f"outputs={tmp_path / 'outputs'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "it has value twice" in err


def test_whether_a_run_has_finished_is_no_arm(tmp_path):
    """A table that W&B exports has the crashed runs, too, with the score that they had by then."""
    path = tmp_path / "wandb.csv"
    rows = [f"finished,{norm},{seed},{seed}" for norm in ("pre", "post") for seed in (1, 2, 3)]
    rows[-1] = rows[-1].replace("finished", "crashed")
    path.write_text("\n".join(["State,norm,seed,val_loss", *rows, ""]))
    line = (f"table={path}", "metric=val_loss", "better=lower", f"outputs={tmp_path / 'outputs'}")
    code, _, err = typed(*line)
    assert (code, err.count("\n")) == (2, 1)
    assert "State says which runs have finished, and tells no arms apart" in err
    path.write_text(path.read_text().replace("crashed", "finished"))
    assert typed(*line)[0] == 0
