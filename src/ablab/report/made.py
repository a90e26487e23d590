"""How the figures of a report were made, and what that cost: the command, the machine time, a fixed design's."""

from collections.abc import Iterator

from ablab.console import duration
from ablab.judge.document import Document, Setup
from ablab.text import program


def made_lines(document: Document) -> list[str]:
    """Return paragraphs of Markdown; none where no run left a record."""
    return [] if document.setup is None else list(_lines(document.setup))


def _lines(made: Setup) -> Iterator[str]:
    if made.typed:
        yield from ("```sh", command(made), "```", "")
    yield f"{cost_words(made)} Machine: {'; '.join(made.machines)}."


def command(made: Setup) -> str:
    """Return the command that trained the runs."""
    return f"{program('train')} -m {' '.join(made.typed)}"


def cost_words(made: Setup) -> str:
    """Return sentences on what the runs cost, and on what a fixed number of seeds would have."""
    spent = made.training_seconds + made.evaluation_seconds
    words = f"{made.runs} runs took {duration(spent)} of machine time"
    if made.tuning_runs:
        words += f", and {made.tuning_runs} runs of tuning another {duration(made.tuning_seconds)}"
    if made.fixed_seeds is None:
        return f"{words}."
    each = spent / made.runs
    return (
        f"{words}. A fixed design with {made.fixed_seeds} seeds of each arm would have needed {made.fixed_runs} runs, "
        f"about {duration(made.fixed_runs * each)}."
    )
