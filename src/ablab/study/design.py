"""Designs: from factors and levels to arms. Each arm is a name and the words that define it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from ablab.config.keys import all_fields, key_of, text_of
from ablab.errors import UserError, choices
from ablab.fields import as_typed
from ablab.study.experiment import Experiment, Level
from ablab.text import is_one_line

Chosen = Mapping[str, str]
"""The name of a level for each factor."""

SAME = " = "
"""Separator between the names of united arms."""


@dataclass(frozen=True)
class Arm:
    """A condition of a study. `levels`: by factor, where a design made it of factors."""

    name: str
    words: tuple[str, ...]
    levels: Chosen = field(default_factory=dict, compare=False)


def arms_of(experiment: Experiment) -> tuple[list[Arm], str]:
    """Return the arms, and the name of the baseline."""
    arms, baseline = _arms(experiment)
    check_labels(experiment.labels, arms)
    for arm in arms:
        if not arm.name.strip() or not is_one_line(arm.name):
            raise UserError(f"arms: {arm.name!r} cannot be shown in a table; allowed: a name on one line")
        if SAME in arm.name:
            raise UserError(f"arms: {arm.name}: '{SAME}' joins names of one arm in reports; allowed: other names")
    return arms, baseline


def check_labels(labels: Mapping[str, str], arms: Sequence[Arm]) -> None:
    """Raise UserError for a label of what is no level or arm, and for one that is the name of another."""
    known = dict.fromkeys([*(f"{factor}={level}" for arm in arms for factor, level in arm.levels.items())])
    known |= dict.fromkeys(arm.name for arm in arms)
    for name, said in labels.items():
        if name not in known:
            raise UserError(f"labels: {name}: no level or arm of this design; {choices(name, known)}")
        if said != name and said in known:
            raise UserError(f"labels: {name} is called {said}, and so is another; allowed: names that differ")


def _arms(experiment: Experiment) -> tuple[list[Arm], str]:
    if experiment.design == "arms":
        return _explicit(experiment)
    if experiment.arms:
        raise UserError(f"arms: design={experiment.design} makes its arms itself; allowed with design: arms")
    if not experiment.factors:
        raise UserError(f"factors: design={experiment.design} needs at least one")
    levels = {factor: _levels(factor, given) for factor, given in experiment.factors.items()}
    baseline = _baseline(experiment, levels)
    chosen = [c for c in DESIGNS[experiment.design](levels, baseline) if not _excluded(c, experiment, levels)]
    if baseline not in chosen:
        raise UserError(f"baseline: {name_of(baseline)} is no arm of this design; the arms are {_names(chosen)}")
    for one in chosen:
        _check_apart(one, levels)
    names = _rungs(chosen) if experiment.design == "ladder" else list(map(name_of, chosen))
    arms = [
        Arm(name, tuple(word for factor, level in c.items() for word in levels[factor][level]), c)
        for name, c in zip(names, chosen, strict=True)
    ]
    return arms, names[chosen.index(baseline)]


def _rungs(chosen: Sequence[Chosen]) -> list[str]:
    """Name the first arm of a ladder by its levels, and each other by what it adds: `+norm=scalenorm`."""
    added = [{key: after[key] for key in after if after[key] != before[key]} for before, after in pairwise(chosen)]
    return [name_of(chosen[0]), *(f"+{name_of(levels)}" for levels in added)]


def name_of(chosen: Chosen) -> str:
    """Return a name such as `norm=post,layerdrop=0.2`."""
    return ",".join(f"{factor}={level}" for factor, level in chosen.items())


Levels = Mapping[str, Mapping[str, Sequence[str]]]
"""The words of each level, by factor and name of the level."""


def factorial(levels: Levels, baseline: Chosen) -> Iterator[Chosen]:
    """Yield every combination of levels."""
    for combination in product(*levels.values()):
        yield dict(zip(levels, combination, strict=True))


def one_by_one(levels: Levels, baseline: Chosen) -> Iterator[Chosen]:
    """Yield the baseline, then every change of a single factor: a part added to it, or removed from the full model."""
    yield baseline
    for factor, names in levels.items():
        yield from ({**baseline, factor: name} for name in names if name != baseline[factor])


def ladder(levels: Levels, baseline: Chosen) -> Iterator[Chosen]:
    """Yield the baseline, then arms that each keep all of the one before and change one more factor."""
    chosen = baseline
    yield chosen
    for factor, names in levels.items():
        for name in (name for name in names if name != baseline[factor]):
            chosen = {**chosen, factor: name}
            yield chosen


def zipped(levels: Levels, baseline: Chosen) -> Iterator[Chosen]:
    """Yield the first levels together, then the second levels, and so on."""
    if len({len(names) for names in levels.values()}) > 1:
        counts = ", ".join(f"{factor} has {len(names)}" for factor, names in levels.items())
        raise UserError(f"design=zip: the factors need equally many levels; {counts}")
    for combination in zip(*levels.values(), strict=True):
        yield dict(zip(levels, combination, strict=True))


DESIGNS = {
    "factorial": factorial,
    "one_at_a_time": one_by_one,
    "leave_one_out": one_by_one,
    "ladder": ladder,
    "zip": zipped,
}


def _levels(factor: str, given: Sequence[Level] | Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    if isinstance(given, Mapping):
        levels = {name: list(words) for name, words in given.items()}
    else:
        from ablab.config.grammar import spelled  # it imports Hydra, which help pages do without

        levels = {as_typed(value): [f"{factor}={spelled(factor, value)}"] for value in given}
    if len(levels) < len(given) or not levels:
        raise UserError(f"factors.{factor}: needs levels that differ, got {', '.join(map(as_typed, given)) or 'none'}")
    return levels


def _baseline(experiment: Experiment, levels: Levels) -> Chosen:
    """Return the levels that the file names, and for other factors the first level, or the last for leave_one_out."""
    usual = -1 if experiment.design == "leave_one_out" else 0
    baseline = {factor: list(names)[usual] for factor, names in levels.items()}
    if isinstance(experiment.baseline, str):
        raise UserError(f"baseline={experiment.baseline}: name a level of each factor, such as norm: pre")
    return baseline | _checked("baseline", experiment.baseline or {}, levels)


def _check_apart(chosen: Chosen, levels: Levels) -> None:
    """Raise UserError where two factors set one key: the last would decide, and both name the arm."""
    by: dict[str, str] = {}
    for factor, level in chosen.items():
        for key in map(key_of, levels[factor][level]):
            if (other := by.setdefault(key, factor)) != factor:
                raise UserError(
                    f"factors: {other} and {factor} both set {key} in {name_of(chosen)}, where the last would decide; "
                    "allowed: one factor for each key"
                )


def _excluded(chosen: Chosen, experiment: Experiment, levels: Levels) -> bool:
    rules = (_checked("exclude", rule, levels) for rule in experiment.exclude)
    return any(all(chosen[factor] == level for factor, level in rule.items()) for rule in rules)


def _checked(key: str, given: Mapping[str, Level], levels: Levels) -> dict[str, str]:
    found = {}
    for factor, value in given.items():
        if factor not in levels:
            raise UserError(f"{key}: {factor} is no factor; {choices(factor, levels)}")
        level = level_called(as_typed(value), factor, levels[factor])
        if level is None:
            known = choices(as_typed(value), levels[factor])
            raise UserError(f"{key}: {factor} has no level {as_typed(value)}; {known}")
        found[factor] = level
    return found


def level_called(name: str, factor: str, levels: Collection[str]) -> str | None:
    """Return the level of this name, or of this number: 1e-4 is the level 0.0001. None if there is none."""
    if name in levels:
        return name
    if factor not in all_fields() or text_of(factor) is not None or (number := number_of(name)) is None:
        return None
    return next((level for level in levels if number_of(level) == number), None)


def number_of(text: str) -> float | None:
    """Return a text that is a number as one; None for any other."""
    try:
        return float(text)
    except ValueError:
        return None


def _explicit(experiment: Experiment) -> tuple[list[Arm], str]:
    for key in ("factors", "exclude"):
        if getattr(experiment, key):
            raise UserError(f"{key}: design=arms lists its arms itself; allowed with the other designs")
    if not experiment.arms:
        raise UserError("arms: design=arms needs at least one, such as arms: {plain: [], dropped: [layerdrop=0.2]}")
    baseline = experiment.baseline or next(iter(experiment.arms))
    if not isinstance(baseline, str) or baseline not in experiment.arms:
        raise UserError(f"baseline={baseline}: no such arm; {choices(baseline, experiment.arms)}")
    return [Arm(name, tuple(words)) for name, words in experiment.arms.items()], baseline


def _names(chosen: Sequence[Chosen]) -> str:
    return "; ".join(name_of(c) for c in chosen[:6]) or "none"
