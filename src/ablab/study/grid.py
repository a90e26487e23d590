"""The arms of a study by their levels, and as claims name them: by as few levels as are needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ablab.errors import UserError, choices
from ablab.study.design import Arm, Chosen, level_called


@dataclass(frozen=True)
class Grid:
    """The arms of a study, its baseline, and the factor in each level of which arms have a baseline of their own."""

    arms: Sequence[Arm]
    baseline: Arm
    within: str | None = None

    @property
    def usual(self) -> Chosen:
        """The levels of the baseline; empty where the design lists its arms."""
        return self.baseline.levels

    def levels_of(self, factor: str) -> list[str]:
        """Return the levels of a factor that arms have, in the order of the design."""
        return list(dict.fromkeys(arm.levels[factor] for arm in self.arms))

    def others(self, *factors: str) -> list[str]:
        """Return the factors but these."""
        return [factor for factor in self.usual if factor not in factors]

    def combinations(self, factors: Sequence[str]) -> Iterator[dict[str, str]]:
        """Yield every combination of levels of these factors; one empty combination of none."""
        for levels in product(*(self.levels_of(factor) for factor in factors)):
            yield dict(zip(factors, levels, strict=True))

    def cell(self, levels: Chosen) -> Arm | None:
        """Return the arm with these levels, and with those of the baseline in other factors; None if there is none."""
        wanted = {**self.usual, **levels}
        return next((arm for arm in self.arms if arm.levels == wanted), None)

    @property
    def baselines(self) -> dict[str, str]:
        """The baseline of each arm, where `within` gives them several; empty otherwise."""
        return {} if self.within is None else {arm.name: self.baseline_of(arm).name for arm in self.arms}

    def baseline_of(self, arm: Arm) -> Arm:
        """Return the arm that this one is compared with: the baseline, of its own level of `within` if there is one."""
        if self.within is None:
            return self.baseline
        found = self.cell({self.within: arm.levels[self.within]})
        if found is None:
            raise UserError(f"within={self.within}: {self.within}={arm.levels[self.within]} has no baseline")
        return found

    def find(self, name: str, key: str) -> Arm:
        """Return the arm of this name, or of these levels and otherwise the baseline's.

        Where the design lists its arms: the arm whose name alone begins so. `key`: where the name was given, for the
        UserError.
        """
        if (fixed := self.fixed(name)) is not None:
            return fixed
        levels = self.levels_in(name)
        fitting = [arm for arm in self.arms if levels and levels.items() <= arm.levels.items()]
        fitting = fitting or [arm for arm in self.arms if not self.usual and arm.name.startswith(name)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise UserError(f"{key}={name}: {len(fitting)} arms are like that: {'; '.join(a.name for a in fitting)}")
        raise UserError(f"{key}={name}: no such arm; {self._nameable(name)}")

    def fixed(self, name: str) -> Arm | None:
        """Return the arm of this name, or of these levels and the baseline's; None where it depends on other arms."""
        by_name = {arm.name: arm for arm in self.arms}
        exact = by_name.get(name) or by_name.get(f"+{name}")
        levels = None if exact is not None else self.levels_in(name)
        return self.cell(levels) if levels else exact

    def levels_in(self, name: str) -> dict[str, str] | None:
        """Return the levels in `norm=scalenorm,layerdrop=0.2`, or in `scalenorm`; None if it names something else."""
        words = self._words()
        found: dict[str, str] = {}
        left = name
        while left:
            # A level may contain commas.
            word = next((word for word in words if left == word or left.startswith(f"{word},")), left.partition(",")[0])
            step = words.get(word) or self._by_number(word)
            if step is None:
                return None
            found[step[0]] = step[1]
            left = left[len(word) + 1 :]
        return found

    def _by_number(self, word: str) -> tuple[str, str] | None:
        """Return factor and level of `optim.lr=1e-4`, or of `1e-4` if one factor alone has it, by the number."""
        factor, _, name = word.rpartition("=")
        called = {each: level_called(name, each, self.levels_of(each)) for each in self.usual if factor in ("", each)}
        found = [(each, level) for each, level in called.items() if level is not None]
        return found[0] if len(found) == 1 else None

    def step(self, name: str, key: str) -> tuple[str, str]:
        """Return factor and level of `norm=scalenorm`, of `scalenorm`, or of `norm` where only one is not usual."""
        if not self.usual:
            raise UserError(f"{key}={name}: the arms have no factors; allowed where each has them, as norm=pre,drop=0")
        unusual = [level for level in self.levels_of(name) if level != self.usual[name]] if name in self.usual else []
        levels = {name: unusual[0]} if len(unusual) == 1 else self.levels_in(name)
        if levels is None or len(levels) != 1:
            steps = [f"{factor}={level}" for factor in self.usual for level in self.levels_of(factor)]
            raise UserError(f"{key}={name}: no level of a factor; {choices(name, steps)}")
        return next(iter(levels.items()))

    def _nameable(self, name: str) -> str:
        """Return what may be named instead: levels where the design is made of factors, else arms."""
        sharing = [factor for factor in self.usual if name in self.levels_of(factor)]
        if len(sharing) > 1:
            return f"{' and '.join(sharing)} have such a level; allowed: {sharing[0]}={name} or another of them"
        steps = [f"{factor}={level}" for factor in self.usual for level in self.levels_of(factor)]
        if steps:
            return choices(name, steps, also="; several with commas")
        return choices(name, [arm.name for arm in self.arms])

    def _words(self) -> Mapping[str, tuple[str, str]]:
        """Return factor and level by the words that name them: `norm=pre`, and `pre` if no other factor has it."""
        steps = [(factor, level) for factor in self.usual for level in self.levels_of(factor)]
        bare = [level for _, level in steps]
        short = {level: (factor, level) for factor, level in steps if bare.count(level) == 1}
        return {f"{factor}={level}": (factor, level) for factor, level in steps} | short


def grid_of(arms: Sequence[Arm], baseline: str, within: str | None) -> Grid:
    """Return the arms of a study as a grid; UserError where `within` is no factor with a baseline in each level."""
    grid = Grid(arms, next(arm for arm in arms if arm.name == baseline), within)
    if within is not None:
        if within not in grid.usual:
            known = choices(within, list(grid.usual)) if grid.usual else "design=arms has none"
            raise UserError(f"within={within}: no such factor; {known}")
        if len(levels := grid.levels_of(within)) < 2:
            raise UserError(f"within={within}: it has one level, {levels[0]}; allowed: a factor of several")
        if grid.others(within) == []:
            raise UserError(f"within={within}: it is the only factor; allowed beside another one, which to compare")
        for arm in arms:
            grid.baseline_of(arm)
    return grid
