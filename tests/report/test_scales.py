"""A study of two vocabularies, finished: what its report compares, and what it says of the rest."""

from dataclasses import replace

import pytest

from ablab.api.run import Run
from ablab.commands.diff import difference
from ablab.judge.arms import arm_line
from ablab.judge.claims import judge
from ablab.judge.comparisons import pictured
from ablab.judge.estimates import nearly_failed
from ablab.judge.prospects import known_noise
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from tests.report.conftest import EXPERIMENT
from tests.report.synthetic import fill
from tests.report.test_evidence import with_vocabulary
from tests.translation import MEASURES

CLAIMS = """
claims:
  - {arm: data.vocab_size=600, expect: less, metric: valid_loss, margin: 0.01}
  - {arm: data.vocab_size=600, expect: less, metric: test_loss, margin: 0.01}
  - {arm: data.vocab_size=600, expect: equal, metric: valid_loss_per_character, margin: 0.5}
  - {arm: layerdrop=0.1, expect: equal, metric: valid_loss, margin: 0.5}
"""
ARMS = {"usual": "[]", "data.vocab_size=600": "[data.vocab_size=600]", "layerdrop=0.1": "[layerdrop=0.1]"}
REASON = "is per token, and the vocabularies differ (data.vocab_size 600, 8000); nats per character can be compared"


@pytest.fixture(scope="module")
def selection(tmp_path_factory):
    place = tmp_path_factory.mktemp("vocabularies")
    arms = "".join(f"  {name}: {words}\n" for name, words in ARMS.items())
    head = EXPERIMENT[: EXPERIMENT.index("factors:")].replace("smoke=false", "smoke=false, data.vocab_size=8000")
    text = f"{head}design: arms\narms:\n{arms}seeds: [1, 2, 3, 4, 5]\n{CLAIMS}"
    (place / "x.yaml").write_text(text.replace("usual: []", "usual: [layerdrop=0]"))
    return of_study(_filled(place))


def _filled(place):
    return fill((f"experiment={place / 'x.yaml'}",), dict.fromkeys(ARMS, 0.3), outputs=place)


def test_claims_in_losses_per_token_are_not_testable_between_vocabularies(selection):
    per_token, of_test, per_character, of_layerdrop = judge(selection)
    assert [line.outcome for line in (per_token, of_test)] == ["not testable", "not testable"]
    assert [line.reason for line in (per_token, of_test)] == [f"validation loss {REASON}", f"test loss {REASON}"]
    assert (per_character.outcome, per_character.unit) == ("supported", "nats per character")
    assert of_layerdrop.outcome == "supported"


def test_an_arm_of_another_vocabulary_says_so(selection, tmp_path):
    _, other, layerdrop = selection.arms
    notes = [arm_line(selection, arm, tmp_path).notes for arm in (other, layerdrop)]
    assert f"validation loss {REASON}" in notes[0]
    assert not any("per token" in note for note in notes[1])


def test_learning_curves_of_several_vocabularies_are_drawn_per_character_too(selection):
    units = {series.key: series.y for series in pictured(selection) if series.key.startswith("valid_loss")}
    assert units == {
        "valid_loss": "nats per token of the arm's own vocabulary",
        "valid_loss_per_character": "nats per character",
    }


def test_those_of_one_vocabulary_are_drawn_once(reported):
    found = [series for series in reported.data["series"] if series["key"].startswith("valid_loss")]
    assert [series["y"] for series in found] == ["nats per token"]


def test_noise_is_that_of_the_arms_on_one_scale(selection):
    noise = known_noise(_filled(selection.outputs), ["valid_loss", "valid_loss_per_character", "test_bleu"])
    assert {metric: found.runs for metric, found in noise.items()} == {
        "valid_loss": 10,
        "valid_loss_per_character": 15,
        "test_bleu": 15,
    }


@pytest.mark.parametrize(("names", "is_found"), [((), True), (("layerdrop=0.1",), False)])
def test_a_run_nearly_failed_by_the_scatter_of_arms_on_its_scale(reported, names, is_found):
    usual, other, *others = of_study(reported.study).arms
    run = other.runs[0]
    poor = run.selected.model_copy(update={"scores": {**run.selected.scores, "loss": run.selected.scores["loss"] + 1}})
    poor_run = replace(run, record=run.record.model_copy(update={"selected": poor}))
    changed = replace(of_study(reported.study), arms=[usual, ArmRuns(other.name, [poor_run, *other.runs[1:]]), *others])
    found = nearly_failed(with_vocabulary(changed, *names), MEASURES["valid_loss"])
    assert bool(found.get(other.name)) == is_found


def test_two_runs_of_two_vocabularies_differ_in_what_can_be_compared(selection):
    first, second = (Run(arm.runs[0].folder) for arm in selection.arms[:2])
    found = difference(first, second)
    gaps = {pair.key: pair.difference for pair in found.scores}
    assert gaps["valid_loss"] is None
    assert gaps["valid_loss_per_character"] == pytest.approx(
        second.scores["valid_loss_per_character"] - first.scores["valid_loss_per_character"]
    )
    assert any("the vocabularies differ (data.vocab_size 600, 8000)" in note for note in found.notes)
