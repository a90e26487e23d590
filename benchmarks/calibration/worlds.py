"""What becomes of the promised errors in other worlds: noise that differs between arms, or whose seeds are not alone.

    python -m benchmarks.calibration.worlds [quick] [worlds.json]

Studies of five arms and four claims, each against the first arm, without any difference: how often any verdict is
false, and how often the first claim alone would be; how often a difference of EFFECT is found; how often the report
says that a condition does not hold. Then six claims that are looked at after each of 3 to 12 seeds. All tests are
written for many studies at once; tests/statistics/test_worlds.py holds them to those of the report.
"""

import json
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track

from ablab.judge.estimates import Estimates, conditions
from ablab.statistics import student
from ablab.statistics.conditions import WILD, medians, near_failures
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import estimated, moderated, prior
from ablab.statistics.sequential import Boundary
from ablab.statistics.student import Floats
from benchmarks.calibration.jobs import SEED, SEEDS

ARMS = 5
EFFECT = 1.5
"""In standard deviations of a run of an arm that a world does not single out."""

STUDIES = 20_000
MARKED = 1000
"""Studies of which the marks are counted, by the functions of the report."""

LOOKS = Looks(3, 12)
FOLLOWED = 6

Draw = Callable[[np.random.Generator, tuple[int, int, int]], Floats]
"""Draw scores without a difference, [studies, arms, seeds]."""


def _sizes(*factors: float, others: float = 1.0) -> Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
        sizes = np.full(shape[1], others)
        sizes[: len(factors)] = factors
        return rng.normal(size=shape) * sizes[:, None]

    return draw


