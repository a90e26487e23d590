"""Execution of a sweep: launch the runs that are left, retry failures by policy, and print the comparison."""

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ablab.config import compose
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import DONE, FAILED, INTERRUPTED, BusyError
from ablab.files.disk import half_written, remove_abandoned
from ablab.judge.prospects import prospects
from ablab.store.chain import Chain
from ablab.store.locks import locked
from ablab.study.cells import check_scales
from ablab.study.definition import define
from ablab.study.extending import closings, extend, extensions
from ablab.study.ledger import OPEN, RESULTS, LedgerEntry, State, link, register
from ablab.study.study import Cell, Study
from ablab.sweep.check import check, has_passed
from ablab.sweep.progress import Board, failure_lines, given_up_lines, summary
from ablab.sweep.summary import close, is_closed, table_lines
from ablab.sweep.watch import RETRIES, Interruptions, OnEnd
from ablab.tasks.plan import check_writable
from ablab.text import counted, how_many, program
from ablab.tracking.console import Console
from ablab.tracking.open import join, ready

WAIT = 1.0


@dataclass(frozen=True)
class Policy:
    """Policy of a sweep. `rerun`: true retrains what has ended, "stale" what is of other code; both keep what was."""

    rerun: bool | Literal["stale"] = False
    retry_failed: bool = False
    fail_fast: bool = False


class Launch(Protocol):
    """A function that makes runs, and takes the next from `cells` as a worker becomes free."""

    def __call__(
        self, board: Board, cells: Iterable[Cell], alone: bool, console: Console, on_end: OnEnd | None = None
    ) -> bool:
        """Run one at a time if `alone`; return False when the user has stopped it."""


def policy_of(words: Sequence[str]) -> Policy:
    """Read the policy from the words of a sweep."""
    own = [word for word in words if word.partition("=")[0].lstrip("+~") in OF_A_SWEEP]
    if not own:
        return Policy()
    config = compose(own).config
    return Policy(config.rerun, config.retry_failed, config.fail_fast)


def sweep(study: Study, launch: Launch, policy: Policy, console: Console, *, is_here: bool = True) -> int:
    """Run everything of the study that is missing, with the seeds that its open claims still need; return the exit
    code. `is_here`: this machine makes the runs.
    """
    check_writable(study.outputs)
    board = board_of(study, policy)
    if not _is_over(board):  # runs that are there stand in a report, which says what is not testable
        check_scales(study.claims, study.cells)
    ready(study.cells[0].planned.config.logger, console.say)
    console.say(f"{study.name}: {how_many(len(study.arms), 'arm')}, {_planned(study)}")
    console.say_all([] if _is_over(board) else study.cautions)
    if study.task.is_tried_first() and not _done(board) and not has_passed(study):
        if not is_here:
            console.say("Its arms are not tried out, as that would be on this machine; ablab check in a job does so")
        elif not check(study, console):
            return FAILED
    for prospect in prospects(study) if study.claims and not _is_over(board) else ():
        if prospect.is_hopeless:
            console.say(f"Hopeless: {study.said(prospect.claim)}: {prospect.words}")
    console.say_all(register(study))
    _set_aside(board, policy, console)
    console.rich.print(summary(list(board.shown().values())))
    before = _done(board)
    if study.claims and not before:
        stamp = Chain.of(study.outputs).stamp
        console.say(f"{how_many(len(study.claims), 'claim')} registered; stamp: register {stamp}")
    going = _work(board, launch, policy, console)
    # No look comes after a seed that was given up.
    while going and len(_done(board)) == len(board.entries) and _adds_seeds(study, console):
        study = define(study.typed)
        board = board_of(study, policy)
        register(study)
        going = _work(board, launch, policy, console)
    board.refresh()
    link(study)
    _join(study, board, console)
    done = _done(board)
    if done - before or (done and not is_closed(study, board.entries)):
        for run in study.runs.values():  # a sweep looks at no finished run again
            remove_abandoned(half_written(run.planned.folder.path), time.time())
        close(study, board.entries, console.say)
    return _end(study, board, console, policy, interrupted=not going)


def board_of(study: Study, policy: Policy) -> Board:
    """Return the study's ledger, which knows the runs that were given up unless the policy tries them again."""
    board = Board(study)
    closed = [] if policy.retry_failed or study.is_tuning else closings(study.folder)
    for key, entry in board.entries.items():
        if entry.state not in RESULTS and (by := next((one for one in closed if one.state_of(entry.cell)), None)):
            board.closed[key] = by.said
    return board


