"""What came after the registration stands beside what was registered, and changes no verdict on it."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ablab.errors import UserError
from ablab.judge.claims import judge
from ablab.judge.flaws import checked
from ablab.judge.selection_of_study import _check_count, of_study
from ablab.report.sentences import methods, notes
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.synthetic import claims_of, fill

EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1, 0.2]}
design: one_at_a_time
seeds: [1, 2, 3]
claims:
  - {arm: layerdrop=0.1, expect: greater}
  - {arm: layerdrop=0.2, expect: greater, margin: 1}
"""
ARMS = {"[0, 0.1, 0.2]": "[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]"}
JUNK = "".join(f"  - {{arm: layerdrop=0.{1 + n % 2}, expect: less, margin: {n + 2}}}\n" for n in range(40))
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.285, "layerdrop=0.2": 0.27}
QUIET = {f"layerdrop=0.{n}": 0.0 for n in range(3, 9)}
"""Arms that score 100 under every seed."""


class Place:
    """A store with a study whose registered runs have all ended."""

    def __init__(self, folder):
        self.file, self.outputs = folder / "later.yaml", folder / "outputs"
        self.declare(EXPERIMENT)

    def declare(self, content):
        self.file.write_text(content)

    def launch(self):
        words = (f"experiment={self.file}", f"outputs={self.outputs}")
        register(define(words))
        fill(words[:1], {**ERRORS, **QUIET}, outputs=self.outputs)

    @property
    def selection(self):
        return checked(of_study(define((f"experiment={self.file}", f"outputs={self.outputs}"))))


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    made.launch()
    return made


def changed(content, changes):
    for old, new in changes.items():
        assert old in content
        content = content.replace(old, new)
    return content


LATER = {
    "six quiet arms": (changed(EXPERIMENT, ARMS), ["layerdrop=0.3"]),
    "forty junk claims": (EXPERIMENT + JUNK, []),
    "seeds": (changed(EXPERIMENT, {"[1, 2, 3]": "[1, 2, 3, 4, 5, 6]"}), ["seeds 4, 5, 6 were added"]),
    "all of these": (changed(EXPERIMENT, {**ARMS, "[1, 2, 3]": "[1, 2, 3, 4]"}) + JUNK, ["layerdrop=0.3", "seeds 4"]),
}


@pytest.mark.parametrize("what", LATER)
def test_what_comes_later_changes_no_registered_verdict(place, what):
    before = claims_of(place.selection)
    assert {line.exploratory for line in before} == {None}
    content, told = LATER[what]
    place.declare(content)
    for _ in ("planned", "trained"):  # what has not ended yet makes no verdict provisional
        selection = place.selection
        assert [line for line in claims_of(selection) if not line.later] == before
        assert all(any(words in note for note in notes(selection, [])) for words in told)
        place.launch()


def test_seeds_that_came_later_are_told_with_the_differences_over_all_seeds(place):
    place.declare(LATER["seeds"][0])
    said = "seeds 4, 5, 6 were added after the first launch, and decide no registered claim"
    assert said in notes(place.selection, [])
    place.launch()
    (note,) = [note for note in notes(place.selection, []) if note.startswith("seeds 4, 5, 6")]
    first, *both = note.split("; ")
    assert (first, len(both)) == (said, 2)
    whole = replace(place.selection, registered=None)
    for text, line in zip(both, judge(whole), strict=True):
        assert text.startswith(f"with them, {line.arm} less layerdrop=0 is {line.difference:+.2f} BLEU [")
        assert text.endswith(", over 6 seeds")


def test_borrowed_noise_would_have_changed_it(place):
    """The arms are what the law above is about: with them, the noise that the claim borrows is another."""
    before = place.selection
    place.declare(changed(EXPERIMENT, ARMS))
    place.launch()
    then = replace(place.selection, registered=replace_arms(place.selection))
    assert [line.p for line in judge(then)] != [line.p for line in judge(before)]


def replace_arms(selection):
    return selection.registered.model_copy(update={"arms": [arm.name for arm in selection.arms]})


def test_later_claims_are_exploratory_and_share_an_error_rate_of_their_own(place):
    alone = EXPERIMENT + "  - {arm: layerdrop=0.1, expect: greater, margin: 2}\n"
    place.declare(alone)
    first, _, later = claims_of(place.selection)
    assert (first.later, later.later) == (False, True)
    assert later.exploratory == "the claim came, or was changed, after the study's first launch"
    assert later.corrected == later.p == first.p
    place.declare(alone + "  - {arm: layerdrop=0.2, expect: less}\n")
    later = min(claims_of(place.selection)[2:], key=lambda line: line.p)
    assert later.corrected == pytest.approx(2 * later.p)
    assert ", corrected p = " in later.words
    assert any(
        "at most 5 % over 2 claims, later claims apart (Holm)" in words for words in methods(place.selection, [])
    )


def test_a_later_arm_makes_its_own_claims_provisional_alone(place):
    added = changed(EXPERIMENT, {"0.2]": "0.2, 0.3]"}) + "  - {arm: layerdrop=0.3, expect: greater}\n"
    place.declare(added)
    assert [line.outcome == "provisional" for line in judge(place.selection)] == [False, False, True]
    assert any(
        "no verdicts on claims that came after the first launch until" in note for note in notes(place.selection, [])
    )


def test_a_first_launch_of_too_few_seeds_leaves_its_claims_to_all_seeds(tmp_path):
    """Somebody tried the study out under one seed: it would never have a verdict."""
    place = Place(tmp_path)
    place.declare(changed(EXPERIMENT, {"[1, 2, 3]": "[1, 2]"}))
    place.launch()
    place.declare(EXPERIMENT)
    place.launch()
    lines = judge(place.selection)
    assert {line.n for line in lines} == {3}
    assert {line.exploratory for line in lines} == {"seeds 3 were added after the first launch"}


@pytest.mark.parametrize(("looks", "count", "is_refused"), [(True, 50, False), (True, 51, True), (False, 51, False)])
def test_where_seeds_are_added_later_claims_are_as_many_as_there_are_boundaries(looks, count, is_refused):
    claims = [SimpleNamespace(secondary=n >= count) for n in range(count + 40)]  # a family each
    study = SimpleNamespace(name="s", claims=claims, looks=(3, 6) if looks else None)
    registered = SimpleNamespace(asks=lambda claim: False)
    with pytest.raises(UserError, match=r"s: 51 claims that came after .* up to 50") if is_refused else nullcontext():
        _check_count(study, registered)
    _check_count(study, None)
