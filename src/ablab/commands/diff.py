"""The `diff` command: two runs side by side."""

from collections.abc import Sequence
from typing import Any

from ablab.api import open as open_store
from ablab.api.run import Run
from ablab.code.differences import RecordedCode, comparable, made_by, same_code
from ablab.commands.options import DiffOptions
from ablab.errors import DONE, UserError
from ablab.fields import as_typed
from ablab.store.records import MAY_DIFFER, Record, Strict
from ablab.tasks.identity import differing
from ablab.tasks.registry import task_of
from ablab.tasks.score import Score, Scores, unlike
from ablab.tasks.verbs import say_json, split_words
from ablab.text import aligned, how_many
from ablab.tracking.console import Console


class Pair(Strict):
    """A field or score of both runs. `difference`: the second less the first, of numbers of one evaluation."""

    key: str
    first: Any
    second: Any
    difference: float | None = None


class RunDifference(Strict):
    """What differs between two runs. `first`, `second`: ids. `recipe`: fields of the recipe.

    `elsewhere`: what is no part of a recipe: code, library versions, threads, device, data. `scores`: all that both
    have. `notes`: how the scores are to be read.
    """

    first: str
    second: str
    names: tuple[str, str]
    seeds: tuple[int, int]
    recipe: list[Pair]
    elsewhere: list[Pair]
    scores: list[Pair]
    notes: list[str]


def difference(first: Run, second: Run) -> RunDifference:
    """Compare two runs; Error for a damaged one."""
    for run in (first, second):
        if run.damage is not None:
            raise UserError(f"{run.id}: {run.damage}")
    ours = differing(first.recipe, second.recipe)
    theirs = differing(second.recipe, first.recipe)
    keys = dict.fromkeys([*theirs, *ours])
    return RunDifference(
        first=first.id,
        second=second.id,
        names=(first.name, second.name),
        seeds=(first.seed, second.seed),
        recipe=[Pair(key=key, first=first.recipe.get(key), second=second.recipe.get(key)) for key in keys],
        elsewhere=_elsewhere(first, second),
        scores=_scores(first, second),
        notes=_notes(first, second, is_one_recipe=not keys),
    )


def _elsewhere(first: Run, second: Run) -> list[Pair]:
    facts = [_facts(run.record) if run.record is not None else {} for run in (first, second)]
    keys = [key for key in facts[0] if key in facts[1] and facts[0][key] != facts[1][key]]
    return [*_code(first, second), *(Pair(key=key, first=facts[0][key], second=facts[1][key]) for key in keys)]


def _code(first: Run, second: Run) -> list[Pair]:
    """Return the training code of both, where it differs in what both recipes use, or cannot be compared."""
    if first.record is None or second.record is None:
        return []
    one, other = (made_by(run.record.provenance, "training") for run in (first, second) if run.record)
    if same_code(one, other):
        return []
    if not comparable(one.digest, other.digest):
        return [Pair(key="training code (cannot be compared)", first=one.digest, second=other.digest)]
    shared = [name for name in one.components if name in other.components]
    parts = [
        name
        for name in shared
        if not same_code(RecordedCode(one.components[name]), RecordedCode(other.components[name]))
    ]
    words = f" ({', '.join(parts)})" if parts else ""
    return [Pair(key=f"training code{words}", first=one.digest, second=other.digest)]


def _facts(record: Record) -> dict[str, Any]:
    """Return what a result depends on besides its recipe, and what tells where it was made."""
    provenance, last = record.provenance, record.stretches[-1] if record.stretches else None
    facts: dict[str, Any] = {"commit": provenance.get("commit")}
    facts |= {f"{name} version": version for name, version in provenance.get("versions", {}).items()}
    facts |= {words: getattr(last, name) for name, words in MAY_DIFFER.items() if last and name != "versions"}
    facts |= {"processor": provenance.get("machine", {}).get("processor")}
    facts |= {"runtime device": record.runtime.get("device"), "corpus": record.data.get("corpus")}
    facts |= {f"digest of {name}": digest for name, digest in record.data.get("sha256", {}).items()}
    return facts


