"""The space of a search: levels or an interval for each key, checked against the schema before any trial."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Any

from ablab.config import compose_arm
from ablab.config.groups import groups
from ablab.config.keys import all_fields, field_of, key_of, key_of_now
from ablab.errors import UserError
from ablab.fields import Role
from ablab.search.settings import ValueRange

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from optuna.distributions import BaseDistribution

MOST_CORNERS = 64
"""Up to this many combinations of ends and levels are all composed before trial 0; beyond, each end and level once."""

RUNTIME_GROUPS = ("trainer", "logger")
EVALUATION_GROUPS = ("decoding", "pruning")


@dataclass(frozen=True)
class Levels:
    """Unordered values of a key, as a user would type them."""

    key: str
    values: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        return self.values

    @property
    def plain(self) -> list[str]:
        """The values as an experiment file has them."""
        return list(self.values)

    def written(self, value: Any) -> str:
        """Format a value as a user would type it."""
        return str(value)

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)


@dataclass(frozen=True)
class Range:
    """An interval of numbers. `whole`: only whole numbers, since the field is an integer."""

    key: str
    interval: ValueRange
    whole: bool = False

    @property
    def ends(self) -> tuple[str, ...]:
        return self.written(self.interval.low), self.written(self.interval.last)

    @property
    def plain(self) -> dict[str, Any]:
        """The interval as an experiment file has it."""
        values = self.interval
        return {"low": values.low, "high": values.last, "log": values.log, "step": values.step}

    def written(self, value: Any) -> str:
        """Format a value as a user would type it. Six digits distinguish any two trials that differ in effect."""
        return str(round(value)) if self.whole else f"{value:.6g}"

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import FloatDistribution, IntDistribution

        low, log, step = self.interval.low, self.interval.log, self.interval.step
        if self.whole:
            return IntDistribution(round(low), round(self.interval.last), log=log, step=round(step or 1))
        return FloatDistribution(low, self.interval.last, log=log, step=step)


@dataclass(frozen=True)
class Space:
    """The keys that a search varies, with their values."""

    dimensions: tuple[Levels | Range, ...]

    @property
    def keys(self) -> list[str]:
        """The keys in the order in which they were typed."""
        return [dimension.key for dimension in self.dimensions]

    @property
    def plain(self) -> dict[str, Any]:
        """The space as an experiment file has it; part of the identity of the search."""
        return {dimension.key: dimension.plain for dimension in self.dimensions}

    def distributions(self) -> "dict[str, BaseDistribution]":
        """Return the Optuna distributions, sorted by key, so that the order of typing does not affect a draw."""
        return {d.key: d.distribution() for d in sorted(self.dimensions, key=lambda d: d.key)}

    def words(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return `key=value` for each key."""
        return tuple(f"{d.key}={d.written(values[d.key])}" for d in self.dimensions)

    def corners(self) -> Iterator[tuple[str, ...]]:
        """Yield combinations of ends and levels: all if they are few, otherwise each with the first of the others."""
        words = [[f"{d.key}={end}" for end in d.ends] for d in self.dimensions]
        if prod(map(len, words)) <= MOST_CORNERS:
            yield from product(*words)
            return
        first = tuple(ends[0] for ends in words)
        yield first
        for place, ends in enumerate(words):
            yield from ((*first[:place], end, *first[place + 1 :]) for end in ends[1:])


def levels(key: str, values: Sequence[str]) -> Levels:
    """Return the levels of a key; UserError unless there are at least two and all differ."""
    if len(values) < 2 or len(set(values)) < len(values):
        raise UserError(f"{key}={','.join(values)}: needs at least two levels that differ")
    return Levels(key, tuple(values))


def parsed(override: "Override") -> Levels | Range:
    """Parse a key with several values on a command line: `a,b`, choice(), range(), interval(), tag(log, interval())."""
    from hydra.core.override_parser.types import IntervalSweep, RangeSweep

    key, line, value = override.get_key_element(), override.input_line, override.value()
    tags = set(getattr(value, "tags", ()))
    if tags - {"log"} or (tags and not isinstance(value, IntervalSweep)):
        raise UserError(f"{line}: tag({', '.join(sorted(tags))}) says nothing here; allowed: tag(log, interval(a,b))")
    try:
        if isinstance(value, IntervalSweep):
            assert value.start is not None
            assert value.end is not None
            ends = [value.start, value.end]
            if _is_free(key) and all(end.isdigit() for end in ENDS.findall((line or "").partition("interval(")[2])):
                ends = [round(end) for end in ends]  # as typed: Hydra makes 1.0 of the 1 in interval(1,8)
            return Range(key, ValueRange(low=ends[0], high=ends[1], log="log" in tags))
        if isinstance(value, RangeSweep):
            found = [float(v) if isinstance(v, float) else v for v in value.range()]
            ascending = sorted(round(v, 12) for v in found)
            if len(ascending) > 1:
                step = abs(value.step)
                return Range(key, ValueRange(low=ascending[0], high=ascending[-1], step=step))
    except ValueError as error:
        message = str(error.errors()[0]["msg"]) if hasattr(error, "errors") else str(error)
        raise UserError(f"{line}: {message.removeprefix('Value error, ')}") from None
    return levels(key, list(override.sweep_string_iterator()))


