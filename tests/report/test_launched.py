"""What a study said when it was first launched, and reports that are about something else than that."""

import json
import shutil

import pytest

from ablab.judge.selection_of_study import of_study
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.conftest import ERRORS, EXPERIMENT, typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")


def test_a_claim_that_came_later_is_exploratory(reported, tmp_path):
    assert {claim["exploratory"] for claim in reported.data["claims"]} == {None}
    later, outputs = tmp_path / "claims.yaml", tmp_path / "outputs"
    shutil.copytree(reported.study.outputs, outputs)
    later.write_text(EXPERIMENT.replace("margin: 0.5", "margin: 0.4").replace("4, 5]", "4, 5, 6]"))
    code, out, _ = typed(f"experiment={later}", f"outputs={outputs}", "resamples=1000")
    assert code == 0
    data = json.loads((outputs / "reports" / "claims" / "report.json").read_text())
    claims = data["claims"]
    assert "the claim came, or was changed, after" in claims[0]["exploratory"]
    # Seeds that came later decide no registered claim.
    assert {claim["exploratory"] for claim in claims[1:]} == {None}
    assert "seeds 6 were added after the first launch, and decide no registered claim" in data["notes"]
    assert "4 of 24 runs are missing: 4 planned" in out


def test_what_others_have_published_may_be_put_right(reported, tmp_path):
    later, outputs = tmp_path / "claims.yaml", tmp_path / "outputs"
    shutil.copytree(reported.study.outputs, outputs)
    later.write_text(EXPERIMENT.replace("+2 BLEU, source: here", "+3 BLEU, source: there"))
    assert typed(f"experiment={later}", f"outputs={outputs}", "resamples=1000")[0] == 0
    claims = json.loads((outputs / "reports" / "claims" / "report.json").read_text())["claims"]
    assert "+3 BLEU" in {claim["published"] for claim in claims}
    assert {claim["exploratory"] for claim in claims} == {None}


def test_leaving_out_seeds_is_told_and_replaces_nothing(reported):
    declared = reported.text("report.json")
    code, _, _ = typed(*reported.words, "seed=1,2,3", "resamples=1000")
    assert (code, reported.text("report.json")) == (0, declared)
    aside = json.loads((reported.folder.parent / "claims-seeds-1-2-3" / "report.json").read_text())
    assert aside["notes"][0] == "seeds 4, 5 of the first launch are left out"
    assert {claim["exploratory"] for claim in aside["claims"]} == {aside["notes"][0]}


def test_settings_that_came_later_make_another_study(tmp_path):
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    words = (f"experiment={tmp_path / 'x.yaml'}", f"outputs={tmp_path}")
    register(define(words))
    code, _, err = typed(*words, "optim.lr=0.002")
    assert code == 2
    assert f"; launched there was: {' '.join(words)}; allowed: the settings of then" in err

    later = (words[0], "optim.lr=0.002")
    fill(later, {f"layerdrop={v}": 0.3 for v in ("0", "0.1", "0.2", "0.5")}, outputs=tmp_path)
    code, _, err = typed(*later, words[1], "resamples=1000")
    assert (code, err) == (0, "")
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.startswith("x-")
    claims = json.loads((folder / "report.json").read_text())["claims"]
    assert {claim["exploratory"] for claim in claims} == {"settings differ from those of the first launch"}


def _judged_after(reported, tmp_path, content):
    """The claims of the report once the experiment's file has changed."""
    later, outputs = tmp_path / "claims.yaml", tmp_path / "outputs"
    shutil.copytree(reported.study.outputs, outputs)
    later.write_text(content)
    code, _, err = typed(f"experiment={later}", f"outputs={outputs}", "resamples=1000")
    assert (code, err) == (0, "")
    return json.loads((outputs / "reports" / "claims" / "report.json").read_text())


def test_a_claim_that_was_dropped_is_judged_all_the_same(reported, tmp_path):
    """A smaller family would need less evidence for what is left of it."""
    first, *others = [line for line in EXPERIMENT.splitlines(keepends=True) if line.startswith("  - {")]
    data = _judged_after(reported, tmp_path, EXPERIMENT.replace(first, ""))
    before = {claim["words"]: claim["corrected"] for claim in reported.data["claims"]}
    assert {claim["words"]: claim["corrected"] for claim in data["claims"]} == before
    assert len(before) == len(others) + 1
    said = "no longer in the file, and judged as it was registered: "
    assert [note for note in data["notes"] if note.startswith(said)] == [
        f"{said}layerdrop=0.1 above layerdrop=0 in test_bleu, margin 0.5"
    ]


def test_an_arm_that_was_dropped_keeps_its_claim_in_the_family_and_is_told(reported, tmp_path):
    """Otherwise the verdicts could be had before all that was registered has ended."""
    gone = [line for line in EXPERIMENT.splitlines(keepends=True) if "arm: layerdrop=0.5" in line]
    content = EXPERIMENT.replace("0.2, 0.5]", "0.2]")
    for line in gone:
        content = content.replace(line, "")
    declared = reported.data
    assert _judged_after(reported, tmp_path, content) == declared  # it replaces nothing
    (aside,) = (tmp_path / "outputs" / "reports").glob("claims-arms-*")
    data = json.loads((aside / "report.json").read_text())
    assert "arms of the first launch are left out: layerdrop=0.5" in data["notes"]
    assert len(data["claims"]) == len(declared["claims"])
    reasons = [claim["reason"] for claim in data["claims"] if claim["arm"] == "layerdrop=0.5"]
    assert reasons == ["layerdrop=0.5 is no arm of the study any more"] * len(gone)
    assert {claim["exploratory"] for claim in data["claims"]} == {data["notes"][0]}


