"""The tests of benchmarks/calibration/worlds, for many studies at once, are those of the report."""

import json
import sys

import numpy as np
import pytest

from ablab.statistics.moderated import moderated
from ablab.statistics.paired import of_differences
from ablab.statistics.sequential import follow
from ablab.statistics.verdict import Case, verdicts
from benchmarks.calibration import worlds
from benchmarks.calibration.worlds import LOOKS, WORLDS, borrowing, false_verdicts, followed, paired

STUDIES = 25


@pytest.fixture(params=[(5, 3), (5, 10), (4, 4), (12, 3), (3, 5), (2, 3)], ids=str)
def drawn(request):
    """Studies of each world."""
    arms, n = request.param
    rng = np.random.default_rng(0)
    return np.concatenate([draw(rng, (STUDIES, arms, n)) for draw in WORLDS.values()])


def _by_the_report(study):
    others = range(1, len(study))
    return [moderated(study[arm], study[0], [study[one] for one in others if one != arm]) for arm in others]


def test_the_moderated_test_of_many_studies_is_that_of_each(drawn):
    expected = [[found.p for found in _by_the_report(study)] for study in drawn]
    assert borrowing(drawn) == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.slow
def test_any_verdict_is_false_where_the_procedure_says_so(drawn):
    for p, cases in (
        (borrowing(drawn), [_by_the_report(study) for study in drawn]),
        (paired(drawn), [list(study[1:] - study[0]) for study in drawn]),
    ):
        judged = [verdicts([Case("greater", 0.0, one) for one in of_study]) for of_study in cases]
        expected = [any(verdict.outcome != "inconclusive" for verdict in of_study) for of_study in judged]
        assert false_verdicts(p).tolist() == expected


def test_the_paired_test_of_many_studies_is_that_of_each():
    arms = np.random.default_rng(1).normal(size=(20, 3, 4))
    expected = [[of_differences(arm - study[0]).p for arm in study[1:]] for study in arms]
    assert paired(arms) == pytest.approx(np.array(expected))


def test_looks_settle_what_the_report_settles():
    rng = np.random.default_rng(2)
    arms = np.concatenate([rng.normal(size=(30, 4, LOOKS.last)), rng.standard_t(1, size=(30, 4, LOOKS.last))])
    found = [follow([Case("greater", 0.0, arm - study[0]) for arm in study[1:]], LOOKS) for study in arms]
    assert followed(arms).tolist() == [any(one.state == "settled" for one in of_study) for of_study in found]


@pytest.mark.parametrize("world", WORLDS)
def test_no_arm_differs_in_any_world(world):
    scores = WORLDS[world](np.random.default_rng(3), (20_000, 5, 3))
    means, errors = scores.mean(axis=(0, 2)), scores.std(axis=(0, 2)) / 20_000**0.5
    assert np.ptp(means) < 8 * errors.max()


@pytest.mark.parametrize("world", [world for world in WORLDS if "sd is" in world or world == "all arms scatter alike"])
def test_error_rates_hold_where_an_arm_scatters_up_to_five_times_as_much(world):
    """5.5 % of studies and 7 % of single claims, to 4 standard errors."""
    p = borrowing(WORLDS[world](np.random.default_rng(4), (20_000, 5, 3)))
    assert false_verdicts(p).mean() < 0.055 + 4 * 0.0016
    assert (p[:, 0] <= 0.05).mean() < 0.07 + 4 * 0.0018


def test_three_seeds_find_a_difference_of_one_and_a_half_sd_in_one_study_of_four():
    arms = np.random.default_rng(5).normal(size=(20_000, 5, 3))
    arms[:, 1] += worlds.EFFECT
    assert (borrowing(arms)[:, 0] <= 0.05).mean() > 0.265 - 0.003
    assert (paired(arms)[:, 0] <= 0.05).mean() < 0.21


def test_quick_mode_writes_each_world(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["worlds", "quick", str(tmp_path / "worlds.json")])
    worlds.main()
    found = json.loads((tmp_path / "worlds.json").read_text())
    assert list(found) == list(WORLDS)
    printed = capsys.readouterr().out
    assert all(printed.count(f"| {world} |") == 3 for world in WORLDS)
