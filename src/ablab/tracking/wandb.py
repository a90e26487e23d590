"""Weights & Biases: a run's events, kept on disk, and sent on while it goes on if the user is online.

A process of their own sends them. The run never waits for it but at its end, and not long. A study that finds a run of
its own finished adds itself to the run's events.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ablab.config.options import Logger
from ablab.errors import UserError
from ablab.files import read_json
from ablab.files.disk import end_of_lines
from ablab.store.locks import held
from ablab.store.run_folder import RunFolder
from ablab.text import how_many
from ablab.tracking.card import as_tag, key_of
from ablab.tracking.events import EVENTS, FOLDER, STUDIES, Events
from ablab.tracking.sender import OUTCOME, Mode
from ablab.tracking.server import KNOWN, check_login, out_of_reach
from ablab.tracking.tracker import RunCard

FINISH_SECONDS = 30.0
"""Seconds that a finished run waits for W&B to take the rest. What it has not taken then, `ablab sync` sends."""

LOG = "log.txt"


class Wandb(Events):
    """The events of a run or study. `mode`: online has a process of their own send them to W&B at once.

    `offline`: what that means, the events alone, or W&B's own offline session too, which the same process writes.
    """

    title = "W&B"
    has_dashboards = True

    def __init__(
        self,
        folder: Path,
        card: RunCard,
        say: Callable[[str], None],
        mode: Mode,
        offline: Literal["events", "wandb"] = "events",
    ) -> None:
        super().__init__(folder, card, say)
        self._run, self._mode, self._online = folder, mode, mode == "online"
        is_needed = KNOWN not in os.environ if self._online else offline == "wandb"
        self._process = self._started() if is_needed else None

    @classmethod
    def check(cls, logger: Logger) -> None:
        if logger.own["offline"] == "wandb" and find_spec("wandb") is None:
            raise UserError("logger.offline=wandb: W&B is not installed; pip install wandb")
        check_login(logger)

    @classmethod
    def ready(cls, logger: Logger, say: Callable[[str], None]) -> None:
        """Check the login, and find out once for all runs of a sweep whether the server can be reached."""
        check_login(logger)
        if logger.own.get("mode") == "online" and (problem := out_of_reach()) is not None:
            os.environ[KNOWN] = problem
            say(f"W&B is out of reach ({problem}); ablab sync sends the runs later")

    @classmethod
    def join(
        cls, logger: Logger, study: str, runs: Iterable[tuple[RunFolder, str]], say: Callable[[str], None]
    ) -> None:
        joined = [share(run, study, arm) for run, arm in runs]
        if any(joined) and logger.own["mode"] == "online":
            are = "is" if sum(joined) == 1 else "are"
            say(f"{how_many(sum(joined), 'earlier run')} {are} in this study too: ablab sync tells W&B")

    def finish(self, *, failed: bool) -> None:
        """Close the events and wait for W&B to take them, at most FINISH_SECONDS."""
        super().finish(failed=failed)
        problem = os.environ.get(KNOWN) if self._online else None
        if self._process is not None:
            problem = waited(self._process, self._run, FINISH_SECONDS)
        if problem is not None:
            self._say(f"W&B has not taken all of it ({problem}); ablab sync sends the rest")

    def _started(self) -> "subprocess.Popen[bytes] | None":
        try:
            begun = (self._run / FOLDER / EVENTS).stat().st_size
            # In a session of its own: Ctrl-C is for the run.
            return sending(self._run, self._mode, str(os.getpid()), str(begun), start_new_session=True)
        except OSError as error:
            self._say(f"W&B is told nothing ({error.strerror}); ablab sync sends it")
            return None


def sending(folder: Path, *words: str, start_new_session: bool = False) -> "subprocess.Popen[bytes]":
    """Start a process that sends the events of `folder`; `words`: as `sender.main` takes them after the folder."""
    command = [sys.executable, "-m", "ablab.tracking.sender", str(folder), *words]
    with (folder / FOLDER / LOG).open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=start_new_session
        )


def waited(process: "subprocess.Popen[bytes]", folder: Path, seconds: float) -> str | None:
    """Wait for a process that sends the events of `folder`; return what hindered it, or None if it has sent all.

    After `seconds`, and whenever the wait is broken off, the process is killed.
    """
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"not within {seconds:g} s"
    finally:
        kill(process)
    if code == 0:
        return None
    if code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    with suppress(OSError, UserError, LookupError):
        return str(read_json(folder / FOLDER / OUTCOME)["problem"])
    return f"its process ended with {code}; see {folder / FOLDER / LOG}"


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process, if it still runs, and those it has started, which W&B puts into sessions of their own."""
    if process.poll() is not None:
        return
    with suppress(OSError):
        started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
        for pid in started.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    process.kill()
    process.wait()


def share(run: RunFolder, study: str, arm: str) -> bool:
    """Append to the events of a finished run that it is this arm of the study; return whether that is news.

    A run without events was made without W&B. What cannot be written now, such as the events of a run that another
    process works on, is left to the next sweep.
    """
    path = run.path / FOLDER / EVENTS
    place = {key_of(study): arm}
    if not path.exists() or place.items() <= _arms(path.read_bytes()).items():
        return False
    line = json.dumps({"event": "study", "tags": [as_tag(study)], STUDIES: place}, ensure_ascii=False)
    try:
        with held(run), path.open("r+b") as file:
            file.seek(end_of_lines(file))
            file.truncate()  # a kill may have torn the last line
            file.write(line.encode() + b"\n")
    except (UserError, OSError):
        return False
    return True


def _arms(events: bytes) -> dict[str, str]:
    """Return the run's arm in each study that its cards and events name; other lines are many, and are not parsed."""
    arms: dict[str, str] = {}
    for line in events.splitlines():
        if f'"{STUDIES}"'.encode() in line:
            with suppress(ValueError, AttributeError):
                event = json.loads(line)
                arms |= event.get(STUDIES) or event.get("card", {}).get("config", {}).get(STUDIES) or {}
    return arms
