"""A check of every distinct arm before the first run, by the dry run of its task."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

from ablab.errors import UserError
from ablab.files import read_json, write_json
from ablab.study.study import Cell, Study
from ablab.sweep.launchers.local import start_server
from ablab.sweep.launchers.task import hear_launcher
from ablab.tasks.identity import condition_id
from ablab.tasks.plan import check_writable
from ablab.tracking.console import Console

Tried = dict[str, Any]
"""parameters, seconds_per_step, total_steps, None for what a task does not know; or error. Some tasks add a note, and
gaps: by score, how much two runs with one seed differ."""

FILE = "tried.json"

NO_ARMS = "check: a search has no arms to try out; its ends and levels are composed every time"


def tried(study: Study) -> dict[str, Tried]:
    """Return the results of earlier checks, by condition."""
    path = study.folder / FILE
    known: dict[str, Tried] = read_json(path) if path.exists() else {}
    return known


def has_passed(study: Study) -> bool:
    """Return whether every arm was tried before and works."""
    known = tried(study)
    conditions = {condition_id(cell.planned.recipe) for cell in study.cells}
    return conditions <= known.keys() and not any("error" in known[condition] for condition in conditions)


def check(study: Study, console: Console) -> bool:
    """Check every arm, as `try_out` does; return whether all passed."""
    return not any("error" in result for result in try_out(study, console).values())


def try_out(study: Study, console: Console) -> dict[str, Tried]:
    """Try every arm, each in a fresh process, say what came, and keep it; return it by the first arm of each recipe."""
    check_writable(study.outputs)
    found: dict[str, Tried] = {}
    cells: dict[str, Cell] = {}
    for cell in study.cells:
        cells.setdefault(condition_id(cell.planned.recipe), cell)  # seeds do not matter here
    with console.counting("arms tried", len(cells)) as advance:
        start_server([*study.task.modules, "ablab.sweep.check", "ablab.config.warm"])
        for condition, cell in cells.items():
            found[condition] = result = _answer(cell.words) or {"error": "its process was killed (out of memory?)"}
            beside = "".join(_margins(study, result))
            console.say(
                f"{'fails' if 'error' in result else 'works'}  {cell.label or cell.arm}: {said_of(result)}{beside}"
            )
            advance(1)
    write_json(study.folder / FILE, found)
    return {cells[condition].arm: result for condition, result in found.items()}


def _margins(study: Study, result: Tried) -> Iterator[str]:
    """Yield the least margin of claims about each score in which two runs with one seed differ."""
    for name in result.get("gaps", ()):
        margins = [claim.margin for claim in study.claims if claim.metric == name and claim.margin]
        if margins:
            yield f"; the least margin claimed of {name} is {min(margins):g}"


def said_of(result: Tried) -> str:
    """Return what came of trying an arm: the error, or its size and speed, or what its task notes."""
    if "error" in result:
        return str(result["error"])
    counted = "" if result["parameters"] is None else f"{result['parameters']:,} parameters, "
    seconds = result["seconds_per_step"]
    if seconds is None:
        return f"{counted}{result.get('note', 'no step to time')}"
    return f"{counted}{seconds:.3f} s a step" if seconds >= 0.001 else f"{counted}{1000 * seconds:.2g} ms a step"


LAST_SECONDS = 10.0
"""For a process that is asked to stop: it stops the program that it tries, where there is one."""


def _answer(words: tuple[str, ...]) -> Tried | None:
    """Try an arm in a fresh process; return what that sent, None where it ended first. Ctrl-C stops it, too."""
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_tried, args=(words, sender))
    with receiver:
        with sender:  # this process's end: the other one's is the last, and its end is told by EOFError
            process.start()
        try:
            found: Tried = receiver.recv()
        except EOFError:
            return None
        except KeyboardInterrupt:
            _stop(process)
            raise
        finally:
            process.join()
    return found


def _stop(process: ForkServerProcess) -> None:
    assert process.pid is not None
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(process.pid, signal.SIGINT)
    process.join(LAST_SECONDS)
    process.kill()


def _send_tried(words: tuple[str, ...], sender: Connection) -> None:
    with suppress(KeyboardInterrupt, OSError):  # OSError: nobody is there to read it
        hear_launcher()
        sender.send(_try(words))


def _try(words: tuple[str, ...]) -> Tried:
    from ablab.config import compose
    from ablab.tasks.own import DivergedError
    from ablab.tasks.plan import plan

    try:
        planned = plan(compose(words))
        return planned.task.dry_run(planned)
    except (UserError, DivergedError) as error:
        return {"error": " ".join(str(error).split())}
    except SystemExit as left:
        return {"error": f"sys.exit({left.code!r})"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
