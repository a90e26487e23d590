"""Whichever weights count, the score on record is theirs, and no other weights are left."""

import json

import pytest
import torch

from ablab.store.former import _tokens_per_character
from ablab.transformer.data.prepared import Prepared
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages.models import load_model
from ablab.transformer.translation.validation import Validator
from tests.run.conftest import make_store

SELECTS = {
    "averaged_last": ("training.average_every=3", [[6, 8]]),
    "best_or_averaged": ("training.monitor=loss", [[4], [8], [4, 8]]),
}


@pytest.mark.parametrize("select", SELECTS)
def test_the_score_on_record_is_that_of_the_weights_on_disk(select, tmp_path):
    """Of 8 steps, the fourth and the last are validated."""
    word, expected = SELECTS[select]
    store = make_store(tmp_path, "logger=none", "pruning=none", f"training.select={select}", word)
    run, record = store.run, store.record
    assert record.selected.steps in expected
    assert sorted(path.name for path in run.checkpoints.glob("*.safetensors")) == ["selected.safetensors"]

    model, _ = load_model(of_run(run, record), torch.device("cpu"))
    prepared = Prepared(store.outputs / "corpora" / record.data["corpus"])
    assert Validator(prepared).loss(model) == pytest.approx(record.selected.scores["loss"], rel=1e-6)
    assert _without_its_loss_per_character(run) == record
    prepared.folder.rename(tmp_path / "gone")
    _tokens_per_character.cache_clear()
    assert "loss_per_character" not in run.record().selected.scores


def _without_its_loss_per_character(run):
    """The record, read again from what code before there was one would have written."""
    path = run.path / "record.json"
    content = json.loads(path.read_text())
    for scores in (content["selected"]["scores"], *content["validations"]):
        assert scores.pop("loss_per_character") > 0
    path.write_text(json.dumps(content))
    return run.record()
