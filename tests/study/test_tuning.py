"""Arms are tuned alike: the same draws for each, the usual settings among them, and claims judged both ways."""

from types import SimpleNamespace

import pytest

from ablab.commands.verification import ended_of
from ablab.errors import INTERRUPTED, UserError
from ablab.judge.selection_of_study import of_study
from ablab.study.definition import define
from ablab.study.design import Arm
from ablab.study.tuning import Tuned, TuningTrial, _best, at_an_edge
from ablab.sweep.hydra import TypedLine
from tests.study.pretend import pretend

FILE = """
question: q
common: [model.d_model=16, model.d_ff=32, model.num_heads=2, training.max_steps=10]
factors: {{norm: [pre, scalenorm]}}
seeds: [1, 2, 3]
claims: [{{arm: scalenorm, expect: equal, margin: 1}}]
tune:
  space:
    optim.lr: {{low: 0.0001, high: 0.1, log: true}}
    schedule.warmup_steps: {{low: 10, high: 90}}
    model.dropout: [0, 0.3]
  trials: {trials}
  seeds: [101]
  {more}
"""


def test_of_trials_that_cost_the_same_the_lowest_loss_is_best():
    trials = [TuningTrial((f"optim.lr={lr}",), cost, loss=loss) for lr, cost, loss in ((1, 0.0, 5.0), (2, 0.0, 3.0))]
    assert _best(Arm("pre", ()), trials) is trials[1]
    assert _best(Arm("pre", ()), [*trials, TuningTrial(("optim.lr=3",), -0.1, loss=9.0)]).words == ("optim.lr=3",)


@pytest.fixture
def tuned(tmp_path):
    def made(trials=4, more=""):
        (tmp_path / "t.yaml").write_text(FILE.format(trials=trials, more=more))
        return (f"experiment={tmp_path / 't.yaml'}", f"outputs={tmp_path / 'outputs'}")

    return made


def settled(words, best):
    """The study after tuning, in which the trials of these numbers are best for the two arms."""
    trials = define(words)
    count = len(trials.cells) // 2
    for number, cell in enumerate(trials.cells):
        arm, trial = divmod(number, count)
        pretend(cell, 1.0 if trial == best[arm] else 2.0, "finished")
    return define(words)


def tried(words):
    cells = define(words).cells
    found = {}
    for cell in cells:
        config = cell.planned.config
        settings = (config.optim.lr, config.schedule.warmup_steps, config.model.dropout)
        found.setdefault(config.norm.kind, []).append(settings)
    return found


def test_every_arm_is_tried_with_the_same_draws_and_first_as_it_is(tuned):
    found = tried(tuned())
    (pre, scalenorm) = found.values()
    assert pre == scalenorm
    assert len(set(pre)) == 4
    trials = define(tuned())
    assert trials.is_tuning
    assert trials.arms[0].name == "norm=pre,usual settings"
    assert {cell.seed for cell in trials.cells} == {101}
    assert all(isinstance(warmup, int) and 10 <= warmup <= 90 for _, warmup, _ in pre[1:])


def test_more_trials_add_to_those_that_were_made(tuned):
    few = tried(tuned(3))
    many = tried(tuned(6))
    assert all(many[norm][:3] == settings for norm, settings in few.items())


def test_claims_are_judged_as_the_arms_are_and_tuned(tuned):
    study = settled(tuned(), best=(2, 1))
    assert [arm.name for arm in study.arms] == [
        "norm=pre",
        "norm=scalenorm",
        "norm=pre, tuned",
        "norm=scalenorm, tuned",
    ]
    assert [(claim.arm, claim.baseline, claim.secondary) for claim in study.claims] == [
        ("norm=scalenorm, tuned", "norm=pre, tuned", False),
        ("norm=scalenorm", "norm=pre", True),
    ]
    assert study.baseline_of("norm=scalenorm, tuned") == "norm=pre, tuned"
    assert {cell.seed for cell in study.cells} == {1, 2, 3}
    words = {arm.name: arm.words for arm in study.arms}
    assert set(words["norm=pre, tuned"]) > set(words["norm=pre"])


