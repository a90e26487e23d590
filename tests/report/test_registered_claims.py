"""Claims about a table that were registered before: confirmatory if nothing was there or changed since, else not."""

import hashlib
import json
import os
from types import SimpleNamespace

import pytest

import ablab
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.judge.registered_claims import _others, place_from
from tests.report.conftest import typed

pytestmark = pytest.mark.usefixtures("undrawn")

CLAIMS = """question: Is b better?
metric: score
baseline: a
seeds: [1, 2, 3]
claims:
  - {arm: b, expect: greater, margin: 0.1}
"""
ROWS = [
    f"{arm},{seed},score,{mean + (seed * 7 + mean) % 5 / 10}"
    for arm, mean in (("a", 1), ("b", 3))
    for seed in (1, 2, 3)
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    return tmp_path


def write(place, rows=ROWS, name="results.csv"):
    (place / name).write_text("\n".join(["arm,seed,metric,value", *rows, ""]))


def registered(capsys, *words, code=0):
    assert main(["register", *words]) == code
    out, err = capsys.readouterr()
    assert err.count("\n") == (code != 0)
    return out if code == 0 else err


def reported(table="results.csv", *words):
    code, out, err = typed(f"table={table}", "claims=claims.yaml", "resamples=1000", *words)
    assert (code, err) == (0, ""), err
    folder = f"outputs/reports/table-{table.partition('.')[0]}-claims"
    with open(f"{folder}/report.json") as file:
        return json.load(file), out, folder


def test_claims_that_came_first_are_confirmatory_and_every_output_says_so(place, capsys):
    said = registered(capsys, "claims.yaml", "table=results.csv")
    digest = hashlib.sha256(CLAIMS.encode()).hexdigest()[:16]
    assert f"Digest: {digest}" in said
    assert "report table=results.csv claims=claims.yaml" in said
    write(place)
    data, out, folder = reported()
    (claim,) = data["claims"]
    assert (claim["outcome"], claim["exploratory"]) == ("supported", None)
    (line,) = [note for note in data["notes"] if digest in note]
    assert line.startswith("1 claim registered on 20")
    assert line.endswith("of claims.yaml, when results.csv had no results")
    assert line in out
    assert data["stamp"].startswith("2:")
    assert data["origin"] == "origin not verified"
    for name in ("report.html", "report.md", "report.tex", "claims.csv", "arms.csv"):
        assert digest in (place / folder / name).read_text()


def test_arms_that_no_registered_claim_names_change_no_verdict(place, capsys):
    """Quiet ones could be added once there are results."""
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place)
    (alone,) = reported()[0]["claims"]
    quiet = [f"quiet{arm},{seed},score,{2 + arm / 10 + seed / 1000}" for arm in range(6) for seed in (1, 2, 3)]
    write(place, [*ROWS, *quiet])
    (beside,) = reported()[0]["claims"]
    for key in ("p", "interval", "corrected", "outcome", "test"):
        assert beside[key] == alone[key], key
    (place / "outputs").rename(place / "gone")
    (unregistered,) = reported()[0]["claims"]
    assert unregistered["p"] != alone["p"]


def test_claims_that_nobody_registered_are_exploratory(place):
    write(place)
    (claim,) = reported()[0]["claims"]
    assert claim["exploratory"].endswith("; its claims were not registered")


def test_a_table_that_had_results_is_said(place, capsys):
    write(place)
    assert "Note: results.csv had 6 rows of results by then" in registered(capsys, "claims.yaml", "table=results.csv")
    (claim,) = reported()[0]["claims"]
    assert claim["exploratory"].startswith("results.csv had 6 rows of results when the claims were registered on")


def test_a_table_of_before_is_noticed_by_its_time_where_it_was_not_named(place, capsys):
    write(place)
    os.utime(place / "results.csv", (1_000_000_000, 1_000_000_000))
    registered(capsys, "claims.yaml")
    data = reported()[0]
    assert data["claims"][0]["exploratory"].startswith(
        "results.csv was last written on 2001-09-09 01:46:40 UTC, before"
    )
    assert any(note.endswith("of claims.yaml, which named no table") for note in data["notes"])
    os.utime(place / "results.csv", (4_000_000_000, 4_000_000_000))
    assert reported()[0]["claims"][0]["exploratory"] is None


def test_another_table_than_the_registered_one_is_said(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place, name="other.csv")
    (claim,) = reported("other.csv")[0]["claims"]
    assert claim["exploratory"] == "the claims were registered for ../results.csv, as seen from the store"


