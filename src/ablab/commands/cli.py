"""The command line `ablab <verb>`, which the scripts at the root of a checkout also call."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ablab.code.folders import VARIABLE, take_folders
from ablab.code.machine import keep_memory, settle_in, wait_politely
from ablab.commands.habits import VERSION, as_meant, version
from ablab.errors import (
    BAD_INPUT,
    BUSY,
    DONE,
    FAILED,
    INTERRUPTED,
    BusyError,
    LostError,
    UserError,
    choices,
    lacking,
)
from ablab.files import one_line
from ablab.files.disk import OF_THE_DISK
from ablab.tasks.verbs import VERBS, command_of
from ablab.text import shortened, visible

HELP = ("-h", "--help")

ELSEWHERE = {
    **{"runs": "ls", "list": "ls", "delete": "rm", "remove": "rm", "compare": "diff"},
    **{"eval": "report", "plan": "study", "status": "study"},
}
"""Verbs of other tools, and what they are called here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code, which is 0 only if the verb did what was asked."""
    if sys.stdin is None:  # closed (`<&-`): what is opened next would be taken for it
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    wait_politely()
    keep_memory()
    settle_in()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        words, folders = take_folders(as_meant(words))
    except UserError as error:
        return _told(error)
    with _environment(folders):
        return _verb(*words)


def _verb(verb: str = "", *rest: str) -> int:
    """Run one verb whose folders of configuration are known, and say in one line why it could not end."""
    try:
        if verb == "help" and rest:
            verb, rest = rest[0], HELP[:1]
        code = _done(verb, rest)
        sys.stdout.flush()  # here its errors have words
        return code
    except UserError as error:
        return _told(error)
    except ModuleNotFoundError as error:
        if (what := lacking(error)) is None:
            raise
        return _told(UserError(what))
    except BrokenPipeError:
        # The reader, such as `head`, has what it wanted. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        # A full disk, a missing permission, or a file in place of a folder is no fault of the program.
        if error.filename is None and error.errno not in OF_THE_DISK:
            raise
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # as above
        place = error.filename or "the disk, or what the output goes to"
        print(f"error: {place}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        if "determine home directory" in str(error):
            return _told(UserError("~: there is no home folder (HOME is not set); allowed: paths without ~"))
        from ablab.store.failures import kind_of

        if kind_of(error) != "memory":
            raise
        way = LESS_MEMORY.get(verb, LESS_WORK)
        print(f"error: {one_line(str(error)) or 'the memory is exhausted'}; allowed: {way}", file=sys.stderr)  # noqa: T201
        return FAILED


def _done(verb: str, rest: Sequence[str]) -> int:
    """Do what a verb and its words ask for, be it help or the version, and return the exit code."""
    if verb in ("", *HELP, "help"):
        from ablab.commands.help import overview

        print(overview())  # noqa: T201
        return DONE
    if VERSION in (verb, *rest):
        print(version())  # noqa: T201
        return DONE
    if verb not in VERBS:
        meant = f"allowed: {', '.join(sorted(VERBS))}; did you mean {ELSEWHERE.get(verb)}?"
        raise UserError(f"ablab {verb}: no such verb; {meant if verb in ELSEWHERE else choices(verb, VERBS)}")
    if any(word in HELP for word in rest):
        from ablab.commands.help import page

        print(page(verb, rest))  # noqa: T201
        return DONE
    return command_of(verb)(rest)


OF_TRAINING = "a smaller optim.batch_tokens, or the same with trainer.micro_batches=2, 4, ..."
LESS_MEMORY = {
    **dict.fromkeys(("train", "study", "check"), OF_TRAINING),
    "translate": "a smaller beam_size or max_extra_tokens, or shorter lines",
}
LESS_WORK = "a machine with more memory, or fewer programs on it"


def _told(error: UserError) -> int:
    print(f"error: {shortened(visible(one_line(str(error))))}", file=sys.stderr)  # noqa: T201
    codes = {BusyError: BUSY, LostError: FAILED}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), BAD_INPUT)


@contextmanager
def _environment(folders: str | None) -> Iterator[None]:
    """Set the variable by which this process and those it starts know the user's folders of configuration."""
    before = os.environ.get(VARIABLE)
    if folders is not None:
        os.environ[VARIABLE] = folders
    try:
        yield
    finally:
        if folders is not None:
            os.environ.pop(VARIABLE)
            os.environ.update({} if before is None else {VARIABLE: before})
