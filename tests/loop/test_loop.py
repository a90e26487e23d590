"""The referee of a loop: what is kept, what costs nothing, and what is refused."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from ablab.commands.cli import main
from ablab.errors import DIVERGED, DROPPED, NULL, RUN_FAILED
from ablab.judge.loop import Left, left_of, outcome_line
from ablab.report.loop import _markdown, _markdown_page, floor_line
from ablab.study.loop import read_loop
from tests.loop.loops import LOOP, TRAIN, book, propose, started


def test_a_loop_keeps_what_helps_and_confirms_it_on_the_sealed_set(folder, capsys):
    assert propose("lr=0.2") == 0
    assert propose("width=7") == DROPPED
    assert propose("width=16") == 0
    said = capsys.readouterr().out
    assert "1  lr=0.2: kept: val_loss -0." in said
    assert "Stack: lr=0.2 + width=16" in said
    assert [proposal.outcome for proposal in book().proposals] == ["kept", "dropped", "kept"]
    assert [proposal.stack for proposal in book().proposals] == [[], [1], [1]], "kept changes are the next baseline"
    assert [floor.stack for floor in book().floors] == [[], [1]]
    assert main(["confirm", "format=json", "hydra.launcher.jobs=4"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stands"] == ["lr=0.2", "width=16"]
    page, answer = Path(told["page"]), "Confirmed: the 2 kept changes together are better than the first baseline"
    assert page.with_suffix(".md").read_text().splitlines()[2].startswith(answer)
    shown = page.read_text()
    assert f"<h1>{answer}" in shown
    assert "; lr=0.2, width=16 stand by themselves." in shown
    assert "6 fresh seeds of all kept changes, 2 of each other arm" in shown
    assert shown.count('<path class="mean"') == 3, "the stack against the baseline, and without each change"
    sealed = [json.loads(path.read_text())["selected"]["scores"] for path in Path("outputs/runs").glob("*/record.json")]
    assert sum(score["val_loss"] > 4 for score in sealed) == (3 + 3) * 2, "only the confirmation saw the sealed set"
    drawn = [seed for floor in book().floors for seed in floor.seeds] + book().confirmed[0].seeds
    drawn += [seed for proposal in book().proposals for seed in proposal.seeds]
    assert len(drawn) == len(set(drawn)), "no seed is used twice"
    assert not set(drawn) & set(range(1000)), "and nobody would guess them"
    runs = len(started())
    assert main(["confirm"]) == 0
    assert main(["loop"]) == 0
    assert len(started()) == runs
    said = capsys.readouterr().out
    assert "nothing was run" in said
    assert f"On {book().confirmed[0].at[:10]}: Confirmed: " in said


def test_a_confirmation_keeps_the_rules_of_its_day(folder, capsys):
    """An edit of them, or of the program, asks for another confirmation, and leaves no false word on the page."""
    assert propose("lr=0.2") == 0
    assert main(["confirm", "hydra.launcher.jobs=4"]) == 0
    page, first = Path("outputs/reports/loop/confirmation.md"), book().confirmed[0]
    file, runs = Path("experiments/loop.yaml"), len(started())
    file.write_text(file.read_text().replace("margin: 0.05", "margin: 0.06"))
    assert main(["confirm"]) == 0
    assert len(started()) == runs, "a margin decides nothing of it"
    assert "6 fresh seeds of all kept changes, 2 of each other arm" in page.read_text()
    file.write_text(file.read_text().replace("{seeds: 2, sealed: [seen=test]}", "{seeds: 3, error: 0.01}"))
    assert main(["confirm", "hydra.launcher.jobs=4"]) == 0
    assert "9 fresh seeds of all kept changes, 3 of each other arm" in page.read_text()
    assert "This is confirmation 2 of this loop, and each had an error of its own: over all of them" in page.read_text()
    assert "is up to 6 %" in page.read_text()
    assert book().confirmed[0] == first
    Path("train.py").write_text(TRAIN.replace("0.5 * (lr > 0.1)", "-0.5 * (lr > 0.1)"))
    assert main(["confirm", "hydra.launcher.jobs=4"]) == 0
    assert "Not confirmed" in capsys.readouterr().out
    assert len(book().confirmed) == 3
    former = book().model_copy(update={"confirmed": [first.model_copy(update={"rules": None, "identity": ""})]})
    assert former.rules_of(former.confirmed[0]).seeds == 2, "older ledgers have them by the time of their file"


@pytest.mark.slow
def test_a_change_whose_place_another_has_taken_is_not_compared_with_itself(folder, capsys):
    Path("train.py").write_text(TRAIN.replace("0.3 * (width > 8)", "0.3 * (width > 8) - 0.3 * (width > 20)"))
    for change in ("width=16", "lr=0.2", "width=32"):
        assert propose(change) == 0
    capsys.readouterr()
    assert main(["confirm", "format=json", "hydra.launcher.jobs=4"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["idle"] == ["width=16"]
    assert [one["name"] for one in told["contrasts"]] == ["the first baseline", "without lr=0.2", "without width=32"]
    page = Path(told["page"]).with_suffix(".md").read_text()
    assert "Confirmed: the 3 kept changes together" in page
    assert "width=16 changes nothing any more" in page


def test_what_changes_nothing_and_what_was_judged_before_cost_nothing(folder, capsys):
    assert propose("width=7") == DROPPED
    runs = len(started())
    assert propose("width=8") == NULL
    assert propose("width=7", because="once more") == DROPPED
    assert propose("task.values.width=7", because="in other words") == DROPPED
    assert len(started()) == runs
    assert len(book().proposals) == 2
    assert "nothing was run" in capsys.readouterr().out


def test_each_change_that_changes_nothing_is_answered_with_its_own_words(folder, capsys):
    assert [propose("width=8"), propose("lr=0.1")] == [NULL, NULL]
    capsys.readouterr()
    assert propose("lr=0.1", because="again") == NULL
    assert "lr=0.1" in capsys.readouterr().out
    assert [each.words for each in book().proposals] == [["width=8"], ["lr=0.1"]]


def test_a_group_word_seals_all_that_it_sets(folder, capsys):
    """Before anything is trained: the settings of the group, and those that it sets in others."""
    kept = {"common: [lr=0.1, width=8, seen=dev, logger=none]": "common: [smoke=true, logger=none]"}
    text = re.sub(r"(?m)^(command|inputs|scores): .*\n", "", LOOP).replace("val_loss", "valid_loss")
    text = text.replace(*next(iter(kept.items()))).replace("[seen=test]", "[decoding=greedy, norm=fixnorm]")
    Path("experiments/loop.yaml").write_text(text)
    for word, key in (
        ("decoding=greedy", "decoding."),
        ("decoding.beam_size=2", "decoding.beam"),
        ("norm=fixnorm", "embedding."),
        ("embedding=fixnorm", "embedding."),
    ):
        assert main(["try", word, "because=x"]) == 2
        assert re.search(f"{re.escape(key)}[a-z_]* is sealed until the confirmation", capsys.readouterr().err), word
    assert not Path("outputs/runs").exists()


def test_a_floor_without_noise_judges_nothing(folder, capsys):
    Path("train.py").write_text(re.sub("random.Random\\(.*?\\)", "random.Random(1)", TRAIN))
    assert propose("lr=0.2") == 2
    assert "all 3 runs of the floor have one score, so that there is no noise" in capsys.readouterr().err
    assert [proposal.outcome for proposal in book().proposals] == ["open"]


@pytest.mark.parametrize(
    ("script", "said"), [("import sys; sys.exit('boom')", "failed"), (TRAIN.replace("lr > 9", "lr > 0"), "diverged")]
)
def test_a_floor_that_cannot_be_had_is_no_refusal(folder, capsys, script, said):
    Path("train.py").write_text(script)
    assert propose("lr=0.2") == 1
    assert f"a run of the floor {said}" in capsys.readouterr().err


def test_a_floor_has_its_noise_in_the_digits_that_show_it():
    measure = SimpleNamespace(title="loss", digits=4)
    assert "loss 0.00001257 ± 0.00000050 over 3" in floor_line([1.21e-5, 1.25e-5, 1.31e-5], measure, None, None)
    assert "loss 2.0000 ± 1.0000 over 3" in floor_line([1, 2, 3], measure, None, None)
    assert "loss 2.0000 ± 0.0000 over 2" in floor_line([2, 2], measure, None, None)


@pytest.mark.parametrize("because", ["", " "])
def test_a_change_needs_a_reason(folder, because, capsys):
    assert propose("lr=0.2", because=because) == 2
    assert "because" in capsys.readouterr().err
    assert not Path("outputs/studies/loop/loop.json").exists()


def test_failures_and_divergence_are_outcomes(folder, capsys):
    assert propose("width=100") == RUN_FAILED
    assert propose("lr=10") == DIVERGED
    assert "no memory for it" in capsys.readouterr().out
    assert [proposal.outcome for proposal in book().proposals] == ["failed", "diverged"]
    assert all(len(proposal.seeds) == 1 for proposal in book().proposals)


def test_what_failed_in_a_floor_or_a_confirmation_is_tried_again(folder, capsys):
    """Their seeds are drawn before, so that nothing is chosen by it."""
    for line, done in ((["try", "lr=0.2", "because=it should help", "hydra.launcher.jobs=4"], 0), (["confirm"], 0)):
        Path("pause.txt").rename("gone.txt")
        assert main(line) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "the same line, typed again, tries it again" in said
        Path("gone.txt").rename("pause.txt")
        assert main(line) == done


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["seed=3"], "the referee draws the seeds"),
        (["lr=0.2", "rerun=true"], "rerun=true: it is about one launch"),
        (["task.values.seen=test"], "sealed until the confirmation"),
        (["seen=test"], "sealed until the confirmation"),
        (["lr"], "no change; allowed: key=value"),
        (["task.scores={val_loss:{better:higher}}"], "by what it is judged, experiments/loop.yaml says"),
        (["task.command=[python,train.py,'{lr}','{width}','{seed}','{result}',test]"], "what runs, and by what it is"),
        (["task.inputs=[]"], "what runs, and by what it is"),
        ([], "no change was named"),
        (["depth=3"], "no word of command has {depth}"),
        (["hydra.launcher.jbs=2", "lr=1"], "no such setting"),
    ],
)
def test_bad_proposals_are_refused_before_anything_is_written(folder, words, reason, capsys):
    assert propose(*words) == 2
    assert reason in capsys.readouterr().err
    assert not Path("outputs/studies/loop/loop.json").exists()


@pytest.mark.slow
def test_a_study_on_the_seeds_of_a_floor_trains_no_baseline(folder, capsys):
    assert main(["floor", "hydra.launcher.jobs=4"]) == 0
    (floor,) = book().floors
    assert f"seeds: {floor.seeds}" in capsys.readouterr().out
    of_a_loop = ("metric", "margin", "floor", "looks", "stop", "budget", "confirmation")
    study = [line for line in LOOP.splitlines() if line.partition(":")[0] not in of_a_loop]
    more = ["metric: val_loss", f"seeds: {floor.seeds}", "factors: {width: [8, 7]}"]
    Path("experiments/widths.yaml").write_text("\n".join([*study, *more]))
    assert main(["train", "-m", "experiment=widths", "hydra.launcher.jobs=4"]) == 0
    assert len(started()) == 2 * len(floor.seeds), "only those of the other width were trained"


def test_a_change_without_noise_is_not_kept(folder, capsys):
    """The next floor would have one score, by which nothing could be judged, and nobody could take the change back."""
    text = TRAIN.replace("random.Random(seed).gauss(0, 0.01)", "(lr < 1) * random.Random(seed).gauss(0, 0.01)")
    Path("train.py").write_text(text)
    assert propose("lr=1.6") == DROPPED
    assert "its runs have one score whatever their seed" in capsys.readouterr().out
    assert propose("lr=0.2") == 0


def test_reasons_are_text_in_a_page_of_markdown():
    (_, _, row) = _markdown(["because"], [["<img src=x> a|b\nc"]])
    assert row == "| \\<img src=x> a\\|b c |"


def test_a_spent_budget_ends_the_loop(folder, capsys):
    for width in (1, 2, 3, 4):
        propose(f"width={width}")
    assert propose("width=5") == 2
    assert "its proposals are spent" in capsys.readouterr().err
    assert propose("width=4") == DROPPED, "what was judged before is still told"


def test_spent_hours_end_the_loop(folder, capsys):
    path = Path("experiments/loop.yaml")
    path.write_text(path.read_text().replace("runs: 40", "runs: 40, hours: 0.001"))  # 3.6 s
    Path("pause.txt").write_text("1")
    assert propose("width=7") == DROPPED
    capsys.readouterr()
    assert propose("lr=0.2") == 2
    assert "its hours are spent" in capsys.readouterr().err
    Path("train.py").write_text(f"{TRAIN}# edited\n")
    assert propose("lr=0.2") == 2, "what was spent before an input was edited is spent"
    assert "its hours are spent" in capsys.readouterr().err


def test_an_hour_is_left_of_a_hundred_and_one_after_a_hundred():
    loop = SimpleNamespace(budget=SimpleNamespace(proposals=4, runs=40, hours=101.0))
    spent = SimpleNamespace(costing=["one"], runs=7)
    assert left_of(loop, spent, 360_000) == Left(proposals=3, runs=33, hours=1.0)
    assert left_of(loop, spent, 363_600).over == "its hours"
    assert left_of(loop, spent, 363_590).over is None


@pytest.mark.parametrize(
    ("estimate", "outcome", "said"),
    [(-0.05, "kept", False), (-0.049, "kept", True), (0.06, "kept", True), (-0.049, "dropped", False)],
)
def test_what_is_kept_for_less_than_the_margin_says_so(estimate, outcome, said):
    last = SimpleNamespace(floor=1, estimate=estimate, low=-0.1, high=0.1, p=0.01, seeds=2)
    proposal = SimpleNamespace(outcome=outcome, looks=[last], why="")
    measure = SimpleNamespace(digits=3, higher_is_better=False, title="loss")
    line = outcome_line(proposal, SimpleNamespace(margin=0.05), measure, [SimpleNamespace(seeds=(1, 2, 3))])
    assert ("], less than matters, one-sided p" in line) == said
    assert f"loss {estimate:+.3f}, 95 % interval [-0.100, +0.100]" in line


@pytest.mark.parametrize(
    ("word", "why"), [("seed=3", "the referee draws the seeds"), ("rerun=true", "about one launch")]
)
def test_a_loop_has_no_words_of_one_launch_in_common(folder, capsys, word, why):
    file = Path("experiments/loop.yaml")
    file.write_text(file.read_text().replace("logger=none]", f"logger=none, {word}]"))
    assert main(["loop", "experiment=loop"]) == 2
    assert f"experiments/loop.yaml: {word}: " in (said := capsys.readouterr().err)
    assert why in said


def test_a_loop_is_no_experiment(folder, capsys):
    assert main(["study", "experiment=loop"]) == 2
    assert "ablab loop" in capsys.readouterr().err
    Path("experiments/loop.yaml").write_text(LOOP + "arms: {a: [lr=1]}\n")
    with pytest.raises(Exception, match="a loop has none"):
        read_loop("loop")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("looks: [5, 3, 2, 1]", "looks"),
        ("looks: [1, 2, 3]", "stop has a level for each look but the last"),
        ("keep: 2", "levels lie between 0 and 1"),
    ],
)
def test_levels_that_do_not_fit_are_one_line(folder, edit, said, capsys):
    key = edit.partition(":")[0]
    kept = [line for line in LOOP.splitlines() if not line.startswith(f"{key}:")]
    Path("experiments/loop.yaml").write_text("\n".join([*kept, edit]))
    assert main(["loop", "experiment=loop"]) == 2
    found = capsys.readouterr().err
    assert found.startswith("error: ")
    assert found.count("\n") == 1
    assert said in found


@pytest.mark.parametrize(("runs", "is_enough"), [(3, False), (4, True)])
def test_a_floor_that_leaves_no_run_to_compare_is_not_trained(runs, is_enough, folder, capsys):
    """It takes three runs, and the first look at a proposal takes one."""
    path = Path("experiments/loop.yaml")
    path.write_text(path.read_text().replace("runs: 40", f"runs: {runs}"))
    assert (propose("width=7") == 2) != is_enough
    refused = "proposal 1, with its floor, needs 4 more runs, and 3 are left; allowed: a larger budget.runs"
    assert (refused in capsys.readouterr().err) != is_enough
    assert Path("started.txt").exists() == is_enough


def test_lines_to_type_name_the_file_and_the_store(folder, capsys):
    Path("loops here").mkdir()
    Path("experiments/loop.yaml").rename("loops here/peak.yaml")
    words = ["experiment=loops here/peak.yaml", "outputs=o (v2)"]
    assert main(["loop", *words]) == 0
    where = "experiment='loops here/peak.yaml' outputs='o (v2)'"
    assert f"ablab floor {where} trains it" in capsys.readouterr().out
    assert main(["try", *words, "lr=0.1", "because=it is the same"]) == NULL
    assert f"Next: ablab try {where} 'key=value' because='...', or ablab confirm {where}\n" in capsys.readouterr().out


def test_heads_and_questions_are_text_in_a_page_of_markdown():
    content = {"name": "x", "question": "Is\nit?\n# no", "headline": "*a*", "how": "so", "columns": ["a"]}
    lines = list(_markdown_page({**content, "head": ["a|b"], "rows": [["c"]], "proposals": []}, None))
    assert lines[:4] == ["# x: Is it? # no", "", "\\*a\\*", ""]
    assert lines[4] == "| a\\|b |"