def test_claims_registered_for_two_tables_are_those_of_each(place, capsys):
    for name in ("first.csv", "results.csv"):
        registered(capsys, "claims.yaml", f"table={name}")
    for name in ("first.csv", "results.csv"):
        write(place, name=name)
        data, _, _ = reported(name)
        assert [claim["exploratory"] for claim in data["claims"]] == [None]


def test_what_was_edited_is_exploratory_and_what_was_deleted_is_judged_all_the_same(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place)
    (place / "claims.yaml").write_text("# why\n" + CLAIMS.replace("question: Is", "question: Is it that"))
    assert reported()[0]["claims"][0]["exploratory"] is None  # what is asked did not change
    (place / "claims.yaml").write_text(CLAIMS.replace("0.1", "0.2"))
    data = reported()[0]
    later, first = data["claims"]
    assert (later["margin"], first["margin"], first["exploratory"]) == (0.2, 0.1, None)
    assert later["exploratory"] == "the claim came, or was changed, after the claims were registered"
    assert any(note.startswith("no longer in the file, and judged as it was registered") for note in data["notes"])
    for harmless in ("metrics: {score: {title: Score}}", "metrics: {score: {digits: 3}}"):
        (place / "claims.yaml").write_text(f"{CLAIMS}{harmless}\n")
        assert reported()[0]["claims"][0]["exploratory"] is None
    (place / "claims.yaml").write_text(CLAIMS + "better: lower\n")
    assert reported()[0]["claims"][0]["exploratory"].startswith("better changed after the claims were registered on")
    (place / "claims.yaml").write_text(CLAIMS.replace("baseline: a", "baseline: a\nerror: paired"))
    (claim,) = reported()[0]["claims"]
    assert claim["exploratory"].startswith("error changed after the claims were registered on")


def test_seeds_are_those_that_were_registered(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place, [*ROWS[:-1], "a,4,score,9", "b,4,score,1"])
    data, out, _ = reported()
    (claim,) = data["claims"]
    assert claim["outcome"] == "provisional"
    assert "provisional: 1 of 6 runs has not ended; there are estimates and no verdicts until they have\n" in out
    assert "seeds that the file of claims does not name are left out: 4" in data["notes"]
    write(place, [*ROWS, "a,4,score,9", "b,4,score,1"])
    (claim,) = reported()[0]["claims"]
    assert (claim["outcome"], claim["exploratory"], claim["n"]) == ("supported", None, 3)


@pytest.mark.parametrize("table", ["mlruns", "sqlite:///mlflow.db", "file:mlruns", "results.parquet"])
def test_claims_are_registered_for_what_is_not_there_yet(place, capsys, table):
    assert f"report table={table} claims=claims.yaml" in registered(capsys, "claims.yaml", f"table={table}")
    assert sorted(path.name for path in place.iterdir()) == ["claims.yaml", "outputs"]


