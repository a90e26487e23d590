"""Losses per token of several vocabularies choose and decide nothing: what would rest on them is refused before it."""

import io

import pytest

from ablab.errors import UserError
from ablab.judge.prospects import prospects
from ablab.study.definition import define
from ablab.sweep.sweep import Policy, sweep
from ablab.tracking.console import Console
from tests.study.searches.conftest import searched

FILE = """
question: q
common: [model.d_model=16, model.d_ff=32, model.num_heads=2, training.max_steps=10, logger=none]
factors: {factors}
seeds: [1, 2, 3]
claims: [{claim}]
{more}
"""
BOTH = "{data.vocab_size: [150, 600], norm: [pre, post]}"
SIZES = ("data.vocab_size=150,600", "optim.lr=1e-3,1e-2")
PER_CHARACTER = "valid_loss_per_character"


def words(place, claim, factors=BOTH, more=""):
    (place / "v.yaml").write_text(FILE.format(factors=factors, claim=claim, more=more))
    return (f"experiment={place / 'v.yaml'}", f"outputs={place / 'outputs'}")


def launched(study):
    """What is left of a sweep whose launcher starts nothing."""
    console = Console(bars=False)
    console.rich.file = io.StringIO()
    return sweep(study, lambda *_: False, Policy(), console)


@pytest.mark.parametrize(
    ("claim", "is_refused"),
    [
        ("{effect: data.vocab_size=600, expect: less, metric: valid_loss}", True),
        ("{effect: data.vocab_size=600, expect: less, metric: test_loss}", True),
        ("{effect: data.vocab_size=600, expect: less, metric: valid_loss_per_character}", False),
        ("{effect: data.vocab_size=600, expect: less, metric: test_bleu}", False),
        ("{effect: data.vocab_size=600, expect: less, metric: training_speed}", False),
        ("{effect: norm=post, expect: less, metric: valid_loss}", False),  # within each vocabulary
        ("{interaction: [data.vocab_size, norm], expect: less, metric: valid_loss}", True),
        ("{interaction: [data.vocab_size, norm], expect: less, metric: valid_loss_per_character}", False),
    ],
)
def test_a_claim_that_no_run_could_make_testable_starts_none(tmp_path, claim, is_refused):
    study = define(words(tmp_path, claim))
    (prospect,) = prospects(study)
    assert ("the vocabularies differ (data.vocab_size 150, 600)" in prospect.words) == is_refused
    assert prospect.is_hopeless or not is_refused
    if is_refused:
        with pytest.raises(UserError, match=rf"vocabularies differ .*allowed: test_bleu, .*{PER_CHARACTER}"):
            launched(study)
        assert not study.folder.exists()
    else:
        launched(study)


@pytest.mark.parametrize(
    ("space", "settings", "names"),
    [
        (SIZES, {}, "valid_loss"),
        (SIZES, {"stopping": "median"}, "valid_loss"),
        (SIZES, {"objectives": ["parameters", "valid_loss"]}, "valid_loss"),
        (("data.tokenizer=bpe,char", "layerdrop=0,0.1"), {}, "valid_loss"),
        (("data.lowercase=true,false",), {"objectives": [PER_CHARACTER]}, PER_CHARACTER),
        (("data.train_pairs=100,200",), {}, "valid_loss"),
        (SIZES, {"objectives": [PER_CHARACTER], "stopping": "median"}, None),
        (SIZES, {"objectives": ["valid_bleu"]}, None),
        (("data.max_tokens=50,60",), {}, None),
        (("optim.lr=1e-3,1e-2",), {}, None),
    ],
)
def test_a_search_is_not_judged_by_losses_per_token_of_several_vocabularies(tmp_path, space, settings, names):
    if names is None:
        assert searched(tmp_path, "smoke=false", space=space, **settings)
        return
    with pytest.raises(UserError, match=rf"objectives=\[{names}\]: .* differ.*; allowed: .*parameters"):
        searched(tmp_path, "smoke=false", space=space, **settings)


@pytest.mark.parametrize(
    ("tune", "claim", "match"),
    [
        (
            "key: data.vocab_size, values: [150, 600]",
            "test_bleu",
            "tune.metric=loss: .*allowed: bleu, loss_per_character",
        ),
        ("key: data.vocab_size, values: [150, 600], metric: bleu", "valid_loss", "claims.metric=valid_loss"),
        ("key: data.vocab_size, values: [150, 600], metric: loss_per_character", PER_CHARACTER, None),
        ("values: [0.001, 0.01]", "valid_loss", None),
    ],
)
def test_tuning_chooses_no_vocabulary_by_its_loss_per_token(tmp_path, tune, claim, match):
    claim = f"{{arm: norm=post, expect: less, metric: {claim}}}"
    line = words(tmp_path, claim, "{norm: [pre, post]}", f"tune: {{{tune}, seeds: [9]}}")
    if match is None:
        assert define(line).is_tuning
        return
    with pytest.raises(UserError, match=match):
        define(line)


def test_settings_tuned_in_each_of_several_vocabularies_are_compared_by_no_loss_per_token(tmp_path):
    factors, tune = "{data.vocab_size: [150, 600]}", "tune: {values: [0.001, 0.01], seeds: [9]}"
    define(words(tmp_path, "{arm: data.vocab_size=600, expect: less}", factors, tune))
    with pytest.raises(UserError, match="vocabularies differ"):
        define(words(tmp_path, "{arm: data.vocab_size=600, expect: less, metric: valid_loss}", factors, tune))
