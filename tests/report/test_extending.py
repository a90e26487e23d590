"""Seeds are added while claims are open, and only then; what was looked at stays what it was."""

import io
import json
from dataclasses import replace

import pytest

from ablab.commands.study import study as study_command
from ablab.errors import UserError
from ablab.judge.claims import judge
from ablab.judge.extending import next_seeds
from ablab.judge.flaws import checked
from ablab.judge.selection_of_study import of_study
from ablab.judge.setup import setup
from ablab.study.definition import define
from ablab.study.extending import close, extend, extensions
from ablab.sweep.sweep import Policy, sweep
from ablab.tracking.console import Console
from tests.report.synthetic import claims_of, corpus, translated, write

EXPERIMENT = """
question: Does LayerDrop help?
common: [smoke=false, logger=none]
factors: {{layerdrop: [0, 0.1, 0.2]}}
design: one_at_a_time
seeds: {{from: 3, to: {to}{more}}}
claims:
  - {{arm: layerdrop=0.1, expect: less}}
  - {{arm: layerdrop=0.2, expect: {expect}, margin: 3}}
"""
SHARED = """
question: Does LayerDrop help, and does a pruned model notice?
common: [smoke=false, logger=none]
design: arms
arms: {plain: [], lowest: [pruning=first], dropped: [layerdrop=0.1]}
seeds: {from: 3, to: 6}
claims:
  - {arm: dropped, expect: greater, margin: 3}
  - {arm: dropped, baseline: lowest, expect: greater, margin: 3}
"""
ERRORS = {"plain": 0.3, "lowest": 0.3, "dropped": 0.3, "layerdrop=0": 0.3, "layerdrop=0.1": 0.6, "layerdrop=0.2": 0.24}
NOISE = {
    "plain": 0.01,
    "lowest": 0.01,
    "dropped": 0.015,
    "layerdrop=0": 0.01,
    "layerdrop=0.1": 0.01,
    "layerdrop=0.2": 0.015,
}


@pytest.fixture
def words(tmp_path):
    def made(to=6, more="", expect="greater"):
        (tmp_path / "seq.yaml").write_text(EXPERIMENT.format(to=to, more=more, expect=expect))
        return (f"experiment={tmp_path / 'seq.yaml'}", f"outputs={tmp_path / 'outputs'}")

    return made


def swept(words, *, most=1000):
    """The sweep of these words, whose runs are made up; it is killed before more than so many. Return what it said."""
    left = [most]

    def launch(board, cells, alone, console, on_end=None):
        name, references = corpus(board.study.outputs)
        for cell in cells:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            # A stream for each run: its score depends on nothing else.
            import random

            error = ERRORS[cell.arm] + random.Random(f"{cell.arm} {cell.seed}").gauss(0, NOISE[cell.arm])
            write(cell, translated(references, error, (cell.arm, cell.seed)), references, name, pruned=False)
        return True

    console = Console(bars=False)
    console.rich.file = io.StringIO()
    try:
        code = sweep(define(words), launch, Policy(), console)
    except KeyboardInterrupt:
        code = None
    return code, console.rich.file.getvalue().splitlines()


def seeds(words):
    study = define(words)
    return {arm.name: len(study.cells_of(arm.name)) for arm in study.arms}


def test_arms_of_open_claims_get_seeds_and_others_none(words):
    line = words()
    code, said = swept(line)
    assert code == 0
    found = seeds(line)
    assert found["layerdrop=0.1"] < found["layerdrop=0.2"] == found["layerdrop=0"] == 6
    first, second = claims_of(of_study(define(line)))
    assert (first.outcome, first.followed.state, first.n) == ("supported", "settled", found["layerdrop=0.1"])
    assert (second.outcome, second.followed.state, second.n) == ("inconclusive", "spent", 6)
    assert "No seed is added: no claim is open" in said
    assert f"settled by the look at {first.n} of at most 6 seeds" in first.words


def test_seeds_that_have_judged_before_are_left_out(words):
    """Whoever chose a claim by the results of seeds 1 to 6 judges it by others."""
    line = words(more=", after: 6")
    code, said = swept(line)
    assert code == 0
    study = define(line)
    found = {arm.name: [cell.seed for cell in study.cells_of(arm.name)] for arm in study.arms}
    assert 3 <= len(found["layerdrop=0.1"]) < len(found["layerdrop=0"])
    assert all(list(range(7, 7 + len(own))) == own for own in found.values())
    first, second = claims_of(of_study(study))
    assert (first.n, second.n) == (len(found["layerdrop=0.1"]), len(found["layerdrop=0"]))
    assert (first.outcome, first.followed.state) == ("supported", "settled")
    assert f"settled by the look at {first.n} of at most 6 seeds" in first.words
    assert not first.exploratory
    assert any("more up to 6" in line for line in said), said


