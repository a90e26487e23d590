"""Two runs side by side: recipes, what else may differ, and scores."""

from typing import Any

from ablab.api.run import Run
from ablab.code.differences import RecordedCode, comparable, made_by, same_code
from ablab.errors import UserError
from ablab.store.records import MAY_DIFFER, Record, Strict
from ablab.tasks.identity import differing
from ablab.tasks.registry import task_of
from ablab.tasks.score import unlike


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
            may = (comparable or score.place != "test") and score.unlike([first.recipe, second.recipe]) is None
            gap = other - one if may else None
            pairs.append(Pair(key=name, first=one, second=other, difference=gap))
    return pairs


def _are_judged_alike(first: Run, second: Run) -> bool:
    one, other = first.evaluation, second.evaluation
    return one is not None and other is not None and one.settings == other.settings


def _notes(first: Run, second: Run, *, is_one_recipe: bool) -> list[str]:
    notes = []
    if first.id == second.id:
        notes.append("Both are the same run.")
    elif is_one_recipe:
        notes.append("Two seeds of one recipe: differences of their scores are noise, and say nothing of any setting.")
    else:
        notes.append("One run of each: a difference of scores includes the noise of seeds; ablab report compares arms.")
    for run in (first, second):
        if run.record is None:
            notes.append(f"{run.id} is {run.state}: it has no scores yet.")
    if first.evaluation and second.evaluation and not _are_judged_alike(first, second):
        notes.append("Their test sets or searches differ: test scores cannot be compared.")
    task = task_of(first.recipe)
    if (reason := unlike(task.scores, task.loss, [first.recipe, second.recipe])) is not None:
        notes.append(f"{reason[0].upper()}{reason[1:]}.")
    return notes
