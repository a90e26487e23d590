"""The `train` command: one run, or with -m a study of many."""

from collections.abc import Sequence

from ablab.errors import DONE, INTERRUPTED

MANY = ("-m", "--multirun")


def train(arguments: Sequence[str]) -> int:
    """Plan the run that the words describe and do what is missing of it; with -m, do so for every run of a study."""
    if any(word in MANY for word in arguments):
        from ablab.study.hydra import multirun

        return multirun([word for word in arguments if word not in MANY])
    from ablab.config import compose
    from ablab.console import Console
    from ablab.plan import plan
    from ablab.run import run

    planned = plan(compose(arguments))
    record = run(planned, Console(bars=planned.config.trainer.progress))
    return INTERRUPTED if record is None else DONE
