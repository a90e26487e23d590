"""An option that cannot be read is told in one line where it is chosen, and stops no other line."""

from pathlib import Path

import pytest

from ablab.code.load import load
from ablab.commands.cli import main
from ablab.config import compose
from ablab.config.kinds import chosen_part
from ablab.errors import UserError
from tests.parts.conftest import DYT

OPTION = "_target_: parts.DyT\nalpha: 0.5\n"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"norm/dyt": "alpha: 0.5\n"}, "norm.kind: missing; an option of one's own names its part by _target_"),
        ({"norm/dyt": "kind: tanh\n"}, "norm.kind=tanh: unknown"),
        ({"norm/dyt": OPTION + "kind: dyt\n"}, r"kind=dyt beside _target_=.*allowed: _target_ alone"),
        ({"norm/dyt": OPTION + "beta: 1\n"}, "norm.beta=1: no such key for this option"),
        ({"norm/dyt": OPTION.replace("0.5", "-1")}, "norm.alpha=-1: allowed: greater than 0"),
        (
            {"norm/dyt": "_target_: DyT\n"},
            "dyt.yaml: _target_=DyT: no dotted name; allowed: <module>.<class or function>",
        ),
        ({"norm/dyt": "_target_: parts.\n"}, "dyt.yaml: _target_=parts_.*: no dotted name"),
        ({"norm/dyt": "_target_:\n"}, "dyt.yaml: _target_=None: no dotted name"),
        ({"norm/dyt": "_target_: parts.Absent\n", "norm/empty": ""}, "norm/dyt.yaml: .*there is no parts_.*Absent"),
        ({"norm/dyt": "_target_: parts.Absent\n"}, "there is no parts_.*Absent"),
        ({"norm/dyt": "norm:\n  _target_: parts.DyT\n"}, "norm: a section, in a file of the fields of norm; allowed"),
        ({"norm/dyt": "# mine\n# @package _global_\nnorm: {alpha: 1}\n"}, "allowed: .* as the first line"),
        ({"norm/dyt": "_target_: [\n"}, "conf/norm/dyt.yaml: not readable as YAML"),
        ({"norm/dyt": "_target_: parts.Untyped\n"}, "alpha has no type; allowed: a type such as float"),
        ({"norm/dyt": "_target_: parts.Bare\n"}, "norm.alpha: missing; the YAML file must set it$"),
        (
            {"norm/dyt": "_target_: parts.Misspelt\n"},
            r"norm.dmodel: missing; .* must set it; did you mean d_model, which norm parts are given\?",
        ),
    ],
)
def test_a_bad_option_is_refused_in_one_line(study, options, why):
    study(
        DYT + "class Untyped:\n    def __init__(self, d_model, alpha): pass\n"
        "class Bare:\n    def __init__(self, d_model, alpha: float): pass\n"
        "class Misspelt:\n    def __init__(self, dmodel: int): pass\n",
        options,
    )
    with pytest.raises(UserError, match=why) as error:
        compose(["norm=dyt"])
    assert "\n" not in str(error.value)


def test_what_editors_and_systems_leave_beside_options_is_none(study):
    study(DYT, {"norm/dyt": OPTION})
    for name in (".#dyt", "._dyt"):
        Path("conf/norm", f"{name}.yaml").write_bytes(b"\x00\x05\x16\x07\xff")
    Path("conf/norm/.#gone.yaml").symlink_to("me@here.12:3")
    compose(["norm=dyt"])
    with pytest.raises(UserError, match=r"norm=zzz: unknown option; allowed: (?!.*[#_]dyt)"):
        compose(["norm=zzz"])


