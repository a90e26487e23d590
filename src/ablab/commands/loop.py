"""The `loop` command: the ledger of a loop."""

from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import LoopOptions
from ablab.errors import DONE, LostError
from ablab.study.loop import read_loop
from ablab.tasks.verbs import read_words, say_json
from ablab.tracking.console import Console


def loop(arguments: Sequence[str]) -> int:
    """Show what was proposed and what became of it; run nothing."""
    from ablab.report.loop import floor_line, state_lines, state_of
    from ablab.sweep.loop import Referee, ask

    options = read_words(LoopOptions, arguments)
    file, console = read_loop(options.experiment), Console(stderr=options.format == "json")
    outputs = Path(options.outputs)

    def act(referee: Referee) -> int:
        book = referee.book()
        measure = referee.measure(book)
        try:
            scores = referee.floors.scores(book)
            floor = floor_line(scores, measure, file, outputs)
        except LostError as error:  # it diverged, and what came before is there to be read
            scores, floor = [], f"Floor: {error}"
        state = state_of(file, book, scores, referee.runs.left(book))
        if options.format == "json":
            say_json(state)
        else:
            console.say_all(state_lines(state, file, book, measure, floor))
            console.say(f"Results: {referee.ledger.folder}")
        return DONE

    return ask(file, outputs, (), console, act)
