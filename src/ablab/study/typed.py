"""What was typed for a study: words that are checked, the values they stand for, and the seeds."""

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ablab.config.keys import key_of
from ablab.config.schema import OF_A_SWEEP
from ablab.errors import UserError
from ablab.statistics.looks import Looks
from ablab.study.experiment import Added, Experiment, names

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

MOST_VALUES = 100_000
"""Most values of one key, and most arms of a sweep: more are a slip of the keyboard, and would never be planned."""


def parse_words(words: Sequence[str], *, intervals: bool = False) -> list["Override"]:
    """Return the words as overrides, in the words of now. `intervals`: also ranges without steps, for a search.

    Raises UserError for a word that is malformed, or that only lacks its key.
    """
    from hydra.core.global_hydra import GlobalHydra

    from ablab.config.grammar import Grammar
    from ablab.config.overrides import in_words_of_now, parse
    from ablab.config.values import own_hydra

    for word in words:
        if "=" not in word and word in names():
            raise UserError(f"{word}: a value without its key; did you mean experiment={word}?")
    for override in parse(words):  # raises UserError where a word is malformed
        _check_range(override)
    with own_hydra():
        # Expanding a glob requires the options of groups.
        loader = GlobalHydra.instance().config_loader()
        overrides = [
            in_words_of_now(override) for override in Grammar.create(config_loader=loader).parse_overrides(list(words))
        ]
        _check_repeated(overrides)
        return overrides if intervals else [_listed(override) for override in overrides]


def _check_repeated(overrides: Sequence["Override"]) -> None:
    """Refuse a key that varies and is typed again: its last word would decide the runs, the first would name them.

    Of words that do not vary the last one counts, as in Hydra. Seeds add up.
    """
    by_key: dict[str, list[Override]] = {}
    for override in overrides:
        by_key.setdefault(override.key_or_group, []).append(override)
    for key, same in by_key.items():
        varies = key == "experiment" or any(override.is_sweep_override() for override in same)
        if key != "seed" and varies and len(same) > 1:
            first, second = (override.input_line for override in same[:2])
            raise UserError(f"{second}: {first} is there already; allowed: one of the two")


def _check_range(override: "Override") -> None:
    from hydra.core.override_parser.types import RangeSweep

    value = override.value()
    if isinstance(value, RangeSweep) and value.step == 0:
        raise UserError(f"{override.input_line}: a range in steps of 0 never ends; allowed: another step")


def _listed(override: "Override") -> "Override":
    if override.is_sweep_override() and not override.is_discrete_sweep():
        raise UserError(
            f"{override.input_line}: a range without steps; allowed: values with commas, choice(), range(); "
            "hydra/sweeper=optuna searches it"
        )
    return override


def words_of(override: "Override") -> list[str]:
    """Return one word for each value; a single value stays as typed."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    values = list(islice(override.sweep_string_iterator(), MOST_VALUES + 1))
    if not values:
        raise UserError(f"{override.input_line}: stands for no value at all; allowed: one or more")
    if len(values) > MOST_VALUES:
        raise UserError(f"{override.input_line}: too many values; allowed: up to {MOST_VALUES:,}")
    return [f"{override.get_key_element()}={value}" for value in values]


def line_beside(name: str, overrides: Sequence["Override"], varied: Collection[str]) -> list[str]:
    """Return the words beside an experiment's name. Raises UserError for a key that varies in the experiment."""
    line = []
    for override in overrides:
        key = override.key_or_group
        if key == "seed":
            continue
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: experiment={name} says what varies; allowed here: seed=1,2,...")
        if key in {key_of(one) for one in varied}:
            raise UserError(f"{override.input_line}: {key} varies in experiment={name}; allowed: other keys")
        line.append(str(override.input_line))
    return line


def seeds_of(overrides: Sequence["Override"], usual: Sequence[int]) -> list[int]:
    """Return the seeds typed on the line, or the usual ones where it names none."""
    typed = [word for override in overrides if override.key_or_group == "seed" for word in words_of(override)]
    for word in typed:
        if not word.removeprefix("seed=").isdigit():
            raise UserError(f"{word}: allowed: whole numbers from 0")
    seeds = [int(word.removeprefix("seed=")) for word in typed] or list(usual)
    for seed in seeds:
        if seed >= 2**63:
            raise UserError(f"seed={seed}: allowed: whole numbers from 0, below 2**63")
    if len(set(seeds)) < len(seeds):
        raise UserError(f"seed={','.join(map(str, seeds))}: seeds must differ")
    return seeds


def planned_seeds(experiment: Experiment) -> list[int]:
    """Return all seeds that the study may have."""
    seeds = experiment.seeds
    return seeds.planned if isinstance(seeds, Added) else list(seeds)


def looks_of(name: str, experiment: Experiment, overrides: Sequence["Override"]) -> Looks | None:
    """Return the looks of an experiment that adds its seeds; None for others. No seeds can be typed beside them."""
    if not isinstance(experiment.seeds, Added):
        return None
    typed = [override.input_line for override in overrides if override.key_or_group == "seed"]
    if typed:
        raise UserError(f"{typed[-1]}: experiment={name} adds its seeds itself; allowed: other keys")
    return experiment.seeds.looks


def check_of_runs(words: Sequence[str]) -> None:
    """Raise UserError where an arm, or what all have in common, has a seed of its own, or a word about the sweep."""
    for word in words:
        if word.partition("=")[0] in OF_A_SWEEP:
            raise UserError(f"{word}: it is about one launch; allowed: on the line that launches the study")
        if word.partition("=")[0] == "seed":
            raise UserError(f"{word}: every arm gets the same seeds; allowed: seeds: in the file")
