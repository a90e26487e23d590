"""Fields set on plain values: what is quick is what OmegaConf gives, byte for byte."""

import json
import random

import pytest

from ablab.config import compose_arm, values
from ablab.config.groups import groups
from ablab.config.overrides import parse
from ablab.config.values import Plain
from ablab.errors import UserError
from ablab.study.cells import cells_of
from ablab.study.design import Arm
from ablab.tasks.plan import plan

FIELDS = (
    *("layerdrop=0.2", "layerdrop=0", "layerdrop_encoder=0.1", "layerdrop_decoder='0.1'", "seed=7", "seed=null"),
    *("model.dropout=0.3", "model.dropout=1e-3", "model.embedding_dropout=0", "model.d_model=64", "smoke=true"),
    *("training.max_steps=null", "training.max_steps=1000", "training.max_minutes=0.5", "data.train_pairs=100"),
    *("optim.lr=0.001", "optim.lr=null", "logger.project=a b", "logger.project='x, y'", "outputs=some/where"),
    *("layerdrop_encoder=${layerdrop}", "layerdrop=${model.dropout}", "optim.lr=${oc.env:NO_SUCH,0.1}"),
    *("model.dropout=${model.embedding_dropout}", "layerdrop=${seed}", "layerdrop=???", "data.test=[a,b]"),
    *("decoding.beam_size=true", "model.tie=none", "drophead.total_steps=500", "training.patience=3"),
)
OPTIONS = [f"{group}={option}" for group, options in groups().items() for option in options]


def outcome(words):
    """The values, with the order of their keys and their types, or the error."""
    try:
        found = values.values_of(parse(words))
    except UserError as error:
        return str(error)
    return json.dumps([found.resolved, found.changes, found.has_seed, found.choices, sorted(found.unread)])


@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_omegaconf(seed, monkeypatch):
    rng = random.Random(seed)
    words = [*rng.sample(OPTIONS, rng.randint(0, 3)), *rng.sample(FIELDS, rng.randint(0, 6))]
    quick = outcome(words)
    monkeypatch.setattr(Plain, "with_fields", lambda self, overrides: None)
    assert outcome(words) == quick, words


def test_most_arms_are_quick(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("OmegaConf was asked")

    compose_arm(["norm=scalenorm"])
    monkeypatch.setattr(values, "_apply", refuse)
    for words in (["layerdrop=0.2"], ["model.dropout=0.3", "seed=3"], ["layerdrop_encoder=0.1", "optim.lr=null"]):
        compose_arm(["norm=scalenorm", *words])


def test_what_is_returned_can_be_changed_without_harm():
    before = outcome(["layerdrop=0.2"])
    found = values.values_of(parse(["layerdrop=0.2"]))
    found.resolved["model"]["d_model"] = found.resolved["layerdrop"] = -1
    assert outcome(["layerdrop=0.2"]) == before


COMMON = ("logger=none", "data=numbers")
ARMS = [
    Arm("plain", ()),
    Arm("norm", ("norm=post",)),
    Arm("dropped", ("layerdrop=0.2", "drophead=vshape")),
    Arm("averaged", ("training.select=averaged_last",)),
    Arm("referring", ("layerdrop_encoder=${layerdrop}", "model.dropout=0.2")),
    Arm("pruned", ("pruning=every_other", "decoding.beam_size=2")),
]


def test_cells_are_the_plans_of_their_words(tmp_path):
    for cell in cells_of(ARMS, (1, 5, 12), (*COMMON, f"outputs={tmp_path}")):
        alone = plan(compose_arm(cell.words))
        assert cell.planned.config == alone.config
        assert cell.planned.composed.choices == alone.composed.choices
        assert (cell.planned.run_id, cell.planned.name) == (alone.run_id, alone.name)
        assert (cell.planned.evaluation_id, cell.planned.curve_id) == (alone.evaluation_id, alone.curve_id)
        assert json.dumps(cell.planned.recipe) == json.dumps(alone.recipe)
