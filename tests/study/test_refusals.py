"""What is no study and no search is said in one line, before anything runs or is written."""

import pytest

from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.study.definition import define
from ablab.study.search import define_search
from tests.study.conftest import SEARCH, STUDY

LINES = {
    "help": "help: a value without its key; did you mean experiment=help?",
    "experiment=hlep": "did you mean help?",
    "experiment=help norm=post": "norm varies in experiment=help",
    "experiment=help model.d_ff=16,32": "says what varies",
    "experiment=help optim.lr=-1": "optim.lr=-1",
    "experiment=help,other": "one experiment at a time",
    "seed=1,2 hydra.launcher.jobs=0": "hydra.launcher.jobs=0: allowed: 1 and more",
    "seed=1,2 hydra.launcher.threads=-1": "hydra.launcher.threads=-1",
    "seed=1,2 hydra.launcher.gpus=[0,1]": "hydra.launcher.gpus=[0,1]: the runs train on the CPU; "
    "allowed: beside trainer=gpu",
    "seed=1,2 hydra/launcher=ray hydra.launcher.gpus=0.25": "hydra.launcher.gpus=0.25: the runs train on the CPU",
    "seed=1,2 hydra/launcher=submitit_local hydra.launcher.gpus_per_node=1": "submitit_local puts every job",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.launcher.gpus=[0]": "hydra.launcher.gpus=[0]: the runs train",
    "experiment=find hydra.launcher.gpus=[0]": "hydra.launcher.gpus=[0]: the runs train",
    "seed=1,2 outputs=/proc/x": "outputs",
    "data.train_pairs=20000,20001": "data.train_pairs=20001: the corpus has 20,000 training pairs",
    "norm=pre,pst": "did you mean post?",
    "norm=glob(x*)": "norm=glob(x*): stands for no value at all",
    "optim.lr=range(2,1)": "optim.lr=range(2,1): stands for no value at all",
    "hydra/launcher=3 norm=pre,post": "hydra/launcher=3",
    "seed=range(1,1000000000)": "too many values; allowed: up to 100,000",
    "optim.lr=range(1,1000) model.d_ff=range(1,1000)": "998,001 arms; allowed: up to 100,000",
    "seed=1,1": "seeds must differ",
    "seed=-1,2": "seed=-1: allowed: whole numbers",
    "seed=1,99999999999999999999": "seed=99999999999999999999: allowed: whole numbers",
    "seed=1,2 smoke=true training.max_steps=abc": "training.max_steps=abc",
    "layerdrop=interval(0,1)": "a range without steps; allowed: values with commas, choice(), range(); "
    "hydra/sweeper=optuna searches it",
    "layerdrop=0.1,2": "less than 1",
    "hydra.launcher.jobs=x seed=1,2": "hydra.launcher.jobs=x",
    "hydra/launcher=nowhere seed=1,2": "hydra/launcher=nowhere",
    "rerun=perhaps seed=1,2": "rerun=perhaps",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[test_bleu]": "never on the test set",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[valid_bleu,parameters] "
    "hydra.sweeper.stopping=median": "allowed with valid_bleu, parameters: none",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.objectives=[parameters] hydra.sweeper.stopping=median": "none",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.trials=0": "hydra.sweeper.trials=0",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.sampler=tp": "hydra.sweeper.sampler=tp",
    "hydra/sweeper=optuna layerdrop=0,0.1 hydra.sweeper.trails=3": "did you mean trials?",
    "hydra/sweeper=optuna layerdrop=0,0.1 seed=1,2": "one seed for all trials",
    "hydra/sweeper=optuna layerdrop=0.1": "nothing varies",
    "hydra/sweeper=basic optim.warmup_steps=7": "Could not override 'optim.warmup_steps'",
    "hydra/sweeper=optuna layerdrop=0,0.1 experiment=find": "declares its search itself",
    "layerdrop=0,0.1 +hydra.launcher.foo=1": "hydra.launcher.foo: no such setting; allowed: hydra.launcher.gpus",
    "layerdrop=0,0.1 hydra/launcher=ray +hydra.launcher.foo=1": "hydra.launcher.foo: no such setting; allowed: ",
    "experiment=find layerdrop=0.3": "layerdrop varies in experiment=find",
    "experiment=find seed=1,2": "search.training_seed",
}


