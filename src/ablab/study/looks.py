"""Looks of the arms, the same in every picture: of a report, of a sweep, and of W&B."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ablab.files import COLOURS
from ablab.study.study import names_of
from ablab.study.tuning import TUNED

DASHES = ("solid", "dash", "dot", "dashdot")

MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross", "star")


class Style(NamedTuple):
    """Colour, dash and marker of an arm, by Plotly's names."""

    colour: str
    dash: str
    marker: str

    @property
    def on_paper(self) -> dict[str, Any]:
        """The style as Matplotlib's keyword arguments."""
        dashes = dict(zip(DASHES, ("-", "--", ":", "-."), strict=True))
        points = dict(zip(MARKERS, "osD^XvP*", strict=True))
        return {"color": self.colour, "linestyle": dashes[self.dash], "marker": points[self.marker], "markersize": 3}


def styles_of(arms: Sequence[str]) -> dict[str, Style]:
    """Return the style of each arm of a study.

    An arm, its tuned form and the names united with it have one colour, and differ in dash and marker. Eight arms
    differ in colour; of more, those of one colour differ in dash or marker.
    """
    families: dict[str, dict[str, None]] = {}
    for arm in arms:
        own = names_of(arm)
        families.setdefault(own[0].removesuffix(TUNED), {}).update(dict.fromkeys(own))
    found = {
        name: _style(number, variant)
        for number, names in enumerate(families.values())
        for variant, name in enumerate(names)
    }
    return found | {arm: found[names_of(arm)[0]] for arm in arms}


def _style(number: int, variant: int) -> Style:
    """Return the style of a variant of an arm: two are alike only beyond 32 arms or 8 variants."""
    count = len(COLOURS)
    turn = number + number // count + variant
    return Style(COLOURS[number % count], DASHES[turn % len(DASHES)], MARKERS[(number + variant) % len(MARKERS)])
