"""Claims as they will be judged, written down before the runs: nothing left open, nothing that no run could answer."""

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
"""Metrics that are read from depth-quality curves, and the key that each of them needs."""


class Settled(Claim):
    """With its own baseline and metric, where the file left them to the study."""

    baseline: str
    metric: Claimed


def settled(experiment: Experiment, arms: Sequence[Arm], baseline: str) -> list[Settled]:
    """Those of the file. A change of the study's baseline or metric changes them too.

    A typo must not wait for the report, nor a claim that is true or false whatever the runs say.
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
    """Raises ValueError where that is no claim."""
    own = {key: value for key, value in claim.items() if value is not None}
    return Settled.model_validate({"baseline": baseline, "metric": metric, **own})


def asked(claim: Settled) -> Settled:
    """What decides the verdict; what others have found may be put right later."""
    return claim.model_copy(update={"published": None, "source": None})


def check_measured(claim: Settled, planned: Planned) -> None:
    """That a run of either arm will have what the claim is about."""
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