def finish(study: Study, launch: Launch, console: Console) -> Board | None:
    """Run what is missing of a study, and return what there is then; None when the user has stopped it.

    Runs that have failed are tried again: their seeds are fixed, so that nothing is chosen by it.
    """
    board = Board(study)
    return board if _work(board, launch, Policy(retry_failed=True, fail_fast=True), console) else None


def _is_over(board: Board) -> bool:
    return all(entry.state in RESULTS or key in board.closed for key, entry in board.entries.items())


def _adds_seeds(study: Study, console: Console) -> bool:
    """Look at the claims, say where each stands, and record the next seeds; return False where there are none."""
    if study.looks is None:
        return False
    # Its code loads scipy, which few studies need here.
    from ablab.judge.extending import claims_table, next_seeds

    found = next_seeds(study)
    if found is None:  # as it was said before
        return False
    console.say_all(claims_table(found.lines))
    if not extend(study, found.wanted, found.known, found.ended):
        console.say("Another sweep has looked at the same time, and its look counts")
        return not any(one.ended for one in extensions(study.folder)[-1:])
    if found.ended is not None:
        console.say(f"No seed is added: {found.ended}")
        return False
    more = {arm: seeds - found.now[arm] for arm, seeds in found.wanted.items() if seeds > found.now[arm]}
    added = how_many(sum(more.values()), "run")
    console.say(f"Added: {added}, of the arms of claims that are open: {', '.join(more)}")
    return True


def _planned(study: Study) -> str:
    if study.looks is None:
        return f"seeds {counted(study.seeds)}"
    return f"{study.looks.first} seeds, and more up to {study.looks.last} while claims are open"


def _work(board: Board, launch: Launch, policy: Policy, console: Console) -> bool:
    """Run until nothing is left that this command may do; return False when the user has stopped it."""
    attempts: Counter[str] = Counter()
    interruptions = Interruptions()
    todo, alone = _to_do(board, policy), False
    while True:
        if todo:
            todo = _alternating(_one_a_run(todo))
            attempts.update(cell.key for cell in todo)
            for cell in todo:
                interruptions.begin(board.entries[cell.key])
            if not launch(board, todo, alone, console):
                return False
            board.refresh()
            for entry in (board.entries[cell.key] for cell in todo):
                if entry.state in OPEN and (why := interruptions.count(entry, board.stops.get(entry.cell.key))):
                    board.given_up.setdefault(entry.cell.key, why)
            _set_refused_aside(board, attempts, policy, console)
        if policy.fail_fast and _has_failed(board, attempts, policy):
            return True
        if any(entry.state is State.RUNNING for entry in board.entries.values()):
            _wait_for_others(board, console)
        todo, alone = _left(board), False
        if not todo:
            todo, alone = _again(board, attempts), True
        if not todo:
            return True


def _join(study: Study, board: Board, console: Console) -> None:
    """Let the tracker show the finished runs in this study too, where they were made for another, or alone."""
    if study.is_tuning:
        return
    logger = study.cells[0].planned.config.logger
    ended = {cell.planned.run_id: cell for cell in study.cells if board.entries[cell.key].state in RESULTS}
    runs = [(cell.planned.folder, cell.arm) for cell in ended.values()]
    join(logger, study.name, runs, console.say)


def _one_a_run(cells: Sequence[Cell]) -> list[Cell]:
    """Keep one cell of each run, so that evaluations of one run follow each other and it is trained once."""
    return list({cell.planned.folder.path: cell for cell in reversed(cells)}.values())[::-1]


