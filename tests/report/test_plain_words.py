"""Verdicts as a person would say them, and the drawing beside each."""

import xml.etree.ElementTree as ET

import pytest

from ablab.config.groups import groups
from ablab.judge.document import Document
from ablab.judge.lines import ClaimLine, SeedDifference, Span
from ablab.judge.selection_of_study import of_study
from ablab.report.drawing import drawing
from ablab.report.forest import published_differences
from ablab.report.names import pair_of
from ablab.report.page import page
from ablab.report.plain_words import plain_words
from ablab.study.study import label_of
from tests.report.conftest import unclaimed

SVG = "{http://www.w3.org/2000/svg}"


def claim(**changed) -> ClaimLine:
    fields = {
        **{"arm": "norm=scalenorm", "baseline": "norm=pre", "metric": "test_bleu", "about": "test BLEU"},
        **{"title": "test BLEU", "unit": "BLEU", "digits": 2, "expect": "greater", "margin": 0.5, "words": "..."},
        **{"outcome": "supported", "n": 3, "difference": 1.0, "simultaneous": None, "p": 0.01, "corrected": 0.02},
        **{"interval": Span(low=0.2, high=1.8, level=0.95, method="t"), "detectable": 0.5, "reason": None},
        **{"published": None, "source": None, "exploratory": None, "higher_is_better": True},
        "per_seed": [SeedDifference(seed=seed, difference=seed - 1.0) for seed in (1, 2, 3)],
    }
    return ClaimLine.model_validate({**fields, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "ScaleNorm is better than PreNorm."),
        ({"large": True}, "ScaleNorm is better than PreNorm by at least 0.5 BLEU."),
        ({"expect": "less"}, "ScaleNorm is worse than PreNorm."),
        ({"outcome": "refuted"}, "ScaleNorm is worse than PreNorm."),
        ({"outcome": "refuted", "small": True}, "ScaleNorm is worse than PreNorm, but by less than 0.5 BLEU."),
        ({"outcome": "equivalent"}, "ScaleNorm and PreNorm differ by less than 0.5 BLEU."),
        ({"expect": "equal"}, "ScaleNorm and PreNorm differ by less than 0.5 BLEU."),
        ({"expect": "equal", "different": True}, "ScaleNorm is better than PreNorm, but by less than 0.5 BLEU."),
        ({"expect": "equal", "outcome": "refuted"}, "ScaleNorm is better than PreNorm by at least 0.5 BLEU."),
        (
            {"expect": "equal", "outcome": "refuted", "difference": -1.0},
            "ScaleNorm is worse than PreNorm by at least 0.5 BLEU.",
        ),
        ({"expect": "not_worse"}, "If ScaleNorm is worse than PreNorm, then by less than 0.5 BLEU."),
        ({"expect": "not_worse", "different": True}, "ScaleNorm is better than PreNorm."),
        ({"expect": "not_worse", "outcome": "refuted"}, "ScaleNorm is worse than PreNorm by at least 0.5 BLEU."),
        (
            {"outcome": "real, but smaller than matters"},
            "ScaleNorm is better than PreNorm, but by less than 0.5 BLEU.",
        ),
        ({"outcome": "inconclusive"}, "These seeds cannot tell whether ScaleNorm is better than PreNorm."),
        ({"outcome": "provisional"}, "It is too early to say whether ScaleNorm is better than PreNorm."),
        ({"outcome": "not testable"}, "It cannot be judged whether ScaleNorm is better than PreNorm."),
        (
            {"outcome": "inconclusive", "expect": "equal", "n": 1, "margin": 0.0},
            "One seed cannot tell whether ScaleNorm and PreNorm differ.",
        ),
        (
            {"metric": "valid_loss", "about": "validation loss", "title": "validation loss", "higher_is_better": False},
            "ScaleNorm is worse than PreNorm in validation loss.",
        ),
        (
            {"metric": "valid_loss", "about": "loss", "title": "loss", "higher_is_better": False, "expect": "not_worse"}
            | {"outcome": "refuted", "unit": "nats"},
            "ScaleNorm is worse than PreNorm in loss by at least 0.5 nats.",
        ),
        (
            {"metric": "valid_loss", "about": "loss", "title": "loss", "higher_is_better": False, "expect": "not_worse"}
            | {"unit": "nats", "margin": 1.0},
            "If ScaleNorm is worse than PreNorm in loss, then by less than 1 nat.",
        ),
        ({"metric": "training_speed"}, "ScaleNorm trains faster than PreNorm."),
        (
            {"metric": "memory", "about": "memory", "title": "memory", "unit": "MiB", "expect": "equal", "margin": 8.0},
            "ScaleNorm and PreNorm differ by less than 8 MiB in memory.",
        ),
        (
            {"metric": "memory", "expect": "less", "higher_is_better": False},
            "ScaleNorm needs less memory than PreNorm.",
        ),
        ({"metric": "failures", "higher_is_better": False}, "ScaleNorm diverges more often than PreNorm."),
        ({"title": "ranks of all runs"}, "ScaleNorm is better than PreNorm, diverged runs ranked last."),
        (
            {"title": "share of failures", "expect": "equal", "outcome": "refuted"},
            "ScaleNorm is worse than PreNorm, by the share of runs that diverged.",
        ),
        (
            {"metric": "comet", "about": "COMET", "title": "COMET", "higher_is_better": None},
            "ScaleNorm is above PreNorm in COMET.",
        ),
    ],
)
def test_a_verdict_is_said_as_a_person_would(changed, said):
    assert plain_words(claim(**changed), "test_bleu") == said


