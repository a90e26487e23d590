"""What a run of task=language_model is: its settings, its recipe, and what it refuses."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.errors import UserError
from ablab.tasks.plan import plan
from ablab.tasks.registry import task_named
from tests.language_model.models import composed

PLAIN = ("task=language_model", "training.max_steps=8")

REFUSED = {
    ("decoding.beam_size=2",): "allowed with task=translation",
    ("decoding=greedy",): "allowed with task=translation",
    ("layerdrop_encoder=0.1",): "allowed with task=translation",
    ("model.encoder_layers=2",): "allowed with task=translation",
    ("model.word_dropout=0.1",): "no unknown word to put in a token's place; allowed with task=translation",
    ("training.monitor=bleu",): "allowed with task=translation",
    ("training.max_extra_tokens=9",): "allowed with task=translation",
    ("data.bleu_tokenizer=char",): "data.bleu_tokenizer",
    ("model.tie=source_target",): "model.tie=source_target",
    ("drophead=constant", "drophead.sites=[encoder]"): "allowed: [decoder]",
    ("schedule=plateau", "schedule.decay_monitor=bleu"): "allowed: loss",
    ("pruning.curves=[encoder]",): "allowed: [decoder]",
    ("pruning.depths=[5]",): "allowed: 1 to 4",
    ("pruning=importance", "pruning.heads=[3]"): "allowed: 4 to 16",
    ("pruning=data_driven",): "layerdrop_rates=learned",
    ("position=learned", "position.max_length=64"): "model.context=128",
    ("optim.batch_tokens=100",): "allowed: 128 or more",
    ("pruning=search", "pruning.together=true"): "pruning.together=true",
    ("data.vocab_size=3",): "data.vocab_size=3: allowed: greater than or equal to 4",
    ("layerdrop_rates=linear",): "layerdrop above 0",
    ("smoke=true", "model.context=abc"): "model.context=abc: allowed: a whole number",
    ("smoke=true", "data.vocab_size=abc"): "data.vocab_size=abc: allowed: a whole number",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_does_not_apply_is_refused_in_a_line(words):
    with pytest.raises(UserError) as told:
        compose([*PLAIN, *words])
    assert REFUSED[words] in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("word", ["model.context=64", "data=documents"])
def test_a_translation_refuses_what_is_of_text(word):
    with pytest.raises(UserError) as told:
        compose([word, *(["data.train=x.txt"] if word == "data=documents" else [])])
    assert "allowed" in str(told.value)
    assert "task=" in str(told.value)


def recipe(*words: str) -> dict:
    return plan(compose([*PLAIN, *words])).recipe


def test_a_recipe_names_its_task_and_nothing_of_translation():
    content = recipe()
    assert content["task"] == {"kind": "language_model"}
    assert not {"decoding", "init_from", "layerdrop_encoder"} & content.keys()
    assert not {"encoder_layers", "word_dropout"} & content["model"].keys()
    assert "monitor" not in content["training"]


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("trainer.micro_batches=2",), True),
        (("layerdrop=0.0",), True),
        (("drophead=constant", "drophead.p=0.0"), True),
        (("pruning=none",), True),
        (("model.num_heads=1", "drophead=constant"), False),
        (("layerdrop=0.2",), False),
        (("drophead=constant",), False),
        (("norm=rmsnorm",), False),
        (("model.context=64",), False),
        (("data.side=src",), False),
        (("seed=2",), False),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else str(each),
)
def test_what_decides_the_weights_is_in_the_recipe(words, same):
    assert (recipe(*words) == recipe()) is same


def test_sites_that_a_stack_lacks_and_rates_of_one_layer_make_no_other_run():
    assert recipe("drophead=constant") == recipe("drophead=constant", "drophead.sites=[decoder]")
    one = ("model.decoder_layers=1", "layerdrop=0.2")
    assert recipe(*one) == recipe(*one, "layerdrop_rates=linear")
    single = ("model.num_heads=1",)
    assert recipe(*single) == recipe(*single, "drophead=constant")


def test_layerdrop_sets_the_one_stack():
    assert composed("layerdrop=0.2").layerdrop_decoder == 0.2
    assert plan(compose([*PLAIN, "layerdrop=0.2"])).name == "task=language_model,layerdrop=0.2,training.max_steps=8,s1"


def test_gpt2_is_gpt2():
    """124 million parameters with its vocabulary of 50,257 (Radford et al. 2019)."""
    from ablab.transformer.language_model.build import LanguageModelBuilder
    from ablab.transformer.training.cost import parameter_count

    parts = ("model=gpt2", "position=learned", "feed_forward=gelu_tanh", "embedding=plain")
    config = compose([*PLAIN, *parts]).config
    import torch

    with torch.device("meta"):
        model = LanguageModelBuilder(config, 0).language_model(50257)
    assert parameter_count(model) == 124_439_808


@pytest.mark.parametrize(
    "where", ["metric: test_chrf", "claims: [{arm: rmsnorm, expect: equal, margin: 1, metric: test_bleu}]"]
)
def test_a_score_of_translation_is_no_metric_of_its_studies(where, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    lines = [
        "question: q",
        "common: [task=language_model]",
        "factors: {norm: [pre, rmsnorm]}",
        "seeds: [1, 2, 3]",
        where,
    ]
    (tmp_path / "experiments" / "two.yaml").write_text("\n".join(lines))
    assert main(["study", "experiment=two"]) == 2
    told = capsys.readouterr().err
    assert "no score of task=language_model; allowed: test_bits_per_byte" in told
    assert told.count("\n") == 1


def test_scores_of_the_other_side_or_of_other_letters_are_those_of_another_text():
    """Of sentence pairs, whose digest is that of both sides as they are; nothing can be compared instead."""
    scores = task_named("language_model").scores
    side, letters = (
        {"data.tokenizer": "char", "data.side": "src"},
        {"data.tokenizer": "char", "data.side": "tgt", "data.lowercase": True},
    )
    usual, pieces = {"data.tokenizer": "char", "data.side": "tgt"}, {"data.tokenizer": "byte", "data.side": "tgt"}
    for name, score in scores.items():
        assert score.unlike([usual, usual]) is None
        for other, what in ((side, "data.side src, tgt"), (letters, "data.lowercase null, true")):
            assert score.unlike([other, usual]) == f"{score.title} is that of a text, and the texts differ ({what})"
        told = score.unlike([usual, pieces])
        if "bits_per_byte" in name:
            assert told is None
        else:
            assert told == (
                f"{score.title} is per token, and the vocabularies differ (data.tokenizer char, byte); "
                "bits per byte can be compared"
            )
    bytes_of_both = [{**pieces, "data.side": each} for each in ("src", "tgt")]
    assert "texts differ" in scores["valid_loss"].unlike(bytes_of_both)


def test_test_sentences_without_text_are_refused_before_training(tmp_path):
    for split, source in (("train", "a b c\n" * 40), ("valid", "a\n" * 4), ("test", "\n\nlater\n")):
        for side in ("en", "de"):
            (tmp_path / f"{split}.{side}").write_text(source)
    words = (
        *PLAIN,
        "data=text",
        *(f"data.{split}={tmp_path / split}" for split in ("train", "valid", "test")),
        "data.hard_vocab_limit=false",
        f"outputs={tmp_path}",
    )
    with pytest.raises(UserError, match=r"data.test_pairs=2: none of these has text on the side tgt; allowed: more of"):
        plan(compose([*words, "data.test_pairs=2"]))
    assert plan(compose([*words, "data.test_pairs=3"])).run_id


def test_a_smoke_run_refuses_a_vocabulary_that_the_whole_text_cannot_give(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("\n\n".join(f"a b c {n}" for n in range(80)))
    words = [
        "task=language_model",
        "data=documents",
        f"data.train={tmp_path / 'text.txt'}",
        "data.separator=blank_line",
    ]
    line = [*words, "smoke=true", "logger=none", "data.vocab_size=5000", f"outputs={tmp_path}"]
    assert main(["train", *line, "data.hard_vocab_limit=true"]) == 2
    assert "data.vocab_size=5000" in capsys.readouterr().err
