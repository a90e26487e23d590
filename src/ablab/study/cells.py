"""Cells of a study, one run each: composed from the words of its arms, with each run under one arm."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ablab.config import Composed, compose_arm
from ablab.config.keys import all_fields, fields_beside, key_of
from ablab.errors import UserError
from ablab.fields import Role, flatten
from ablab.search.space import EVALUATION_GROUPS, RUNTIME_GROUPS
from ablab.study.claims import Settled, check_measured, check_scale
from ablab.study.design import Arm
from ablab.study.study import Cell, by_arm, united
from ablab.tasks.plan import plan
from ablab.tasks.registry import known_tasks
from ablab.tasks.score import Recipe
from ablab.tasks.task import Task


def cells_of(
    arms: Sequence[Arm], seeds: Sequence[int], common: Sequence[str], *, naming: bool = False
) -> Iterator[Cell]:
    """Compose and plan the run of each arm under each seed.

    `naming`: name the arm in errors about it, where its words do not. Raises UserError for a word that no arm reads.
    """
    composed = [_composed(arm, (*common, *arm.words, f"seed={seeds[0]}"), naming=naming) for arm in arms]
    _check_effect(arms, [(*common, *arm.words) for arm in arms], composed)
    for arm, one in zip(arms, composed, strict=True):
        words = tuple(word for word in (*common, *arm.words) if word not in one.unread)
        # Planning is reused for other seeds unless a value could refer to the seed.
        first = None if one.has_seed else plan(one.reseeded(seeds[0]))
        for seed in seeds:
            own = (*words, f"seed={seed}")
            yield Cell(arm.name, seed, own, plan(compose_arm(own)) if first is None else first.reseeded(seed))


def _composed(arm: Arm, words: Sequence[str], *, naming: bool) -> Composed:
    try:
        return compose_arm(words)
    except UserError as error:
        raise UserError(f"{arm.name}: {error}") if naming else error from None


def _check_effect(arms: Sequence[Arm], words: Sequence[Sequence[str]], composed: Sequence[Composed]) -> None:
    """Raise UserError for a key that no arm reads: it changes nothing. A key may have an effect in some arms alone."""
    read = {key_of(word) for own, one in zip(words, composed, strict=True) for word in own if word not in one.unread}
    for one in composed:
        for word, why in one.unread.items():
            if key_of(word) not in read:
                raise UserError(why if len(arms) == 1 else f"{why}; none of the {len(arms)} arms reads it")


def one_arm_a_run(arms: Sequence[Arm], cells: Sequence[Cell]) -> tuple[dict[str, str], list[Cell]]:
    """Unite arms whose settings have the same effect; return the new name of each arm, and each cell once.

    The new name joins the names of the united arms.
    """
    keys = {arm: tuple(cell.key for cell in own) for arm, own in by_arm(cells).items()}
    names = united([arm.name for arm in arms], keys)
    once = {(names[cell.arm], cell.seed): cell for cell in reversed(cells)}
    return names, [replace(cell, arm=arm) for (arm, _), cell in reversed(once.items())]


def check_differ(arms: Sequence[Arm], cells: Sequence[Cell], metrics: Collection[str]) -> None:
    """Raise UserError for arms that differ by nothing that `metrics` see, such as where their runs are computed.

    Arms that are one run since a setting of the model has no effect in them are no error: they are united.
    """
    task = cells[0].planned.task
    judged = not all(map(task.is_of_training, metrics))
    first = {cell.arm: cell for cell in reversed(cells)}
    found: dict[tuple[object, ...], tuple[Arm, list[str]]] = {}
    for arm in arms:
        planned = first[arm.name].planned
        unseen = [word for word in arm.words if _is_unseen(key_of(word), fields_beside(planned.config), judged)]
        others = tuple(word for word in arm.words if word not in unseen)
        ids = (planned.run_id, planned.evaluation_id, planned.curve_id) if judged else (planned.run_id,)
        other, before = found.setdefault((ids, others), (arm, unseen))
        if before != unseen:
            words = [word for word in unseen if word not in before] or before
            raise UserError(_null_arm(other, arm, words, metrics, task.primary))
    if len({cell.planned.task.name for cell in first.values()}) > 1:
        named = dict.fromkeys(f"task={cell.planned.composed.choices['task']}" for cell in cells)
        raise UserError(f"the arms are runs of {' and '.join(named)}; allowed: one task for all arms")
    if len(stores := {str(cell.planned.outputs) for cell in first.values()}) > 1:
        raise UserError(f"outputs: the arms lie in {' and '.join(sorted(stores))}; allowed: one store for all arms")


def _is_unseen(key: str, fields: Mapping[str, Role], judged: bool) -> bool:
    """Return whether a key decides no run and, unless evaluations are `judged`, no more than how one is judged.

    Pruning is always seen: the report draws the curves of every arm.
    """
    if key.partition(".")[0] == "pruning":
        return False
    is_evaluation = key in EVALUATION_GROUPS or fields.get(key) is Role.EVALUATION
    return key in RUNTIME_GROUPS or fields.get(key) is Role.RUNTIME or (is_evaluation and not judged)


def _null_arm(one: Arm, other: Arm, words: Sequence[str], metrics: Collection[str], seeing: str) -> str:
    """Return why two arms are the same: the first of the words in which they differ. `seeing`: a metric that sees."""
    key = key_of(words[0])
    if key in RUNTIME_GROUPS or all_fields().get(key) is Role.RUNTIME:
        why = f"{key} is runtime: it names no run; allowed: one value for all arms"
    else:
        blind = ", ".join(sorted(metrics))
        why = f"{key} decides how a run is judged, which {blind} cannot see; allowed with metric: {seeing}"
    return f"{one.name} and {other.name} are the same runs: {why}"


def united_arms(arms: Sequence[Arm], names: Mapping[str, str]) -> list[Arm]:
    """Return the arms under their new names, each once."""
    first = {names[arm.name]: arm for arm in reversed(arms)}
    return [replace(first[name], name=name) for name in dict.fromkeys(names[arm.name] for arm in arms)]


def check_scores(task: Task, metrics: Collection[str]) -> None:
    """Raise UserError for a score that only other tasks have."""
    of_others = {name for other in known_tasks() for name in (*other.measured, *other.of_curves)}
    allowed = [*task.measured, *task.of_curves]
    for name in sorted(of_others.intersection(metrics)):
        if name not in allowed:
            raise UserError(f"metric={name}: no score of task={task.name}; allowed: {', '.join(allowed)}")


def check_all_measured(claims: Sequence[Settled], cells: Sequence[Cell]) -> None:
    """Raise UserError for a claim about what the runs of its arms do not measure."""
    for claim in claims:
        for cell in cells:
            if cell.arm in claim.weights:
                check_measured(claim, cell.planned)


def check_scales(claims: Sequence[Settled], cells: Sequence[Cell]) -> None:
    """Raise UserError for a claim between arms whose scores are not in one measure: no run could make it testable."""
    for claim in claims:
        for recipes in compared_recipes(claim, cells):
            check_scale(claim, recipes)


def compared_recipes(claim: Settled, cells: Sequence[Cell]) -> Iterator[list[Recipe]]:
    """Yield the recipes, one of each arm, of which a claim compares the scores.

    A mean over levels compares arms in pairs; an interaction compares the differences too.
    """
    first: dict[str, Cell] = {}
    for cell in cells:
        if cell.arm in claim.weights:
            first.setdefault(cell.arm, cell)
    is_interaction = any(part.weight < 0 for part in claim.parts)
    compared = [tuple(first)] if is_interaction else [(part.arm, part.baseline) for part in claim.differences]
    for arms in compared:
        yield [flatten(first[arm].planned.recipe) for arm in arms if arm in first]


def check_distinct(claims: Sequence[Settled], cells: Sequence[Cell]) -> None:
    """Raise UserError for a claim whose two arms are the same runs under different names."""
    of_arm = by_arm(cells)
    for claim in claims:
        for part in claim.differences:
            one, other = ([_seen(claim, cell) for cell in of_arm[arm]] for arm in (part.arm, part.baseline))
            if one == other:
                raise UserError(
                    f"claims.arm={part.arm}: its settings have the same effect as those of {part.baseline}, so they "
                    "are the same runs; allowed: arms that differ"
                )


def _seen(claim: Settled, cell: Cell) -> str:
    """Return what decides a run's score in the claim's metric."""
    if claim.metric in cell.planned.task.of_curves:
        return cell.key
    if cell.planned.task.is_of_training(claim.metric):
        return cell.planned.run_id
    return f"{cell.planned.run_id} {cell.planned.evaluation_id}"