def test_other_seeds_than_those_registered_are_a_departure(words, tmp_path):
    line = words()
    swept(line)
    path = tmp_path / "seq.yaml"
    path.write_text(path.read_text().replace("to: 6}", "to: 6, after: 6}"))
    selection = of_study(define(line))
    assert selection.departed == "seeds 1 to 6 of the first launch are left out"
    swept(line)
    selection = of_study(define(line))
    assert all(claim.exploratory for claim in judge(selection))


@pytest.mark.parametrize(
    ("seeds", "now"),
    [("{from: 3, to: 5}", "after 3 to 5 seeds"), ("[1, 2, 3, 4, 5, 6]", "once")],
)
def test_other_looks_than_those_registered_are_a_departure(words, tmp_path, seeds, now):
    """Boundaries that are chosen once results are known would hold no error rate."""
    line = words()
    swept(line)
    path = tmp_path / "seq.yaml"
    path.write_text(path.read_text().replace("{from: 3, to: 6}", seeds))
    selection = of_study(define(line))
    assert f"claims are looked at {now}, and were to be after 3 to 6 seeds at the first launch" in selection.departed
    assert selection.folder.name.startswith("seq-looks-")
    assert all(claim.exploratory for claim in judge(selection))


def test_a_claim_about_a_metric_that_is_gone_cannot_be_tested(words):
    """One of the user's own, whose file was deleted with the claim: the claim was registered."""
    line = words()
    swept(line)
    selection = of_study(define(line))
    gone = selection.claims[0].model_copy(update={"metric": "my_metric"})
    for looks in (selection.looks, None):
        claim = judge(replace(selection, looks=looks, claims=[*selection.claims, gone]))[-1]
        assert claim.outcome == "not testable"
        assert "have no my_metric" in claim.reason


def test_a_claim_stands_when_its_arm_is_united_with_another(words, tmp_path):
    """An arm that came later has the same runs under another name."""
    path = tmp_path / "seq.yaml"
    line = words()
    arms = "arms: {layerdrop=0: [], layerdrop=0.1: [layerdrop=0.1], layerdrop=0.2: [layerdrop=0.2]}"
    path.write_text(
        path.read_text().replace("factors: {layerdrop: [0, 0.1, 0.2]}", arms).replace("one_at_a_time", "arms")
    )
    swept(line)
    before = judge(of_study(define(line)))
    path.write_text(path.read_text().replace(arms, arms[:-1] + ", again: [layerdrop=0]}"))
    found = judge(of_study(define(line)))
    assert [claim.baseline for claim in found] == ["layerdrop=0 = again"] * 2
    assert [(one.outcome, one.n, one.exploratory) for one in found] == [
        (one.outcome, one.n, one.exploratory) for one in before
    ]


def test_what_is_killed_goes_on_with_the_same_looks(words, tmp_path):
    whole = words()
    swept(whole)
    expected = [line.model_dump() for line in judge(of_study(define(whole)))]
    looks = [one.seeds for one in extensions(define(whole).folder)]
    again = (whole[0], f"outputs={tmp_path / 'killed'}")
    for most in (4, 7, 2, 1, 1000):
        code, _ = swept(again, most=most)
    assert code == 0
    assert [line.model_dump() for line in judge(of_study(define(again)))] == expected
    assert [one.seeds for one in extensions(define(again).folder)] == looks


def test_a_study_that_has_ended_is_left_as_it_is(words):
    line = words()
    swept(line)
    before = seeds(line)
    code, said = swept(line)
    assert (code, seeds(line)) == (0, before)
    assert not [one for one in said if "seed is added" in one or one.startswith("Added: ")]


def test_a_study_that_has_ended_goes_on_if_its_budget_grows(words):
    swept(words(more=", hours: 0.05"))
    longer = words(more=", hours: 9")
    code, said = swept(longer)
    assert code == 0
    assert "No seed is added: no claim is open" in said
    assert seeds(longer)["layerdrop=0.2"] == 6
    assert [bool(one.ended) for one in extensions(define(longer).folder)] == [True, False, False, False, True]