def test_where_the_usual_settings_win_there_is_one_arm_and_one_claim(tuned):
    study = settled(tuned(), best=(0, 0))
    assert [arm.name for arm in study.arms] == ["norm=pre = norm=pre, tuned", "norm=scalenorm = norm=scalenorm, tuned"]
    assert [claim.secondary for claim in study.claims] == [False]
    assert len(study.runs) == 6


def test_a_claim_about_several_arms_stands_once_where_tuning_left_all_as_they_are(tuned, tmp_path):
    words = tuned()
    path = tmp_path / "t.yaml"
    text = path.read_text().replace("norm: [pre, scalenorm]}", "norm: [pre, scalenorm], layerdrop: [0, 0.1]}")
    path.write_text(
        text.replace("{arm: scalenorm, expect: equal, margin: 1}", "{effect: scalenorm, expect: equal, margin: 1}")
    )
    trials = define(words)
    for cell in trials.cells:
        pretend(cell, 1.0 if "usual settings" in cell.arm else 2.0, "finished")
    study = define(words)
    assert len(study.arms) == 4
    assert [claim.secondary for claim in study.claims] == [False]


def test_the_usual_settings_are_known_also_where_a_list_names_them(tuned, tmp_path):
    own = define(tuned()).cells[0].planned.config.optim.lr
    path = tmp_path / "t.yaml"
    listed = f"  key: optim.lr\n  values: [{own / 2}, {own}, {own * 2}]\n  seeds: [101, 102]\n"
    path.write_text(path.read_text().partition("  space:")[0] + listed)
    study = settled((f"experiment={path}", f"outputs={tmp_path / 'outputs'}"), best=(0, 4))
    assert [[trial.is_usual for trial in one.trials] for one in study.tuned] == [[False, True, False]] * 2
    drawn = settled(tuned(), best=(0, 0))
    assert [[trial.is_usual for trial in one.trials] for one in drawn.tuned] == [[True, False, False, False]] * 2


def test_a_report_rests_on_the_runs_of_tuning_too(tuned):
    study = settled(tuned(), best=(2, 1))
    selection = of_study(study)
    assert len(selection.tried) == 8
    assert {run.run_id for run in ended_of(selection)} == {run.folder.run_id for run in selection.tried}


def test_runs_of_tuning_that_are_made_again_are_made_as_those_of_a_typed_line(tuned):
    """A launcher chooses how many are made at a time, and so their threads, for what was typed."""
    line = (*tuned(), "logger=none")
    settled(line, best=(2, 1))
    typed = []

    def launch(board, *_):
        typed.append(board.study.typed)
        return False

    line = TypedLine((*line, "rerun=true"))
    assert line.sweep(SimpleNamespace(check=list, launching=lambda _: launch, is_here=True)) == INTERRUPTED
    assert typed == [line.words]


