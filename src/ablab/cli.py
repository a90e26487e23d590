"""`ablab <verb>`; the scripts at the root of a checkout call the same."""

import errno
import sys
from collections.abc import Callable, Sequence

from ablab.errors import LostError, UserError, choices
from ablab.exits import BAD_INPUT, DONE, FAILED, INTERRUPTED
from ablab.threads import wait_politely

HELP = ("-h", "--help")
MANY = ("-m", "--multirun")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code is 0 only when it did what was asked."""
    wait_politely()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in (*HELP, "help"):
        from ablab.help import overview

        print(overview())  # noqa: T201
        return DONE
    verb, *rest = words
    try:
        if verb not in VERBS:
            raise UserError(f"ablab {verb}: no such verb; {choices(verb, VERBS)}")
        if any(word in HELP for word in rest):
            from ablab.help import page

            print(page(verb, rest))  # noqa: T201
            return DONE
        return VERBS[verb](rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return FAILED if isinstance(error, LostError) else BAD_INPUT
    except OSError as error:
        # A full disk, a folder without permission, a file where a folder should be: no fault of the program.
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        print(f"error: {error.filename or 'the disk'}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
        return INTERRUPTED


def _train(arguments: Sequence[str]) -> int:
    if any(word in MANY for word in arguments):
        from ablab.study.entry import multirun

        return multirun([word for word in arguments if word not in MANY])
    from ablab.config import compose
    from ablab.plan import plan
    from ablab.run import run
    from ablab.screen import Screen

    planned = plan(compose(arguments))
    record = run(planned, Screen(bars=planned.config.trainer.progress))
    return INTERRUPTED if record is None else DONE


def _study(arguments: Sequence[str]) -> int:
    from ablab.study.show import study

    return study(arguments)


def _prune(arguments: Sequence[str]) -> int:
    from ablab.prune import prune

    return prune(arguments)


def _report(arguments: Sequence[str]) -> int:
    from ablab.report.entry import report

    return report(arguments)


def _translate(arguments: Sequence[str]) -> int:
    from ablab.translate import translate

    return translate(arguments)


def _analyse(arguments: Sequence[str]) -> int:
    from ablab.analyse import analyse

    return analyse(arguments)


def _export(arguments: Sequence[str]) -> int:
    from ablab.export import export

    return export(arguments)


def _sync(arguments: Sequence[str]) -> int:
    from ablab.sync import sync

    return sync(arguments)


def _selfcheck(arguments: Sequence[str]) -> int:
    from ablab.selfcheck import selfcheck

    return selfcheck(arguments)


VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "train": _train,
    "study": _study,
    "prune": _prune,
    "report": _report,
    "translate": _translate,
    "analyse": _analyse,
    "export": _export,
    "sync": _sync,
    "selfcheck": _selfcheck,
}
"""Nothing heavy is imported before a verb needs it."""
