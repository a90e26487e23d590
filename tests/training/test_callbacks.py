"""A list of callbacks is a callback that tells each of them everything."""

import inspect
from contextlib import nullcontext

import pytest

from ablab.transformer.training.callbacks import Callback, Callbacks

EVENTS = [name for name in vars(Callback) if not name.startswith("_") and name != "counting"]


def noting(heard, answer=None):
    def method(name):
        return lambda self, *given: heard.append((name, given)) or answer

    return type("Noting", (Callback,), {name: method(name) for name in EVENTS})()


@pytest.mark.parametrize("event", EVENTS)
def test_each_hears_every_event_with_all_that_comes_with_it(event):
    """One that the list forgot would be lost in silence: the base class does nothing."""
    first, second = [], []
    given = tuple(object() for _ in list(inspect.signature(getattr(Callback, event)).parameters)[1:])
    getattr(Callbacks([noting(first), noting(second)]), event)(*given)
    assert first == second == [(event, given)]


def test_any_may_end_the_training_and_all_are_asked():
    heard = []
    several = Callbacks([Callback(), noting([], "one"), noting(heard, "another")])
    assert several.stops([], None) == "one"
    assert len(heard) == 1
    assert Callbacks([Callback()]).stops([], None) is None


def test_what_is_counted_is_counted_by_each():
    counted = []

    class Counting(Callback):
        def counting(self, title, total):
            return nullcontext(lambda count: counted.append((title, total, count)))

    with Callbacks([Counting(), Callback(), Counting()]).counting("pairs", 7) as advance:
        advance(3)
    assert counted == [("pairs", 7, 3)] * 2
