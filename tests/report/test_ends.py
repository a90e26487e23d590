"""An end that a person chose after looking is exploratory; one that no result chose is not."""

from types import SimpleNamespace

import pytest

from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.judge.claims import judge
from ablab.judge.ends import _ended_before
from ablab.judge.selection_of_study import of_study
from ablab.study.definition import define
from ablab.study.extending import close
from ablab.study.ledger import register
from tests.report.synthetic import fill

EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1, 0.2]}
design: one_at_a_time
seeds: [1, 2, 3, 4, 5]
claims:
  - {arm: layerdrop=0.1, expect: greater}
  - {arm: layerdrop=0.2, expect: greater}
"""
ARMS = ("layerdrop=0", "layerdrop=0.1", "layerdrop=0.2")
ERRORS = dict(zip(ARMS, (0.3, 0.2, 0.3), strict=True))


@pytest.fixture
def words(tmp_path):
    (tmp_path / "ended.yaml").write_text(EXPERIMENT)
    line = (f"experiment={tmp_path / 'ended.yaml'}", f"outputs={tmp_path / 'outputs'}")
    register(define(line))
    return line


def train(words, *cells):
    """Train these runs, arm and seed, and no others."""
    study = define(words)
    missing = frozenset((cell.arm, cell.seed) for cell in study.cells) - frozenset(cells)
    fill(words[:1], ERRORS, outputs=study.outputs, missing=missing)


def of_seeds(seeds, arms=ARMS):
    return [(arm, seed) for arm in arms for seed in seeds]


def reasons(words):
    return [line.exploratory for line in judge(of_study(define(words)))]


def test_a_study_that_is_closed_after_three_looks_is_exploratory(words):
    """At the first interval that excludes 0, of 10 seeds, 15 % of studies without a difference would be closed."""
    train(words, *of_seeds([1, 2, 3]))
    close(define(words), "the machine is gone")
    assert next(line.outcome for line in judge(of_study(define(words)))) == "supported"
    assert set(reasons(words)) == {"4 runs of its arms were given up after 9 runs of the study had ended"}


def test_a_study_that_is_closed_before_any_result_stays_confirmatory(words):
    close(define(words), "one machine less")
    assert reasons(words) == [None, None]
    train(words, (ARMS[0], 1))
    assert set(reasons(words)) == {"1 run was given up, and finished after that"}


def test_one_run_that_had_ended_is_enough(words):
    train(words, (ARMS[0], 1))
    close(define(words), "too slow")
    assert set(reasons(words)) == {"9 runs of its arms were given up after 1 run of the study had ended"}


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_bad_seed_that_is_killed_is_exploratory_before_any_has_ended(words, is_removed):
    """Its validations could be seen."""
    cell = next(cell for cell in define(words).cells if (cell.arm, cell.seed) == ("layerdrop=0.1", 5))
    cell.planned.folder.begin(cell.planned.recipe)
    if is_removed:
        assert main(["rm", f"run={cell.planned.run_id}", words[1]]) == 0
    close(define(words), "it will not end")
    assert reasons(words) == ["1 run of its arms was given up after having begun", None]


def test_a_claim_whose_arms_are_whole_stays_confirmatory(words):
    """An arm that cannot be trained takes no other with it."""
    train(words, *of_seeds([1, 2, 3, 4, 5], ARMS[:2]))
    close(define(words), "it needs more memory than there is")
    assert reasons(words) == [None, "5 runs of its arms were given up after 10 runs of the study had ended"]
    assert [line.outcome for line in judge(of_study(define(words)))] == ["supported", "not testable"]


def test_the_first_closing_of_a_run_counts(words):
    close(define(words), "one machine less")
    register(define(words))
    with pytest.raises(UserError, match="has ended or was given up"):
        close(define(words), "again")
    assert reasons(words) == [None, None]


def test_whoever_closes_is_told(words, capsys):
    train(words, *of_seeds([1, 2, 3]))
    assert main(["study", *words, "close=enough"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "6 missing runs of ended are given up: enough" in out
    assert "Claims about their arms are exploratory from now on: 9 runs of the study had ended" in out


@pytest.mark.parametrize("count", [1, 2, 3])
def test_closings_that_no_register_has_are_told_by_what_had_ended_at_last(tmp_path, count):
    study = SimpleNamespace(cells=[], outputs=tmp_path, folder=tmp_path / "studies" / "s")
    assert _ended_before(study, count) == [(set(), set())] * count
