"""A part from outside is as good as ours: typed, planned, trained, found again; and nothing runs by surprise."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.code.folders import shipped_conf
from ablab.commands.cli import main
from ablab.commands.help import listed_fields, typed_choices
from ablab.config import compose
from ablab.config.compose import reopen
from ablab.config.kinds import outside_parts
from ablab.errors import UserError
from ablab.tasks import identity
from tests.parts.conftest import DYT
from tests.run.conftest import TINY

OPTION = "_target_: parts.DyT\nalpha: 0.5\n"
TRAIN = ("train", "smoke=true", *TINY, "norm=dyt", "logger=none", "pruning=none", "trainer.progress=false")


def test_its_fields_are_typed_ranged_listed_and_part_of_the_recipe(study):
    name = study(DYT, {"norm/dyt": OPTION})
    config = compose(["norm=dyt", "norm.alpha=0.25"]).config
    recipe = identity.recipe(config)
    assert recipe["norm"].pop("code")
    assert recipe["norm"] == {"_target_": f"{name}.DyT", "alpha": 0.25}
    assert "  alpha: 0.5" in listed_fields(typed_choices(["norm=dyt"]))
    for word, why in {
        "norm.alpha=-1": "norm.alpha=-1: allowed: greater than 0",
        "norm.alpha=x": "norm.alpha=x: allowed: a number",
        "norm.alhpa=1": "did you mean norm.alpha",
        "norm.learn_g=true": "norm.learn_g=true has no effect with norm=dyt; allowed with norm=scalenorm",
    }.items():
        with pytest.raises(UserError, match=why):
            compose(["norm=dyt", word])
    with pytest.raises(UserError, match=r"norm.alpha=1 has no effect with norm=pre; allowed with norm=dyt"):
        compose(["norm=pre", "norm.alpha=1"])


def test_what_the_file_leaves_out_is_the_default_of_the_signature(study):
    study(DYT, {"norm/dyt": "_target_: parts.DyT\n", "norm/dyt_steep": "_target_: parts.DyT\nalpha: 2.0\n"})
    assert compose(["norm=dyt"]).config.norm.alpha == 0.5
    assert compose(["norm=dyt", "norm.alpha=1"]).config.norm.alpha == 1
    assert compose(["norm=dyt_steep"]).config.norm.alpha == 2
    run = identity.run_id(identity.recipe(compose(["norm=dyt", "norm.alpha=2"]).config))
    assert run == identity.run_id(identity.recipe(compose(["norm=dyt_steep"]).config)), "one run, whichever way"
    assert any(line.startswith("  alpha: 0.5  # the part's own") for line in listed_fields(typed_choices(["norm=dyt"])))


ENDS = """
from ablab.transformer.pruning.strategies import Rule

class Ends(Rule):
    def __init__(self, *, reverse: bool = False): pass
"""


def test_a_finished_run_is_pruned_by_a_strategy_whose_defaults_are_in_its_signature(study):
    study(ENDS, {"pruning/ends": "_target_: parts.Ends\ncurves: [decoder]\ndepths: null\n"})
    recorded = compose([]).config.model_dump(serialize_as_any=True)
    assert reopen(recorded, ["pruning=ends"]).pruning == compose(["pruning=ends"]).config.pruning
    assert reopen(recorded, ["pruning=ends", "pruning.reverse=true"]).pruning.own["reverse"] is True


def test_values_of_ours_need_no_part(study):
    study(
        DYT,
        {
            "norm/fixed": "kind: scalenorm\nlearn_g: false\n",
            "norm/again": "_target_: ablab.transformer.model.norms.ScaleNorm\nlearn_g: true\n",
        },
    )
    plain = identity.recipe(compose(["norm=scalenorm", "norm.learn_g=false"]).config)
    assert identity.recipe(compose(["norm=fixed"]).config) == plain
    ours = identity.recipe(compose(["norm=scalenorm"]).config)
    assert identity.recipe(compose(["norm=again"]).config) == ours, "a part of ours by its target is ours"


def test_an_option_of_the_users_goes_before_ours_of_its_name(study, capsys):
    """As in Hydra's search path. The recipe says which it is, and so does the run."""
    name = study(DYT, {"norm/dyt": OPTION, "norm/pre": OPTION}, config="nothing = 1")
    Path("conf/config.yaml").write_text("unrelated: true\n")
    ours = identity.recipe(compose(["norm=rmsnorm"]).config)
    assert ours["norm"] == {"kind": "rmsnorm"}
    for words in (["norm=dyt"], ["norm=pre"], []):
        assert identity.recipe(compose(words).config)["norm"]["_target_"] == f"{name}.DyT"
    assert main([*TRAIN]) == 0
    assert f"norm is {name}.DyT of {Path.cwd()}/{name}.py (" in capsys.readouterr().out


