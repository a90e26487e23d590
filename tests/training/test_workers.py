"""Processes that go wrong before a step is computed. Whole runs are in tests/run/test_ddp.py."""

import os

import pytest
import torch.distributed as dist

from ablab.errors import LostError
from ablab.store.records import kind_of
from ablab.training.workers import joining, start_workers


def work() -> None:
    """Another process: takes its order, and fails."""
    with joining() as (order, _):
        if order == "die":
            os.kill(os.getpid(), 9)
        raise RuntimeError(f"CUDA out of memory.\nTried to {order}")


@pytest.mark.parametrize(
    ("order", "said", "kind"),
    [
        ("allocate", "device 1 of 2: RuntimeError: CUDA out of memory. Tried to allocate; ", "memory"),
        ("die", "device 1 of 2: its process was killed by SIGKILL (out of memory?); ", "killed"),
    ],
)
def test_what_ends_a_process_is_said_in_one_line(order, said, kind, capfd):
    with pytest.raises(LostError) as caught, start_workers(2, work, order, on_gpu=False):
        pytest.fail("nobody has come")
    assert str(caught.value).startswith(said)
    assert kind_of(caught.value) == kind
    assert not dist.is_initialized()
    assert ("in work" in capfd.readouterr().err) == (order == "allocate")  # where it failed, for whoever mends it
