"""The names of scores that experiments and commands accept are those of the one table."""

import math
import re

import pytest
from pydantic import TypeAdapter, ValidationError

from ablab.config import compose
from ablab.fields import flatten
from ablab.study.experiment import Claimed, Metric
from ablab.tasks import score as scores_of
from ablab.tasks.registry import task_named
from ablab.transformer.language_model.schema import recipe
from ablab.transformer.language_model.scores import COMPARED
from ablab.transformer.translation.scores import COSTS, SCORES
from tests.translation import MEASURES

OF_TEXT = task_named("language_model")


def unlike(name, recipes):
    return scores_of.unlike(SCORES, name, recipes)


def _accepted(kind):
    """The names that a field of this kind takes; the error lists them."""
    with pytest.raises(ValidationError) as error:
        TypeAdapter(kind).validate_python("nosuch")
    names = {*re.search(r"allowed: ([a-z_, ]+)", str(error.value))[1].strip().split(", ")}
    assert all(TypeAdapter(kind).validate_python(name) == name for name in names)
    return names


def test_a_study_is_judged_by_a_score_of_quality():
    assert _accepted(Metric) == {*SCORES, *OF_TEXT.scores}


def test_a_claim_is_about_a_score_or_a_quantity_of_its_own():
    own = ("failures", "depth", "pruned_bleu", "pruned_bits_per_byte", "worth")
    assert _accepted(Claimed) == {*SCORES, *OF_TEXT.scores, *COSTS, *own, "seconds"}, "which is of commands"


def test_the_report_compares_by_every_score_and_speed():
    assert tuple(MEASURES) == (*SCORES, *COSTS)


def test_every_score_of_quality_has_a_difference_that_is_out_of_reach():
    assert all(0 < score.absurd < math.inf for score in SCORES.values())


USUAL = {"data.kind": "text", "data.digest": "abc", "data.vocab_size": 150, "data.joint_vocab": True, "seed": 1}


@pytest.mark.parametrize(
    "change",
    [
        *({"data.vocab_size": 600}, {"data.joint_vocab": False}, {"data.lowercase": True}, {"data.tokenizer": "char"}),
        *({"data.train_pairs": 900}, {"data.digest": "def"}, {"data.tgt": "fr"}, {"data.split": [9]}),
        {"data.normalization": "identity"},
    ],
)
def test_losses_per_token_are_in_one_measure_only_where_the_vocabulary_is_one(change):
    other = {**USUAL, **change}
    for name in ("valid_loss", "test_loss"):
        assert "per token" in unlike(name, [USUAL, other, USUAL])
        assert unlike(name, [other, other]) is None
        is_read_otherwise = {"data.lowercase", "data.normalization"} & set(change)
        assert (unlike(f"{name}_per_character", [USUAL, other]) is None) == (not is_read_otherwise)


@pytest.mark.parametrize(
    "change",
    [
        *({"data.max_tokens": 90}, {"data.valid_pairs": 9}, {"data.bleu_tokenizer": "zh"}, {"model.d_model": 9}),
        *({"seed": 2}, {"data.tokenizer": "bpe"}, {"data.lowercase": False}),  # as it was before there was a choice
    ],
)
def test_what_decides_no_tokenizer_parts_no_losses(change):
    assert unlike("valid_loss", [USUAL, {**USUAL, **change}]) is None


def test_a_tokenizer_that_is_given_is_one_vocabulary_on_any_part_of_a_text():
    given = {**USUAL, "data.tokenizer": "sha256:0123.model"}
    assert unlike("valid_loss", [given, {**given, "data.train_pairs": 900}]) is None
    assert unlike("valid_loss", [given, {**given, "data.tokenizer": "sha256:4567.model"}]) is not None


def test_the_reason_names_the_settings_and_what_can_be_compared():
    recipes = [{**USUAL, "data.vocab_size": size} for size in (150, 600, 1200)]
    assert unlike("valid_loss", recipes) == (
        "validation loss is per token, and the vocabularies differ (data.vocab_size 150, 600, 1200); "
        "nats per character can be compared"
    )
    assert scores_of.alike(SCORES, SCORES, recipes) == ", ".join(
        name for name, score in SCORES.items() if score.unit != "nats per token"
    )
    digests = [{**USUAL, "data.digest": digit * 64} for digit in "ab"]
    assert f"(data.digest {'a' * 20} ..., {'b' * 20} ...)" in unlike("valid_loss", digests)


@pytest.mark.parametrize(
    ("metric", "words_matter"), [("valid_bleu", True), ("test_chrf", False), ("training_speed", False)]
)
def test_bleu_depends_on_how_words_are_found(metric, words_matter):
    assert (unlike(metric, [USUAL, {**USUAL, "data.bleu_tokenizer": "zh"}]) is not None) == words_matter


def test_results_from_elsewhere_have_no_recipe_and_go_on_being_compared():
    assert unlike("valid_loss", [{}, {}]) is None


def test_losses_of_a_language_model_on_sentence_pairs_depend_on_the_size_of_the_vocabulary():
    """Whose recipes leave out that they have subwords."""
    recipes = [
        flatten(recipe(compose(["task=language_model", "data=numbers", f"data.vocab_size={size}"]).config, None))
        for size in (500, 1000)
    ]
    for name in ("test_loss", "test_perplexity", "test_accuracy", "valid_loss"):
        assert "data.vocab_size 500, 1000" in COMPARED[name].scale.unlike(name, recipes)
    assert COMPARED["test_bits_per_byte"].scale.unlike("x", recipes) is None
    assert COMPARED["test_loss"].scale.unlike("x", [recipes[0]] * 2) is None


@pytest.mark.parametrize("key", ["data.valid_documents", "data.valid_pairs", "data.valid_share"])
def test_validations_on_other_text_of_a_language_model_are_not_compared(key):
    recipes = [{key: 5, "data.side": "tgt"}, {key: 20, "data.side": "tgt"}]
    for name, score in COMPARED.items():
        if name.startswith("valid_"):
            assert "is that of a text, and the texts differ" in score.scale.unlike(name, recipes)
    assert COMPARED["test_bits_per_byte"].scale.unlike("x", recipes) is None


def test_a_given_tokenizer_has_its_own_rule_for_characters(tmp_path):
    path = tmp_path / "cf.model"
    path.write_bytes(b"")
    (one, other) = ({"data.vocab_size": 60}, {"data.tokenizer": str(path)})
    for name in ("test_loss_per_character", "valid_loss_per_character"):
        assert "tells apart" in SCORES[name].scale.unlike(name, [one, other])
        assert SCORES[name].scale.unlike(name, [other, other]) is None
