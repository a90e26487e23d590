"""A finished run can be judged in other ways; what decided its weights is closed."""

import pytest

from ablab.config import compose
from ablab.config.compose import reopen
from ablab.config.keys import all_fields
from ablab.errors import UserError
from ablab.fields import Role
from ablab.transformer.data.corpus import EXTRA_TOKENS


def recorded(*words):
    return compose(words).config.model_dump(serialize_as_any=True)


def test_nothing_said_is_nothing_changed():
    assert reopen(recorded("norm=post", "decoding=greedy"), []) == compose(["norm=post", "decoding=greedy"]).config


def test_evaluation_and_runtime_can_be_set():
    config = reopen(
        recorded("norm=post"), ["decoding=greedy", "pruning=search", "pruning.depths=[2,1]", "data.test_pairs=5"]
    )
    assert config.decoding.beam_size == 1
    assert config.pruning.kind == "search"
    assert config.pruning.depths == [2, 1]
    assert config.data.test_pairs == 5
    assert config.placement.kind == "post"


def test_a_run_from_before_validation_had_a_limit_keeps_the_one_it_had():
    """With data.tokenizer=char, the limit of today is data.max_tokens."""
    config = recorded("data=text", *(f"data.{split}=x" for split in ("train", "valid", "test")), "data.tokenizer=char")
    del config["training"]["max_extra_tokens"]
    assert reopen(config, []).valid_extra_tokens == EXTRA_TOKENS


def test_an_options_values_may_refer_to_others():
    trainer = reopen(recorded(), ["trainer.devices=4", "trainer=ddp"]).trainer
    assert (trainer.devices, trainer.micro_batches) == (4, 4)


def test_an_option_comes_before_its_fields_in_whichever_order_they_are_typed():
    assert reopen(recorded(), ["pruning.beam=9", "pruning=search"]).pruning.beam == 9


@pytest.mark.parametrize("name", [name for name, role in all_fields().items() if role is Role.RECIPE])
def test_the_recipe_is_closed(name):
    with pytest.raises(UserError, match="no such key here"):
        reopen(recorded(), [f"{name}=1"])


def test_a_record_of_an_earlier_version_lacks_what_came_later():
    old = recorded("norm=post")
    del old["pruning"], old["experiment"], old["trainer"]["progress"]
    assert reopen(old, []) == compose(["norm=post"]).config


def test_but_what_decides_weights_is_never_guessed():
    old = recorded()
    del old["layerdrop_rates"]
    with pytest.raises(UserError, match="layerdrop_rates"):
        reopen(old, [])


def test_what_the_chosen_option_does_not_read_has_no_effect():
    with pytest.raises(UserError, match=r"pruning.beam=9 has no effect with pruning=every_other; allowed .*=search$"):
        reopen(recorded(), ["pruning.beam=9"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pruning=random pruning.what=heads pruning.curves=[both]", r"curves=\[both\] has no effect with .*what=heads"),
        ("pruning=random pruning.heads=[9]", r"pruning.heads=\[9\] has no effect with .*what=layers"),
        ("decoding=greedy decoding.length_penalty=1.0", "decoding.length_penalty=1.0 has no effect with .*beam_size=1"),
    ],
)
def test_what_other_fields_leave_without_effect_is_refused(words, said):
    with pytest.raises(UserError, match=said):
        reopen(recorded(), words.split())


def test_an_option_has_the_fields_that_were_added_to_it_later():
    old = recorded("pruning=random")
    del old["pruning"]["what"], old["pruning"]["heads"]
    assert reopen(old, ["pruning.what=heads"]).pruning.what == "heads"


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(UserError, match=r"data.path=/caf\\udce9: not UTF-8"):
        reopen(recorded(), ["data.path=/caf\udce9"])


def test_text_is_what_was_typed_and_other_values_are_as_in_yaml():
    words = ["logger.project=1.10", "logger.tags=[1e3,no,'null']", "logger.name=null", "decoding.length_penalty=-0.0"]
    config = reopen(recorded(), words)
    logger = config.logger
    assert (logger.project, logger.tags, logger.name) == ("1.10", ["1e3", "no", "null"], None)
    assert str(config.decoding.length_penalty) == "0.0"
