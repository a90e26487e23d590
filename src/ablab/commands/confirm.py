"""The `confirm` command: the kept changes of a loop, on fresh seeds and its sealed test set."""

from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import ConfirmOptions
from ablab.errors import DONE
from ablab.study.loop import read_loop
from ablab.tasks.verbs import read_words, say_json
from ablab.tracking.console import Console


def confirm(arguments: Sequence[str]) -> int:
    """Run what is missing of the confirmation, write its page, and say what stands."""
    from ablab.report.loop import confirmation_lines, confirmed_loop, write_page
    from ablab.store.chain import Chain
    from ablab.sweep.hydra import hydra_words
    from ablab.sweep.loop import Referee, ask

    of_hydra = hydra_words(arguments)
    options = read_words(ConfirmOptions, [word for word in arguments if word not in of_hydra])
    file, console = read_loop(options.experiment), Console(stderr=options.format == "json")
    outputs = Path(options.outputs)

    def act(referee: Referee) -> int:
        book, found, known = referee.confirm()
        measure = referee.measure(book)
        told = confirmed_loop(file, book, found, outputs / "reports" / file.name / "confirmation.html")
        write_page(told, file, book, found, measure, Chain.of(outputs).stamp)
        if known:
            console.say(f"Confirmed on {found.at[:10]}: nothing was run")
        console.say_all(confirmation_lines(told, measure))
        if options.format == "json":
            say_json(told)
        console.say(f"Results: {told.page}")
        return DONE

    return ask(file, outputs, of_hydra, console, act)
