"""A part may ask for whatever its group supplies, and an option that is made from a part can be pickled."""

import pickle

import pytest

from ablab.commands.help import listed_fields, typed_choices
from ablab.config import compose
from ablab.config.keys import fields_of
from ablab.config.kinds import defaults_of
from ablab.config.schema import part_groups
from ablab.errors import UserError
from ablab.tasks.plan import plan
from ablab.tasks.registry import task_of_option
from ablab.transformer.stages.models import build_model

IN_THE_MODEL = {
    "norm": ("ablab.transformer.model.norms.LayerNorm", "LayerNorm", "d_model"),
    "attention_norm": ("ablab.transformer.model.norms.QKNorm", "QKNorm", "length=d_head"),
    "feed_forward": ("ablab.transformer.model.feed_forward.ReLU", "ReLU", "d_model, d_ff, dropout"),
    "placement": ("ablab.transformer.model.residual.PreNorm", "PreNorm", "norm, dropout"),
    "position": ("ablab.transformer.model.positions.SinusoidalPositions", "SinusoidalPositions", "d_model"),
    "embedding": ("ablab.transformer.model.embedding.Embedding", "Embedding", "vocab_size, d_model"),
}
"""By group, a part of ours from which one that asks for everything derives, and what its constructor is given."""


@pytest.mark.parametrize("group", IN_THE_MODEL)
def test_a_part_may_ask_for_all_that_its_group_supplies(study, group):
    target, name, given = IN_THE_MODEL[group]
    asked = part_groups()[group].supplied
    study(
        f"from {target.rpartition('.')[0]} import {name}\n\n\nclass Part({name}):\n"
        f"    def __init__(self, {', '.join(asked)}, *, extra: int = 3):\n        super().__init__({given})\n"
        f"        self.asked = [{', '.join(asked)}]\n",
        {f"{group}/mine": "_target_: parts.Part\n"},
    )
    config = compose([f"{group}=mine", "smoke=true"]).config
    assert set(fields_of(group, "mine")) >= {"kind", "extra"}
    assert defaults_of(group, config.model_dump()[group]["kind"]) == {"extra": 3}
    found = [
        part for part in build_model(config, src_vocab=50, tgt_vocab=50).modules() if type(part).__name__ == "Part"
    ]
    assert found
    for part in found:
        assert all(value is not None for value in part.asked), asked


@pytest.mark.parametrize("words", [["norm=mine"], ["data=numbers"], ["norm=scalenorm"], ["pruning=search"]])
def test_a_configuration_can_be_pickled(study, words):
    """As launchers do that hand it to another process."""
    study(
        "class Part:\n    def __init__(self, d_model: int, *, alpha: float = 0.5): ...\n",
        {"norm/mine": "_target_: parts.Part\n"},
    )
    config = compose(words).config
    assert pickle.loads(pickle.dumps(config)) == config


CORPUS = """
from typing import Annotated, Literal

from pydantic import Field

from ablab.fields import Count
from ablab.transformer.data.corpus import Corpus, Split, digest_of


class Digits(Corpus):
    size: Count = 200
    ends: Literal["a", "b"] | None = None
    drawn: list[int] = Field(default_factory=list)
    test: str = "test"

    @property
    def test_names(self):
        return [self.test]

    def train_digest(self):
        return digest_of(["digits", self.size])

    def test_digest(self):
        return digest_of(["digits", self.test])

    def train_split(self):
        return Split("train", [("1 2", "2 1")] * self.size)

    def valid_split(self):
        return Split("valid", [("1 2", "2 1")])

    def test_splits(self):
        return [Split("test", [("1 2", "2 1")])]
"""
NEEDED = """# @package _global_
training:
  max_steps: 800
  valid_every: 100
data:
  _target_: parts.Digits
  src: digits
  tgt: reversed
  vocab_size: 20
  joint_vocab: true
  max_tokens: 64
  train_pairs: null
  valid_pairs: null
  test_pairs: null
"""
IN_THE_CLASS = {"size": "200", "ends": "null", "drawn": "[]", "test": "test"}
LATER = {"tokenizer": "bpe", "normalization": "nmt_nfkc", "lowercase": "false", "overlap": "keep"}
LATER |= {"bleu_tokenizer": "13a", "hard_vocab_limit": "true"}


def test_a_field_of_a_corpus_that_its_yaml_omits_has_the_default_of_its_class(study):
    fields = IN_THE_CLASS | LATER
    written = NEEDED + "".join(f"  {name}: {value}\n" for name, value in fields.items())
    study(CORPUS, {"data/short": NEEDED, "data/whole": written})
    short, whole = (plan(compose([f"data={each}"])) for each in ("short", "whole"))
    assert short.composed.config.data == whole.composed.config.data
    assert (short.run_id, short.evaluation_id) == (whole.run_id, whole.evaluation_id)
    task = task_of_option(short.config.task)
    assert task.dataset(short) == (short.config.data.kind, short.recipe["data"])
    listed = "\n".join(listed_fields(typed_choices(["data=short"])))
    assert all(f"  {name}: {value}  # the part's own default" in listed for name, value in fields.items())


@pytest.mark.parametrize(
    ("word", "value"),
    [("size=300", 300), ("ends=b", "b"), ("drawn=[1,2]", [1, 2]), ("test=other", "other"), ("tokenizer=char", "char")],
)
def test_a_field_of_a_corpus_that_its_yaml_omits_can_be_typed(word, value, study):
    study(CORPUS, {"data/short": NEEDED})
    found = compose(["data=short", f"data.{word}"])
    assert getattr(found.config.data, word.partition("=")[0]) == value
    assert not found.unread
    with pytest.raises(UserError, match=r"data\.size=-1: allowed: "):
        compose(["data=short", "data.size=-1"])
    with pytest.raises(UserError, match=r"data\.sizes=1: no such key: data\.sizes; did you mean data\.size\?"):
        compose(["data=short", "data.sizes=1"])
