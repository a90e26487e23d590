"""The callbacks of a run:

what they are called with, and a list of them. Those that a run has are in ablab.transformer.stages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from ablab.store.records import Curve, Evaluation, Record
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Samples, Validation


@dataclass(frozen=True)
class Measurements:
    """Training metrics logged at one step.

    `loss`: nats per predicted token without label smoothing; `padding`: share of positions that are padding. Both are
    of this step's batch.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    drophead: float
    tokens_per_second: float
    seconds: float
    padding: float


class Callback:
    """Base class of callbacks, whose methods do nothing. A callback must not change any result of the run."""

    def on_stage(self, stage: str) -> None:
        """Called when a stage begins: training, evaluating or pruning."""

    def on_message(self, line: str) -> None:
        """Called with a line of text for the user."""

    def counting(self, title: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
        """Context of a counted task; call its function with the number of items just done. None: total unknown."""
        return nullcontext(lambda count: None)

    def on_fit_start(self, state: TrainingState) -> None:
        """Called when training begins, or continues at `state.step`."""

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        """Called after every step; must be cheap."""

    def on_log(self, measurements: Measurements) -> None:
        """Called every few steps."""

    def on_validation(self, validation: Validation, samples: Samples, is_best: bool) -> None:
        """Called after each validation."""

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        """Called after each validation; returns a reason to end training now, or None. It can be continued later."""
        return None

    def on_save(self) -> None:
        """Called before the state is saved: what was told by then is not told again to a training that goes on."""

    def on_over(self, state: TrainingState) -> None:
        """Called instead of the others of training when it was over already: a kill came after the last checkpoint."""

    def on_fit_end(self) -> None:
        """Called when training has ended, for whatever reason."""

    def on_summary(self, figures: Mapping[str, Any]) -> None:
        """Called with figures of the whole run."""

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """Called when the run's record is written, with its test scores unless it diverged."""

    def on_curve(self, step: int, curve: Curve, picture: Path) -> None:
        """Called when a pruning curve was measured and drawn."""

    def on_picture(self, step: int, key: str, draw: Callable[[], Path], caption: str, of: str = "") -> None:
        """Called with a figure; `draw` makes its file where that is still to be done, so call it only for use."""


P = ParamSpec("P")


def _of_each(method: Callable[Concatenate[Callback, P], None]) -> Callable[Concatenate["Callbacks", P], None]:
    """Return a method that calls this one of each callback, in their order."""

    @wraps(method)
    def call(self: "Callbacks", /, *arguments: P.args, **named: P.kwargs) -> None:
        for callback in self.callbacks:
            getattr(callback, method.__name__)(*arguments, **named)

    return call


class Callbacks(Callback):
    """A list of callbacks, called one after the other."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)

    on_stage = _of_each(Callback.on_stage)
    on_message = _of_each(Callback.on_message)
    on_fit_start = _of_each(Callback.on_fit_start)
    on_step = _of_each(Callback.on_step)
    on_log = _of_each(Callback.on_log)
    on_validation = _of_each(Callback.on_validation)
    on_save = _of_each(Callback.on_save)
    on_over = _of_each(Callback.on_over)
    on_fit_end = _of_each(Callback.on_fit_end)
    on_summary = _of_each(Callback.on_summary)
    on_result = _of_each(Callback.on_result)
    on_curve = _of_each(Callback.on_curve)
    on_picture = _of_each(Callback.on_picture)

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        with ExitStack() as stack:
            counters = [stack.enter_context(callback.counting(title, total)) for callback in self.callbacks]

            def advance(count: int) -> None:
                for counter in counters:
                    counter(count)

            yield advance

    def stops(self, validations: Sequence[Validation], total_steps: int | None) -> str | None:
        reasons = [callback.stops(validations, total_steps) for callback in self.callbacks]
        return next((reason for reason in reasons if reason is not None), None)
