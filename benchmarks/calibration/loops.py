"""Whole loops of a hundred proposals: what is kept in error, what of the good is found, and what it costs, by rule.

    python -m benchmarks.calibration.loops [quick] [loops.json]

A loop proposes PROPOSALS changes, of which a share are good, each by the same effect in standard deviations of a run.
Kept changes join the stack, and the next proposals start from it. Rules: greedy (one run of a proposal against the run
of the best so far), Bonferroni (declared: each proposal with three seeds against the floor, at 5 % over the hundred),
LORD++ (the same p-values, with a false discovery rate of 5 %; Ramdas et al. 2017), and the referee of `ablab try`:
looks against a floor, then a confirmation on fresh seeds with Holm's correction. All tests are written for many loops
at once; tests/statistics/test_loops.py holds them to `ablab.statistics.loops`.
"""

import json
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.progress import track
from scipy.special import stdtr

from ablab.statistics.loops import OF_WHOLE, LookLevels
from ablab.statistics.student import Floats
from benchmarks.calibration.jobs import SEED
from benchmarks.calibration.noise import DISTRIBUTIONS

RESULTS = Path(__file__).parents[2] / "docs/results"
FEWEST = 4
"""Runs of an arm whose scatter is drawn from."""

PROPOSALS = 100
LOOPS = 4000
SHARES = (0.0, 0.1, 0.3)
EFFECTS = (1.0, 2.0, 3.0)
DECLARED = 3
"""Seeds of each proposal where a rule gives all the same."""

Truths = npt.NDArray[np.bool_]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]


@dataclass(frozen=True)
class World:
    """How runs vary. `own`: the noise of proposals beside that of the baseline; `drift`: of all scores, in standard
    deviations, over the loop; `insists`: what was nearly kept is proposed again, as if it were new. `alters`: factor by
    which one proposal in ten changes the noise, of every stack that it is in.
    """

    draw: Draw = DISTRIBUTIONS["normal"]
    own: float = 1.0
    drift: float = 0.0
    insists: bool = False
    alters: float = 1.0


def own_runs(studies: Iterable[str]) -> Draw:
    """Return draws, with replacement, from how the scores of our own runs differ from the means of their arms.

    Each is divided by the standard deviation within the arms of its study, so that arms keep the noise that they have
    beside each other, and made as wide as a mean of few runs has made it narrow.
    """
    found = [np.concatenate(scattered) for study in studies if (scattered := _scattered(study))]
    pool = np.concatenate([each / each.std() for each in found])

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return rng.choice(pool, shape)

    return draw


def _scattered(study: str) -> list[Floats]:
    arms = json.loads((RESULTS / study / "report.json").read_text(encoding="utf-8"))["arms"]
    scores = [np.array([run["score"] for run in arm["runs"] if run["score"] is not None]) for arm in arms]
    wide = [each for each in scores if len(each) >= FEWEST]
    return [(each - each.mean()) * (len(each) / (len(each) - 1)) ** 0.5 for each in wide]


STUDIES = sorted(path.parent.name for path in RESULTS.glob("*/report.json"))

WORLDS = {
    "normal noise": World(),
    "our own runs": World(own_runs(STUDIES)),
    "twelve equal runs of ours": World(own_runs(["a_vs_a"])),
    "heavy tails (t3)": World(DISTRIBUTIONS["heavy tails (t3)"]),
    "one in ten poor": World(DISTRIBUTIONS["one in ten poor"]),
    "proposals with half the noise": World(own=0.5),
    "proposals with twice the noise": World(own=2.0),
    "proposals with thrice the noise": World(own=3.0),
    "a drift of 2 sd": World(drift=2.0),
    "near misses proposed again": World(insists=True),
    "one in ten doubles the noise": World(alters=2.0),
    "one in ten trebles the noise": World(alters=3.0),
    "one in ten halves the noise": World(alters=0.5),
}


class Outcome(NamedTuple):
    """Of many loops, [loops]: whether any change that stands is false, the share of good ones that stand, and runs."""

    false: Truths
    found: Floats
    runs: Floats