def checked(
    space: Space,
    arms: Sequence[Sequence[str]],
    *,
    evaluations: bool,
    try_out: Callable[[Sequence[str]], Mapping[str, str]],
) -> Space:
    """Return the space with whole numbers where fields need them; UserError if an end, level or corner cannot be a run.

    `arms`: the other words of each arm whose settings it varies; a key of the space needs to be read by one of them.
    `evaluations`: allow keys that only affect evaluation. `try_out` composes and plans words, and returns the reason
    for each word without effect.
    """
    if not space.dimensions:
        raise UserError("nothing varies; allowed: at least one key with values, such as optim.lr='interval(1e-4,1e-2)'")
    for dimension in space.dimensions:
        # What is no field has no usual value but that of a word.
        if dimension.key in all_fields() and dimension.key in {word.partition("=")[0] for word in chain(*arms)}:
            raise UserError(f"{dimension.key}: the search varies it, so no other word may set it")
    found = Space(tuple(_typed(dimension, space, arms) for dimension in space.dimensions))
    for dimension in found.dimensions:
        check_role(dimension.key, evaluations=evaluations)
    idle: dict[str, str] = {}
    read: set[str] = set()
    for words in arms:
        for corner in found.corners():
            unread = try_out([*words, *corner])
            idle |= {key_of(word): why for word, why in unread.items()}
            read |= {key_of(word) for word in (*words, *corner) if word not in unread}
        if idle.keys() <= read:
            return found
    why = next(why for key, why in idle.items() if key not in read)
    raise UserError(f"{why}; no trial of this space reads it")


ENDS = re.compile(r"(?<![\w.])-?(\d[\w.+-]*)")
"""The numbers of an interval that was typed, without their signs."""


def _is_free(key: str) -> bool:
    """Return whether no schema says what a key takes, as of the values of a command."""
    return field_of(key_of_now(key), all_fields()) != key_of_now(key)


def _typed(dimension: Levels | Range, space: Space, arms: Sequence[Sequence[str]]) -> Levels | Range:
    """Restrict a range to whole numbers if the schema requires them, however the ends were written.

    Where no schema says what a key takes, it is whole if its ends are written so.
    """
    if isinstance(dimension, Levels):
        return dimension
    if _is_free(dimension.key):
        ends = (dimension.interval.low, dimension.interval.high, dimension.interval.step or 0)
        return replace(dimension, whole=all(type(end) is int for end in ends))
    value: Any = None
    for words, corner in product(arms, space.corners()):  # up to the first in which an option reads it
        others = [word for word in corner if key_of(word) != key_of_now(dimension.key)]
        value = compose_arm([*words, *others, f"{dimension.key}={_first(dimension)}"]).config
        for part in key_of_now(dimension.key).split("."):
            value = getattr(value, part, None)
        if value is not None:
            break
    is_whole = _could_be_whole(dimension.interval)
    if type(value) is int and dimension.interval.step is not None and not is_whole:
        raise UserError(
            f"{dimension.key}: takes whole numbers, got low={dimension.interval.low:g} and "
            f"step={dimension.interval.step:g}; allowed: both without a fraction"
        )
    return replace(dimension, whole=is_whole and type(value) is int)


def _first(dimension: Levels | Range) -> str:
    """Return a value that any field accepts: a float field takes whole numbers too."""
    if isinstance(dimension, Range) and _could_be_whole(dimension.interval):
        return str(round(dimension.interval.low))
    return dimension.ends[0]


def _could_be_whole(interval: ValueRange) -> bool:
    return all(float(number).is_integer() for number in (interval.low, interval.last, interval.step or 0))


def check_role(key: str, *, evaluations: bool) -> None:
    """Raise UserError for a key that decides nothing by which settings are chosen; `evaluations`: as in `checked`."""
    roles = dict(all_fields())
    roles |= dict.fromkeys(groups(), Role.RECIPE)
    roles |= dict.fromkeys(EVALUATION_GROUPS, Role.EVALUATION) | dict.fromkeys(RUNTIME_GROUPS, Role.RUNTIME)
    if key == "seed":
        raise UserError("seed: no setting that is chosen; allowed: training_seed of a search, seeds of tune")
    key = key_of_now(key)
    if roles.get(key) is Role.RUNTIME:
        raise UserError(f"{key}: decides no result; allowed: keys that training depends on")
    if roles.get(key) is Role.EVALUATION and not (evaluations and key.partition(".")[0] == "decoding"):
        raise UserError(f"{key}: validation does not depend on it; allowed: keys that training depends on")