def _scores(first: Run, second: Run) -> list[Pair]:
    comparable = _are_judged_alike(first, second)
    pairs = []
    for name, score in first.measured.items():
        one, other = first.scores.get(name), second.scores.get(name)
        if one is not None and other is not None:
            alike = {"test": comparable, "validation": _has_one_corpus(first, second)}
            may = alike.get(score.place, True) and score.unlike([first.recipe, second.recipe]) is None
            gap = other - one if may else None
            pairs.append(Pair(key=name, first=one, second=other, difference=gap))
    return pairs


def _has_one_corpus(first: Run, second: Run) -> bool:
    """Return whether both were validated on text of one corpus, as far as their recipes tell."""
    return all(first.recipe.get(key) == second.recipe.get(key) for key in ("data.kind", "data.digest"))


def _are_judged_alike(first: Run, second: Run) -> bool:
    one, other = first.evaluation, second.evaluation
    return one is not None and other is not None and one.settings == other.settings


def _notes(first: Run, second: Run, *, is_one_recipe: bool) -> list[str]:
    notes = []
    if first.path.resolve() == second.path.resolve():
        notes.append("Both are the same run.")
    elif is_one_recipe and first.seed == second.seed:
        notes.append("Two runs of one recipe and one seed: they differ by their code, versions or machine alone.")
    elif is_one_recipe:
        notes.append("Two seeds of one recipe: differences of their scores are noise, and say nothing of any setting.")
    else:
        notes.append("One run of each: a difference of scores includes the noise of seeds; ablab report compares arms.")
    for run in (first, second):
        if run.record is None:
            notes.append(f"{run.id} is {run.state}: it has no scores yet.")
    if first.evaluation and second.evaluation and not _are_judged_alike(first, second):
        notes.append("Their test sets or searches differ: test scores cannot be compared.")
    if not _has_one_corpus(first, second):
        notes.append("Their corpora differ: scores of validation cannot be compared.")
    task = task_of(first.recipe)
    if (reason := unlike(task.scores, task.loss, [first.recipe, second.recipe])) is not None:
        notes.append(f"{reason[0].upper()}{reason[1:]}.")
    return notes


def diff(arguments: Sequence[str]) -> int:
    """Compare two runs, typed as two words or as `runs=`."""
    options, words = split_words(DiffOptions, arguments)
    if unknown := [word for word in words if word.partition("=")[1] and word.partition("=")[0].isidentifier()]:
        raise UserError(f"{unknown[0]}: no such key; allowed: {', '.join(DiffOptions.model_fields)}, or two run ids")
    references = [*words, *(reference for reference in (options.runs or "").split(",") if reference)]
    if len(references) != 2:
        raise UserError(
            f"diff: {how_many(len(references), 'run')}; allowed: two, as in ablab diff <id> <id>, or runs=<id>,<id>"
        )
    store = open_store(options.outputs)
    first, second = (store.run(reference) for reference in references)
    found = difference(first, second)
    if options.format == "json":
        say_json(found)
        return DONE
    _say(found, {**first.measured, **second.measured}, Console())
    return DONE


def _say(found: RunDifference, measured: Scores, console: Console) -> None:
    parts = (("recipe", found.recipe), ("outside the recipe", found.elsewhere), ("scores", found.scores))
    for title, pairs in parts:
        rows = [[title, found.first, found.second, "" if title != "scores" else "difference"]]
        rows += [_row(pair, measured.get(pair.key)) for pair in pairs]
        if title == "recipe" and found.seeds[0] != found.seeds[1]:
            rows.append(["seed", str(found.seeds[0]), str(found.seeds[1]), ""])
        if len(rows) == 1:
            console.say(f"{title}: {'no difference' if title != 'scores' else 'none to compare'}")
        else:
            console.say_all(aligned(rows, left=4 if title != "scores" else 1))
        console.say("")
    for note in found.notes:
        console.say(note)


def _row(pair: Pair, score: Score | None) -> list[str]:
    if score is None:
        return [pair.key, as_typed(pair.first), as_typed(pair.second), ""]
    gap = "" if pair.difference is None else f"{pair.difference:+,.{score.digits}f}"
    return [score.title, *(f"{value:,.{score.digits}f}" for value in (pair.first, pair.second)), gap]
