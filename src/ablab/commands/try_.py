"""The `try` command: one proposal to a loop."""

from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import TryOptions
from ablab.errors import DIVERGED, DONE, DROPPED, FAILED, NULL, RUN_FAILED
from ablab.study.loop import read_loop
from ablab.tasks.verbs import say_json, split_words
from ablab.tracking.console import Console

CODES = {"kept": DONE, "dropped": DROPPED, "failed": RUN_FAILED, "diverged": DIVERGED, "null": NULL}
"""The exit code by what became of the proposal."""


def try_(arguments: Sequence[str]) -> int:
    """Have a change judged and say what became of it; return a code for each outcome."""
    options, words = split_words(TryOptions, arguments)
    file, console = read_loop(options.experiment), Console(stderr=options.format == "json")
    # Hydra is needed from here on, which help pages do without.
    from ablab.report.loop import answer, answer_lines
    from ablab.sweep.hydra import hydra_words
    from ablab.sweep.loop import Referee, ask

    of_hydra, outputs = hydra_words(words), Path(options.outputs)

    def act(referee: Referee) -> int:
        book, proposal, known = referee.propose([word for word in words if word not in of_hydra], options.because)
        left = referee.runs.left(book)
        console.say_all(answer_lines(file, book, proposal, referee.measure(book), left, outputs, known=known))
        if options.format == "json":
            say_json(answer(file, book, proposal, left, known=known))
        console.say(f"Results: {referee.ledger.folder}")
        return CODES.get(proposal.outcome, FAILED)

    return ask(file, outputs, of_hydra, console, act)
