"""The depths along a curve."""

from collections.abc import Sequence

from ablab.pruning.kept import Depths


def targets(curve: str, full: Depths, depths: Sequence[int] | None) -> list[Depths]:
    """From the full model down. `both`: the other stack shrinks in proportion, rounded, and keeps a layer at least.

    `depths`: so many layers remain in the stack that shrinks, the deeper of the two for `both`; None: every number.
    """
    deepest = max(full) if curve == "both" else getattr(full, curve)
    wanted = range(1, deepest + 1) if depths is None else sorted({*depths, deepest})
    return [_shrunk(curve, full, keep, deepest) for keep in reversed(wanted)]


def _shrunk(curve: str, full: Depths, keep: int, deepest: int) -> Depths:
    if curve != "both":
        return full._replace(**{curve: keep})
    # Half a layer rounds up, in whole numbers.
    return Depths(*(max(1, (2 * depth * keep + deepest) // (2 * deepest)) for depth in full))
