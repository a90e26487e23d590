"""Processes that go wrong before a step is computed. Whole runs are in tests/run/test_ddp.py."""

import os
import signal
import subprocess

import pytest
import torch.distributed as dist

from ablab.errors import LostError
from ablab.store.failures import kind_of
from ablab.transformer.training import workers
from ablab.transformer.training.workers import Worker, WorkerGroup, lead
from ablab.transformer.translation.validation import TranslationValidation as Validation


class Wrong:
    """A spec that cannot be read: another process fails when it receives it."""

    def __init__(self, order: str) -> None:
        self.order = order

    def __reduce__(self):
        return fail, (self.order,)


def fail(order: str) -> None:
    if order == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError(f"CUDA out of memory.\nTried to {order}")


@pytest.mark.parametrize(
    ("order", "said", "kind"),
    [
        pytest.param(
            *("allocate", "device 1 of 2: RuntimeError: CUDA out of memory. Tried to allocate; ", "memory"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("die", "device 1 of 2: its process was killed by SIGKILL (out of memory?); ", "killed"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_ends_a_process_is_said_in_one_line(order, said, kind, capfd):
    with pytest.raises(LostError) as caught, lead(2, Wrong(order), on_gpu=False):
        pytest.fail("nobody has come")
    assert str(caught.value).startswith(said)
    assert kind_of(caught.value) == kind
    assert not dist.is_initialized()
    assert ("in fail" in capfd.readouterr().err) == (order == "allocate")  # where it failed, for whoever mends it


@pytest.mark.parametrize("left_behind", [[], ["WORLD_SIZE"], ["WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]])
def test_a_process_that_cannot_begin_is_said_too(left_behind, monkeypatch, capfd):
    """Also where another program has left variables of torchrun's, which has started nobody."""
    for name in left_behind:
        monkeypatch.setenv(name, "2")
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    with pytest.raises(LostError, match="device 1 of 2: its process ended with 1; "), lead(2, None, on_gpu=False):
        pytest.fail("nobody has come")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_worker_without_its_first_process_ends_and_says_nothing(capfd):
    """It was killed while the worker was being started."""
    processes: list[subprocess.Popen[bytes]] = []
    workers._start(processes, 2, port=1)
    (process,) = processes
    assert process.wait(60) == workers.PARTED
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def ends(monkeypatch):
    """Process 0 and a worker that hears in this process what process 0 has sent, as Gloo does: in equal lengths."""
    sent = []

    def broadcast(tensor, src, group):
        if group == "sends":
            sent.append(tensor)
        else:
            assert tensor.shape == sent[0].shape
            tensor.copy_(sent.pop(0))

    monkeypatch.setattr(dist, "broadcast", broadcast)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    leader, worker = object.__new__(WorkerGroup), object.__new__(Worker)
    leader._orders, worker._orders = "sends", "hears"
    return leader, worker


def test_a_worker_hears_the_scores_that_may_decide_the_learning_rate(ends):
    leader, worker = ends
    validation = Validation(10, 0.1, 22.5, at_limit=3)
    leader.go_on(validation)
    (heard,) = worker.hear(Validation)
    assert heard.step == 10
    assert all(heard.order(monitor) == validation.order(monitor) for monitor in ("loss", "bleu"))


def test_a_worker_hears_of_a_step_without_validation_and_of_the_end(ends):
    leader, worker = ends
    leader.go_on(None)
    assert worker.hear(Validation) == []
    leader.dismiss()
    assert worker.hear(Validation) is None
