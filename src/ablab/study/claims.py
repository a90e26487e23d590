"""Claims in the complete form in which they are judged, validated before any run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ablab.config.options import RulePruning
from ablab.errors import UserError, choices
from ablab.plan import Planned
from ablab.pruning.strategies import Depths, targets
from ablab.study.design import Arm
from ablab.study.experiment import Claim, Claimed, Experiment

OF_CURVES = {
    "depth": ("fall", "the BLEU that pruning may cost"),
    "pruned_bleu": ("layers", "the number of decoder layers"),
}
"""Metrics that are read from depth-quality curves: the key that each needs, and its meaning."""


class Settled(Claim):
    """A claim with its own baseline and metric, filled in from the study where the file omits them."""

    baseline: str
    metric: Claimed


def settled(experiment: Experiment, arms: Sequence[Arm], baseline: str) -> list[Settled]:
    """Complete and validate the claims of the file; a change of the study's baseline or metric changes them too.

    Raises UserError now, before any run, for a typo, and for a claim that is true or false whatever the runs give.
    """
    names = [arm.name for arm in arms]
    claims: list[Settled] = []
    for given in experiment.claims:
        claim = settle(given.model_dump(), baseline, experiment.metric)
        for key, name in (("arm", claim.arm), ("baseline", claim.baseline)):
            if name not in names:
                raise UserError(f"claims.{key}={name}: no such arm; {choices(name, names)}")
        if claim.arm == claim.baseline:
            raise UserError(f"claims.arm={claim.arm}: that is its baseline too; allowed: another arm")
        if asked(claim) in [asked(one) for one in claims]:
            raise UserError(f"claims.arm={claim.arm}: the same is claimed twice; allowed: each claim once")
        for metric, (key, meaning) in OF_CURVES.items():
            value = getattr(claim, key)
            if (claim.metric == metric) != (value is not None):
                raise UserError(f"claims.{key}={value}: {meaning}, for claims with metric: {metric} and no others")
        claims.append(claim)
    return claims


def settle(claim: Mapping[str, Any], baseline: str, metric: str) -> Settled:
    """Fill in the baseline and metric of a claim. Raises ValueError where the result is no valid claim."""
    own = {key: value for key, value in claim.items() if value is not None}
    return Settled.model_validate({"baseline": baseline, "metric": metric, **own})


def asked(claim: Settled) -> Settled:
    """Return the claim without published results and source: they may be corrected later, and do not affect the
    verdict.
    """
    return claim.model_copy(update={"published": None, "source": None})


def check_measured(claim: Settled, planned: Planned) -> None:
    """Raise UserError unless the planned run measures what the claim is about."""
    if claim.metric not in OF_CURVES:
        return
    pruning, model = planned.config.pruning, planned.config.model
    claimed = f"claims.metric={claim.metric}"
    if not isinstance(pruning, RulePruning) or "decoder" not in pruning.curves:
        raise UserError(
            f"{claimed}: needs the decoder's depth-quality curve; allowed with pruning and decoder in pruning.curves"
        )
    depths = [
        at.decoder for at in targets("decoder", Depths(model.encoder_layers, model.decoder_layers), pruning.depths)
    ]
    if claim.layers is not None and claim.layers not in depths:
        raise UserError(f"claims.layers={claim.layers}: measured are {', '.join(map(str, depths))} decoder layers")
