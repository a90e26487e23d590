"""The `diff` command: two runs side by side."""

from collections.abc import Sequence

from ablab.api import open as open_store
from ablab.api.differences import Pair, RunDifference, difference
from ablab.commands.options import DiffOptions
from ablab.errors import DONE, UserError
from ablab.fields import as_typed
from ablab.tasks.score import Score, Scores
from ablab.tasks.verbs import say_json, split_words
from ablab.text import aligned
from ablab.tracking.console import Console


def diff(arguments: Sequence[str]) -> int:
    """Compare two runs, typed as two words or as `runs=`."""
    options, words = split_words(DiffOptions, arguments)
    if unknown := [word for word in words if word.partition("=")[1] and word.partition("=")[0].isidentifier()]:
        raise UserError(f"{unknown[0]}: no such key; allowed: {', '.join(DiffOptions.model_fields)}, or two run ids")
    references = [*words, *(reference for reference in (options.runs or "").split(",") if reference)]
    if len(references) != 2:
        raise UserError(f"diff: {len(references)} runs; allowed: two, as in ablab diff <id> <id>, or runs=<id>,<id>")
    store = open_store(options.outputs)
    first, second = (store.run(reference) for reference in references)
    found = difference(first, second)
    if options.format == "json":
        say_json(found)
        return DONE
    _say(found, {**first.measured, **second.measured}, Console())
    return DONE


def _say(found: RunDifference, measured: Scores, console: Console) -> None:
    parts = (("recipe", found.recipe), ("no part of the recipe", found.elsewhere), ("scores", found.scores))
    for title, pairs in parts:
        rows = [[title, found.first, found.second, "" if title != "scores" else "difference"]]
        rows += [_row(pair, measured.get(pair.key)) for pair in pairs]
        if title == "recipe" and found.seeds[0] != found.seeds[1]:
            rows.append(["seed", str(found.seeds[0]), str(found.seeds[1]), ""])
        if len(rows) == 1:
            console.say(f"{title}: {'no difference' if title != 'scores' else 'none to compare'}")
        else:
            for line in aligned(rows, left=4 if title != "scores" else 1):
                console.say(line.rstrip())
        console.say("")
    for note in found.notes:
        console.say(note)


def _row(pair: Pair, score: Score | None) -> list[str]:
    if score is None:
        return [pair.key, as_typed(pair.first), as_typed(pair.second), ""]
    gap = "" if pair.difference is None else f"{pair.difference:+,.{score.digits}f}"
    return [score.title, *(f"{value:,.{score.digits}f}" for value in (pair.first, pair.second)), gap]
