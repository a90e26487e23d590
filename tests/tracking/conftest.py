"""A stand-in for W&B's server, which this process and those it starts take for the real one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ablab.tracking.tracker import RunCard
from tests.tracking.server import Server

CARD = RunCard(run_id="rabc", name="s1", config={"seed": 1}, tags=["a"], project="p", group="g")

Serve = Callable[..., Server]


@pytest.fixture
def serve(monkeypatch) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(manner: str = "accepts", rows: int | None = None) -> Server:
            server = Server(manner, rows)
            stack.callback(server.close)
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            return server

        yield start
