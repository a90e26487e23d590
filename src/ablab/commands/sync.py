"""The `sync` command: upload offline sessions that W&B lacks, by means of W&B's own command."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.commands.options import SyncOptions, read_words
from ablab.console import Console
from ablab.errors import UserError

SECONDS, REACH_SECONDS = 600, 10


def sync(arguments: Sequence[str]) -> int:
    """Upload the sessions of each run in order; stop at the first that the server rejects."""
    options = read_words(SyncOptions, arguments)
    outputs = Path(options.outputs)
    if not outputs.is_dir():
        raise UserError(f"outputs={outputs}: no such folder")
    console = Console()
    missing = {place: sessions for place in _places(outputs) if (sessions := unsynced(place))}
    console.say(f"{len(missing)} runs and studies of {outputs} have something to upload")
    if missing and not options.dry_run:
        _check_server()
    for number, (place, sessions) in enumerate(missing.items(), 1):
        console.say(f"[{number}/{len(missing)}] {place.name}: {len(sessions)} sessions{', not sent' * options.dry_run}")
        if not options.dry_run and (refusal := _send(sessions)) is not None:
            raise UserError(f"{place}: W&B refused the upload ({refusal}); sessions sent before remain there")
    if options.dry_run and missing:
        console.say("Next: ablab sync")
    return 0


def _check_server() -> None:
    """Check that the server is reachable; W&B itself would retry for minutes before it reports that it is not."""
    server = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")
    try:
        urllib.request.urlopen(server, timeout=REACH_SECONDS).close()
    except urllib.error.HTTPError:
        return  # the server answered
    except (OSError, ValueError) as error:
        raise UserError(
            f"W&B is out of reach at {server} ({getattr(error, 'reason', error)}); nothing was sent"
        ) from None


def unsynced(place: Path) -> list[Path]:
    """Return offline sessions, oldest first, that W&B has not marked as sent."""
    sessions = sorted((place / "wandb").glob("offline-run-*"))
    return [session for session in sessions if any(session.glob("*.wandb")) and not any(session.glob("*.wandb.synced"))]


def _places(outputs: Path) -> Iterator[Path]:
    for kind in ("runs", "studies"):
        yield from sorted(path for path in (outputs / kind).glob("*") if path.is_dir())


def _send(sessions: Sequence[Path]) -> str | None:
    """Upload the sessions; return None on success, otherwise the last line of W&B's output."""
    command = [sys.executable, "-m", "wandb", "sync", *map(str, sessions)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS} s"
    unmarked = [session for session in sessions if not any(session.glob("*.wandb.synced"))]
    if done.returncode == 0 and not unmarked:
        return None
    lines = (done.stderr + done.stdout).strip().splitlines()
    return lines[-1].strip() if lines else f"exit code {done.returncode}"
