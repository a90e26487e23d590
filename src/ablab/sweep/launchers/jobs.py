"""The jobs of runs in Slurm's queue: kept beside the runs, so that any command finds, shows, adopts or cancels them."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ablab.errors import LostError, UserError
from ablab.files import read_json, write_json
from ablab.store.heartbeat import read_pulse
from ablab.store.run_folder import RunFolder
from ablab.study.ledger import OPEN, LedgerEntry, State
from ablab.sweep.launchers import squeue

ASK_EVERY = 10.0
"""Seconds between two questions of a view that goes on."""

Key = TypeVar("Key")


class Waiting(NamedTuple):
    """A job that is in the queue, and what squeue says of it."""

    id: str
    seen: squeue.InQueue

    @property
    def words(self) -> str:
        """Such as `job 17_2, Priority`, or `job 17_2` of a job that runs."""
        return f"job {self.id}" + (f", {self.seen.reason}" if self.seen.state == "PENDING" else "")


def keep(folder: RunFolder, job: str) -> None:
    """Write down which job makes a run."""
    with suppress(OSError):  # it only spares a second job
        write_json(folder.job, {"job": job, "cluster": squeue.cluster().name})


def forget(folder: RunFolder, job: str) -> None:
    """Remove what was written down of a job that has ended."""
    with suppress(OSError):
        if (_read(folder) or {}).get("job") == job:
            folder.job.unlink(missing_ok=True)


def bury(folder: RunFolder, job: str) -> None:
    """Remove what a job that died has left, also its heartbeat: no other machine then has to wait for its silence."""
    forget(folder, job)
    pulse = read_pulse(folder.pulse)
    if pulse is not None and pulse.job == job:
        with suppress(OSError):
            folder.pulse.unlink(missing_ok=True)


def in_queue(folders: Mapping[Key, RunFolder]) -> dict[Key, Waiting]:
    """Return the jobs of these runs that wait, run or are completing, as far as this cluster's squeue answers."""
    written = {path for runs in {folder.path.parent for folder in folders.values()} for path in runs.glob(".*.job")}
    kept = {key: known for key, one in folders.items() if one.job in written and (known := _read(one)) is not None}
    if not kept or (there := squeue.jobs()) is None:
        return {}
    here = squeue.cluster().name  # empty where Slurm did not say: ids then tell alone
    ours = {
        key: known["job"] for key, known in kept.items() if "" in (here, known["cluster"]) or known["cluster"] == here
    }
    return {key: Waiting(job, there[job]) for key, job in ours.items() if job in there and not there[job].has_ended}


def _read(folder: RunFolder) -> dict[str, str] | None:
    try:
        known = read_json(folder.job)
        return {name: str(known[name]) for name in ("job", "cluster")}
    except (OSError, UserError, KeyError, TypeError):
        return None


class View:
    """Shows runs whose jobs are in the queue as queued, and asks the queue now and then."""

    def __init__(self) -> None:
        self._asked = -ASK_EVERY
        self._waiting: dict[str, Waiting] = {}

    def of(self, entries: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
        """Return these entries, those that wait, or have only begun to start, as queued."""
        not_begun = {key: entry for key, entry in entries.items() if entry.state in OPEN}
        if time.monotonic() - self._asked >= ASK_EVERY:
            self._waiting = in_queue({key: entry.cell.planned.folder for key, entry in not_begun.items()})
            self._asked = time.monotonic()
        queued = {key: entry for key, entry in not_begun.items() if key in self._waiting}
        told = {key: replace(one, state=State.QUEUED, job=self._waiting[key].words) for key, one in queued.items()}
        return {**entries, **told}


def cancel(folders: Iterable[RunFolder]) -> list[str]:
    """Cancel the jobs of these runs and return their ids; LostError if Slurm refuses."""
    folders = list(folders)
    if any(folder.job.exists() for folder in folders) and squeue.jobs() is None:
        raise LostError("squeue does not answer, so that nobody knows which jobs are in the queue; try again later")
    ids = sorted({waiting.id for waiting in in_queue({folder: folder for folder in folders}).values()})
    if ids and (refusal := squeue.cancel(ids)) is not None:
        raise LostError(f"scancel {' '.join(ids)}: {refusal}")
    return ids