def _compared(claims):
    return {(claim["arm"], claim["baseline"], claim["about"], claim["difference"]) for claim in claims}


@pytest.mark.parametrize("study", ["metric: test_chrf", "baseline: {layerdrop: 0.2}"])
def test_what_claims_leave_to_the_study_is_registered_with_them(reported, tmp_path, study):
    content = EXPERIMENT.replace("  - {arm: layerdrop=0.2", "  # - {arm: layerdrop=0.2") + f"{study}\n"
    claims = _judged_after(reported, tmp_path, content)["claims"]
    later = [claim for claim in claims if claim["exploratory"]]
    assert {"the claim came, or was changed, after the study's first launch"} == {
        claim["exploratory"] for claim in later
    }
    assert _compared(later).isdisjoint(_compared(reported.data["claims"]))
    assert _compared(claim for claim in claims if not claim["exploratory"]) == _compared(reported.data["claims"])


def test_another_way_to_judge_makes_another_study(tmp_path):
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    words = (f"experiment={tmp_path / 'x.yaml'}", f"outputs={tmp_path}")
    register(define(words))
    greedy = (words[0], "decoding=greedy")
    fill(greedy, ERRORS, outputs=tmp_path)
    assert typed(*greedy, words[1], "resamples=1000")[0] == 0
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.startswith("x-")
    claims = json.loads((folder / "report.json").read_text())["claims"]
    assert {claim["exploratory"] for claim in claims} == {"ways to judge differ from those of the first launch"}


def test_arms_that_have_other_names_since_keep_their_claims(reported, tmp_path):
    content = EXPERIMENT.replace(
        "layerdrop: [0, 0.1, 0.2, 0.5]",
        "rate: {none: [], low: [layerdrop=0.1], middle: [layerdrop=0.2], high: [layerdrop=0.5]}",
    )
    for name, rate in (("low", "0.1"), ("middle", "0.2"), ("high", "0.5")):
        content = content.replace(f"arm: layerdrop={rate}", f"arm: rate={name}")
    data = _judged_after(reported, tmp_path, content)
    names = (
        "layerdrop=0 is rate=none, layerdrop=0.1 is rate=low, layerdrop=0.2 is rate=middle, layerdrop=0.5 is rate=high"
    )
    assert data["notes"][0] == f"arms have other names than at the first launch: {names}"
    assert not any("left out" in note or "came after" in note for note in data["notes"])
    assert {claim["exploratory"] for claim in data["claims"]} == {None}
    before = [(claim["difference"], claim["corrected"]) for claim in reported.data["claims"]]
    assert [(claim["difference"], claim["corrected"]) for claim in data["claims"]] == before


def test_other_names_of_arms_that_differ_by_their_decoding_alone_are_not_mixed_up(tmp_path):
    """They have one recipe."""
    path, content = tmp_path / "x.yaml", EXPERIMENT[: EXPERIMENT.index("factors:")]
    content += (
        "design: arms\nseeds: [1, 2, 3]\narms: {beam: [], greedy: [decoding=greedy], wide: [decoding.beam_size=8]}\n"
    )
    path.write_text(content)
    words = (f"experiment={path}", f"outputs={tmp_path / 'outputs'}")
    register(define(words))
    path.write_text(content.replace("greedy:", "narrow:").replace("wide:", "wider:"))
    said = "arms have other names than at the first launch: greedy is narrow, wide is wider"
    assert said in of_study(define(words)).notes


def test_a_factor_of_within_that_came_later_is_a_departure_unless_nothing_was_known(tmp_path):
    path = tmp_path / "x.yaml"
    content = EXPERIMENT.replace("[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, scalenorm]")
    claims = "claims:\n  - {arm: 'layerdrop=0.1,norm=pre', expect: greater}\n"
    content = content[: content.index("claims:")].replace("one_at_a_time", "factorial") + claims
    path.write_text(content)
    words = (f"experiment={path}", f"outputs={tmp_path / 'outputs'}")
    register(define(words))
    path.write_text(f"{content}within: norm\n")
    said = "within is norm, and was none at the first launch"
    assert of_study(define(words)).departed == said
    register(define(words))
    assert of_study(define(words)).departed is None, "no run had ended, so that nothing was known"
    fill(
        words[:1],
        {f"layerdrop={rate},norm={norm}": 0.3 for rate in ("0", "0.1") for norm in ("pre", "scalenorm")},
        outputs=tmp_path / "outputs",
    )
    path.write_text(content)
    register(define(words))
    selection = of_study(define(words))
    assert selection.departed == "within is none, and was norm at the first launch"
    assert selection.name == "x-within-none"


ARMS = """
question: q
common: [logger=none]
design: arms
arms: {base: [], a: [layerdrop=0.1], b: [layerdrop=0.2]}
seeds: [1, 2, 3]
claims: [{arm: a, expect: greater}, {arm: b, expect: greater}]
"""


def test_an_arm_that_is_made_another_one_is_a_departure(tmp_path):
    """Then a claim that fails would be gone, and the correction of the other softer."""
    path = tmp_path / "x.yaml"
    path.write_text(ARMS)
    words = (f"experiment={path}", f"outputs={tmp_path / 'outputs'}")
    register(define(words))
    assert of_study(define(words)).departed is None
    path.write_text(ARMS.replace("a: [layerdrop=0.1]", "a: [layerdrop=0.2]"))
    assert of_study(define(words)).departed == "settings differ from those of the first launch"
    # An arm that comes to have a second name is none.
    path.write_text(
        ARMS.replace("arms: {", "arms: {again: [layerdrop=0.1], ").replace("design", "baseline: base\ndesign")
    )
    selection = of_study(define(words))
    assert selection.departed is None
    assert len(selection.claims) == 2
