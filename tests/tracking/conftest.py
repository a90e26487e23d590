"""A network that leads nowhere, and notices who asks."""

import socket
import threading
from collections.abc import Iterator

import pytest
import wandb


class Trap:
    """A proxy that answers nothing and remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            caller.settimeout(5)
            self.asked.append(caller.recv(4096))
            caller.close()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    """All ways out lead to the trap: of this process, and of wandb's own, which is started afresh."""
    trap = Trap()
    wandb.teardown()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            patch.setenv(name, trap.address)
            patch.setenv(name.lower(), trap.address)
        patch.delenv("NO_PROXY", raising=False)
        patch.delenv("no_proxy", raising=False)
        yield trap
        wandb.teardown()
    trap.close()
