"""Names of arms as a person says them: `norm=scalenorm,layerdrop=0` is ScaleNorm without LayerDrop."""

import re

from ablab.study.study import names_of
from ablab.study.tuning import TUNED

SPOKEN = {
    "norm": {
        "pre": "PreNorm",
        "post": "PostNorm",
        "scalenorm": "ScaleNorm",
        "fixnorm": "FixNorm",
        "scalenorm_fixnorm": "ScaleNorm with FixNorm",
        "rmsnorm": "RMSNorm",
        "deepnorm": "DeepNorm",
        "dyt": "DyT",
        "qk": "QK-norm",
    },
    "position": {
        "sinusoidal": "sinusoidal positional encoding",
        "learned": "learned positional encoding",
        "rope": "RoPE",
        "none": "no positional encoding",
    },
    "init": {"small": "SmallInit", "xavier": "Xavier initialisation", "deepnorm": "DeepNorm's initialisation"},
    "drophead": {
        "none": "no DropHead",
        "constant": "constant DropHead",
        "vshape": "V-shaped DropHead",
        "rising": "rising DropHead",
        "falling": "falling DropHead",
    },
    "layerdrop": {"0": "no LayerDrop"},
    "training.precision": {"fp32": "fp32", "bf16": "bf16"},
}
"""Levels by factor. A part of one's own keeps the name that its study gives it."""

NUMBERED = {"layerdrop": "LayerDrop", "optim.lr": "learning rate", "model.dropout": "dropout"}
"""Factors whose levels are numbers."""

LEVEL = r"[^,=\s]+=(?:\[[^\]]*\]|[^,\s]*)"
LEVELS = rf"{LEVEL}(?:,{LEVEL})*"


def spoken(name: str) -> str:
    """Return the name of an arm, or a side of a claim, as a person says it; unchanged where it is no list of levels."""
    return re.sub(LEVELS, lambda found: _joined(re.findall(LEVEL, found[0])), name)


def spoken_pair(arm: str, baseline: str) -> tuple[str, str, str]:
    """Return the names of two arms, and what they have in common: `both with LayerDrop 0.1`, `both tuned`, or nothing.

    An arm that tuning left as it is has two names, and stands for both.
    """
    sides = [names_of(name) for name in (arm, baseline)]
    tuned = [names[-1].endswith(TUNED) for names in sides]
    if all(tuned):
        first, second, both = spoken_pair(sides[0][-1].removesuffix(TUNED), sides[1][-1].removesuffix(TUNED))
        how = "tuned" if any(len(names) == 1 for names in sides) else "at their usual settings, which tuning kept"
        return first, second, f"{both} and {how}" if both else f"both {how}"
    if any(is_tuned and len(names) > 1 for is_tuned, names in zip(tuned, sides, strict=True)):
        return spoken_pair(sides[0][0], sides[1][0])
    if not (re.fullmatch(LEVELS, arm) and re.fullmatch(LEVELS, baseline)):
        return spoken(arm), spoken(baseline), ""
    ours, theirs = re.findall(LEVEL, arm), re.findall(LEVEL, baseline)
    common = [level for level in ours if level in theirs]
    own, other = ([level for level in levels if level not in common] for levels in (ours, theirs))
    if not common or not own or not other:
        return spoken(arm), spoken(baseline), ""
    there, missing = _parts(common)
    shared = [*([f"with {_listed(there, 'and')}"] if there else []), *([_without(missing)] if missing else [])]
    return _joined(own), _joined(other), f"both {' '.join(shared)}"


def _joined(levels: list[str]) -> str:
    there, missing = _parts(levels)
    if not there:
        return f"no {_listed(missing, 'or')}"
    head, *rest = there
    with_ = [f"with {_listed(rest, 'and')}"] if rest else []
    return " ".join([head, *with_, *([_without(missing)] if missing else [])])


def _parts(levels: list[str]) -> tuple[list[str], list[str]]:
    """Return what the levels bring, and what they leave out."""
    said = [part for level in levels for part in _level(*level.split("=", 1)).split(" with ")]
    missing = [name.removeprefix("no ") for name in said if name.startswith("no ")]
    return [name for name in said if not name.startswith("no ")], missing


def _without(missing: list[str]) -> str:
    return f"without {_listed(missing, 'or')}"


def _listed(names: list[str], last: str) -> str:
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _level(factor: str, level: str) -> str:
    if name := SPOKEN.get(factor, {}).get(level):
        return name
    return f"{NUMBERED[factor]} {level}" if factor in NUMBERED else f"{factor}={level}"