@dataclass(frozen=True)
class Loops:
    """Many loops in one world. `good`: [loops, proposals]."""

    rng: np.random.Generator
    world: World
    good: Truths
    effect: float

    @property
    def count(self) -> int:
        return len(self.good)

    @cached_property
    def factors(self) -> Floats:
        """Return by what each proposal multiplies the noise, [loops, proposals]."""
        if self.world.alters == 1:
            return np.ones(self.good.shape)
        return np.where(self.rng.random(self.good.shape) < 0.1, self.world.alters, 1.0)

    def noise(self, seeds: int, size: float | Floats = 1.0) -> Floats:
        """Draw [loops, seeds]; `size`: of the noise, or that of each loop."""
        drawn = self.world.draw(self.rng, (self.count, seeds))
        return size[:, None] * drawn if isinstance(size, np.ndarray) else size * drawn

    def at(self, number: int) -> float:
        """Return what drift adds while a proposal is tried."""
        return self.world.drift * number / PROPOSALS

    def gain(self, number: int) -> Floats:
        """Return the true effect of a proposal, [loops]."""
        return self.effect * self.good[:, number]


Rule = Callable[[Loops], Outcome]


def compared(one: Floats, other: Floats) -> Floats:
    """Return the one-sided p of each row, that `one` is not better: `ablab.statistics.loops.difference` for many."""
    sizes = one.shape[1], other.shape[1]
    difference = one.mean(axis=1) - other.mean(axis=1)
    squares = [_squares(each) for each in (one, other)]
    df = sizes[0] + sizes[1] - 2
    error = np.sqrt(sum(squares) / df * (1 / sizes[0] + 1 / sizes[1]))
    pooled = stdtr(df, -difference / error)
    if min(sizes) == 1:
        return np.asarray(pooled)
    parts = [each / (size - 1) / size for each, size in zip(squares, sizes, strict=True)]
    whole = parts[0] + parts[1]
    of_each = whole**2 / sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return np.maximum(pooled, stdtr(of_each, -difference / np.sqrt(whole)))


def greedy(loops: Loops) -> Outcome:
    """Keep what scores better in one run than the best so far did in its one."""
    best, base, noise = loops.noise(1)[:, 0], np.zeros(loops.count), np.ones(loops.count)
    kept = np.zeros_like(loops.good)
    for number in range(PROPOSALS):
        own = noise * loops.world.own * loops.factors[:, number]
        score = base + loops.gain(number) + loops.at(number) + loops.noise(1, own)[:, 0]
        better = score > best
        noise = noise * np.where(better, loops.factors[:, number], 1.0)
        kept[:, number] = better
        best, base = np.where(better, score, best), base + better * loops.gain(number)
    return _outcome(loops, kept, np.full(loops.count, 1.0 + PROPOSALS))


def declared(loops: Loops) -> Floats:
    """Return p of each proposal with the same seeds against one floor of 8, [loops, proposals]."""
    floor = loops.noise(8)
    found = []
    for number in range(PROPOSALS):
        own = loops.world.own * loops.factors[:, number]
        scores = loops.gain(number)[:, None] + loops.at(number) + loops.noise(DECLARED, own)
        found.append(compared(scores, floor))
    return np.stack(found, axis=1)


def bonferroni(loops: Loops) -> Outcome:
    return _outcome(loops, declared(loops) <= 0.05 / PROPOSALS, np.full(loops.count, 8.0 + DECLARED * PROPOSALS))


def lord(loops: Loops) -> Outcome:
    kept = np.array([discoveries(p) for p in declared(loops)])
    return _outcome(loops, kept, np.full(loops.count, 8.0 + DECLARED * PROPOSALS))


