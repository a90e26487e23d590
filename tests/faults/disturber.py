"""A process that has imported all that a run needs, under the interposer, and forks one command for each line it reads.

A fault then costs the run alone: the import would take longer than the run.
"""

import json
import os
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LAYOUT = struct.Struct("qqii8q4096s4096s")
"""As `struct state` of interposer.c."""

KILL, HALF_AND_KILL, SHORT, FULL, READ_ONLY = -1, -2, -3, -4, -5
"""Other ways are numbers of errors. A disk stays full or read-only until the command ends."""

KINDS = ("write", "rename", "link", "fsync", "truncate", "unlink", "create")


@dataclass(frozen=True)
class Ended:
    """How a command ended. `calls`: below the folder. `kinds`: numbers of each. `fired`: kind of that which failed."""

    code: int
    said: str
    calls: int
    kinds: dict[str, int]
    fired: str | None


class Disturber:
    """Runs commands in which one call fails. `library`: the interposer, compiled; `scratch`: a folder of its own."""

    def __init__(self, library: Path, scratch: Path) -> None:
        self._state, self._out = scratch / "state", scratch / "out"
        self._state.write_bytes(bytes(LAYOUT.size))
        environment = {**os.environ, "LD_PRELOAD": str(library), "FAULTS_STATE": str(self._state)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.disturber"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(
        self, *words: str, below: Path, at: int = 0, how: int = 0, seconds: int = 120, journal: Path | None = None
    ) -> Ended:
        """Run `ablab <words>`; its `at`-th call below a folder fails as `how` says, a number of an error or a kill.

        `journal`: a folder for what a disk would have to keep, as `power` reads it.
        """
        kept = b"" if journal is None else str(journal).encode()
        self._state.write_bytes(LAYOUT.pack(0, at, how, 0, *8 * [0], f"{below}/".encode(), kept))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(words), str(self._out), seconds]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        count, _, _, fired, *kinds, _, _, _ = LAYOUT.unpack(self._state.read_bytes())
        name = KINDS[fired - 1] if fired else None
        return Ended(code, self._out.read_text(errors="replace"), count, dict(zip(KINDS, kinds, strict=True)), name)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def serve() -> None:
    """Fork a command for each line of standard input, and answer with its exit code, or minus its signal."""
    from ablab.sweep.launchers import task
    from ablab.transformer import stages

    for module in task.preloaded([]):
        __import__(module)
    assert stages
    for line in sys.stdin:
        words, out, seconds = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _command(words, out, seconds)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _command(words: list[str], out: str, seconds: int) -> None:
    from ablab.commands.cli import main
    from ablab.sweep.launchers.task import into

    Path(out).unlink(missing_ok=True)
    into(out)
    signal.alarm(seconds)
    code = 70
    try:
        code = main(words)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