def test_arms_are_named_as_people_name_them():
    assert label_of("norm=post,layerdrop=0,drophead=vshape") == "PostNorm with V-shaped DropHead without LayerDrop"
    assert label_of("layerdrop=0,drophead=none") == "no LayerDrop or DropHead"
    assert label_of("my arm") == "my arm"
    assert label_of("data.pair=[de,en]") == "data.pair=[de,en]"
    assert pair_of("norm=post,layerdrop=0.1", "norm=pre,layerdrop=0.1") == (
        "PostNorm",
        "PreNorm",
        "both with LayerDrop 0.1",
    )


def test_an_option_says_in_its_file_what_sentences_call_it(tmp_path, monkeypatch):
    (tmp_path / "conf/norm").mkdir(parents=True)
    for option, line in (("named", "# spoken: PowerNorm\n"), ("plain", "# PowerNorm\n"), ("post", "")):
        (tmp_path / f"conf/norm/{option}.yaml").write_text(f"{line}kind: scalenorm\n")
    monkeypatch.chdir(tmp_path)
    assert label_of("norm=named,layerdrop=0") == "PowerNorm without LayerDrop"
    assert [label_of(f"norm={option}") for option in ("plain", "post", "pre")] == ["norm=plain", "norm=post", "PreNorm"]


@pytest.mark.parametrize("group", ["norm", "position", "init", "drophead"])
def test_sentences_name_every_option_of_ours_without_its_key(group):
    assert not [option for option in groups()[group] if "=" in label_of(f"{group}={option}")]


@pytest.mark.parametrize(
    ("arm", "baseline", "said"),
    [
        ("norm=post, tuned", "norm=pre, tuned", ("PostNorm", "PreNorm", "both tuned")),
        ("norm=post, tuned", "norm=pre = norm=pre, tuned", ("PostNorm", "PreNorm", "both tuned")),
        ("norm=post", "norm=pre = norm=pre, tuned", ("PostNorm", "PreNorm", "")),
        (
            "norm=post = norm=post, tuned",
            "norm=pre = norm=pre, tuned",
            ("PostNorm", "PreNorm", "both at their usual settings, which tuning kept"),
        ),
    ],
)
def test_arms_that_tuning_left_as_they_are_are_named_once(arm, baseline, said):
    assert pair_of(arm, baseline) == said


