"""Arms against the baseline, whatever anybody has claimed: paired by seed, and on other sentences."""

import numpy as np

from ablab.report.arms import mean
from ablab.report.document import DifferenceLine
from ablab.report.evidence import Pairs, observed, pairs
from ablab.report.judge import span
from ablab.report.measures import Measure
from ablab.report.selection import ArmRuns, Selection
from ablab.statistics.bootstrap import crossed_bootstrap
from ablab.statistics.paired import of_differences
from ablab.statistics.power import detectable_effect, seeds_needed
from ablab.statistics.randomisation import approximate_randomisation
from ablab.statistics.refusal import NotTestable
from ablab.statistics.verdict import Failures

SEED = 20190527
"""Of resampling: the same records give the same report."""


def difference_line(
    selection: Selection, arm: ArmRuns, baseline: ArmRuns, measure: Measure, resamples: int
) -> DifferenceLine:
    """What two arms' runs say of each other, whatever anybody has claimed."""
    found = observed(arm, baseline, measure)
    both = pairs(arm, baseline)
    line = DifferenceLine(
        arm=arm.name,
        n=len(both.arm),
        difference=None,
        interval=None,
        p=None,
        refused=None,
        crossed=None,
        crossed_p=None,
        crossed_refused=None,
        randomisation_p=None,
        randomisation_refused=None,
        detectable=None,
        effect=None,
        seeds_needed=None,
        seconds_needed=None,
    )
    if isinstance(found, Failures):
        shares = found.shares
        told = f"runs diverged: {shares.arm.failed} of {shares.arm.runs} here, {shares.baseline.failed} of"
        return line.model_copy(
            update={"refused": f"{told} {shares.baseline.runs} in the baseline (Boschloo p = {shares.p:.3f})"}
        )
    if isinstance(found, NotTestable):
        return line.model_copy(update={"refused": str(found)})
    news: dict[str, object] = {"difference": float(np.mean(found)), "n": len(found)}
    try:
        paired = of_differences(found)
    except NotTestable as reason:
        news["refused"] = str(reason)
    else:
        news |= {"interval": span(paired.interval), "p": paired.p, "detectable": detectable_effect(paired.sd, paired.n)}
        margins = [c.margin for c in selection.claims if c.arm == arm.name and c.margin and c.metric is None]
        if margins:
            seconds = mean([run.record.cost.seconds for run in (*both.arm, *both.baseline) if run.record]) or 0.0
            needed = seeds_needed(margins[0], paired.sd, existing=paired.n, seconds_per_run=seconds)
            news |= {"effect": margins[0], "seeds_needed": needed.seeds, "seconds_needed": needed.seconds}
    if selection.metric == "test_bleu":
        news |= _on_sentences(both, resamples)
    if news.get("refused"):
        news["crossed_refused"] = None  # it needs more seeds still
    return line.model_copy(update=news)


def _on_sentences(both: Pairs, resamples: int) -> dict[str, object]:
    """Over seeds and sentences, and over sentences alone."""
    arm, baseline = (
        np.array([run.evaluation.statistics for run in runs if run.evaluation], dtype=np.float64)
        for runs in (both.arm, both.baseline)
    )
    news: dict[str, object] = {}
    try:
        crossed = crossed_bootstrap(arm, baseline, np.random.default_rng(SEED), resamples=resamples)
        news |= {"crossed": span(crossed.interval), "crossed_p": crossed.p}
    except NotTestable as reason:
        news["crossed_refused"] = str(reason)
    try:
        swapped = approximate_randomisation(arm, baseline, np.random.default_rng(SEED), trials=resamples)
        news["randomisation_p"] = swapped.p
    except NotTestable as reason:
        news["randomisation_refused"] = str(reason)
    return news
