"""`ablab <verb>`; the scripts at the root of a checkout call the same."""

import sys
from collections.abc import Callable, Sequence

from ablab.errors import UserError
from ablab.threads import wait_politely

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code is 0 only when it did what was asked."""
    wait_politely()
    words = list(sys.argv[1:] if arguments is None else arguments)
    verbs = _verbs()
    if not words or words[0] in ("-h", "--help", "help"):
        from ablab.help import overview

        print(overview())  # noqa: T201
        return 0
    verb, *rest = words
    try:
        if verb not in verbs:
            from ablab.errors import choices

            raise UserError(f"ablab {verb}: no such verb; {choices(verb, verbs)}")
        return verbs[verb](rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
        return EXIT_INTERRUPTED


def _verbs() -> dict[str, Callable[[Sequence[str]], int]]:
    return {"train": _train, "translate": _translate}


def _train(arguments: Sequence[str]) -> int:
    if any(word in ("-h", "--help") for word in arguments):
        from ablab.help import train_help

        print(train_help())  # noqa: T201
        return 0
    if any(word in ("-m", "--multirun") for word in arguments):
        raise UserError("-m: this version trains one run a call; allowed: one value per key, one line per run")
    from ablab.config import compose
    from ablab.plan import plan
    from ablab.run import run
    from ablab.screen import Screen

    planned = plan(compose(arguments))
    record = run(planned, Screen(bars=planned.config.trainer.progress))
    return EXIT_INTERRUPTED if record is None else 0


def _translate(arguments: Sequence[str]) -> int:
    if any(word in ("-h", "--help") for word in arguments):
        from ablab.help import translate_help

        print(translate_help())  # noqa: T201
        return 0
    from ablab.translate import translate

    return translate(arguments)
