import pytest

from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import build


def look_and_fail(model: Transformer) -> None:
    with evaluating(model):
        assert not any(module.training for module in model.modules())
        raise RuntimeError("while looking")


@pytest.mark.parametrize("training", [True, False])
def test_a_look_at_a_model_leaves_its_mode_as_it_was_even_when_it_fails(training):
    model = build().train(training)
    with pytest.raises(RuntimeError, match="while looking"):
        look_and_fail(model)
    assert all(module.training == training for module in model.modules())
