"""The `floor` command: seeds of a loop's baseline, with which its proposals are compared."""

from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import FloorOptions
from ablab.errors import DONE
from ablab.study.loop import read_loop
from ablab.tasks.verbs import read_words
from ablab.tracking.console import Console


def floor(arguments: Sequence[str]) -> int:
    """Train what is missing of the floor, and say what it is."""
    from ablab.report.loop import floor_line
    from ablab.sweep.hydra import hydra_words
    from ablab.sweep.loop import Referee, ask

    of_hydra = hydra_words(arguments)
    options = read_words(FloorOptions, [word for word in arguments if word not in of_hydra])
    file, outputs, console = read_loop(options.experiment), Path(options.outputs), Console()

    def act(referee: Referee) -> int:
        book = referee.floor(options.seeds)
        console.say(floor_line(referee.floors.scores(book), referee.measure(book), file, outputs))
        seeds = ", ".join(map(str, book.floors[-1].seeds))
        console.say(f"A study of this condition on the same seeds finds these runs: seeds: [{seeds}]")
        console.say(f"Results: {referee.ledger.folder}")
        return DONE

    return ask(file, outputs, of_hydra, console, act)
