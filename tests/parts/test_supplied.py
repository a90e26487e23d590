"""A part may ask for whatever its group supplies, and an option that is made from a part can be pickled."""

import pickle

import pytest

from ablab.config import compose
from ablab.config.kinds import SUPPLIED, defaults_of, fields_of
from ablab.transformer.build import build_model

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
    asked = SUPPLIED[group]
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
