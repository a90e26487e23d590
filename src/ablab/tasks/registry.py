"""Tasks by their kinds. The module of a task is imported when the task is first asked for."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ablab.code.folders import cached_by_folders
from ablab.code.load import construct, failure_of, load
from ablab.config.groups import groups, kinds, option_values
from ablab.config.kinds import chosen_part, part_of
from ablab.config.options import Option
from ablab.config.schema import DEFAULT
from ablab.errors import UserError, choices
from ablab.tasks.score import OF_LISTS, Score
from ablab.tasks.task import FAILURES, Task, UnknownTask


def task_of_option(option: Option) -> Task:
    """Return the task that a configuration names, with its settings."""
    task = task_named(option.kind)
    if not isinstance(task, UnknownTask) and not option.own:
        return task
    part = chosen_part(option)
    if (fault := fault_of(load(part))) is not None:
        raise UserError(f"_target_={part.target}: {fault}")
    try:
        made: Task = construct(part, option.own)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"task={option.kind}: {failure_of(error, [part])}") from error
    hidden = [] if part.is_own else [name for name in vars(made) if callable(getattr(Task, name, None))]
    if hidden:
        raise UserError(f"_target_={part.target}: self.{hidden[0]} hides a method of Task; allowed: another name")
    return made


def task_recorded(settings: Mapping[str, Any], judged: Mapping[str, Any] | None = None) -> Task:
    """Return the task of a recorded configuration: with its settings, where its scores stand among them.

    judged: the settings of an evaluation, which may declare other scores than the run's record did before.
    """
    own = {**settings.get("task", {}), **(judged or {}).get("task", {})}
    kind = str(own.get("kind", DEFAULT))
    return _with_settings(kind, json.dumps(own)) if task_named(kind).has_own_scores else task_named(kind)


@lru_cache(maxsize=64)  # of a long list of runs, most are of one study
def _with_settings(kind: str, settings: str) -> Task:
    part = part_of("task", kind)
    assert part is not None, f"task={kind} has settings, so it has a part"
    values = {key: value for key, value in json.loads(settings).items() if key in part.signature.parameters}
    made: Task = construct(part, values)
    return made


@cached_by_folders
def task_named(kind: str = DEFAULT) -> Task:
    """Return the task of a kind, without settings: what it declares of its scores.

    One that is gone, or a draft that is no task yet, declares none: that is an error only where it is chosen. So does
    one that no option names here: a record from elsewhere must not import what it likes.
    """
    try:
        part = part_of("task", kind) if kind in kinds("task") else None
        found = None if part is None else load(part)
    except UserError:
        found = None
    return UnknownTask() if found is None or fault_of(found) is not None else object.__new__(found)


def fault_of(found: Any) -> str | None:
    """Return why what an option names is no task, and what would be one; None if it is."""
    if not (isinstance(found, type) and issubclass(found, Task)):
        return "no task; allowed: a class that derives from ablab.tasks.own.OwnTask"
    declared = ("name",) if found.has_own_scores else ("name", "scores", "primary", "loss")
    needed = [name for name in declared if not hasattr(found, name)]
    if lacking := [*needed, *sorted(getattr(found, "__abstractmethods__", ()))]:
        return f"lacks {', '.join(lacking)}; allowed: a task that has them"
    if found.has_own_scores:
        return None
    scores = found.scores
    if not isinstance(scores, Mapping) or not all(isinstance(score, Score) for score in scores.values()):
        return f"has as scores {type(scores).__name__}; allowed: a mapping of names to ablab.tasks.score.Score"
    for name, score in scores.items():
        if name in OF_LISTS or score.key == "step":
            return f"has a score {name} of key {score.key}; allowed: other names than {', '.join(OF_LISTS)}"
    converged = [score.converged for score in scores.values() if score.converged is not None]
    for name in (found.primary, found.loss, *found.listed, *found.beside, *converged):
        if name not in found.scores:
            return f"names the score {name}, which its scores lack; {choices(name, found.scores)}"
    return None


def task_of(recipe: Mapping[str, Any]) -> Task:
    """Return the task of a flat recipe."""
    return task_named(str(recipe.get("task.kind", recipe.get("task._target_", DEFAULT))))


def task_in_words(words: Any) -> Task:
    """Return the task that words of a command line choose, with the settings that they say if its scores are there."""
    typed = [word for word in words or () if isinstance(word, str)]
    name = next((word.partition("=")[2] for word in reversed(typed) if word.startswith("task=")), DEFAULT)
    kind = str(option_values("task", name).get("kind")) if name in groups()["task"] else DEFAULT
    if not task_named(kind).has_own_scores:
        return task_named(kind)
    from ablab.config.overrides import parse  # it imports Hydra, which other tasks do without

    said = parse([word for word in typed if word.startswith("task.")])
    own = {each.key_or_group.partition(".")[2]: each.value() for each in said if not each.is_sweep_override()}
    return task_recorded({"task": {**option_values("task", name), **own, "kind": kind}})


def known_tasks() -> Iterable[Task]:
    """Return every task that can be named here, the default one first."""
    return [task_named(kind) for kind in sorted(kinds("task"), key=lambda kind: (kind != DEFAULT, kind))]


def known_scores() -> Mapping[str, Score]:
    """Return the scores and costs of all tasks: of a name that several have, those of the first."""
    found: dict[str, Score] = {}
    for task in known_tasks():
        found = {**task.measured, **found}
    return found


def keys_of_curves() -> Mapping[str, Mapping[str, str]]:
    """Return the metrics of all tasks that are read from further curves, each with the keys that its claims need."""
    return {name: keys for task in known_tasks() for name, keys in task.of_curves.items()}


def of_arms() -> tuple[str, ...]:
    """Return metrics of claims that no single run has: shares of failures, and what is read from further curves."""
    return (FAILURES, *keys_of_curves())