@pytest.mark.parametrize(
    "bad",
    [
        "_target_: parts.Untyped\n",
        "_target_: parts.Absent\n",
        "_target_: [\n",
        "_target_: broken.Part\n",
        "_target_: parts.",
        "x: 1\n",
        "",
    ],
)
def test_a_bad_option_stops_no_line_that_does_not_choose_it(study, bad):
    """Somebody drafts a part while others train and report."""
    Path("broken.py").write_text("def (:\n")
    study(
        DYT + "class Untyped:\n    def __init__(self, d_model, alpha): pass\n",
        {"norm/dyt": OPTION, "norm/bad": bad},
    )
    for words in (["norm=dyt"], ["norm=pre"], ["schedule=cosine"]):
        assert compose(words).config
    with pytest.raises(UserError, match=r"has no effect with norm=pre; allowed with norm=dyt"):
        compose(["norm=pre", "norm.alpha=1"])
    with pytest.raises(UserError):
        compose(["norm=bad"])


SIGNED = (
    "from typing import Annotated, Literal\nfrom pydantic import Field\nfrom ablab.fields import Positiv\n\nM = 4\n\n"
    "class Part:\n    def __init__(self, d_model: int, *, SIGNATURE): pass\n"
)
OF_PART = {"norm/mine": "_target_: parts.Part\n"}


@pytest.mark.parametrize(
    ("source", "options", "why"),
    [
        ("import drafted\n" + DYT.replace("torch.tanh(", "drafted.tanh("), {"norm/mine": OPTION}, "drafted.py, line 1"),
        (SIGNED.replace("SIGNATURE", "alpha: Annotated[int, Field(le=M)]"), OF_PART, "M is computed"),
        (SIGNED.replace("SIGNATURE", "alpha: Literal[M]"), OF_PART, "M is computed"),
        (SIGNED.replace("SIGNATURE", "alpha: Positiv"), OF_PART, "ablab.fields has no Positiv"),
        (SIGNED.replace("SIGNATURE", "alpha: 'int |'"), OF_PART, "cannot be read as a type"),
        (SIGNED.replace("SIGNATURE", "alpha: int[3]"), OF_PART, "cannot be read as a type"),
        (SIGNED.replace("SIGNATURE", "alpha: Literal = 1"), OF_PART, "Literal"),
        (SIGNED.replace("SIGNATURE", "kind: str = 'a'"), OF_PART, "kind: no field can have this name"),
        (SIGNED.replace("SIGNATURE", "own: str = 'a'"), OF_PART, "own: no field can have this name"),
        (SIGNED.replace("SIGNATURE", "_a: int = 1"), OF_PART, "_a: no field can have this name"),
        (DYT + "    needs = {'inti': 'small'}\n", {"norm/mine": "_target_: parts.DyT\n"}, "allowed: kinds by group"),
        (DYT, {"norm/mine": "defaults: [nosuch]\n" + OPTION}, "nosuch: unknown option of norm"),
        (DYT, {"norm/mine": "defaults: [mine]\n" + OPTION}, "mine builds on itself"),
        (DYT, {"norm/mine": "defaults: 3\n" + OPTION}, "defaults: 3: no list"),
        (DYT, {"norm/mine": "# @package _global_\nnorm:\n"}, "norm: no fields"),
        (DYT, {"norm/mine": "defaults: [{override /placment: post}]\n" + OPTION}, "placment"),
    ],
)
def test_a_draft_is_told_in_one_line_where_it_is_chosen_and_nowhere_else(study, source, options, why):
    Path("drafted.py").write_text("def (:\n")
    study(source, options)
    assert compose(["layerdrop=0.1"]).config
    assert main(["train", "--cfg", "job"]) == 0
    with pytest.raises(UserError, match=why) as error:
        compose(["norm=mine"])
    assert "\n" not in str(error.value)


def test_a_script_that_ends_its_process_ends_no_other(study):
    """One without a guard, as users have them beside their parts."""
    study(DYT + "import sys\nsys.exit(0)\n", {"norm/dyt": OPTION})
    config = compose(["norm=dyt"]).config
    with pytest.raises(UserError, match=r"cannot be imported \(SystemExit: 0\)"):
        load(chosen_part(config.norm))
