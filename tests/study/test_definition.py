"""From words or a file to runs: every one composed, equal ones once, seeds shared by all arms."""

import pytest

from ablab.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.plan import plan
from ablab.record import Cost, Record, Selected
from ablab.study.definition import define

FILE = """
question: Does it help?
common: [model.d_model=16, model.num_heads=2]
factors: {norm: [pre, scalenorm], layerdrop: [0, 0.2]}
design: one_at_a_time
seeds: [1, 2]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "help.yaml").write_text(FILE)
    return tmp_path


def test_a_sweep_is_arms_by_seeds(tmp_path):
    study = define(("norm=pre,post", "seed=1,2,3", "layerdrop=0.2", f"outputs={tmp_path}"))
    assert [arm.name for arm in study.arms] == ["norm=pre", "norm=post"]
    assert study.seeds == [1, 2, 3]
    assert len(study.runs) == len(study.cells) == 6
    for cell in study.cells:
        assert cell.planned.run_id == plan(compose(cell.words)).run_id
        assert cell.planned.config.layerdrop == 0.2
        assert cell.planned.config.seed == cell.seed


def test_a_seed_that_words_refer_to_is_followed():
    study = define(("data.corpus_seed=${seed}", "seed=1,2"))
    assert [cell.planned.config.data.corpus_seed for cell in study.cells] == [1, 2]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("norm=choice(pre,post)", ["pre", "post"]),
        ("layerdrop=range(0,0.3,0.1)", ["0.0", "0.1", "0.2"]),
        ("norm=glob(scale*)", ["scalenorm", "scalenorm_fixnorm"]),
        ("model.d_ff=sort(64,32)", ["32", "64"]),
    ],
)
def test_the_whole_grammar_of_sweeps_serves(word, values):
    key = word.partition("=")[0]
    assert [arm.name for arm in define((word,)).arms] == [f"{key}={value}" for value in values]


def test_equal_runs_collapse():
    study = define(("norm=pre", "norm.learn_g=true,false", "seed=1,2"))
    assert len(study.cells) == 4
    assert len(study.runs) == 2


def test_judging_a_run_in_two_ways_is_two_things_to_do():
    study = define(("decoding=beam,greedy", "seed=1,2"))
    assert len(study.runs) == 4
    assert len({cell.planned.run_id for cell in study.cells}) == 2


def test_the_order_of_typing_names_no_study():
    one, other = define(("norm=pre,post", "seed=1,2")), define(("seed=2,1", "norm=post,pre"))
    assert one.name == other.name != define(("norm=pre,post", "seed=1,3")).name


def test_how_a_sweep_goes_names_nothing():
    assert define(("norm=pre,post", "retry_failed=true", "rerun=stale")).name == define(("norm=pre,post",)).name
    assert not any("re" in word for cell in define(("seed=1,2", "rerun=true")).cells for word in cell.words)


def test_a_file_declares_a_study(place):
    study = define(("experiment=help",))
    assert study.name == "help"
    assert [arm.name for arm in study.arms] == [
        "norm=pre,layerdrop=0",
        "norm=scalenorm,layerdrop=0",
        "norm=pre,layerdrop=0.2",
    ]
    assert study.baseline == "norm=pre,layerdrop=0"
    assert len(study.runs) == 6
    assert all(cell.planned.config.model.d_model == 16 for cell in study.cells)


def test_the_line_adds_to_the_file(place):
    study = define(("experiment=help", "training.max_steps=9", "seed=1,2,3"))
    assert study.seeds == [1, 2, 3]
    assert all(cell.planned.config.training.max_steps == 9 for cell in study.cells)


def test_an_arm_or_a_seed_added_later_leaves_the_other_runs_alone(place):
    before = set(define(("experiment=help",)).runs)
    (place / "experiments" / "more.yaml").write_text(
        FILE.replace("[0, 0.2]", "[0, 0.2, 0.5]").replace("[1, 2]", "[1, 2, 3]")
    )
    after = set(define(("experiment=more",)).runs)
    assert before < after


def test_one_arm_with_twice_the_seeds_is_a_study_of_noise(place):
    (place / "experiments" / "noise.yaml").write_text(
        "question: How large is noise?\ndesign: arms\narms: {a: []}\nseeds: [1, 2, 3, 4]\n"
    )
    assert len(define(("experiment=noise",)).runs) == 4


TUNED = FILE + "tune: {values: [0.001, 0.01], seeds: [101, 102]}\n"


def pretend(cell, loss, state="finished"):
    """A record with this validation loss, as far as tuning looks at it."""
    selected = Selected(steps=[1], loss=loss, perplexity=1.0, bleu=-loss)
    cost = Cost(
        **dict.fromkeys(("steps", "tokens", "peak_memory_bytes", "parameters"), 1),
        **dict.fromkeys(("epochs", "seconds", "train_seconds", "tokens_per_second", "flops_per_token"), 1.0),
    )
    record = Record(
        run_id=cell.planned.run_id,
        condition_id="c",
        name="x",
        choices={},
        state=state,
        reason="steps",
        time_limited=False,
        selected=selected,
        validations=[],
        cost=cost,
        data={},
        runtime={},
        provenance={"code": "x"},
        config={},
        ended="now",
    )
    cell.planned.folder.path.mkdir(parents=True, exist_ok=True)
    cell.planned.folder.write_record(record)


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_every_arm_gets_the_value_that_is_best_for_it_on_validation(metric, place):
    (place / "experiments" / "tuned.yaml").write_text(TUNED.replace("values", f"metric: {metric}, values"))
    define.cache_clear()
    trials = define(("experiment=tuned",))
    assert trials.is_tuning
    assert trials.name == "tuned-tuning"
    assert len(trials.runs) == 3 * 2 * 2
    assert {cell.seed for cell in trials.cells} == {101, 102}
    for cell in trials.cells:
        slow = cell.planned.config.optim.lr == 0.001
        is_post = cell.planned.config.layerdrop == 0.2
        pretend(cell, 2.0 if slow == is_post else 3.0, "diverged" if slow and "scalenorm" in cell.arm else "finished")
    define.cache_clear()
    study = define(("experiment=tuned",))
    assert not study.is_tuning
    rates = {cell.arm: cell.planned.config.optim.lr for cell in study.cells}
    assert rates == {"norm=pre,layerdrop=0": 0.01, "norm=scalenorm,layerdrop=0": 0.01, "norm=pre,layerdrop=0.2": 0.001}
    assert study.seeds == [1, 2]
    assert not set(study.runs) & set(trials.runs)


def test_an_arm_that_no_value_trains_is_said(place):
    (place / "experiments" / "tuned.yaml").write_text(TUNED)
    define.cache_clear()
    for cell in define(("experiment=tuned",)).cells:
        pretend(cell, 2.0, "diverged")
    define.cache_clear()
    with pytest.raises(UserError, match=r"norm=pre,layerdrop=0 diverges with every optim.lr of 0.001, 0.01"):
        define(("experiment=tuned",))


BAD = {
    "experiment=hlep": "did you mean help?",
    "experiment=help norm=post": "norm varies in experiment=help",
    "experiment=help model.d_ff=16,32": "says what varies",
    "experiment=help optim.lr=-1": "optim.lr=-1",
    "experiment=help,other": "one experiment at a time",
    "seed=1,2 hydra.launcher.jobs=0": "hydra.launcher.jobs=0: allowed: 1 and more",
    "seed=1,2 hydra.launcher.threads=-1": "hydra.launcher.threads=-1",
    "seed=1,2 outputs=/proc/x": "outputs",
    "norm=pre,pst": "did you mean post?",
    "seed=1,1": "seeds must differ",
    "seed=-1,2": "seed=-1: allowed: whole numbers",
    "layerdrop=interval(0,1)": "a range without steps",
    "layerdrop=0.1,2": "less than or equal to 1",
    "hydra.launcher.jobs=x seed=1,2": "hydra.launcher.jobs=x",
    "hydra/launcher=nowhere seed=1,2": "hydra/launcher=nowhere",
    "rerun=perhaps seed=1,2": "rerun=perhaps",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_no_sweep_is_said_in_one_line_before_anything_runs(line, place, capsys):
    assert main(["train", "-m", *line.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert BAD[line] in err
    assert [path.name for path in place.iterdir()] == ["experiments"]


FILES = {
    "question: x\nseeds: [1]\nfactors: {norm: [pre, post]}\nclaims: [{arm: nosuch, expect: less}]\n": "no such arm",
    "question: x\nseeds: [1]\nfactors: {norm: [pre]}\nmetric: bleurt\n": "metric=bleurt",
    "question: \udcff\n": "not readable",
    "question: x\nseeds: [1]\nfactors: {model.d_model: [16, 17]}\n": "model.d_model=17: ",
    "question: x\nseeds: [1]\nfactor: {}\n": "factor",
    "question: x\nseeds: []\n": "seeds",
    FILE + "tune: {values: [1, 2], seeds: [2]}\n": "tune.seeds: 2 are seeds of the study too",
    FILE + "tune: {key: layerdrop, values: [0.1, 0.2], seeds: [9]}\n": "tune.key=layerdrop",
    FILE + "tune: {values: [0.1], seeds: [9]}\n": "at least 2",
    "question: x\nseeds: [1, two]\n": "two",
    "seeds: [1]\n": "question",
    "question: [\n": "not readable as YAML",
    "- a\n": "not an experiment",
    "question: x\nseeds: [1]\nfactors: {norm: [pre, nope]}\n": "norm=nope",
}


@pytest.mark.parametrize("content", FILES)
def test_a_bad_file_is_named_with_what_is_wrong(content, place, capsys):
    (place / "experiments" / "bad.yaml").write_text(content, errors="surrogateescape")
    with pytest.raises(UserError) as refusal:
        define(("experiment=bad",))
    assert FILES[content] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_single_run_says_how_to_sweep(capsys):
    assert main(["train", "experiment=norms"]) == 2
    assert "python train.py -m experiment=norms" in capsys.readouterr().err
