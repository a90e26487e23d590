"""ls, show, diff and rm: what they tell, what they leave alone."""

import csv
import io
import json
import os
import re
import shlex
import shutil
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import ablab
from ablab.commands.cli import main
from ablab.commands.ls import _by_number, age, listing
from ablab.store.chain import Chain
from ablab.store.locks import locked


def _json(capsys, *words):
    assert main([*words, "format=json"]) == 0
    return json.loads(capsys.readouterr().out)


def _tree(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def test_a_list_tells_of_every_run(place, ids, capsys):
    told = _json(capsys, "ls")["runs"]
    assert {one["id"]: one["state"] for one in told} == {
        **dict.fromkeys(ids[:3], "finished"),
        ids[3]: "interrupted",
    }
    main(["ls", "sort=-test_bleu", "limit=2", "columns=id,test_bleu,model.d_model", "format=csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert float(rows[0]["test_bleu"]) >= float(rows[1]["test_bleu"])
    assert all(row["model.d_model"].isdigit() for row in rows)


def test_smoke_runs_are_listed_where_they_are(place, ids, capsys):
    assert main(["ls", "smoke=true"]) == 2
    assert "outputs=outputs/smoke: no such folder" in capsys.readouterr().err
    (place / "outputs" / "smoke").mkdir()
    (place / "outputs" / "runs").rename(place / "outputs" / "smoke" / "runs")
    assert {one["id"] for one in _json(capsys, "ls", "smoke=true")["runs"]} == set(ids)


def test_a_list_fits_80_columns(place, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ls"]) == 0
    table = capsys.readouterr().out.splitlines()[:5]
    assert all(len(line) <= 80 for line in table)


def test_a_run_that_no_study_planned_and_that_never_ended_is_no_baseline(place, ids, capsys):
    """Its differences from the defaults are unknown; those of the first arm are none."""
    shutil.rmtree(place / "outputs" / "studies")
    main(["ls", "columns=id,name,state,seed"])
    names = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:5])
    assert (names[ids[0]], names[ids[3]]) == ("s1", "unnamed")
    assert main(["ls", "by=arm", "format=json"]) == 2
    assert "by=arm: not with format=json" in capsys.readouterr().err
    main(["ls", "by=arm", "format=csv"])
    rows = {row["arm"]: row["runs"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert (rows["baseline"], rows["unnamed"]) == ("2 finished", "1 interrupted")


def test_a_damaged_run_is_a_marked_row(place, ids, capsys):
    (place / "outputs" / "runs" / ids[0] / "record.json").write_text("{")
    told = {one["id"]: one for one in _json(capsys, "ls")["runs"]}
    assert told[ids[0]]["state"] == "damaged"
    assert "record.json" in told[ids[0]]["damage"]
    assert {told[run]["state"] for run in ids[1:3]} == {"finished"}
    assert main(["show", f"run={ids[0]}"]) == 0


def test_a_run_is_shown_with_all_it_has(place, ids, capsys):
    told = _json(capsys, "show", f"run={ids[2]}")
    assert told["differs"] == {"layerdrop": "0.1"}
    assert (told["study"], told["arm"]) == (ablab.open("outputs").studies[0], "layerdrop=0.1")
    assert [curve["models"] for curve in told["curves"]] == [4]
    assert told["bytes"] > 0
    assert main(["show", f"run={ids[2]}"]) == 0
    shown = capsys.readouterr().out
    assert "layerdrop=0.1,s1" in shown
    for words in (" nats per token", " target tokens/s", " sentences/s", " MiB"):
        assert words in shown
    assert "BLEU BLEU" not in shown


def test_two_runs_differ_by_what_their_recipes_say(place, ids, capsys):
    told = _json(capsys, "diff", ids[0], ids[2])
    assert {pair["key"] for pair in told["recipe"]} == {f"layerdrop.{key}" for key in ("encoder", "decoder", "rates")}
    (bleu,) = [pair for pair in told["scores"] if pair["key"] == "test_bleu"]
    assert bleu["difference"] == pytest.approx(bleu["second"] - bleu["first"])
    assert _json(capsys, "diff", f"runs={ids[2]},{ids[0]}")["first"] == ids[2]
    seeds = _json(capsys, "diff", ids[0], ids[1])
    assert seeds["recipe"] == []
    assert "noise" in seeds["notes"][0]


def test_a_dry_run_removes_nothing_and_names_what_depends_on_the_run(place, ids, capsys):
    before = _tree(place)
    (one,) = _json(capsys, "rm", f"run={ids[0]}", "dry_run=true")["runs"]
    assert one["run"] == ids[0]
    assert any(line.startswith("study ") for line in one["dependents"])
    assert _tree(place) == before


@pytest.mark.parametrize("words", ["run={}", "runs={}", "where=seed=1", "where=size>0"])
def test_only_what_was_set_aside_is_deleted_for_ever_by_the_same_line(words, place, ids, capsys):
    word, before = words.format(ids[0]), _tree(place)
    assert main(["rm", word, "forever=true"]) == 2
    assert "superseded" in capsys.readouterr().err
    assert _tree(place) == before
    aside = {one["run"] for one in _json(capsys, "rm", word)["runs"]}
    assert ids[0] in aside
    assert {one["run"] for one in _json(capsys, "rm", word, "forever=true", "dry_run=true")["runs"]} == aside
    assert len(list((place / "outputs" / "superseded").iterdir())) == len(aside)
    assert {one["run"] for one in _json(capsys, "rm", word, "forever=true")["runs"]} == aside
    assert {path.name for path in (place / "outputs" / "runs").glob("r*")} == set(ids) - aside


def test_a_run_is_set_aside_whole_then_erased_and_the_register_stays_true(place, ids, capsys):
    outputs = place / "outputs"
    record = (outputs / "runs" / ids[0] / "record.json").read_bytes()
    _json(capsys, "rm", f"run={ids[0]}")
    assert not (outputs / "runs" / ids[0]).exists()
    assert (outputs / "superseded" / f"{ids[0]}-1" / "record.json").read_bytes() == record
    assert Chain.of(outputs).histories[ids[0]].times_set_aside == 1
    done = _json(capsys, "rm", f"run={ids[0]}", "forever=true")
    assert done["freed"] > len(record)
    assert list((outputs / "superseded").iterdir()) == []
    chain = Chain.of(outputs)
    assert (chain.broken, chain.unreadable) == ([], [])
    assert ids[0] in chain.ended
    assert main(["verify", f"run={ids[2]}"]) in (0, 1)
    notes = ablab.open("outputs").study("tried.yaml").document.notes
    assert f"runs that had ended were set aside (rerun or rm): {ids[0]}" in notes


def test_what_was_set_aside_comes_back_as_it_was(place, ids, capsys):
    def runs():
        return {path: content for path, content in _tree(place / "outputs" / "runs").items() if path.suffix != ".lock"}

    before, notes = runs(), ablab.open("outputs").study("tried.yaml").document.notes
    _json(capsys, "rm", "where=study=tried seed=1")
    assert runs() != before
    _json(capsys, "rm", "where=study=tried seed=1", "undo=true", "dry_run=true")
    assert runs() != before
    _json(capsys, "rm", "where=study=tried seed=1", "undo=true")
    assert runs() == before
    chain = Chain.of(place / "outputs")
    assert (chain.broken, chain.unreadable, chain.histories[ids[0]].times_set_aside) == ([], [], 0)
    assert ablab.open("outputs").study("tried.yaml").document.notes == notes
    assert main(["verify", f"run={ids[0]}"]) == 0


def test_a_run_that_was_edited_while_it_lay_aside_is_not_known_when_it_comes_back(place, ids, capsys):
    _json(capsys, "rm", f"run={ids[0]}")
    record = place / "outputs" / "superseded" / f"{ids[0]}-1" / "record.json"
    record.write_text(record.read_text().replace('"seed": 1', '"seed": 2', 1) + " ")
    _json(capsys, "rm", f"run={ids[0]}", "undo=true")
    assert not Chain.of(place / "outputs").histories[ids[0]].has_ended
    assert main(["verify", f"run={ids[0]}"]) == 1


def test_nothing_comes_back_over_a_run_that_was_begun_again(place, ids, capsys):
    runs = place / "outputs" / "runs"
    _json(capsys, "rm", f"run={ids[0]}")
    (runs / ids[0]).mkdir()
    (runs / ids[0] / "recipe.yaml").write_text("seed: 1")
    before = _tree(place)
    assert main(["rm", f"run={ids[0]}", "undo=true"]) == 2
    assert "lies in" in capsys.readouterr().err
    assert main(["rm", f"run={ids[0]}", "undo=true", "forever=true"]) == 2
    assert _tree(place) == before


def test_a_run_that_goes_on_is_refused_and_so_are_those_beside_it(place, ids, capsys):
    folder = ablab.open("outputs").run(ids[3]).folder
    with locked(folder):
        assert main(["rm", "where=layerdrop.encoder>=0"]) != 0
    assert "being worked on" in capsys.readouterr().err
    assert len(ablab.open("outputs").runs()) == 4


def test_nothing_outside_the_store_is_removed(place, ids, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    os.rename(place / "outputs" / "runs" / ids[0], elsewhere)
    (place / "outputs" / "runs" / ids[0]).symlink_to(elsewhere)
    before = _tree(tmp_path)
    for words in ([f"run={elsewhere}"], [f"run={ids[0]}"], [f"run={ids[0]}", "forever=true"], ["run=../elsewhere"]):
        assert main(["rm", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert _tree(tmp_path) == before


def test_a_damaged_recipe_keeps_no_other_run_from_being_told_of_or_set_aside(place, ids, capsys):
    (place / "outputs" / "runs" / ids[0] / "recipe.yaml").write_text("[")
    assert "recipe.yaml" in _json(capsys, "show", f"run={ids[0]}")["damage"]
    assert _json(capsys, "rm", f"run={ids[1]}")["runs"][0]["run"] == ids[1]


def test_runs_are_found_and_listed_by_study_arm_and_day(place, ids, capsys):
    listed = _json(capsys, "ls")["runs"]
    assert listed[0]["id"] == ids[3], "what goes on stands first"
    ended = [one["ended"] for one in listed if one["ended"]]
    assert ended == sorted(ended, reverse=True), "then the newest"
    study, day = listed[-1]["study"], ended[0][:10]

    def found(where):
        return {one["id"] for one in _json(capsys, "ls", f"where={where}")["runs"]}

    assert found(f"study={study} ended>={day[:7]}") == found(f"study={study} state=finished")
    assert found(f"ended={day}") == {one["id"] for one in listed if (one["ended"] or "").startswith(day)}
    assert ids[2] in found("arm=layerdrop=0.1")
    assert found("ended<2001-01-01") == set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ls", "where=ended<yesterday"), "allowed: a day or month, such as ended<2026-11-25"),
        (("rm", "older=30"), "older=30"),
        (("rm", "older=9999999999d"), "older=9999999999d"),
        (("rm", "older=30d", "run=r1"), "older=30d: runs are named; allowed: alone, or with where="),
        (("rm", "older=20000d"), "older=20000d: no run in"),
        (
            ("ls", "study=mine"),
            "no such key; allowed: by, columns, format, limit, outputs, smoke, sort, where; a condition "
            "is typed where='study=mine'",
        ),
    ],
)
def test_days_are_checked(place, ids, capsys, words, said):
    assert main(list(words)) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_old_runs_are_set_aside_with_what_they_take(place, ids, capsys):
    days = dict(zip(ids[:3], ("2020-01-02", "2020-02-02", date.today().isoformat()), strict=True))
    for run, day in days.items():
        path = place / "outputs" / "runs" / run / "record.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"ended": f"{day}T03:04:05Z"}))
    assert main(["rm", "older=30d", "dry_run=true"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^2 runs, [0-9.]+ kB in all$", said, flags=re.MULTILINE)
    assert ids[2] not in said
    told = _json(capsys, "rm", "older=30d", "where=ended<2020-02", "dry_run=true")
    assert [one["run"] for one in told["runs"]] == ids[:1]


def test_a_table_of_runs_tells_study_arm_parameters_and_minutes(place, ids):
    row = ablab.open("outputs").run(ids[2]).row()
    assert (row["study"], row["arm"]) == (ablab.open("outputs").studies[0], "layerdrop=0.1")
    assert row["parameters"] > 0
    assert row["minutes"] >= 0


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (86399, "23 h"), (86400, "1 d")]
)
def test_an_age_is_in_the_largest_unit_that_fits(seconds, said):
    ended = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    assert age(ended.isoformat()) == said


def test_a_list_of_unchanged_runs_does_not_change(place, ids, capsys):
    """The board shows it again and again, and draws anew what differs; an age is computed where it is asked for."""
    first, later = ([one.cells for one in listing(ablab.open("outputs").runs()).runs] for _ in range(2))
    assert first == later
    assert not any("age" in cells for cells in first)
    assert main(["ls", "columns=id,age"]) == 0
    assert re.search(r"^r\w{11}  \d+ (d|h|min|s)$", capsys.readouterr().out, re.M)


def test_what_was_set_aside_on_another_disk_comes_back(place, ids, capsys, tmp_path):
    aside = place / "outputs" / "superseded"
    (tmp_path / "disk").mkdir()
    aside.symlink_to(tmp_path / "disk")
    _json(capsys, "rm", f"run={ids[0]}")
    assert list((tmp_path / "disk").iterdir())
    _json(capsys, "rm", f"run={ids[0]}", "undo=true")
    assert main(["verify", f"run={ids[0]}"]) == 0
    capsys.readouterr()
    (place / "outputs" / "runs").rename(tmp_path / "runs")
    (place / "outputs" / "runs").symlink_to(tmp_path / "runs")
    _json(capsys, "rm", f"run={ids[0]}")


def test_a_run_by_its_path_is_of_the_store_in_the_path_though_its_runs_lie_on_another_disk(
    place, ids, capsys, tmp_path
):
    (tmp_path / "disk").mkdir()
    (place / "outputs" / "runs").rename(tmp_path / "disk" / "runs")
    (place / "outputs" / "runs").symlink_to(tmp_path / "disk" / "runs")
    _json(capsys, "rm", f"run=outputs/runs/{ids[0]}")
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["runs"]
    _json(capsys, "rm", f"run={ids[0]}", "undo=true")
    assert main(["verify", f"run=outputs/runs/{ids[0]}"]) == 0


def test_what_was_set_aside_is_not_set_aside_again(place, ids, capsys):
    aside = _json(capsys, "rm", f"run={ids[0]}")["runs"][0]["to"]
    assert main(["rm", f"run={aside}"]) == 2
    assert capsys.readouterr().err == (
        f"error: {ids[0]}-1: was set aside already; allowed: with undo=true or forever=true\n"
    )
    assert Path(aside).is_dir()


def test_one_run_in_two_stores_is_two_runs(place, ids, capsys):
    shutil.copytree(place / "outputs", "copy")
    edited = min(Path(f"copy/runs/{ids[0]}/evaluations").glob("*.json"))
    edited.write_text(edited.read_text() + " ")
    for runs in ([f"copy/runs/{ids[0]}"], [f"copy/runs/{ids[0]}", f"outputs/runs/{ids[0]}"]):
        assert main(["verify", f"runs={','.join(runs)}"]) == 1
        assert "is not what was entered in the register" in capsys.readouterr().out
    assert main(["report", f"runs=copy/runs/{ids[0]},outputs/runs/{ids[0]}"]) == 2
    assert "2 runs are seed 1 of one recipe; allowed: one of them" in capsys.readouterr().err


def test_a_run_that_has_lost_its_recipe_is_damaged_and_not_gone(place, ids, capsys):
    (place / "outputs" / "runs" / ids[1] / "recipe.yaml").unlink()
    assert main(["ls"]) == 0
    assert f"{ids[1]}" in (said := capsys.readouterr().out)
    assert f"damaged: {ids[1]}" in said
    assert "recipe.yaml: is gone" in str(ablab.open("outputs").run(ids[1]).damage)
    assert main(["verify", f"run={ids[1]}"]) == 1
    assert "cannot be read as a recipe" in capsys.readouterr().out


def test_a_path_with_a_comma_is_one_run(place, ids, capsys):
    (place / "outputs").rename("one, two")
    assert main(["verify", f"run=one, two/runs/{ids[0]}"]) == 0


def test_verify_names_the_key_that_was_typed(place, ids, capsys):
    for typed in (f"run={ids[3]}", f"runs={ids[3]}", "run=", "runs=,"):
        assert main(["verify", typed]) == 2
        assert capsys.readouterr().err.startswith(f"error: {typed.partition('=')[0]}=")


def test_a_damaged_run_keeps_no_other_from_being_verified(place, ids, capsys):
    (place / "outputs" / "runs" / ids[1] / "recipe.yaml").write_text("x")
    assert main(["verify", f"runs={ids[0]},{ids[1]}"]) == 1
    said = capsys.readouterr().out
    assert "cannot be read as a recipe" in said
    assert "links of 1 run checked: none is broken" in said


@pytest.mark.parametrize("text", ["seed==1", "seed!==1", "seed=<2", "seed=>2"])
def test_two_signs_are_no_condition(place, ids, capsys, text):
    assert main(["rm", f"where={text}", "dry_run=true"]) == 2
    assert "allowed: key=value, or with !=" in capsys.readouterr().err


def test_runs_are_sorted_by_age(place, ids, capsys):
    for sort, same in (("age", "-ended"), ("-age", "ended")):
        listed = []
        for each in (sort, same):
            assert main(["ls", f"sort={each}", "columns=id", "format=csv"]) == 0
            listed.append(capsys.readouterr().out)
        assert listed[0] == listed[1]


def test_a_column_with_a_level_called_nan_is_sorted():
    assert sorted(["3", "nan", "1", "zero", "nan", "2"], key=_by_number) == ["1", "2", "3", "nan", "nan", "zero"]


def test_lines_to_type_name_a_run_of_another_store_by_its_path(place, ids, capsys):
    shutil.copytree(place / "outputs", "other store")
    for run, outputs in ((f"other store/runs/{ids[0]}", None), (ids[0], "other store")):
        assert main(["show", f"run={run}", *([f"outputs={outputs}"] if outputs else [])]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: ")]
        assert main(shlex.split(line)[2:]) == 0
        capsys.readouterr()
    _json(capsys, "rm", f"run=other store/runs/{ids[0]}", "outputs=other store")
    _json(capsys, "rm", f"run=other store/runs/{ids[0]}", "outputs=other store", "undo=true")