def _every_other(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return rng.normal(size=shape) * np.where(np.arange(shape[1]) % 2, 3.0, 1.0)[:, None]


def _all_sizes(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return rng.normal(size=shape) * np.exp(0.7 * rng.normal(size=(*shape[:2], 1)))


def _correlated(correlation: float) -> Draw:
    """Runs with the same seed correlate; if negatively, those of the baseline with those of all other arms."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
        signs = np.where((np.arange(shape[1]) > 0) & (correlation < 0), -1.0, 1.0)[:, None]
        seeds = rng.normal(size=(shape[0], 1, shape[2]))
        part = abs(correlation)
        return np.asarray(part**0.5 * signs * seeds + (1 - part) ** 0.5 * rng.normal(size=shape))

    return draw


def _falling(arms: slice) -> Draw:
    """One run in ten of these arms falls by five standard deviations, which the arm's mean makes up for."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
        scores = rng.normal(size=shape)
        scores[:, arms] += 0.5 - 5.0 * (rng.random(scores[:, arms].shape) < 0.1)
        return scores

    return draw


def _skewed(baseline: float, others: float) -> Draw:
    """Lognormal noise to this side, normal where it is 0; in both cases with variance 1 and mean 0."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
        normal = rng.normal(size=shape)
        skewed = (np.exp(normal) - np.exp(0.5)) / (np.exp(2) - np.exp(1)) ** 0.5
        sides = np.where(np.arange(shape[1]) > 0, others, baseline)[:, None]
        return np.asarray(np.where(sides == 0, normal, sides * skewed))

    return draw


def _two_groups(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return np.asarray(np.where(rng.random(shape) < 0.5, 8.0, 0.0) + rng.normal(0, 0.3, shape))


def _following(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    scores = rng.normal(size=shape)
    for seed in range(1, shape[2]):
        scores[..., seed] = 0.5 * scores[..., seed - 1] + 0.75**0.5 * scores[..., seed]
    return scores


WORLDS: Mapping[str, Draw] = {
    "all arms scatter alike": _sizes(),
    "heavy tails (t with 3 df)": lambda rng, shape: rng.standard_t(3, size=shape),
    "all arms skewed alike (lognormal)": _skewed(1, 1),
    "one run in ten falls by 5 sd, in all arms": _falling(slice(None)),
    "seeds correlate at 0.6 across arms": _correlated(0.6),
    "seeds correlate at 0.9 across arms": _correlated(0.9),
    "the baseline's sd is twice as large": _sizes(2),
    "the baseline's sd is 3 times as large": _sizes(3),
    "the baseline's sd is 5 times as large": _sizes(5),
    "one arm's sd is 3 times as large": _sizes(1, 3),
    "one arm's sd is 5 times as large": _sizes(1, 5),
    "one arm's sd is 10 times as large": _sizes(1, 10),
    "all arms' sd is 0.3 of the baseline's": _sizes(1, others=0.3),
    "one arm's sd is 0.3 of the others'": _sizes(1, 0.3),
    "every other arm's sd is 3 times as large": _every_other,
    "sds are lognormal (0.7)": _all_sizes,
    "the baseline is skewed (lognormal)": _skewed(1, 0),
    "one run in ten falls by 5 sd, in the baseline": _falling(slice(0, 1)),
    "one run in ten falls by 5 sd, in all other arms": _falling(slice(1, None)),
    "the baseline is skewed to the other side": _skewed(-1, 1),
    "seeds of baseline and arms correlate at -0.3": _correlated(-0.3),
    "seeds of baseline and arms correlate at -0.6": _correlated(-0.6),
    "scores fall into two groups, 8 apart, sd 0.3": _two_groups,
    "seeds follow each other, AR(1) at 0.5": _following,
}


def paired(arms: Floats) -> Floats:
    """Return p of each arm beside the first by the paired t test, [studies, arms - 1]."""
    differences, n = arms[:, 1:] - arms[:, :1], arms.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = differences.mean(axis=2) / (differences.std(axis=2, ddof=1) / n**0.5)
    return student.two_sided(t, n - 1)


def borrowing(arms: Floats) -> Floats:
    """Return the same by the moderated t test, whose noise is borrowed from all arms of the study."""
    own, means, n = arms.var(axis=2, ddof=1), arms.mean(axis=2), arms.shape[2]
    alike = ~(own > WILD**2 * _of_the_others(own, n - 1))
    return np.stack([_borrowing(own, means, alike, n, arm) for arm in range(1, own.shape[1])], axis=1)


def _borrowing(own: Floats, means: Floats, alike: npt.NDArray[np.bool_], n: int, arm: int) -> Floats:
    """Return p of one arm in all studies."""
    pair, df = [arm, 0], n - 1
    lend = alike & ~np.isin(np.arange(own.shape[1]), pair)
    lenders = lend.sum(axis=1)
    weights = np.array([prior(df * one) for one in range(lenders.max() + 1)])[lenders][:, None]
    rest = ((own * lend).sum(axis=1) / np.maximum(lenders, 1))[:, None]
    found = estimated(own[:, pair], rest, weights, np.ones(2), n)
    return student.two_sided((means[:, arm] - means[:, 0]) / found.error, found.df)


def _of_the_others(own: Floats, df: int) -> Floats:
    """Return the variance that is typical of the other arms, [studies, arms]."""
    medians_ = [np.median(np.delete(own, arm, axis=1), axis=1) for arm in range(own.shape[1])]
    return np.asarray(np.stack(medians_, axis=1) / medians(np.array([df])))


def false_verdicts(p: Floats) -> npt.NDArray[np.bool_]:
    """Return whether any verdict of a study is false, [studies], where no arm differs and no claim has a margin.

    Then any rejection is, and Holm's procedure makes one if and only if the least p is at most its first share.
    """
    return np.asarray(p.min(axis=1) <= 0.05 / p.shape[1])


def followed(arms: Floats) -> npt.NDArray[np.bool_]:
    """Return whether any look at any claim settles it, which is false where no arm differs, [studies]."""
    differences = arms[:, 1:] - arms[:, :1]
    boundary = Boundary(LOOKS, 0.05 / differences.shape[1], "greater", 0.0)
    settled = np.zeros(differences.shape[:2], dtype=bool)
    for n in range(LOOKS.first, LOOKS.last + 1):
        so_far = differences[..., :n]
        settled |= boundary.settled(so_far.mean(axis=2), so_far.std(axis=2, ddof=1), n)
    return np.asarray(settled.any(axis=1))


def marks(arms: Floats) -> set[str]:
    """Return what the report says beside the first claim of one study, [arms, seeds], and what near any claim."""
    others = list(arms[2:])
    found = Estimates(
        arms[1] - arms[0], arms[1::-1], others, others, [None] * len(arms), moderated(arms[1], arms[0], others), None
    )
    said = {one.kind for one in conditions(found, ("arm", "usual"), 0.95)}
    near = near_failures({str(number): arm for number, arm in enumerate(arms)}, higher_is_better=True)
    return said | ({"nearly failed"} if near else set())


MARKS = ("wide", "groups", "order", "opposed", "together", "nearly failed")


def measured(world: str, n: int, studies: int) -> dict[str, float]:
    """Return the rates of one world with so many seeds."""
    arms = WORLDS[world](_stream(world, n), (studies, ARMS, n))
    better = arms + EFFECT * (np.arange(ARMS) == 1)[:, None]
    marked = [marks(study) for study in arms[: max(3, MARKED * studies // STUDIES)]]
    found = {}
    for name, test in (("moderated", borrowing), ("paired", paired)):
        p = test(arms)
        found[f"{name}, study"] = float(false_verdicts(p).mean())
        found[f"{name}, claim"] = float((p[:, 0] <= 0.05).mean())
        found[f"{name}, power"] = float((test(better)[:, 0] <= 0.05).mean())
    return found | {mark: float(np.mean([mark in one for one in marked])) for mark in MARKS}


def _stream(world: str, n: int) -> np.random.Generator:
    """Return a stream of its own: adding a world changes no other."""
    return np.random.default_rng([SEED, n, zlib.crc32(world.encode())])


Row = dict[str, dict[str, float]]
"""The rates of a world, by the number of seeds."""


def rates(world: str, studies: int) -> Row:
    """Return the rates of a world: of single claims and of studies of four; with looks, of studies of six."""
    arms = WORLDS[world](_stream(world, LOOKS.last), (studies, FOLLOWED + 1, LOOKS.last))
    looks = {"study": float(followed(arms).mean())}
    return {**{f"n={n}": measured(world, n, studies) for n in SEEDS}, "looks at 3 to 12": looks}


def _table(found: Mapping[str, Row], heads: Sequence[str], cell: Callable[[Row, str], str]) -> str:
    """Format one line a world, in percent."""
    lines = [f"| | {' | '.join(heads)} |", f"|{' --- |' * (len(heads) + 1)}"]
    lines += [f"| {world} | {' | '.join(cell(row, head) for head in heads)} |" for world, row in found.items()]
    return "\n".join(lines)


def _errors(row: Row, head: str) -> str:
    rate = {name: f"{100 * value:.1f}" for name, value in row[head].items()}
    if "study" in rate:
        return rate["study"]
    return f"{rate['moderated, study']} / {rate['moderated, claim']} ({rate['paired, study']})"


def _power(row: Row, head: str) -> str:
    return f"{100 * row[head]['moderated, power']:.1f} ({100 * row[head]['paired, power']:.1f})"


def _marks(row: Row, head: str) -> str:
    return " / ".join(f"{100 * row[f'n={n}'][head]:.1f}" for n in SEEDS)


def main() -> None:
    """Print the tables, in percent, and write the rates."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "worlds.json"))
    studies = 60 if "quick" in words else STUDIES
    found = {world: rates(world, studies) for world in track(WORLDS, "worlds")}
    seeds = [f"n={n}" for n in SEEDS]
    print(
        f"Any false verdict / a single claim (any, paired)\n\n{_table(found, [*seeds, 'looks at 3 to 12'], _errors)}\n"
    )
    print(f"{EFFECT} sd are found (paired)\n\n{_table(found, seeds, _power)}\n")
    print(f"Marks, {', '.join(seeds)}\n\n{_table(found, MARKS, _marks)}\n")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Results: {target}")


if __name__ == "__main__":
    main()