def discoveries(p: Floats, alpha: float = 0.05) -> Truths:
    """LORD++ (Ramdas et al. 2017, section 2.2) with the weights of Javanmard and Montanari 2018, equation 31.

    p: [m]. Returns which are discoveries. The wealth at the start is half of alpha.
    """
    places = np.arange(1, len(p) + 1)
    gamma = 0.07720838 * np.log(np.maximum(places, 2)) / (places * np.exp(np.sqrt(np.log(places))))
    start, found = alpha / 2, np.zeros(len(p), dtype=bool)
    times: list[int] = []
    for now in range(len(p)):
        level = gamma[now] * start
        for number, time in enumerate(times):
            level += (alpha - start if number == 0 else alpha) * gamma[now - time - 1]
        if p[now] <= level:
            found[now] = True
            times.append(now)
    return found


@dataclass(frozen=True)
class Referee:
    """Looks against a floor of so many seeds, then a confirmation on so many."""

    levels: LookLevels = field(default_factory=LookLevels)
    floor: int = 8
    confirmation: int = 6

    def __call__(self, loops: Loops) -> Outcome:
        base, floor, noise = np.zeros(loops.count), loops.noise(self.floor), np.ones(loops.count)
        kept = np.zeros_like(loops.good)
        runs = np.full(loops.count, float(self.floor))
        again = np.full(loops.count, -1)  # what is proposed again, by its number; -1: nothing is
        for number in range(PROPOSALS):
            asked = np.where(again >= 0, again, number) if loops.world.insists else np.full(loops.count, number)
            is_new = ~np.take_along_axis(kept, asked[:, None], 1)[:, 0]
            gain = loops.effect * np.take_along_axis(loops.good, asked[:, None], 1)[:, 0]
            factor = np.take_along_axis(loops.factors, asked[:, None], 1)[:, 0]
            own = noise * loops.world.own * factor
            scores = (base + gain + loops.at(number))[:, None] + loops.noise(self.levels.looks[-1], own)
            keeps, spent, last = self._looked(scores, floor)
            keeps &= is_new
            runs += spent
            near = ~keeps & (last <= 0.2) & (spent == self.levels.looks[-1])
            again = np.where(near & (again < 0), asked, -1)
            kept[np.arange(loops.count)[keeps], asked[keeps]] = True
            base, noise = base + keeps * gain, noise * np.where(keeps, factor, 1.0)
            fresh = (base + loops.at(number))[:, None] + loops.noise(self.floor, noise)
            floor = np.where(keeps[:, None], fresh, floor)
            runs += keeps * self.floor
        stands = self._confirmed(loops, kept)
        number_kept = kept.sum(axis=1)
        arms = np.where(number_kept > 1, number_kept + 1 + OF_WHOLE, 1 + OF_WHOLE) * (number_kept > 0)
        return _outcome(loops, stands, runs + self.confirmation * arms)

    def _looked(self, scores: Floats, floor: Floats) -> tuple[Truths, Floats, Floats]:
        """Return which are kept, the seeds of each, and the p of the last look."""
        going, keeps = np.ones(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
        spent, last = np.zeros(len(scores)), np.ones(len(scores))
        for place, seeds in enumerate(self.levels.looks):
            p = compared(scores[:, :seeds], floor)
            spent, last = np.where(going, seeds, spent), np.where(going, p, last)
            if place == len(self.levels.looks) - 1:
                keeps = going & (p <= self.levels.keep)
            else:
                going = going & (p <= self.levels.stop[place])
        return keeps, spent, last

    def _confirmed(self, loops: Loops, kept: Truths) -> Truths:
        """Return which kept changes stand: leave one out, and all against the first baseline, by Holm."""
        seeds, numbers = self.confirmation, kept.sum(axis=1)
        gains = loops.effect * loops.good
        total = (kept * gains).sum(axis=1)
        # A stack is as noisy as proposals are, and as the changes in it make it.
        own = loops.world.own * np.where(kept, loops.factors, 1.0).prod(axis=1)
        whole, first = total[:, None] + loops.noise(OF_WHOLE * seeds, own), loops.noise(seeds)
        squares, df = _squares(whole), np.full(loops.count, OF_WHOLE * seeds - 1.0)
        differences = np.full((loops.count, PROPOSALS), -np.inf)
        for number in range(PROPOSALS):
            has = kept[:, number] & (numbers > 1)
            if has.any():
                without = (total - gains[:, number])[:, None] + loops.noise(seeds, own / loops.factors[:, number])
                squares, df = squares + has * _squares(without), df + has * (seeds - 1)
                differences[:, number] = np.where(has, whole.mean(axis=1) - without.mean(axis=1), -np.inf)
        error = np.sqrt(squares / df * (1 / OF_WHOLE + 1) / seeds)
        p = np.ones((loops.count, PROPOSALS + 1))
        p[:, :PROPOSALS] = stdtr(df[:, None], -differences / error[:, None])
        together = compared(whole, first)
        p[:, PROPOSALS] = np.where(numbers > 1, together, 1.0)
        p[:, :PROPOSALS] = np.where(kept & (numbers == 1)[:, None], together[:, None], p[:, :PROPOSALS])
        return _holm(p, np.where(numbers == 1, 1, numbers + (numbers > 0)))[:, :PROPOSALS] & kept


def _squares(scores: Floats) -> Floats:
    return np.asarray(((scores - scores.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))


def _holm(p: Floats, counts: npt.NDArray[np.int64], error: float = 0.05) -> Truths:
    """Return which of `counts` hypotheses in each row fall; the others of a row have p = 1."""
    order = np.argsort(p, axis=1)
    ranked = np.take_along_axis(p, order, 1)
    left = np.maximum(1, counts[:, None] - np.arange(p.shape[1]))
    falls = np.logical_and.accumulate(ranked * left <= error, axis=1)
    found = np.zeros_like(falls)
    np.put_along_axis(found, order, falls, 1)
    return found


def _outcome(loops: Loops, kept: Truths, runs: Floats) -> Outcome:
    good = loops.good.sum(axis=1)
    found = np.where(good > 0, (kept & loops.good).sum(axis=1) / np.maximum(good, 1), np.nan)
    return Outcome((kept & ~loops.good).any(axis=1), found, runs)


RULES: Mapping[str, Rule] = {
    "greedy": greedy,
    "Bonferroni": bonferroni,
    "LORD++": lord,
    "referee": Referee(),
}


def measured(name: str, world: str, share: float, effect: float, loops: int) -> dict[str, float | None]:
    """Return the rates of a rule in a world, both by name."""
    rng = np.random.default_rng([SEED, zlib.crc32(f"{name} {world} {share} {effect}".encode())])
    good = rng.random((loops, PROPOSALS)) < share
    found = RULES[name](Loops(rng, WORLDS[world], good, effect))
    shares = found.found[~np.isnan(found.found)]
    return {
        "any false": float(found.false.mean()),
        "good found": float(shares.mean()) if len(shares) else None,
        "runs": float(found.runs.mean()),
    }


def cells() -> list[tuple[str, float, float]]:
    """Return world, share of good proposals and their effect."""
    grid = [(share, effect) for share in SHARES for effect in (EFFECTS if share else (0.0,))]
    return [(world, share, effect) for world in WORLDS for share, effect in grid]


def main() -> None:
    """Print a line for each cell and rule, and write the rates; what is there already is not simulated again."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "loops.json"))
    loops = 200 if "quick" in words else LOOPS
    known = json.loads(target.read_text()) if target.exists() else {}
    found = known.get("rates", {}) if known.get("loops") == loops else {}
    for world, share, effect in track(cells(), "cells", disable=not sys.stdout.isatty()):
        for name in RULES:
            key = f"{name}; {world}; {share:.0%} good; {effect:g} sd"
            if key not in found:
                found[key] = measured(name, world, share, effect, loops)
                target.write_text(json.dumps({"loops": loops, "rates": found}, indent=1) + "\n", encoding="utf-8")
            row = found[key]
            of_good = "no good ones" if row["good found"] is None else f"{100 * row['good found']:5.1f} % found"
            told = f"{100 * row['any false']:5.1f} % any false, {of_good}"
            print(f"{key:70} {told}, {row['runs']:5.0f} runs", flush=True)
    print(f"Results: {target}")


if __name__ == "__main__":
    main()
