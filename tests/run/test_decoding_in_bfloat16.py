"""`decoding.precision=bf16`: an evaluation of its own, which is compared with no other."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.judge.evidence import check_comparable
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.interval import NotTestable
from ablab.tasks import identity
from ablab.transformer.translation import evaluate
from ablab.transformer.translation.texts import scored_again


def evaluated(store, *words):
    """The evaluation that the run's line with these words adds, or has."""
    line = (*store.words, "pruning=none", *words)
    assert main(["train", *line]) == 0
    return store.run.evaluation(identity.evaluation_id(identity.evaluation(compose(line).config)))


def test_it_gives_an_evaluation_of_its_own_with_the_loss_of_the_model(store, capsys):
    own, rounded = evaluated(store), evaluated(store, "decoding.precision=bf16")
    assert own.evaluation_id != rounded.evaluation_id
    assert rounded.signatures == {**own.signatures, "engine": "own bf16"}
    assert rounded.scores["loss"] == own.scores["loss"]
    assert "own bf16" in capsys.readouterr().out
    one, other = (
        ArmRuns(name, [ArmRun.read(store.run, each.evaluation_id)]) for name, each in (("a", own), ("b", rounded))
    )
    with pytest.raises(NotTestable, match=r"signatures differ between a and b: .*own bf16"):
        check_comparable(one, other)
    assert [*scored_again(rounded, store.run)] == []


def test_the_settings_of_other_evaluations_do_not_name_it(store):
    usual, rounded = (
        identity.evaluation(compose((*store.words, f"decoding.precision={each}")).config)["decoding"]
        for each in ("fp32", "bf16")
    )
    assert rounded == {**usual, "precision": "bf16"}
    assert usual == identity.evaluation(compose(store.words).config)["decoding"]


def test_a_curve_is_measured_and_timed_in_it(store):
    words = ("decoding.precision=bf16", "pruning.curves=[decoder]", "pruning=first", "logger=none", "save=none")
    assert main(["prune", f"run={store.run.path}", *words]) == 0
    curve = store.run.curves()[-1]
    assert curve.settings["decoding"]["precision"] == "bf16"
    for point in curve.points:
        assert store.run.evaluation(point.evaluation_id).signatures["engine"] == "own bf16"
        assert point.sentences_per_second > 0


@pytest.mark.parametrize(("has_it", "said", "beams"), [(False, True, 2), (True, False, 3), (None, False, 5)])
def test_a_processor_that_emulates_it_is_told(has_it, said, beams, store, monkeypatch, capsys):
    monkeypatch.setattr(evaluate, "fast_bfloat16", lambda: has_it)
    evaluated(store, "decoding.precision=bf16", f"decoding.beam_size={beams}")
    assert ("this processor emulates bfloat16" in capsys.readouterr().out) == said


def test_it_is_refused_with_another_engine(store, capsys):
    assert main(["train", *store.words, "decoding.engine=ctranslate2", "decoding.precision=bf16"]) == 2
    assert "allowed with decoding.engine=own" in capsys.readouterr().err
