"""Runs that several studies share: each study that finds one finished adds itself to its events."""

import json
from contextlib import suppress

from ablab.errors import UserError
from ablab.store.locks import locked
from ablab.store.run_folder import RunFolder
from ablab.tracking.card import as_tag, key_of
from ablab.tracking.events import EVENTS, FOLDER, STUDIES


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
        with locked(run), path.open("r+b") as file:
            file.seek(file.read().rfind(b"\n") + 1)
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
