"""The door to a run: one process at a time goes in, and only for what is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from ablab.console import Console
from ablab.errors import OtherCodeError, UserError
from ablab.plan import Planned
from ablab.provenance import comes_from_elsewhere
from ablab.store.heartbeat import Heartbeat, heartbeat, read_pulse
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder


class BusyError(UserError):
    """Another process works on the run."""


def run(planned: Planned, console: Console) -> Record | None:
    """Whatever of the run is missing, and nothing twice; None when it was interrupted."""
    folder = planned.folder
    with alone(folder), heartbeat(folder.pulse) as beating:
        if _to_be_replaced(planned) and (aside := folder.set_aside()):
            console.say(f"The earlier run was moved to {aside}")
        record = folder.record()
        if record is not None:
            _report_reuse(record, console)
        if record is None or planned.lacks_evaluation(record) or planned.lacks_curve(record):
            record = _completed(planned, console, beating)
        if record is None:
            return None
        folder.failure.unlink(missing_ok=True)
    console.result(
        folder,
        record,
        folder.evaluation(planned.evaluation_id),
        folder.curve(planned.curve_id),
        smoke=planned.config.smoke,
    )
    return record


def _completed(planned: Planned, console: Console, beating: Heartbeat) -> Record | None:
    """With rerun=stale, a run that other code began begins anew."""
    from ablab.complete import complete

    try:
        return complete(planned, console, beating)
    except OtherCodeError:
        if planned.config.rerun != "stale":
            raise
    console.say(f"The earlier run was moved to {planned.folder.set_aside()}")
    return complete(planned, console, beating)


def _to_be_replaced(planned: Planned) -> bool:
    if planned.config.rerun == "stale":
        record = planned.folder.record()
        return record is not None and comes_from_elsewhere(record.provenance, record.stretches) is not None
    return planned.config.rerun


def _report_reuse(record: Record, console: Console) -> None:
    console.say(f"{record.run_id} {record.state} on {record.ended[:10]}: nothing is trained again")
    if (origin := comes_from_elsewhere(record.provenance, record.stretches)) is not None:
        console.say(f"It comes from elsewhere: {origin}; rerun=true trains anew")


@contextmanager
def alone(folder: RunFolder) -> Iterator[None]:
    """Nobody else works on this run meanwhile; the lock ends with the process, however it ends."""
    lock = FileLock(folder.lock)
    try:
        folder.lock.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:  # of the family of OSError, so it comes first
        raise BusyError(f"{folder.run_id} is being worked on by another process; wait for it, or stop it") from None
    except OSError as error:
        raise UserError(f"outputs: nothing can be written in {folder.lock.parent} ({error.strerror})") from None
    try:
        # Not every file system that machines share passes locks on.
        pulse = read_pulse(folder.pulse)
        if pulse is not None and not pulse.is_here and pulse.is_fresh:
            raise BusyError(f"{folder.run_id} is being worked on by a process on {pulse.host}; wait for it, or stop it")
        yield
    finally:
        lock.release()
