"""Arms at their usual settings and with their best ones, side by side, and the claims made of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ablab.study.claims import Settled
from ablab.study.design import Arm
from ablab.study.tuning import TUNED, Tuned


@dataclass(frozen=True)
class Compared:
    """What a study compares: its arms, the baseline of each, and the claims."""

    arms: Sequence[Arm]
    baselines: Mapping[str, str]
    claims: Sequence[Settled]


def tuned_alone(compared: Compared, tuned: Sequence[Tuned]) -> Compared:
    """Give each arm its best settings."""
    words = {one.arm.name: one.words for one in tuned}
    return replace(compared, arms=[replace(arm, words=words[arm.name]) for arm in compared.arms])


def both_ways(compared: Compared, tuned: Sequence[Tuned]) -> Compared:
    """Add each arm with its best settings, compared with its baseline at its own best ones, and the claims of these.

    These claims come first. Those at usual settings are secondary: they show what tuning changes, and must not widen
    the intervals of what the study asks.
    """
    names = {one.arm.name: one.name for one in tuned}
    arms = [*compared.arms, *(Arm(one.name, one.words) for one in tuned)]
    baselines = {**compared.baselines, **{names[arm]: names[base] for arm, base in compared.baselines.items()}}
    usual = [claim.model_copy(update={"secondary": True}) for claim in compared.claims]
    return Compared(arms, baselines, [*(_of_tuned(claim, names) for claim in compared.claims), *usual])


def _of_tuned(claim: Settled, names: Mapping[str, str]) -> Settled:
    found = claim.renamed(names)
    # What weighs several arms has a name in words.
    return found if not claim.parts else found.model_copy(update={"arm": f"{claim.arm}{TUNED}"})