def _alternating(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells seed by seed, every other time with the arms in reverse.

    A machine that grows slower or faster does so for all arms alike: speeds and times can then be compared.
    """
    rounds: dict[int, list[Cell]] = {}
    for cell in cells:
        rounds.setdefault(cell.seed, []).append(cell)
    return [cell for number, each in enumerate(rounds.values()) for cell in (each[::-1] if number % 2 else each)]


def _done(board: Board) -> set[str]:
    return {key for key, entry in board.entries.items() if entry.state in RESULTS}


def _to_do(board: Board, policy: Policy) -> list[Cell]:
    """Return the cells to run. Refused runs are tried again: the code may be as before, or mixed=true given.

    A run that goes on as a job of a queue is handed to the launcher, which follows that job to its end.
    """
    wanted = (*OPEN, State.FAILED) if policy.retry_failed else OPEN
    there = [entry for key, entry in board.entries.items() if key not in board.closed]
    return [one.cell for one in there if one.state in wanted or one.is_refused or _is_job(one)]


def _is_job(entry: LedgerEntry) -> bool:
    return entry.state is State.RUNNING and entry.cell.planned.folder.job.exists()


def _failed(board: Board) -> dict[str, LedgerEntry]:
    return {
        key: entry for key, entry in board.entries.items() if entry.state is State.FAILED and key not in board.closed
    }


def _has_failed(board: Board, attempts: Counter[str], policy: Policy) -> bool:
    """Return whether a run of this sweep failed; if failures are to be retried, one that is not tried again."""
    again = {cell.key for cell in _again(board, attempts)} if policy.retry_failed else ()
    return any(attempts[key] and key not in again for key in _failed(board))


def _again(board: Board, attempts: Counter[str]) -> list[Cell]:
    """Return the failures of this sweep that may be retried."""
    return [
        entry.cell
        for key, entry in _failed(board).items()
        if entry.failure is not None and 0 < attempts[key] <= RETRIES[entry.failure.kind]
    ]


def _left(board: Board) -> list[Cell]:
    """Return runs that did not begin, since another process held them, or that were interrupted from outside."""
    given_up = {board.entries[key].cell.planned.run_id for key in board.given_up}  # also to be judged in another way
    left = [entry.cell for key, entry in board.entries.items() if entry.state in OPEN and key not in board.closed]
    return [cell for cell in left if cell.planned.run_id not in given_up]


def _wait_for_others(board: Board, console: Console) -> None:
    """Wait for runs that other processes hold, until they end or their process dies."""
    running = [key for key, entry in board.entries.items() if entry.state is State.RUNNING]
    console.say(f"Waiting for {how_many(len(running), 'run')} that another process is working on")
    while any(board.entries[key].state is State.RUNNING for key in running):
        time.sleep(WAIT)
        board.refresh()


def _set_aside(board: Board, policy: Policy, console: Console) -> None:
    """Move runs that are to be retrained to superseded/, and report runs of other code that stay."""
    stale = [entry for entry in board.entries.values() if entry.other_origin]
    whole = [entry for entry in board.entries.values() if entry.record is not None]
    refused = [entry for entry in board.entries.values() if entry.is_refused]
    anew = {True: [*whole, *refused], "stale": [*stale, *refused], False: []}[policy.rerun]
    if anew:
        moved, busy = _moved(anew)
        console.say(f"{how_many(moved, 'earlier run')} moved to {board.study.outputs / 'superseded'}")
        if busy:
            console.say(f"{how_many(busy, 'run')} left as they are: a process works on them now")
        board.refresh(everything=True)
    elif stale:
        origins = Counter(str(entry.other_origin) for entry in stale)
        text = "; ".join(f"{number} from {origin}" for origin, number in origins.items())
        console.say(
            f"{len(stale)} finished runs come from other code or versions ({text}): kept; rerun=stale trains them again"
        )


def _moved(entries: Iterable[LedgerEntry]) -> tuple[int, int]:
    """Move the runs aside; return how many were, and how many not, since a process works on them.

    It may evaluate or prune them: what it writes would come into the new run's folder, of the old weights.
    """
    moved = busy = 0
    for folder in {entry.cell.planned.folder for entry in entries}:
        if not folder.path.exists():
            continue
        try:
            with locked(folder):
                moved += folder.set_aside() is not None
        except BusyError:
            busy += 1
    return moved, busy


def _set_refused_aside(board: Board, attempts: Counter[str], policy: Policy, console: Console) -> None:
    """With rerun, restart runs of this sweep that could not continue from their checkpoints."""
    refused = [entry for key, entry in board.entries.items() if attempts[key] and entry.is_refused]
    if refused and policy.rerun:
        moved, _ = _moved(refused)
        console.say(f"{how_many(moved, 'interrupted run')} moved to {board.study.outputs / 'superseded'}")
        board.refresh()


def _end(study: Study, board: Board, console: Console, policy: Policy, *, interrupted: bool) -> int:
    entries = board.entries
    console.rich.print()
    console.say_all(table_lines(study, entries))
    console.rich.print()
    console.rich.print(summary(list(entries.values())))
    failed = _failed(board)
    console.say_all((*failure_lines(failed.values()), *given_up_lines(board), *dict.fromkeys(board.closed.values())))
    if interrupted:
        line = "the same line without rerun=" if policy.rerun else "the same line"
        console.say(f"Stopped; {line}, typed again, continues from there")
    elif failed:
        console.say("Next: the same line with retry_failed=true")
    elif board.given_up:
        console.say("Next: the same line, which begins them again")
    elif not study.is_tuning:
        asked = shlex.join(word for word in study.typed if word.partition("=")[0] not in OF_A_SWEEP)
        console.say(f"Next: {program('report')} {asked}")
    console.say(f"Results: {study.folder}")
    if interrupted:
        return INTERRUPTED
    return DONE if _is_over(board) else FAILED