def test_it_trains_is_found_again_and_keeps_its_source(study, capsys, tmp_path):
    name = study(DYT, {"norm/dyt": OPTION})
    assert main([*TRAIN]) == 0
    (run,) = Path("outputs/smoke/runs").glob("r*")
    assert (run / "parts" / f"{name}.py").read_text() == DYT
    assert json.loads((run / "parts" / "norm.json").read_text())["from"] == str(tmp_path)
    assert main([*TRAIN]) == 0
    assert "nothing is trained again" in capsys.readouterr().out
    assert main(["report", f"runs={run.name}", "outputs=outputs/smoke", "resamples=1000"]) == 0
    assert "norm=dyt," in capsys.readouterr().out


def test_a_received_run_imports_nothing_and_says_what_it_needs(study, capsys, tmp_path):
    """Its record names a part; only the user's own options may."""
    name = study(DYT, {"norm/dyt": OPTION})
    assert main([*TRAIN]) == 0
    (run,) = Path("outputs/smoke/runs").glob("r*")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move("outputs", elsewhere / "outputs")
    os.chdir(elsewhere)
    line = ["translate", f"run=outputs/smoke/runs/{run.name}"]
    with_its_options = [*line, "--config-dir", str(tmp_path / "conf")]
    said = refused(capsys, *line)
    for part in (run.name, f"norm is {name}.DyT", "no option here names", "--config-dir", str(tmp_path), "parts"):
        assert part in said
    # The module is importable; that alone must not be enough.
    Path(f"{name}.py").write_text("raise SystemExit('imported')\n")
    assert "no option here names" in refused(capsys, *line)
    # With the study's options the part is named and found in the study's folder; its code must be what was trained.
    (tmp_path / f"{name}.py").write_text(DYT.replace("torch.tanh", "torch.sin"))
    assert "has other code" in refused(capsys, *with_its_options)


