"""What arms are worth in compute: the arms that a study gets, its claims and its table."""

import json
import math
import os
import re
import sys
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.study.definition import define

TRAIN = """
import json, math, random, sys
steps, method, seed, out = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
noise = random.Random(f"{seed} {method} {steps}").gauss(0, 0.02)
loss = 5 - math.log(steps / 1000) - {"plain": 0.0, "good": 0.5}[method] + noise
json.dump({"scores": {"loss": loss}}, open(out, "w"))
"""
STUDY = """
question: What is the method worth?
command: [python, train.py, "{steps}", "{method}", "{seed}", "{result}"]
inputs: [train.py]
scores: {loss: {better: lower}}
common: [steps=1000, logger=none]
factors: {method: [plain, good]}
seeds: [1, 2, 3]
metric: loss
worth: steps
claims:
  - {arm: method=good, expect: greater, metric: worth, margin: 1.3}
  - {arm: method=good, expect: greater, metric: worth}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(TRAIN)
    Path("experiments").mkdir()
    Path("experiments/w.yaml").write_text(STUDY)
    return tmp_path


@pytest.mark.slow
def test_the_baseline_is_trained_at_other_lengths_and_claims_are_about_the_factor(folder, capsys):
    assert main(["train", "-m", "experiment=w", "hydra.launcher.jobs=4"]) == 0
    assert main(["report", "experiment=w"]) == 0
    said = capsys.readouterr().out
    assert "method=good is better than method=plain with 1.3 times its compute." in said
    told = json.loads(Path("outputs/reports/w/report.json").read_text())
    assert [arm["name"] for arm in told["arms"]] == ["method=plain", "method=good", "steps=500", "steps=2000"]
    beyond, plain = told["claims"]
    assert (beyond["outcome"], plain["outcome"]) == ("supported", "supported")
    assert (plain["baseline"], plain["expect"], plain["margin"]) == ("method=plain with the same compute", "less", 0.0)
    assert beyond["difference"] > plain["difference"], "less is left of the gain, in a loss"
    (line,) = told["worth"]
    assert line["low"] < math.exp(0.5) < line["high"]
    assert line["low"] < line["factor"] < line["high"]
    assert Path("outputs/reports/w/worth.csv").read_text().splitlines()[1].startswith("method=good,1.")
    for name in ("report.html", "report.md", "report.tex"):
        assert "orth in compute of" in (folder / "outputs/reports/w" / name).read_text()
    Path("experiments/w.yaml").unlink()
    assert main(["report", "experiment=w"]) == 0
    kept = json.loads(Path("outputs/reports/w/report.json").read_text())
    for part in ("arms", "claims", "worth", "methods"):
        assert kept[part] == told[part]
    assert "beside what steps at half and twice its value gains" in " ".join(kept["methods"])


@pytest.mark.parametrize("factor", [2, 0.5])
def test_a_factor_of_a_trained_length_can_be_claimed(folder, factor):
    path = Path("experiments/w.yaml")
    path.write_text(path.read_text().replace("margin: 1.3", f"margin: {factor}"))
    claim = next(one for one in define(("experiment=w",)).claims if "compute" in one.baseline)
    assert claim.baseline == f"method=plain with {factor:g} times its compute"


@pytest.mark.parametrize("factor", [2.01, 0.49])
def test_of_a_factor_beyond_the_trained_lengths_the_baseline_says_nothing(folder, factor):
    said = f"claims.margin={factor}: allowed with metric: worth: 0.5 to 2, the lengths that the baseline is trained at"
    assert said in refused("margin: 1.3", f"margin: {factor}")


def refused(old, new):
    path = Path("experiments/w.yaml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError) as raised:
        define(("experiment=w",))
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("worth: steps", "worth: true", "runs of task=command have no length of their own"),
        ("worth: steps", "worth: size", "size: no word of command has {size}; allowed: method, steps"),
        ("worth: steps\n", "", "claims.metric=worth: the baseline has one length; allowed with worth: true"),
        ("steps=1000", "steps=999", "steps=999 has no half; allowed: an even number above 0"),
        ("expect: greater, metric: worth, margin: 1.3", "expect: equal, metric: worth", "allowed with metric: worth"),
        (
            "arm: method=good, expect: greater, metric: worth}",
            "arm: method=plain, expect: less, metric: worth}",
            "its b",
        ),
        ("worth: steps", "worth: steps\ntune: {key: steps, values: [10, 20], seeds: [9]}", "worth: not beside tune"),
    ],
)
def test_what_has_no_worth_is_refused_in_a_line(folder, old, new, said):
    found = refused(old, new)
    assert said in found
    assert "\n" not in found


def test_arms_that_differ_by_length_have_no_worth(folder):
    found = refused("factors: {method: [plain, good]}", "factors: {steps: [1000, 3000]}")
    assert "steps" in found


def test_a_task_that_trains_knows_its_length(folder):
    Path("experiments/t.yaml").write_text(
        "question: x?\ncommon: [training.max_steps=100, training.valid_every=50]\nfactors: {norm: [pre, scalenorm]}\n"
        "seeds: [1]\nworth: true\nmetric: valid_loss\n"
    )
    study = define(("experiment=t",))
    assert [arm.name for arm in study.arms][2:] == ["training.max_steps=50", "training.max_steps=200"]
    assert [cell.planned.config.training.max_steps for cell in study.cells] == [100, 100, 50, 200]


@pytest.mark.parametrize(
    "limit", ["training.max_epochs=1", "training.patience=3", "training.max_minutes=5", "schedule=plateau"]
)
def test_runs_that_something_else_may_end_have_no_length_to_double(folder, capsys, limit):
    Path("experiments/w.yaml").write_text(
        f"""
question: What is it worth?
common: [{limit}, training.max_steps=800, optim.lr=0.001, logger=none]
factors: {{norm: [pre, post]}}
seeds: [1, 2, 3]
worth: true
"""
    )
    assert main(["study", "experiment=w"]) == 2
    assert f"worth: {limit} may end training before training.max_steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factors", "why"),
    [
        (
            "training.max_steps: [100, 200]",
            "worth: training.max_steps is what the arms differ by; allowed: arms of",
        ),
        ("training.max_epochs: [null, 1]", "training.max_epochs=1 of training.max_epochs=1 may end training before"),
        (
            "model: [tiny, base]",
            "worth: model=base has training.max_steps=100000, and model=tiny 800; allowed: arms",
        ),
    ],
)
def test_arms_of_other_lengths_are_compared_with_none(factors, why, folder):
    Path("experiments/x.yaml").write_text(
        f"question: q\nfactors: {{{factors}}}\nworth: true\nseeds: [1, 2, 3]\ncommon: [logger=none]\n"
    )
    with pytest.raises(UserError, match=re.escape(why)):
        define(("experiment=x",))


def test_a_smoke_run_tells_nothing_of_worth(folder):
    Path("experiments/x.yaml").write_text(
        "question: q\nfactors: {norm: [pre, scalenorm]}\nworth: true\nseeds: [1, 2, 3]\ncommon: [logger=none]\n"
        "claims: [{arm: norm=scalenorm, expect: greater, metric: worth}]\n"
    )
    found = define(("experiment=x", "smoke=true"))
    assert [arm.name for arm in found.arms] == ["norm=pre", "norm=scalenorm"]
    assert not found.claims
    assert len(define(("experiment=x",)).arms) == 4
