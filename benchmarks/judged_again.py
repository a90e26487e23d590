"""Judge the claims of the shipped reports again from the scores of their runs, by both estimates of the noise.

    python benchmarks/judged_again.py [docs/results]

A Markdown table: the verdict on record, the one by the paired t test, which must be the same, and the one by the
moderated t test. Claims that were not testable stay so; claims about pruned models, speeds and failures are taken with
the evidence on record, since the scores of single runs are not in a report: they keep their place in the family.
Studies that added seeds are left out: their claims are judged by the paired t test at each look, and by nothing else.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ablab.statistics.diverged import DIVERGED, compare_ranks, compare_shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated, moderated
from ablab.statistics.verdict import Case, Failures, verdicts

Scores = Mapping[str, Mapping[int, float]]
"""Scores by arm and seed."""


def scores_of(document: Mapping[str, Any], metric: str) -> Scores | None:
    """Return the finished runs' scores in a metric; None for a metric of which a report has none for each run."""
    key = "score" if metric == document["metric"] else metric
    if key not in ("score", "valid_loss"):
        return None
    keys = [key] if key == "score" else ["loss", key]  # older reports have the other name
    return {
        arm["name"]: {
            run["seed"]: next(run[one] for one in keys if one in run)
            for run in arm["runs"]
            if run["state"] == "finished"
        }
        for arm in document["arms"]
    }


def case_of(claim: Mapping[str, Any], document: Mapping[str, Any], *, borrows: bool) -> Case:
    """Return the claim with its evidence; *not worse* is one-sided, in the direction of its metric."""
    if claim["expect"] == "not_worse":
        told = claim.get("higher_is_better")  # which older reports do not say
        is_higher = "loss" not in claim["metric"] if told is None else told
        expect = "not_less" if is_higher else "not_greater"
        return case_of({**claim, "expect": expect}, document, borrows=borrows)
    arms = {arm["name"]: arm for arm in document["arms"]}
    if claim["outcome"] == "not testable":
        return Case(claim["expect"], claim["margin"], NotTestable(claim["reason"]))
    if claim["title"] == "share of failures":
        arm, baseline = (arms[claim[which]] for which in ("arm", "baseline"))
        shares = compare_shares(*((one["diverged"], one["planned"]) for one in (arm, baseline)))
        better = claim["metric"] not in ("failures", "valid_loss")
        margin = 0.0 if claim["metric"] == "failures" else claim["margin"]
        return Case(claim["expect"], margin, Failures(shares, better))
    scores = scores_of(document, claim["metric"])
    if scores is None:
        return Case(claim["expect"], claim["margin"], _on_record(claim))
    seeds = sorted(scores[claim["arm"]].keys() & scores[claim["baseline"]].keys())
    ours, theirs = ([scores[claim[which]][seed] for seed in seeds] for which in ("arm", "baseline"))
    if claim["title"] == "ranks of all runs":
        better = claim["metric"] != "valid_loss"
        ranked = (
            [*((1 if better else -1) * score for score in scores[name].values()), *[DIVERGED] * arms[name]["diverged"]]
            for name in (claim["arm"], claim["baseline"])
        )
        found = compare_ranks(*ranked, claim["margin"])
        return Case(claim["expect"], claim["margin"], Failures(found, better))
    if not borrows:
        return Case(claim["expect"], claim["margin"], np.subtract(ours, theirs))
    others = lenders(document, scores, (claim["arm"], claim["baseline"]))
    return Case(claim["expect"], claim["margin"], moderated(ours, theirs, others))


def lenders(document: Mapping[str, Any], scores: Scores, but: Sequence[str]) -> list[list[float]]:
    """Return the scores of the other arms without a run that failed."""
    arrays = {name: list(found.values()) for name, found in scores.items() if len(found) > 1}
    whole = {arm["name"] for arm in document["arms"] if not arm["diverged"]}
    return [found for name, found in arrays.items() if name in whole - {*but}]


def _on_record(claim: Mapping[str, Any]) -> Moderated | NotTestable:
    """Return the paired estimate that the claim's interval and p on record determine."""
    from ablab.statistics import student

    if claim["interval"] is None:
        return NotTestable("no figures on record")
    interval, df = claim["interval"], claim["n"] - 1
    half = (interval["high"] - interval["low"]) / 2
    error = half / student.quantile((1 + interval["level"]) / 2, df)
    return Moderated(claim["n"], claim["difference"], error, df, claim["p"])


def main() -> None:
    """A row for each claim."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    print("| study | claim | on record | paired | moderated | p paired | p moderated |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(folder.glob("*/report.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if any(claim.get("followed") for claim in document["claims"]):
            continue
        both = [
            verdicts([case_of(claim, document, borrows=borrows) for claim in document["claims"]])
            for borrows in (False, True)
        ]
        for claim, paired, borrowed in zip(document["claims"], *both, strict=True):
            about = f"{claim['arm']} {claim['expect']} {claim['baseline']}, {claim['metric']}, n = {claim['n']}"
            ps = ["" if verdict.p is None else f"{verdict.p:.3g}" for verdict in (paired, borrowed)]
            outcomes = [claim["outcome"], paired.outcome, borrowed.outcome]
            print(f"| {' | '.join([path.parent.name, about, *outcomes, *ps])} |")


if __name__ == "__main__":
    main()
