"""Arms that are the same runs under several names: a report finds them by any of these, and says what they are."""

import pytest

from ablab.commands.cli import main
from ablab.judge.effects import effect_lines
from ablab.judge.selection_of_study import of_study
from ablab.statistics.interval import NotTestable
from ablab.study.definition import define
from tests.report.conftest import EXPERIMENT
from tests.report.synthetic import fill
from tests.translation import MEASURES

LINE = ("norm=pre,scalenorm", "norm.learn_g=true,false", "seed=1,2,3", "logger=none")
PRE = "norm=pre,norm.learn_g=True = norm=pre,norm.learn_g=False"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep whose baseline is one arm of two names."""
    outputs = tmp_path_factory.mktemp("collapsed")
    errors = {arm.name: 0.2 + 0.1 * number for number, arm in enumerate(define((*LINE, f"outputs={outputs}")).arms)}
    assert next(iter(errors)) == PRE
    fill(LINE, errors, outputs=outputs)
    return outputs


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "words",
    [
        (f"baseline={PRE}",),
        pytest.param((), marks=SLOW),
        pytest.param(("baseline=norm=pre,norm.learn_g=False",), marks=SLOW),
    ],
)
def test_the_baseline_may_be_one_of_them(swept, words, capsys):
    assert main(["report", *LINE, f"outputs={swept}", "resamples=1000", *words]) == 0
    assert "PreNorm with norm.learn_g=True = PreNorm with norm.learn_g=False (baseline)" in capsys.readouterr().out


def test_any_arm_may_be_the_baseline_and_no_other_name_is(swept, capsys):
    line = ["report", *LINE, f"outputs={swept}", "resamples=1000"]
    assert main([*line, "baseline=norm=scalenorm,norm.learn_g=False"]) == 0
    assert "ScaleNorm with norm.learn_g=False (baseline)" in capsys.readouterr().out
    assert main([*line, "baseline=norm=post"]) == 2
    assert "no such arm" in capsys.readouterr().err


def test_cells_that_coincide_are_not_said_to_have_diverged(tmp_path):
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "layerdrop: [0, 0.1, 0.2, 0.5]", "norm: [scalenorm, pre]\n  norm.learn_g: [true, false]"
    )
    text = text[: text.index("claims:")].replace("baseline: {layerdrop: 0}", "baseline: {norm: scalenorm}")
    (tmp_path / "x.yaml").write_text(text)
    words = (f"experiment={tmp_path / 'x.yaml'}",)
    errors = {arm.name: 0.3 for arm in define((*words, f"outputs={tmp_path}")).arms}
    with pytest.raises(NotTestable, match="some levels of one factor have no effect under others"):
        effect_lines(of_study(fill(words, errors, outputs=tmp_path)), MEASURES["test_bleu"], {})


def test_a_run_that_two_arms_share_is_counted_once(tmp_path):
    """Arms that differ by pruning alone are trained once."""
    words = ("pruning=every_other,first", "seed=1,2,3", "logger=none", f"outputs={tmp_path}")
    fill(words[:-1], dict.fromkeys((arm.name for arm in define(words).arms), 0.3), outputs=tmp_path)
    selection = of_study(define(words))
    assert [len(arm.runs) for arm in selection.arms] == [3, 3]
    assert len(selection.where(lambda run: run.has_ended)) == 3
