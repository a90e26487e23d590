"""Arms against the baseline, whatever anybody has claimed: paired by seed, and on other sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ablab.report.arms import mean
from ablab.report.document import DifferenceLine
from ablab.report.evidence import Pairs, observed, pairs
from ablab.report.judge import span
from ablab.report.measures import Measure
from ablab.report.on_sentences import OnSentences
from ablab.report.selection import ArmRuns, Selection
from ablab.report.written import p_text
from ablab.statistics.paired import of_differences
from ablab.statistics.power import detectable_effect, seeds_needed
from ablab.statistics.refusal import NotTestable
from ablab.statistics.verdict import Failures


def difference_line(
    selection: Selection, arm: ArmRuns, baseline: ArmRuns, measure: Measure, on_sentences: OnSentences | None
) -> DifferenceLine:
    """What two arms' runs say of each other, whatever anybody has claimed. `on_sentences`: where the metric has any."""
    found = observed(arm, baseline, measure)
    both = pairs(arm, baseline)
    if isinstance(found, Failures):
        shares = found.shares
        told = f"runs diverged: {shares.arm.failed} of {shares.arm.runs} here, {shares.baseline.failed} of"
        refused = f"{told} {shares.baseline.runs} in the baseline (Boschloo p = {p_text(shares.p)})"
        return DifferenceLine(arm=arm.name, n=len(both.arm), refused=refused)
    if isinstance(found, NotTestable):
        return DifferenceLine(arm=arm.name, n=len(both.arm), refused=str(found))
    told_more = _over_seeds(selection, arm.name, both, found)
    if on_sentences is not None:
        told_more |= on_sentences.told(both)
    if "refused" in told_more:
        told_more.pop("crossed_refused", None)  # it needs more seeds still
    return DifferenceLine(arm=arm.name, n=len(found), difference=float(np.mean(found)), **told_more)


def _over_seeds(selection: Selection, arm: str, both: Pairs, differences: Sequence[float]) -> dict[str, Any]:
    """The interval, and what it would take to see what is claimed."""
    try:
        paired = of_differences(differences)
    except NotTestable as reason:
        return {"refused": str(reason)}
    told = {"interval": span(paired.interval), "p": paired.p, "detectable": detectable_effect(paired.sd, paired.n)}
    margins = [c.margin for c in selection.claims if c.arm == arm and c.margin and c.metric is None]
    if not margins:
        return told
    seconds = mean([run.record.cost.seconds for run in (*both.arm, *both.baseline) if run.record]) or 0.0
    needed = seeds_needed(margins[0], paired.sd, existing=paired.n, seconds_per_run=seconds)
    return {**told, "effect": margins[0], "seeds_needed": needed.seeds, "seconds_needed": needed.seconds}