def test_what_comes_next_is_decided_without_writing(words, tmp_path):
    swept(words(more=", hours: 0.05"))
    study = define(words(more=", hours: 9"))
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")}
    found = next_seeds(study)
    assert found.wanted["layerdrop=0.2"] == found.now["layerdrop=0.2"] + 1 == 4
    assert found.ended is None
    assert {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")} == before


def test_of_two_sweeps_that_look_at_once_one_look_counts(words):
    line = words()
    swept(line, most=9)
    study = define(line)
    known = extensions(study.folder)
    extend(study, dict.fromkeys(seeds(line), 4), known)
    extend(study, dict.fromkeys(seeds(line), 4), known)
    assert len(extensions(study.folder)) == len(known) + 1


def test_runs_that_are_given_up_end_it_with_the_looks_so_far(words, monkeypatch):
    line = words()
    swept(line, most=12)
    open_before = [claim for claim in judge(of_study(define(line))) if claim.followed.state == "open"]
    assert open_before
    with monkeypatch.context() as killed:
        killed.setattr("ablab.study.extending._end_looks", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            close(define(line), "the machine is gone")
    assert of_study(define(line)).ended is None
    close(define(line), "typed again")
    with pytest.raises(UserError, match="has ended or was given up"):
        close(define(line), "once more")
    selection = of_study(define(line))
    assert selection.ended == "runs were given up: the machine is gone"
    found = [claim for claim in judge(selection) if claim.arm in {one.arm for one in open_before}]
    assert {claim.outcome for claim in found} == {"inconclusive"}
    # Its boundaries hold the error at any stop.
    assert {claim.exploratory for claim in judge(selection)} == {None}


def test_what_was_given_up_gets_no_seeds_from_the_same_line_and_is_not_waited_for(words, capsys, monkeypatch):
    line = words()
    swept(line, most=8)
    close(define(line), "the machine is gone")
    monkeypatch.setattr("ablab.commands.study.time.sleep", raising(AssertionError))
    study_command([*line, "watch=true"])
    assert "Next: " not in capsys.readouterr().out
    code, said = swept(line)
    assert (code, set(seeds(line).values())) == (0, {3})
    assert not [one for one in said if one.startswith("Added: ")]
    assert of_study(define(line)).ended == "runs were given up: the machine is gone"


def raising(error):
    def then(*_):
        raise error

    return then


def test_hours_end_it_and_leave_open_claims_inconclusive(words):
    line = words(more=", hours: 0.05")  # 180 s, where each run takes 100
    code, said = swept(line)
    assert code == 0
    assert "No seed is added: its runs took 0." in "\n".join(said)
    assert set(seeds(line).values()) == {3}
    assert "inconclusive" in {claim.outcome for claim in judge(of_study(define(line)))}


def test_a_seed_that_is_missing_hides_those_after_it(words):
    line = words()
    swept(line)
    study = define(line)
    gone = next(cell for cell in study.cells_of("layerdrop=0") if cell.seed == 5)
    (gone.planned.folder.path / "record.json").rename(gone.planned.folder.path / "gone.json")
    _, second = judge(of_study(define(line)))
    assert second.n == 4


def test_before_the_first_look_nothing_is_read(words):
    line = words()
    swept(line, most=5)
    for claim in judge(of_study(define(line))):
        assert claim.outcome == "provisional"
        assert claim.difference is None


def test_the_status_says_where_claims_stand(words, capsys):
    line = words()
    study_command(list(line))
    assert "noise unknown" in capsys.readouterr().out
    swept(line)
    study_command(list(line))
    out = capsys.readouterr().out
    assert "Where the claims stand:" in out
    (first, second) = (line for line in out.splitlines() if " against layerdrop=0 in test BLEU" in line)
    assert "  supported  " in first
    assert "  not settled  " in second
    assert "  6 of 6  " in second
    assert "No seed is added any more: no claim is open" in out


def test_runs_that_arms_share_cost_once(tmp_path, capsys):
    (tmp_path / "shared.yaml").write_text(SHARED)
    line = (f"experiment={tmp_path / 'shared.yaml'}", f"outputs={tmp_path / 'outputs'}")
    swept(line, most=9)  # all tasks of the first look
    study_command(list(line))
    assert "At most 6 more runs" in capsys.readouterr().out
    assert setup(of_study(define(line))).fixed_runs == 12


def test_the_register_knows_each_extension(words):
    line = words()
    swept(line)
    study = define(line)
    entered = [json.loads(text) for text in (study.outputs / "register.jsonl").read_text().splitlines()]
    assert [one["what"] for one in entered].count("extended") == len(extensions(study.folder))


def test_an_extension_that_was_edited_is_said_and_one_that_is_no_extension_refused(words):
    line = words()
    swept(line)
    path = define(line).folder / "extended.json"
    entries = json.loads(path.read_text())
    entries[-1]["seeds"]["layerdrop=0.2"] = 4
    path.write_text(json.dumps(entries))
    assert checked(of_study(define(line))).flaws == ["extended.json is not what was entered: it was edited"]
    path.write_text("[{}]")
    with pytest.raises(UserError, match="cannot be read as extensions of the study"):
        define(line)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("claims:", "error: moderated\nclaims:"), "error=moderated: seeds are added"),
        (("expect: less}", "expect: less, metric: failures}"), "shares of failures are judged once"),
        (("{from: 3, to: 6}", "{from: 3, to: 3}"), "seeds.to=3: allowed: "),
        (("{from: 3, to: 6}", "{from: 5, to: 4}"), "allowed: to above from, which is 5"),
        (("{from: 3, to: 6}", "{from: 3}"), "seeds.to: missing"),
        (("{from: 3, to: 6}", "{from: 3, to: 6, after: -1}"), "seeds.after=-1: allowed: "),
    ],
)
def test_what_cannot_be_followed_is_refused(words, tmp_path, change, expected):
    line = words()
    path = tmp_path / "seq.yaml"
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(UserError, match=expected.replace(".", r"\.")):
        define(line)


def test_seeds_cannot_be_typed(words):
    with pytest.raises(UserError, match="adds its seeds itself"):
        define((*words(), "seed=1,2"))
