"""What follows the steps of a training."""

from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from ablab.config import compose
from ablab.transformer.data.prepared import PerCharacter
from ablab.transformer.stages import train
from ablab.transformer.training.callbacks import Callback, Callbacks
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Samples
from ablab.transformer.translation.training import TranslationTrainable
from ablab.transformer.translation.validation import TranslationValidation as Validation


class Looking(Callback):
    """In place of what looks at the model: uses compiled code that has not been compiled yet."""

    def __init__(self) -> None:
        self.compiled = torch.compile(torch.neg, backend=COUNTER)

    def __call__(self, model: object, step: int) -> tuple[Validation, Samples]:
        self.compiled(torch.ones(2))
        return Validation(step, 2.0, 10.0), Samples()

    def on_over(self, state: TrainingState) -> None:
        self(None, state.step)


COUNTER = CompileCounter()


@pytest.fixture
def work(monkeypatch):
    """A training that has reached its last step."""
    torch.compiler.reset()
    COUNTER.clear()
    monkeypatch.setattr(train, "build_ends", lambda *_: SimpleNamespace(reached=lambda _: "steps"))
    model = torch.nn.Linear(1, 1)
    config = compose(["trainer.compile=true"]).config
    chosen = {"weights": model.state_dict(), "steps": [1, 2], "sha256": None}
    trainable = TranslationTrainable(
        config, SimpleNamespace(valid_per_character=PerCharacter(tokens=0.25, unknown=0.0)), None
    )
    monkeypatch.setattr(trainable, "validator", Looking)
    monkeypatch.setattr(trainable, "callbacks", lambda *_: [Looking()])
    return SimpleNamespace(
        trainable=trainable,
        model=model,
        state=TrainingState(step=2),
        steps=None,
        planned=SimpleNamespace(config=config, folder=None),
        checkpoints=SimpleNamespace(
            choose=lambda state, validate: SimpleNamespace(**chosen, validation=validate(chosen["weights"]))
        ),
    )


def test_weights_are_selected_by_the_model_as_written(work):
    """As they are validated: decoding would compile every layer for lengths that grow by one."""
    selected = train._select(work)
    assert (selected.scores["loss"], selected.scores["loss_per_character"]) == (2.0, 0.5)
    assert COUNTER.frame_count == 0


def test_a_map_that_a_kill_left_undrawn_is_of_the_model_as_written(work):
    assert train._fit(work, Callbacks([]), None).state == "finished"
    assert COUNTER.frame_count == 0
