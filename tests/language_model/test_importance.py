"""The importance of heads is that of each row, whatever reads the positions, and however rows are batched."""

import numpy as np
import pytest

from ablab.transformer.data.documents.shards import Shard
from ablab.transformer.data.documents.tokenizers import Characters
from ablab.transformer.language_model.curve import TextBench
from ablab.transformer.language_model.scoring import windows_of
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.head_importance import head_importance
from tests.language_model.models import CONTEXT, stirred
from tests.model.test_positions import NEARER
from tests.parts.conftest import study

__all__ = ["study"]


@pytest.mark.parametrize("position", ["none", "nearer"])
def test_it_is_the_sum_over_rows_read_one_by_one(position, study):
    study(NEARER, {"position/nearer": "_target_: parts.Nearer\n"})
    model = stirred(f"position={position}", "model.dropout=0")
    text = Shard.of(Characters("abcd "), ["a cab", "bad dad", "ad", "a cab, a dad", "dabba", "cad"])
    bench = object.__new__(TextBench)
    bench.model, bench.text, bench.context, bench.callbacks = model, text, CONTEXT, Callback()
    alone = head_importance(model, (window.packed for window in windows_of(text, CONTEXT, 1)))
    assert [*bench.importance_of_heads()] == ["decoder"]
    np.testing.assert_allclose(bench.importance_of_heads()["decoder"], alone["decoder"], rtol=1e-9)