@pytest.mark.parametrize(
    ("published", "found"),
    [
        ("+1.53 BLEU for gl-en with 10k pairs, +0.75 for sk-en with 61k", [(1.53, 1.53), (0.75, 0.75)]),
        ("-0.2 to +1.53 BLEU (both with FixNorm)", [(-0.2, 1.53)]),
        ("+0.1 to +0.6 BLEU on OPUS-100 in place of attention dropout", [(0.1, 0.6)]),
        ("25.7 against 25.8 BLEU, one run each", []),
        ("RoBERTa with 6 layers left +0.6 on MNLI", []),
        (None, []),
    ],
)
def test_published_differences_are_those_with_a_sign_in_the_unit_of_the_claim(published, found):
    assert published_differences(claim(published=published)) == found


@pytest.mark.parametrize(
    ("unit", "published", "found"),
    [("%", "+1.5 %", 1.5), ("%", "+1.5% on XNLI", 1.5), ("tokens/s", "+1,200 tokens/s", 1200.0)],
)
def test_units_may_be_signs_and_numbers_may_have_commas(unit, published, found):
    assert published_differences(claim(published=published).model_copy(update={"unit": unit})) == [(found, found)]


def test_the_differences_of_the_seeds_have_the_mean_of_the_claim(reported):
    arms = {arm.name: arm for arm in of_study(reported.study).arms}
    for line in Document.model_validate(reported.data).claims:
        if line.per_seed:
            mean = sum(one.difference for one in line.per_seed) / len(line.per_seed)
            assert mean == pytest.approx(line.difference)
            assert [one.seed for one in line.per_seed] == sorted(run.seed for run in arms[line.arm].finished)
        else:
            assert line.title != line.about or line.metric == "failures"


IN_KEY = ("</svg>one seed<", "</svg>margin: too small to matter<", "</svg>published<")


def test_the_drawing_has_every_seed_the_interval_the_margin_and_the_published_value_in_place():
    drawn = claim(published="+1.2 BLEU")
    root = ET.fromstring(str(drawing(drawn)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))
    seeds = {circle.find(f"{SVG}title").text: float(circle.get("cx")) for circle in root.iter(f"{SVG}circle")}
    assert list(seeds) == ["seed 1: +0.00", "seed 2: +1.00", "seed 3: +2.00"]
    left, middle, right = seeds.values()
    assert middle == pytest.approx((left + right) / 2, abs=0.2)
    at = {each.get("class"): each for each in root.iter() if each.get("class")}
    assert float(at["zero"].get("x1")) == left
    assert at["mean"].get("d").startswith(f"M{middle} ")
    unit = middle - left
    assert float(at["margin"].get("width")) == pytest.approx(unit, abs=0.3)  # from -0.5 to +0.5
    published = float(at["published"].get("d").removeprefix("M").split()[0])
    assert published == pytest.approx(left + 1.2 * unit, abs=0.3)
    for part in ("seed 2 +1.00", "[+0.20, +1.80]", "within 0.5", "published: +1.2"):
        assert part in root.get("aria-label")


def test_seeds_that_agree_do_not_hide_each_other():
    same = [SeedDifference(seed=seed, difference=0.7) for seed in (1, 2, 3)]
    root = ET.fromstring(str(drawing(claim(per_seed=same))))
    assert len({circle.get("cy") for circle in root.iter("circle")}) == 3


def test_nothing_is_drawn_without_a_difference():
    assert drawing(claim(difference=None, interval=None, per_seed=[], outcome="not testable")) is None


def test_the_key_names_only_what_is_drawn(reported):
    document = Document.model_validate(reported.data)
    unpublished = [claim.model_copy(update={"published": None}) for claim in document.claims]
    assert [part in page(document) for part in IN_KEY] == [True, True, True]
    without = page(document.model_copy(update={"claims": unpublished}))
    assert [part in without for part in IN_KEY] == [True, True, False]
    shares = [claim for claim in unpublished if claim.metric == "failures"]
    failing = page(unclaimed(document).model_copy(update={"claims": shares}))
    assert [part in failing for part in IN_KEY] == [False, False, False]
