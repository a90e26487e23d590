"""Execution of one run under its lock: train, evaluate and prune whatever is missing, and repeat nothing."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from ablab.code.differences import of_other_version, other_origin
from ablab.code.load import as_error, failure_of, place_of
from ablab.config.kinds import outside_parts
from ablab.errors import OtherCodeError, PartError, UserError
from ablab.search.stopping import Stopping
from ablab.store.heartbeat import Heartbeat, heartbeat
from ablab.store.locks import is_former, locked, locked_when_free
from ablab.store.records import Record
from ablab.store.spent import Spent
from ablab.tasks.plan import Planned, check_writable
from ablab.tracking.console import Console
from ablab.tracking.open import open_tracker


def run(planned: Planned, console: Console, began: float | None = None) -> Record | None:
    """Train, evaluate and measure the pruning curve, as far as they are missing; return None if interrupted.

    `began`: by `time.perf_counter`, when the process took up the run; None: now.
    """
    check_writable(planned.outputs)
    folder, asked = planned.folder, time.perf_counter()
    waits = planned.config.wait or is_former(folder)
    lock = locked_when_free(folder, console.say) if waits else locked(folder)
    with ExitStack() as stack:
        owner = stack.enter_context(lock)
        spent = Spent(folder.spent, asked if began is None else began, waited=time.perf_counter() - asked)
        beating = stack.enter_context(heartbeat(folder.pulse, lambda: owner.is_still, spent))
        folder.tidy()
        if _is_to_be_replaced(planned) and (aside := folder.set_aside()):
            console.say(f"The earlier run was moved to {aside}")
        record = folder.record()
        if record is not None:
            _say_it_is_finished(planned, record, console)
        if record is None or planned.lacks_evaluation(record) or planned.lacks_curve(record):
            with _blaming_parts(planned):
                record = _completed(planned, record, console, beating)
        if record is None:
            if planned.config.rerun is True:
                console.say("Type it without rerun=, which would move this run, too, and begin anew")
            return None
        folder.failure.unlink(missing_ok=True)
    evaluation, curve = folder.evaluation(planned.evaluation_id), folder.curve(planned.curve_id)
    console.result(planned.task, folder, record, evaluation, curve, smoke=planned.config.smoke)
    return record


@contextmanager
def _blaming_parts(planned: Planned) -> Iterator[None]:
    """Say of an error that a part from outside has raised in which file and line of it; it may not end the process."""
    try:
        yield
    except UserError:
        raise
    except SystemExit as error:
        raise PartError(failure_of(as_error(error), outside_parts(planned.config).values())) from None
    except Exception as error:
        parts = list(outside_parts(planned.config).values())
        if place_of(error, parts) is None:
            raise
        raise PartError(failure_of(error, parts)) from error


class _UnfinishedError(Exception):
    """Training was interrupted before its end."""


def _completed(planned: Planned, record: Record | None, console: Console, beating: Heartbeat) -> Record | None:
    task = planned.task
    work = _prepared(planned, console) if record is None else None  # refused runs must not reach a tracker
    trial = planned.config.search_trial
    stops = None if work is None or trial is None else Stopping(trial, console.say)
    with ExitStack() as last, suppress(_UnfinishedError), open_tracker(planned, console.say) as tracker:
        last.callback(beating.spent.keep)
        if (dataset := task.dataset(planned)) is not None:
            tracker.dataset(*dataset)
        callbacks = task.callbacks(planned, console, beating, tracker)
        if work is not None:
            record = task.train(work, callbacks, stops)
        if record is None:
            if stops is not None and stops.ends:
                return None  # as the search decided
            raise _UnfinishedError  # trackers learn that it did not end well; the same command continues it
        if planned.lacks_evaluation(record):
            task.evaluate(planned, record, callbacks)
        evaluation = planned.folder.evaluation(planned.evaluation_id)
        callbacks.on_result(record, evaluation)
        most = planned.config.logger.most_samples
        if evaluation is not None and most and (table := task.samples(evaluation, planned.folder, most))[1]:
            tracker.table(record.cost.steps, "test/samples", *table, of=planned.evaluation_id)
        if planned.lacks_curve(record):
            task.measure_curve(planned, record, callbacks)
        beating.spent.begin("wait")
    return record


def _prepared(planned: Planned, console: Console) -> Any:
    """Prepare training. With rerun=stale, a run that began under other code starts anew."""
    try:
        return planned.task.prepared(planned, console)
    except OtherCodeError:
        if planned.config.rerun != "stale":
            raise
    console.say(f"The earlier run was moved to {planned.folder.set_aside()}")
    return planned.task.prepared(planned, console)


def _is_to_be_replaced(planned: Planned) -> bool:
    if planned.config.rerun == "stale":
        record = planned.folder.record()
        return record is not None and other_origin(record.provenance, planned.recipe, record.stretches) is not None
    return planned.config.rerun


def _say_it_is_finished(planned: Planned, record: Record, console: Console) -> None:
    console.say(f"{record.run_id} {record.state} on {record.ended[:10]}: nothing is trained again")
    if (older := of_other_version(record.provenance["code"], *(each.code for each in record.stretches))) is not None:
        console.say(f"It was trained by {older}")
    if (origin := other_origin(record.provenance, planned.recipe, record.stretches)) is not None:
        console.say(f"It was trained with other code or versions: {origin}; rerun=true trains it again")