def test_tuned_arms_can_stand_alone(tuned):
    study = settled(tuned(more="judged: tuned"), best=(2, 1))
    assert [arm.name for arm in study.arms] == ["norm=pre", "norm=scalenorm"]
    assert len(study.claims) == 1
    assert study.cells[0].planned.config.optim.lr != study.cells[-1].planned.config.optim.lr


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  trials: 4\n", "", "allowed: values of one key, or a space and the number of its trials"),
        ("  space:", "  values: [1, 2]\n  space:", "allowed: values of one key, or a space"),
        ("optim.lr:", "optim.momentum: [0.8, 0.9]\n    optim.lr:", "no trial of this space reads it"),
        ("optim.lr:", "norm: [pre, post]\n    optim.lr:", "tune.key=norm: it is what the arms differ by"),
        ("low: 0.0001", "low: 0.2", "low must be below high"),
        ("[0, 0.3]", "[0, 1.5]", "model.dropout"),
        ("[101]", "[3]", "are seeds of the study too"),
    ],
)
def test_what_cannot_be_tuned_is_refused(tuned, tmp_path, old, new, expected):
    words = tuned()
    path = tmp_path / "t.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=expected.replace(".", r"\.")):
        define(words)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("decoding.beam_size", "decoding.beam_size: validation does not depend on it"),
        ("trainer.threads", "trainer.threads: decides no result"),
        ("seed", "seed: no setting that is chosen"),
    ],
)
def test_a_list_of_values_tunes_what_training_depends_on(tuned, tmp_path, key, expected):
    """Else all trials would be one run, and the first of them the best."""
    words = tuned()
    path = tmp_path / "t.yaml"
    path.write_text(path.read_text().partition("  space:")[0] + f"  key: {key}\n  values: [1, 2]\n  seeds: [101]\n")
    with pytest.raises(UserError, match=expected):
        define(words)


@pytest.mark.parametrize(("first", "second"), [("adam", "muon"), ("muon", "adam")])
def test_a_key_is_tuned_that_any_of_the_arms_reads(tuned, tmp_path, first, second):
    words = tuned()
    path = tmp_path / "t.yaml"
    text = path.read_text().replace("norm: [pre, scalenorm]", f"optim: [{first}, {second}]")
    text = text.replace("arm: scalenorm", f"arm: {second}").replace(
        "low: 0.0001, high: 0.1, log: true", "low: 0.8, high: 0.9"
    )
    path.write_text(text.replace("optim.lr", "optim.momentum"))
    trials = define(words)
    read = {arm.name for arm in trials.arms if any("momentum" in word for word in trials.cells_of(arm.name)[0].words)}
    assert {name.partition(",")[0] for name in read} == {"optim=muon"}


def test_settings_that_an_arm_does_not_read_are_not_said_to_be_its_best(tuned, tmp_path):
    words = tuned()
    text = (tmp_path / "t.yaml").read_text().replace("norm: [pre, scalenorm]", "optim: [adam, muon]")
    text = text.replace("arm: scalenorm", "arm: muon").partition("  space:")[0]
    (tmp_path / "t.yaml").write_text(f"{text}  key: optim.momentum\n  values: [0.8, 0.9, 0.95]\n  seeds: [101]\n")
    adam, muon = settled(words, best=(2, 2)).tuned
    assert (adam.best.name, adam.words, at_an_edge(adam)) == ("usual settings", ("optim=adam",), [])
    assert (muon.best.name, at_an_edge(muon)) == ("optim.momentum=0.95", ["optim.momentum=0.95"])


def test_a_best_value_at_an_end_of_what_was_tried_is_said():
    trials = [TuningTrial((f"optim.lr={rate}", f"norm={rate}x"), 1.0) for rate in (0.1, 0.2, 0.3)]
    arm = Arm("a", ())
    assert at_an_edge(Tuned(arm, trials, trials[2])) == ["optim.lr=0.3"]
    assert at_an_edge(Tuned(arm, trials, trials[0])) == ["optim.lr=0.1"]
    assert at_an_edge(Tuned(arm, trials, trials[1])) == []
    assert at_an_edge(Tuned(arm, trials[:2], trials[0])) == []


def test_the_usual_value_was_tried_too():
    """Else the best draw would stand at an end, though a larger value was tried and is worse."""
    usual = TuningTrial((), 1.0, of_runs={"optim.lr": 0.4})
    trials = [usual, *(TuningTrial((f"optim.lr={rate}",), 1.0) for rate in (0.1, 0.2, 0.3))]
    arm = Arm("a", ())
    assert at_an_edge(Tuned(arm, trials, trials[3])) == []
    assert at_an_edge(Tuned(arm, trials, usual)) == ["optim.lr=0.4"]
