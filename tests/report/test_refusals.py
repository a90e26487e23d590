"""Words that ask for no report, and names that are no folders."""

import pytest

from tests.report.conftest import typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say experiment=<name>"),
        (["runs=r1", "where=x=1"], "not together with runs="),
        (["where=layerdrp=0.1"], "did you mean layerdrop?"),
        (["where=layerdrop=0.9"], "none of the 20 finished runs"),
        (["where=layerdrop"], "allowed: key=value"),
        (["where=layerdrop=0.1 test_bleu>30"], "choosing runs by it"),
        (["where=study=x"], "study is of lists of runs alone"),
        (["where=id=r1"], "id is of lists of runs alone"),
        (["where=ended<2030-01-01"], "ended is of lists of runs alone"),
        (["runs=nobody"], "no such run"),
        (["runs=r1", "norm=pre"], "norm=pre: with runs=, where= and table= allowed"),
        (["runz=r1"], "runz: no such key; did you mean runs?"),
        (["layerdorp=0.1"], "did you mean layerdrop?"),
        (["metric=bleu"], "did you mean test_bleu?"),
        (["baseline=x"], "baseline=x: no such arm"),
        (["resamples=5"], "resamples=5"),
    ],
)
def test_what_cannot_be_is_one_line(reported, words, said):
    is_study = not words or words[0].startswith(("metric", "baseline", "resamples"))
    line = [*words, *(reported.words if is_study and words else []), *([] if is_study else [reported.words[1]])]
    code, _, err = typed(*line)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_a_store_without_the_runs_is_one_line(tmp_path, reported):
    code, _, err = typed(reported.words[0], f"outputs={tmp_path / 'nowhere'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "none of its runs has begun in" in err
    code, _, err = typed("where=norm=pre", f"outputs={tmp_path / 'nowhere'}")
    assert (code, err.count("\n")) == (2, 1)
    assert "no run has finished in" in err
    assert not (tmp_path / "nowhere").exists()


def test_an_arm_is_no_path(tmp_path):
    name = "../../x/ä"
    words = (f"experiment={tmp_path / 'x.yaml'}", "logger=none")
    (tmp_path / "x.yaml").write_text(
        "question: x\nseeds: [1]\ndesign: arms\n"
        f"arms: {{plain: [], '{name}': [norm=post], {'y' * 300}: [norm=scalenorm]}}\n"
    )
    store = tmp_path / "outputs"
    fill(words, {"plain": 0.2, name: 0.3, "y" * 300: 0.3}, outputs=store)
    for arm in (name, "y" * 300):
        assert typed(*words, f"outputs={store}", f"baseline={arm}", "resamples=1000")[0] == 0
    assert len(list((store / "reports").iterdir())) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"x.yaml", "outputs"}
