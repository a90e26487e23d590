"""A study as typed: which arms, which seeds, and the run that each pair of them is."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.config import Composed, compose
from ablab.errors import UserError
from ablab.plan import Planned, plan
from ablab.study.design import Arm, arms_of
from ablab.study.experiment import Experiment, find, read

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

OF_A_SWEEP = ("rerun", "retry_failed", "fail_fast")
"""Keys that say how a sweep goes: no run of it must see them."""


@dataclass(frozen=True)
class Cell:
    """An arm under a seed: one run, and the words that make it."""

    arm: str
    seed: int
    words: tuple[str, ...]
    planned: Planned


@dataclass(frozen=True)
class Study:
    """Arms by seeds. Two arms whose settings have the same effect share their runs."""

    name: str
    arms: Sequence[Arm]
    baseline: str
    seeds: Sequence[int]
    cells: Sequence[Cell]
    experiment: Experiment | None

    @cached_property
    def runs(self) -> dict[str, Cell]:
        """Every different run, by its id."""
        runs: dict[str, Cell] = {}
        for cell in self.cells:
            runs.setdefault(cell.planned.run_id, cell)
        return runs

    def words_of(self, cell: Cell) -> list[str]:
        """What makes the run, and says to W&B where it belongs."""
        arm = cell.arm.replace("\\", "\\\\").replace("'", "\\'")
        return [*cell.words, f"logger.group={self.name}", f"logger.arm='{arm}'"]

    @property
    def outputs(self) -> Path:
        """The store of its runs."""
        return self.cells[0].planned.outputs

    @property
    def folder(self) -> Path:
        """What belongs to the study and to none of its runs."""
        return self.outputs / "studies" / self.name


@cache
def define(words: tuple[str, ...]) -> Study:
    """Compose and validate every run of the words of a sweep, `experiment=<name>` or values with commas."""
    overrides = _parse(words)
    named = [override for override in overrides if override.key_or_group == "experiment"]
    others = [override for override in overrides if override.key_or_group not in ("experiment", *OF_A_SWEEP)]
    if named:
        return _declared(str(named[-1].value()), others)
    return _ad_hoc(others)


def _parse(words: Sequence[str]) -> list["Override"]:
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from ablab.config.folder import conf_dir
    from ablab.config.overrides import parse

    parse(words)  # words what is wrong
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        # A glob needs to know the options of groups.
        loader = GlobalHydra.instance().config_loader()
        overrides = OverridesParser.create(config_loader=loader).parse_overrides(list(words))
        return [_listed(override) for override in overrides]


def _listed(override: "Override") -> "Override":
    if override.is_sweep_override() and not override.is_discrete_sweep():
        raise UserError(f"{override.input_line}: a range without steps; allowed: values with commas, choice(), range()")
    return override


def _words(override: "Override") -> list[str]:
    """One for each value; a single one stays as it was typed."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _seeds(overrides: Sequence["Override"], usual: Sequence[int]) -> list[int]:
    """Those that the line says, the last word counting."""
    typed = [word for override in overrides if override.key_or_group == "seed" for word in _words(override)]
    for word in typed:
        if not word.removeprefix("seed=").isdigit():
            raise UserError(f"{word}: allowed: whole numbers from 0")
    seeds = [int(word.removeprefix("seed=")) for word in typed] or list(usual)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"seed={','.join(map(str, seeds))}: seeds must differ")
    return seeds


def _ad_hoc(overrides: Sequence["Override"]) -> Study:
    rest = [override for override in overrides if override.key_or_group != "seed"]
    words = [_words(override) for override in rest]
    swept = [override.is_sweep_override() for override in rest]
    arms = []
    for combination in product(*words):
        varied = [word for word, varies in zip(combination, swept, strict=True) if varies]
        arms.append(Arm(",".join(varied) or "one arm", combination))
    seeds = _seeds(overrides, [1])
    cells = list(_cells(arms, seeds, ()))
    return Study(_named_by(cells), arms, arms[0].name, seeds, cells, None)


def _declared(name: str, overrides: Sequence["Override"]) -> Study:
    path = find(name)
    experiment = read(path)
    try:
        arms, baseline = arms_of(experiment)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    line = []
    own = {word.partition("=")[0] for arm in arms for word in arm.words}
    for override in overrides:
        key = override.key_or_group
        if key == "seed":
            continue
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: experiment={name} says what varies; allowed here: seed=1,2,...")
        if key in own:
            raise UserError(f"{override.input_line}: {key} varies in experiment={name}; allowed: other keys")
        line.append(str(override.input_line))
    seeds = _seeds(overrides, experiment.seeds)
    cells = list(_cells(arms, seeds, (*experiment.common, *line)))
    return Study(path.stem, arms, baseline, seeds, cells, experiment)


def _cells(arms: Sequence[Arm], seeds: Sequence[int], common: Sequence[str]) -> Iterator[Cell]:
    for arm in arms:
        words = (*common, *arm.words)
        composed = compose([*words, f"seed={seeds[0]}"])
        # Composing is most of the work, and a seed is nothing but a seed unless a word refers to it.
        same = not any("${" in word for word in words)
        for seed in seeds:
            own = (*words, f"seed={seed}")
            yield Cell(arm.name, seed, own, plan(_reseeded(composed, seed) if same else compose(own)))


def _reseeded(composed: Composed, seed: int) -> Composed:
    config = composed.config.model_copy(update={"seed": seed})
    return Composed(config, composed.choices, composed.changes | {"seed": seed})


def _named_by(cells: Sequence[Cell]) -> str:
    """`s` and 11 hex digits: the same runs are the same study, in whichever order they were typed."""
    ids = sorted({cell.planned.run_id for cell in cells})
    return "s" + hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:11]