def test_other_registrations_for_the_table_are_named(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    (place / "more.yaml").write_text(CLAIMS.replace("greater", "less"))
    registered(capsys, "more.yaml", "table=results.csv")
    write(place)
    digest = hashlib.sha256((place / "more.yaml").read_bytes()).hexdigest()[:16]
    assert f"1 other registration of claims about this table: digest {digest}" in reported()[0]["notes"]


def test_registering_twice_enters_once(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    before = (place / "outputs/register.jsonl").read_bytes()
    assert "registered already on" in registered(capsys, "claims.yaml", "table=results.csv")
    assert (place / "outputs/register.jsonl").read_bytes() == before


def _edit(place):
    (path,) = (place / "outputs/claims").iterdir()
    path.write_text(path.read_text().replace("greater", "less"))


def _delete(place):
    (path,) = (place / "outputs/claims").iterdir()
    path.unlink()


def _earlier(place):
    path = place / "outputs/register.jsonl"
    path.write_text(path.read_text().replace('"at":"20', '"at":"19', 1))


@pytest.mark.parametrize(
    ("tamper", "why"),
    [
        (_edit, "is not what was entered: it was edited"),
        (_delete, "is gone, and was registered on"),
        (_earlier, "the register is broken"),
    ],
)
def test_what_was_tampered_with_is_said(place, capsys, tamper, why):
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place)
    tamper(place)
    data = reported()[0]
    assert data["claims"][0]["exploratory"] is not None
    assert any(why in note for note in data["notes"])


def test_a_frame_is_judged_by_registered_claims(place, capsys):
    registered(capsys, "claims.yaml")
    rows = [dict(zip(("arm", "seed", "metric", "value"), row.split(","), strict=True)) for row in ROWS]
    judged = ablab.judge(rows, claims="claims.yaml")
    assert [(one.outcome, one.exploratory) for one in judged.verdicts] == [("supported", None)]
    assert "1 claim registered on" in str(judged)
    assert all(one.exploratory for one in ablab.judge(rows, "score").verdicts)
    with pytest.raises(UserError, match=r"judge: metric: not beside claims=claims.yaml; allowed: in that file"):
        ablab.judge(rows, "score", claims="claims.yaml")
    with pytest.raises(UserError, match=r"claims=none\.yaml: no such file"):
        ablab.judge(rows, claims="none.yaml")


def test_of_a_frame_nobody_can_tell_that_it_is_the_registered_table(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    rows = [dict(zip(("arm", "seed", "metric", "value"), row.split(","), strict=True)) for row in ROWS]
    (only,) = ablab.judge(rows, claims="claims.yaml").verdicts
    assert "nobody can tell that a data frame is that table" in only.exploratory


def test_a_registered_arm_that_the_table_lacks_says_where_it_is_named(place, capsys):
    (place / "claims.yaml").write_text(CLAIMS.replace("arm: b", "arm: bb"))
    registered(capsys, "claims.yaml", "table=results.csv")
    (place / "claims.yaml").write_text(CLAIMS)
    write(place)
    code, _, err = typed("table=results.csv", "claims=claims.yaml")
    assert code == 2
    assert "as registered on 20" in err
    assert "ablab register, typed again, registers the file as it is now" in err


NAMED_LATER = {
    "an arm by how its name begins": ("baseline: a", {"a": 1, "b-lr3": 3}, "b: no arm of the table has the name"),
    "the baseline, too": ("baseline: a", {"a-weak": 1, "b": 3}, "a: no arm of the table has the name"),
    "an arm by some of its levels": (
        "baseline: n=a",
        {"n=a,lr=1": 1, "n=b,lr=3": 3},
        "n=a, n=b: no arm of the table has the name",
    ),
    "not where the baseline has the other levels": ("baseline: 'n=a,lr=1'", {"n=a,lr=1": 1, "n=b,lr=1": 3}, None),
    "not where all arms were named": ("arms: [a, b-lr3]\nbaseline: a", {"a": 1, "b-lr3": 3}, None),
    "of the arms that were named": (
        "arms: [a, b-lr3]\nbaseline: a",
        {"a": 1, "b-lr3": 3, "c": 2},
        "b: no arm of the table has the name",
    ),
}


@pytest.mark.parametrize("case", NAMED_LATER)
def test_a_name_that_stands_for_whichever_arm_came_makes_claims_exploratory(place, capsys, case):
    """Of many arms that were trained, the best could have been put into the table."""
    baseline, arms, why = NAMED_LATER[case]
    arm = "n=b" if "n=" in baseline else "b"
    (place / "claims.yaml").write_text(CLAIMS.replace("baseline: a", baseline).replace("arm: b", f"arm: {arm}"))
    registered(capsys, "claims.yaml", "table=results.csv")
    rows = [
        f'"{name}",{seed},score,{mean + (7 * seed + mean) % 5 / 10}'
        for name, mean in arms.items()
        for seed in (1, 2, 3)
    ]
    write(place, rows)
    data, _, _ = reported()
    (claim,) = data["claims"]
    assert (claim["exploratory"] is None) == (why is None)
    assert why is None or any(note.startswith(why) for note in data["notes"])


REFUSED = {
    "no file": (["none.yaml"], None, "claims=none.yaml: no such file"),
    "no name": ([], None, "no name of a file of claims"),
    "key first": (["table=results.csv"], None, "no name of a file of claims"),
    "key": (["claims.yaml", "tables=x"], None, "tables=x: no such key"),
    "metric": (
        ["claims.yaml"],
        CLAIMS.replace("metric: score\n", ""),
        "claims.yaml: metric: missing; what is",
    ),
    "seeds": (["claims.yaml"], CLAIMS.replace("seeds: [1, 2, 3]\n", ""), "claims.yaml: seeds: missing"),
    "baseline": (["claims.yaml"], CLAIMS.replace("baseline: a\n", ""), "claims.yaml: baseline: missing"),
    "claims": (["claims.yaml"], CLAIMS.partition("claims:")[0], "claims.yaml: claims: missing"),
    "direction": (
        ["claims.yaml"],
        CLAIMS.replace("score", "val_loss"),
        "better: missing, and by its name val_loss",
    ),
    "twice": (["claims.yaml"], CLAIMS.replace("[1, 2, 3]", "[1, 1]"), "allowed: seeds that differ"),
    "study": (["claims.yaml"], CLAIMS + "factors: {norm: [a, b]}\n", "factors="),
    "better": (["claims.yaml"], CLAIMS + "better: up\n", "better=up: allowed: 'higher' or 'lower'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_fixes_too_little_is_refused_and_leaves_nothing(place, capsys, name):
    words, text, why = REFUSED[name]
    if text is not None:
        (place / "claims.yaml").write_text(text)
    assert why in registered(capsys, *words, code=2)
    assert not (place / "outputs").exists()


@pytest.mark.parametrize(
    ("file", "table", "is_said"),
    [("a", "5", True), ("b", "5", True), ("a", None, True), ("b", "4", False), ("b", "6", False), ("b", None, False)],
)
def test_another_registration_is_told_where_it_is_of_the_same_file_or_table(file, table, is_said):
    ours = SimpleNamespace(file="a", table="5", content="ours", digest="d1")
    other = SimpleNamespace(file=file, table=table, content="other", digest="d2")
    said = ["1 other registration of claims about this table: digest d2"]
    assert list(_others(ours, [ours, other])) == (said if is_said else [])


EACH = CLAIMS.replace("{arm: b,", "{arm: each,")


def test_claims_about_whichever_arms_there_will_be_need_their_names(place, capsys):
    """Whoever drops arms afterwards would choose how many claims there are, or what a mean is over."""
    (place / "claims.yaml").write_text(EACH)
    assert "arms: missing; claims about each arm" in registered(capsys, "claims.yaml", "table=results.csv", code=2)
    (place / "claims.yaml").write_text(EACH.replace("seeds:", "arms: [a, b]\nseeds:"))
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place)
    assert not any(claim["later"] for claim in reported()[0]["claims"])
    write(place, [*ROWS, *(f"c,{seed},score,{seed}" for seed in (1, 2, 3))])
    found, _, _ = reported()
    assert all(claim["exploratory"] for claim in found["claims"])
    assert any("c: no registered arm" in note for note in found["notes"])


def test_a_claim_that_names_no_baseline_of_its_level_is_judged(place, capsys):
    arms = [f"size={size},lang={lang}" for lang in ("de", "fr") for size in ("base", "mid", "big")]
    claims = [f"  - {{arm: 'size=big,lang={x}', baseline: 'size=mid,lang={x}', expect: greater}}" for x in ("de", "fr")]
    head = CLAIMS.partition("claims:")[0].replace("baseline: a", "baseline: 'size=base,lang=de'\nwithin: lang")
    (place / "claims.yaml").write_text(f"{head}claims:\n" + "\n".join(claims) + "\n")
    registered(capsys, "claims.yaml", "table=results.csv")
    rows = [
        f'"{arm}",{seed},score,{number + (seed * 7 + number) % 5 / 10}'
        for number, arm in enumerate(arms)
        for seed in (1, 2, 3)
    ]
    write(place, rows)
    assert len(reported()[0]["claims"]) == 2


def test_a_name_with_a_colon_is_a_path_and_so_is_an_address(place, tmp_path):
    """Another table of that name in another folder is another table."""
    store = place / "outputs"
    for name in ("t:1.csv", "./t:1.csv"):
        assert place_from(name, store) == "../t:1.csv"
    (place / "other").mkdir()
    here = place_from("sqlite:///mlflow.db", store)
    assert here == place_from("mlflow.db", store) == "../mlflow.db"
    os.chdir(place / "other")
    assert place_from("sqlite:///mlflow.db", store) == "../other/mlflow.db"


def test_a_table_with_a_colon_in_its_name_is_not_that_of_another_folder(place, capsys):
    registered(capsys, "claims.yaml", "table=t:1.csv")
    for folder, is_it in ((place, True), (place / "other", False)):
        folder.mkdir(exist_ok=True)
        write(folder, name="t:1.csv")
        os.chdir(folder)
        found = ablab.judge("t:1.csv", claims=str(place / "claims.yaml"), outputs=str(place / "outputs"))
        assert [one.exploratory is None for one in found.verdicts] == [is_it], folder


def test_the_stamp_of_registered_claims_is_in_each_csv(place, capsys):
    registered(capsys, "claims.yaml", "table=results.csv")
    write(place)
    data, _, folder = reported()
    last = (place / folder / "arms.csv").read_text().splitlines()[1].rpartition(",")[2]
    assert last == f"origin not verified; {data['stamp']}"
