"""What study.py says, at once and without torch: the plan, the differences, the state; and what a check finds."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.commands.cli import main
from tests.run.conftest import TINY

ROOT = Path(__file__).parents[2]
WORDS = (*TINY, "smoke=true", "logger=none", "pruning=none", "seed=1,2")


def shown(capsys, *words):
    code = main(["study", *WORDS, *words])
    return code, capsys.readouterr().out


def test_the_plan_says_how_arms_differ_by_their_recipes(capsys, tmp_path):
    code, out = shown(capsys, "norm=pre,scalenorm", "norm.learn_g=false", f"outputs={tmp_path}")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("ScaleNorm")]
    assert "norm.kind=scalenorm, norm.learn_g=false" in line
    assert line.endswith("2 planned")
    assert "4 runs: 4 planned" in out
    assert f"Next: ablab train -m {' '.join(WORDS)} norm=pre,scalenorm" in out
    assert not (tmp_path / "smoke" / "runs").exists()


def test_for_programs(capsys, tmp_path):
    code, out = shown(capsys, "norm=pre,post", f"outputs={tmp_path}", "format=json")
    assert code == 0
    content = json.loads(out)
    assert content["states"] == {"planned": 4}
    assert [(run["arm"], run["seed"]) for run in content["runs"]] == [
        *(("norm=pre", 1), ("norm=pre", 2), ("norm=post", 1), ("norm=post", 2)),
    ]


@pytest.mark.parametrize("word", ["cancel=true", "close=hopeless"])
def test_what_only_says_what_it_did_has_no_json(word, capsys, tmp_path):
    assert main(["study", *WORDS, f"outputs={tmp_path}", word, "format=json"]) == 2
    assert "format=json: allowed without cancel= and close=" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["format=xml", "check=perhaps", "norm=pre,pst"])
def test_what_it_cannot_show_is_said_in_one_line(word, capsys):
    assert main(["study", word]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_check_builds_trains_and_decodes_every_arm_and_the_plan_knows_it(capsys, tmp_path):
    words = ("norm=pre,scalenorm", f"outputs={tmp_path}")
    code, out = shown(capsys, *words, "check=true")
    assert code == 0
    assert out.count("works") == 2
    code, out = shown(capsys, *words)
    assert "of training are left" in out
    assert "?" not in out
    assert not list((tmp_path / "smoke" / "runs").glob("r*"))


@pytest.mark.slow
def test_a_check_names_the_arm_that_cannot_be(capsys, tmp_path):
    code, out = shown(capsys, "data.max_tokens=60,1", f"outputs={tmp_path}", "check=true")
    assert code == 1
    assert "works  data.max_tokens=60" in out
    assert "fails  data.max_tokens=1: " in out


def test_it_is_instant(tmp_path):
    program = (
        "import sys; from ablab.commands.cli import main\n"
        "code = main(['study', *sys.argv[1:]])\n"
        "heavy = ('torch', 'pytorch_lightning', 'wandb', 'matplotlib', 'optuna')\n"
        "print(code, [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *WORDS, "norm=pre,post", f"outputs={tmp_path}"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 []"


def test_the_next_line_can_be_typed(capsys, tmp_path):
    word = "seed=range(1, 3)"
    assert main(["study", *WORDS[:-1], f"outputs={tmp_path}", word]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("Next: ")]
    assert shlex.split(line)[-1] == word
