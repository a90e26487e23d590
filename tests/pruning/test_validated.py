"""What validation has said once is not asked again, by any strategy, in any process."""

import pytest

from ablab.transformer.pruning.strategies import Kept
from ablab.transformer.stages.pruning_curve import Validated
from tests.model.arms import build

ONE, TWO = Kept((0, 1), (1,)), Kept((0, 1), (0, 2))


class Counting:
    """A validator that only counts."""

    def __init__(self):
        self.calls = []

    @property
    def measures(self):
        return {"loss": self.loss, "bleu": self.bleu}

    def loss(self, model):
        self.calls.append(("loss", len(model.decoder.layers)))
        return float(len(model.decoder.layers))

    def bleu(self, model):
        self.calls.append(("bleu", len(model.decoder.layers)))
        return 10.0 * len(model.decoder.layers)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "validated_layers.json"


def test_each_is_computed_once(path):
    judge = Counting()
    validated = Validated(build("pre"), judge.measures, path, finally_by="bleu")
    for _ in range(2):
        assert (validated.loss(ONE), validated.loss(TWO), validated.quality(TWO)) == (1.0, 2.0, 20.0)
    assert judge.calls == [("loss", 1), ("loss", 2), ("bleu", 2)]


def test_combinations_count_what_was_asked_not_what_was_computed(path):
    Validated(build("pre"), Counting().measures, path).loss(ONE)
    validated = Validated(build("pre"), Counting().measures, path, finally_by="bleu")
    validated.loss(ONE)
    validated.quality(ONE)
    validated.loss(TWO)
    assert validated.combinations == 2


def test_scores_that_are_known_are_not_measured(path):
    judge = Counting()
    validated = Validated(build("pre"), judge.measures, path)
    validated.know(ONE, {"loss": 7.0, "bleu": 8.0, "perplexity": 9.0})
    assert validated.scores(ONE) == {"loss": 7.0, "bleu": 8.0}
    validated.know(TWO, {"loss": 7.0})
    validated.know(ONE, {"loss": 1.0, "bleu": 1.0})
    assert validated.loss(TWO) == 2.0, "what lacks a score counts for nothing"
    assert validated.loss(ONE) == 7.0, "and what was measured stays"
    assert validated.combinations == 2


def test_an_interruption_loses_one_answer_at_most(path):
    class Interrupted(Counting):
        def loss(self, model):
            if len(model.decoder.layers) == 2:
                raise KeyboardInterrupt
            return super().loss(model)

    first = Validated(build("pre"), Interrupted().measures, path)
    first.loss(ONE)
    with pytest.raises(KeyboardInterrupt):
        first.loss(TWO)
    judge = Counting()
    again = Validated(build("pre"), judge.measures, path)
    assert (again.loss(ONE), again.loss(TWO)) == (1.0, 2.0)
    assert judge.calls == [("loss", 2)]
