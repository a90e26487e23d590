"""What a new study would need to settle a claim that this one left open."""

import statistics

from ablab.judge.document import Advice
from ablab.judge.selection import SelectedArms
from ablab.statistics.power import Layout, sd_range, seeds_for
from ablab.statistics.verdict import Verdict
from ablab.study.claims import Settled

ALPHA = 0.05


def advice(selection: SelectedArms, claim: Settled, verdict: Verdict, *, borrows: bool) -> Advice | None:
    """Return how many seeds would decide the claim with 80 % power, in a new study of as many claims.

    A new study, because seeds added to this one make its claims exploratory. None where the claim is decided, states no
    margin, or has no standard error. `borrows`: the moderated error of all arms decides.
    """
    error, df = verdict.standard_error, verdict.df
    if verdict.outcome != "inconclusive" or not claim.margin or error is None or df is None:
        return None
    weights = list(claim.weights.values())
    layout = Layout(weights, max(0, len(selection.rows) - len(weights)) if borrows else None)
    sd, level = layout.sd(error, verdict.n), ALPHA / len(selection.family(claim))
    few, seeds, many = (
        seeds_for(claim.expect, claim.margin, noise, layout, level)
        for noise in (sd_range(sd, df)[0], sd, sd_range(sd, df)[1])
    )
    return Advice(seeds=seeds, fewest=few, most=many, seconds=_seconds(selection, claim, seeds))


def _seconds(selection: SelectedArms, claim: Settled, seeds: int | None) -> float | None:
    """Return the machine time of so many seeds of the claim's arms, as their runs took it."""
    arms = [arm for arm in selection.arms if arm.name in claim.weights]
    costs = [run.record.cost.seconds for arm in arms for run in arm.runs if run.record]
    return seeds * len(arms) * statistics.median(costs) if costs and seeds else None
