"""Signals ask a training to stop, once and in good order."""

import signal
from contextlib import nullcontext

import pytest

from ablab.code.machine import StopOnce, graceful_stop, within_queue

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Died(BaseException):
    """What a signal does that nobody waits for."""


@pytest.fixture(autouse=True)
def _deadly():
    """Each signal raises, and is as it was afterwards."""

    def die(number, frame):
        raise Died

    before = {number: signal.signal(number, die) for number in ASKING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ASKING)
def test_the_first_asks_and_outside_all_is_as_before(number):
    asked = []
    with graceful_stop(lambda: asked.append(number)):
        signal.raise_signal(number)
    assert asked == [number]
    with pytest.raises(Died):
        signal.raise_signal(number)


@pytest.mark.parametrize("first", ASKING)
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_ends_at_once(first, second):
    with graceful_stop(lambda: None):
        signal.raise_signal(first)
        with pytest.raises(Died):
            signal.raise_signal(second)


def test_a_terminal_that_closes_hangs_up_more_than_once():
    asked = []
    with graceful_stop(lambda: asked.append(1)):
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
    assert asked == [1]


def test_under_nohup_nothing_is_asked():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    asked = []
    with graceful_stop(lambda: asked.append(1)):
        signal.raise_signal(signal.SIGHUP)
    assert not asked
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_machine_that_repeats_its_signal_is_not_impatient():
    """Slurm sends two within milliseconds: the second may come while the step ends, or after training."""
    stop, asked = StopOnce(), []
    signal.signal(signal.SIGTERM, stop)
    with graceful_stop(lambda: asked.append(1)):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert asked == [1]


def test_a_machine_is_heard_also_before_training():
    signal.signal(signal.SIGTERM, StopOnce())
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("job", ["17", ""])
def test_a_run_in_a_job_of_slurm_hears_its_signal_once(monkeypatch, job):
    """Also one that nobody but its own script submitted; outside a job, the second ends it."""
    monkeypatch.setenv("SLURM_JOB_ID", job)
    with within_queue():
        with graceful_stop(lambda: None):
            signal.raise_signal(signal.SIGTERM)
            with nullcontext() if job else pytest.raises(Died):
                signal.raise_signal(signal.SIGTERM)
        with nullcontext() if job else pytest.raises(Died):
            signal.raise_signal(signal.SIGTERM)
    with pytest.raises(Died):
        signal.raise_signal(signal.SIGTERM)