@pytest.mark.parametrize("line", LINES)
def test_a_bad_line_is_said_before_anything_runs(line, place, capsys):
    assert main(["train", "-m", *line.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert LINES[line] in err
    assert [path.name for path in place.iterdir()] == ["experiments"]


CLAIMING = "question: x\nseeds: [1]\nfactors: {norm: [pre, post]}\nclaims:\n"
TUNE = "tune: {values: [0.001, 0.002], seeds: [9]}\n"
ADDING = CLAIMING.replace("[1]", "{from: 3, to: 6}")

FILES = {
    "question: x\nseeds: [1]\nfactors: {norm: [pre, post]}\nclaims: [{arm: nosuch, expect: less}]\n": "no such arm",
    CLAIMING + "  - {arm: norm=pre, expect: less}\n": "claims.arm=norm=pre: that is its baseline too",
    CLAIMING + 2 * "  - {arm: norm=post, expect: less}\n": "claimed twice",
    CLAIMING
    + "  - {arm: norm=post, expect: less, metric: depth, fall: 1}\ncommon: [pruning=none]\n": "needs the decoder",
    CLAIMING + "  - {arm: norm=post, expect: less, metric: pruned_bleu, layers: 9}\n": "measured are 4, 3, 2",
    CLAIMING + "  - {arm: norm=post, expect: less, metric: pruned_bleu}\n": "got neither; allowed with one of layers",
    CLAIMING + "  - {arm: norm=post, expect: less, metric: pruned_bleu, layers: 2, heads: 9}\n": "got layers and heads",
    CLAIMING + "  - {arm: norm=post, expect: less, heads: 9}\n": "claims.heads=9: the number of heads that remain, for",
    CLAIMING + "  - {arm: norm=post, expect: less, metric: pruned_bleu, heads: 9}\n": "needs the curve of heads",
    CLAIMING + "  - {arm: norm=post, expect: less, metric: pruned_bleu, heads: 9}\ncommon: [pruning=importance]\n": (
        "claims.heads=9: measured are 48, 42, 36"
    ),
    SEARCH.replace("common: [", "common: [pruning=none, ").replace(
        "expect: greater", "expect: less, metric: depth, fall: 1"
    ): "needs the decoder",
    "question: x\nseeds: [1]\nfactors: {seed: [1, 2]}\n": "seed=1: every arm",
    "question: x\nseeds: [1]\ndesign: arms\narms: {a: [norm=pre], b: [seed=2]}\n": "seed=2: every arm",
    "question: x\nseeds: [1]\ncommon: [seed=4]\nfactors: {norm: [pre]}\n": "seed=4: every arm",
    "question: x\nseeds: [1]\ndesign: arms\narms: {'': [norm=pre]}\n": "arms: ",
    'question: x\nseeds: [1]\ndesign: arms\narms: {"a\\nb": [norm=pre]}\n': "arms: ",
    "question: x\nseeds: [1]\ncommon: [rerun=true]\nfactors: {norm: [pre]}\n": "rerun=true: it is about one launch",
    "question: x\nseeds: [1]\ndesign: arms\narms: {a: [norm=pre], b: [fail_fast=true]}\n": "fail_fast=true: it is",
    "question: x\nseeds: [1, -2]\nfactors: {norm: [pre]}\n": "seeds from 0, below 2**63",
    "question: x\nseeds: [1]\nfactors: {norm: []}\n": "levels that differ, got none",
    "question: x\nseeds: [1, 1]\nfactors: {norm: [pre]}\n": "seeds that differ",
    "question: x\nseeds: [1]\nfactors: {norm: [pre]}\nmetric: bleurt\n": "metric=bleurt",
    "question: \udcff\n": "not readable",
    "question: x\nseeds: [1]\nfactors: {model.d_model: [16, 17]}\n": "model.d_model=17: ",
    "question: x\nseeds: [1]\nfactor: {}\n": "factor",
    "question: x\nseeds: []\n": "seeds",
    STUDY + "tune: {values: [1, 2], seeds: [2]}\n": "tune.seeds: 2 are seeds of the study too",
    STUDY + "tune: {key: layerdrop, values: [0.1, 0.2], seeds: [9]}\n": "tune.key=layerdrop",
    STUDY + "tune: {values: [0.1], seeds: [9]}\n": "at least 2",
    STUDY + TUNE + "metric: test_bits_per_byte\n": "metric=test_bits_per_byte: no score of task=translation",
    SEARCH + "metric: test_bits_per_byte\n": "metric=test_bits_per_byte: no score of task=translation",
    STUDY.replace("[1, 2]", "{from: 3, to: 6}")
    + TUNE: "seeds are added until all claims are settled, and there are none",
    ADDING + "  - {arm: norm=post, expect: less}\nerror: moderated\n" + TUNE: "error=moderated: seeds are added",
    ADDING + "  - {arm: norm=post, expect: less, metric: failures}\n" + TUNE: "shares of failures are judged once",
    ADDING.replace("norm: [pre, post]", f"model.d_ff: {list(range(8, 35))}")
    + "".join(f"  - {{arm: model.d_ff={size}, expect: less}}\n" for size in range(9, 35))
    + TUNE: "and there are 52; allowed: up to 50",
    "question: x\nseeds: [1]\nfactors: {decoding: [beam, greedy]}\nmetric: valid_loss\n"
    + TUNE: "valid_loss cannot see",
    CLAIMING.replace("norm: [pre, post]", "layerdrop: {a: [], b: [layerdrop=0]}")
    + "  - {arm: b, expect: less}\n"
    + TUNE: "settings have the same effect",
    "question: x\nseeds: [1, two]\n": "two",
    "seeds: [1]\n": "question",
    "question: [\n": "not readable as YAML",
    "- a\n": "not an experiment",
    "question: x\nseeds: [1]\nfactors: {norm: [pre, nope]}\n": "norm=nope",
    SEARCH.replace("layerdrop: {", "layerdop: {"): "did you mean layerdrop?",
    SEARCH.replace("high: 0.4", "high: 1.4"): "layerdrop=1.4",
    SEARCH.replace("high: 0.4", "hi: 0.4"): "allowed: low, high, log, step",
    SEARCH.replace("{low: 0, high: 0.4}", "3"): "a list of levels, or {low, high, log, step}",
    SEARCH.replace("{low: 0, high: 0.4}", "[0.1]"): "two levels that differ",
    SEARCH.replace("trials: 3", "trials: 3\n  objectives: [test_chrf]"): "never on the test set",
    SEARCH.replace("trials: 3", "sampler: tpe"): "search.trials: missing",
    SEARCH.replace("trials: 3", "trials: 3\n  stoping: median"): "stoping",
    SEARCH.replace("[101, 102]", "[1, 2]"): "seeds: 1 is search.training_seed",
    SEARCH + "tune: {values: [1, 2], seeds: [3]}\n": "tune: ",
    SEARCH.replace("arm: best", "arm: bset"): "did you mean best?",
    SEARCH.replace("common: [", "common: [layerdrop=0.1, "): "layerdrop: the search varies it",
}


@pytest.mark.parametrize("content", FILES)
def test_a_bad_file_is_named_with_what_is_wrong(content, place):
    (place / "experiments" / "bad.yaml").write_text(content, errors="surrogateescape")
    with pytest.raises(UserError) as refusal:
        define_search(("experiment=bad",)) or define(("experiment=bad",))
    assert str(refusal.value).startswith("experiments/bad.yaml: ")
    assert FILES[content] in str(refusal.value)
    assert "\n" not in str(refusal.value)
