"""Main effects and interactions of a factorial study."""

from itertools import product

import numpy as np

from ablab.report.document import EffectLine
from ablab.report.judge import span
from ablab.report.measures import Measure
from ablab.report.selection import ArmRuns, Selection
from ablab.statistics.factorial import effects
from ablab.statistics.refusal import NotTestable
from ablab.study.design import name_of


def effect_lines(selection: Selection, measure: Measure) -> list[EffectLine]:
    """Of a factorial design, over the seeds that all cells have; NotTestable where there is a hole in it."""
    factors = selection.factors
    if len(factors) < 2 or any(len(levels) < 2 for levels in factors.values()):
        return []
    cells = [selection.arm(name_of(dict(zip(factors, levels, strict=True)))) for levels in product(*factors.values())]
    whole = [cell for cell in cells if cell is not None and not cell.diverged]
    seeds = sorted(set.intersection(*({run.seed for run in cell.finished} for cell in whole))) if whole else []
    if len(whole) < len(cells):
        raise NotTestable(f"{len(cells) - len(whole)} of {len(cells)} cells of the design have diverged runs")
    if len(seeds) < 2:
        raise NotTestable("its cells have not 2 finished seeds in common")
    scores = [[_score(cell, seed, measure) for seed in seeds] for cell in whole]
    shaped = np.array(scores).reshape(*(len(levels) for levels in factors.values()), len(seeds))
    return [
        EffectLine(
            what=" x ".join(
                f"{factor}: {level} instead of {usual}"
                for factor, (level, usual) in zip(effect.factors, effect.levels, strict=True)
            ),
            kind="main effect" if len(effect.factors) == 1 else "interaction",
            difference=effect.paired.difference,
            interval=span(effect.paired.interval),
            p=effect.paired.p,
            n=effect.paired.n,
        )
        for effect in effects(shaped, factors)
    ]


def _score(cell: ArmRuns, seed: int, measure: Measure) -> float:
    (value,) = (measure.value(run) for run in cell.finished if run.seed == seed)
    assert value is not None
    return value