def refused(capsys, *line):
    """Return the one line that says why a command was refused."""
    capsys.readouterr()
    assert main(line) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_the_folder_of_options_can_be_named_in_hydras_ways(study, tmp_path, monkeypatch, capsys):
    study(DYT, {"norm/mine": OPTION})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    conf = tmp_path / "conf"
    for words in (
        ["--config-dir", str(conf)],
        [f"--config-dir={conf}"],
        ["-cd", "../conf"],
        [f"hydra.searchpath=[{conf}]"],
        [f"hydra.searchpath=['file://{conf}']"],
    ):
        assert main(["train", "norm=mine", "norm.alpha=-1", *words]) == 2
        assert "norm.alpha=-1: allowed: greater than 0" in capsys.readouterr().err, words
    assert main(["train", "norm=mine"]) == 2
    assert "unknown option" in capsys.readouterr().err
    assert main(["train", "--config-dir", "nowhere"]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_trains_it_in_processes_of_its_own(study):
    """As a user types it; the processes of the launcher know the study's folder and its options too."""
    study(DYT, {"norm/dyt": OPTION})
    Path("experiments").mkdir()
    Path("experiments/mine.yaml").write_text(
        "question: does it help?\nfactors:\n  norm: [pre, dyt]\nbaseline: {norm: pre}\nseeds: [1]\n"
        "common: [pruning=none, logger=none, trainer.threads=1, model.d_model=16, model.d_ff=16]\n"
    )
    line = [sys.executable, "-m", "ablab", "train", "-m", "experiment=mine", "smoke=true"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 runs: 2 finished" in done.stdout
    assert "Next: ablab report experiment=mine" in done.stdout


def test_a_part_may_inherit_its_constructor(study):
    name = study(
        "from ablab.transformer.model.norms import ScaleNorm\n\nclass Halved(ScaleNorm):\n    def forward(self, x):\n"
        "        return super().forward(x) / 2\n",
        {"norm/halved": "_target_: parts.Halved\nlearn_g: false\n"},
    )
    part = outside_parts(compose(["norm=halved"]).config)["norm"]
    assert part.file == Path.cwd() / f"{name}.py"
    assert list(part.sources()) == [f"{name}.py"]
    with pytest.raises(UserError, match=r"norm.learn_g=3: allowed"):
        compose(["norm=halved", "norm.learn_g=3"])


def test_needs_are_said_by_the_part_and_checked(study):
    study(DYT.replace('    """gamma', '    needs = {"init": "xavier"}\n    """gamma'), {"norm/dyt": OPTION})
    with pytest.raises(UserError, match=r"norm=.*DyT: needs init=xavier, got init=small; allowed: init=xavier"):
        compose(["norm=dyt"])
    assert compose(["norm=dyt", "init=xavier"]).config.init.kind == "xavier"


FAULTY = DYT.replace(
    "return self.gamma", 'if not self.training: raise ValueError("not now\\n")\n        return self.gamma'
)


def test_a_part_that_raises_is_named_with_its_line(study, tmp_path, capsys):
    """A traceback through Lightning tells little about one's own file."""
    name = study(FAULTY, {"norm/faulty": "_target_: parts.DyT\nalpha: 0.5\n"})
    words = ("norm=faulty", "smoke=true", "logger=none", "data=numbers", "model=tiny", f"outputs={tmp_path}/outputs")
    assert main(["train", *words]) == 1
    number = 1 + next(i for i, line in enumerate(FAULTY.splitlines()) if "raise ValueError" in line)
    assert f"error: {name}.py, line {number}: ValueError: not now\n" == capsys.readouterr().err


def test_a_copy_of_our_folder_means_what_ours_does(tmp_path, monkeypatch):
    """As in a checkout beside an installed ablab, or where someone copies conf/ to change a file of it."""
    lines = (["norm=scalenorm", "drophead=vshape"], ["data=multi30k", "data.path=."], ["pruning=none", "optim=cosine"])
    monkeypatch.setattr("ablab.transformer.data.multi30k.Multi30k.train_digest", lambda corpus: "0" * 64)
    monkeypatch.setattr("ablab.transformer.data.multi30k.Multi30k.is_plain", lambda corpus: True)
    ours = [identity.recipe(compose(line).config) for line in lines]
    shutil.copytree(shipped_conf(), tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    assert [identity.recipe(compose(line).config) for line in lines] == ours
    with pytest.raises(UserError, match=r"no such key: data\.pth"):
        compose(["data=multi30k", "data.pth=."])


def test_a_part_is_the_one_beside_the_file_that_names_it(study, tmp_path, monkeypatch):
    """Also where another folder of options has a module of that name."""
    name = study(DYT, {"norm/mine": OPTION})
    theirs = tmp_path / "theirs"
    (theirs / "conf" / "norm").mkdir(parents=True)
    (theirs / f"{name}.py").write_text("class Other:\n    pass\n")
    (theirs / "conf" / "norm" / "other.yaml").write_text(f"_target_: {name}.Other\n")
    monkeypatch.setenv("ABLAB_CONFIG_DIR", str(theirs / "conf"))
    assert outside_parts(compose(["norm=mine"]).config)["norm"].folder == tmp_path
    assert outside_parts(compose(["norm=other"]).config)["norm"].folder == theirs


@pytest.mark.parametrize("needed", ["layernorm", "pre"])
def test_needs_may_name_an_option_or_its_kind(needed, study):
    named = f'    needs = {{"norm": "{needed}"}}\n    """gamma'
    study(DYT.replace('    """gamma', named), {"init/dyt": OPTION})
    assert compose(["init=dyt", "norm=pre"]).config.norm.kind == "layernorm"
    with pytest.raises(UserError, match=f"needs norm={needed}, got norm=scalenorm"):
        compose(["init=dyt", "norm=scalenorm"])


def test_an_option_inherits_what_its_defaults_imply(study, tmp_path):
    study(DYT, {"norm/mypost": "defaults: [post]\n"})
    assert compose(["norm=mypost"]).config.placement.kind == "post"
    with pytest.raises(UserError, match="norm=mypost means placement=post"):
        compose(["norm=mypost", "placement=pre"])


def test_a_misspelt_field_of_another_group_is_refused(study):
    study(DYT, {"model/typo": "# @package _global_\ndefaults: [tiny]\nposition: {max_len: 5}\n"})
    with pytest.raises(UserError, match=r"position\.max_len=5: no option of position has it; .*position\.max_length"):
        compose(["model=typo"])
