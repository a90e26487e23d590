"""How arms look."""

from typing import NamedTuple

from ablab.report.document import Document
from ablab.study.arms import SAME

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Okabe and Ito (2008), told apart with any kind of colour vision; yellow and black give way to the page."""

DASHES = ("solid", "dash", "dot", "dashdot")


class Style(NamedTuple):
    """How an arm is drawn; the dash has Plotly's name."""

    colour: str
    dash: str


def styles(document: Document) -> dict[str, Style]:
    """Colour and dash of each arm, the same in every picture."""
    names = dict.fromkeys(name for arm in document.arms for name in (arm.name, *arm.name.split(SAME)))
    count = len(COLOURS)
    return {
        name: Style(COLOURS[number % count], DASHES[number // count % len(DASHES)]) for number, name in enumerate(names)
    }
