"""The picture of pruning curves, of one run or of several together."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ablab.files import COLOURS, write_picture
from ablab.store.records import Curve, Point
from ablab.tasks.registry import known_tasks


class Quality(NamedTuple):
    """What a curve is a curve of: a score on the test set, with its unit, digits and direction.

    `tested`: titles of the scores of each point on the test set, by key; `validated`: keys of those on validation;
    `speed`: unit of the speed. `close`: what a smaller model may lose of it on validation and still be called as good.
    """

    key: str
    unit: str
    digits: int
    higher_is_better: bool
    tested: Mapping[str, str]
    validated: Sequence[str]
    speed: str
    close: float

    @property
    def title(self) -> str:
        """Its name in pictures and tables."""
        return f"test {self.unit}"


def quality_at(point: Point) -> Quality:
    """Return the quality that a point of a curve has, of those that the tasks name."""
    named = (getattr(task, "quality", None) for task in known_tasks())
    return next(one for one in named if isinstance(one, Quality) and one.key in point.scores)


class Line(NamedTuple):
    """One line of a picture: a run under one strategy along one curve, the shallowest point first."""

    run: str
    strategy: str
    curve: str
    points: list[Point]

    @property
    def label(self) -> str:
        """Name of the line in the legend."""
        return f"{self.run}: {self.strategy}" if self.run else self.strategy


HEADS = "heads"
"""The name of curves along which heads are removed."""


def remaining(point: Point) -> int:
    """Return the x of a point: layers of the stack that shrinks, or of the deeper stack where both do; or all heads."""
    if point.heads is not None:
        return sum(len(heads) for layers in point.heads.values() for heads in layers)
    both = {"encoder": point.encoder, "decoder": point.decoder}
    return max(len(stack) for stack in both.values()) if point.curve == "both" else len(both[point.curve])


def lines_of(curves: Sequence[Curve], run: str = "") -> list[Line]:
    """Return a line per strategy and curve."""
    found = []
    for curve in curves:
        for name, points in groupby(curve.points, key=lambda point: point.curve):
            found.append(Line(run, curve.label, name, sorted(points, key=remaining)))
    return found


MAIN = ("every_other", "importance", "search", "data_driven")
"""Strategies drawn with strong lines; the others, controls among them, are drawn fainter."""

DASHES = ("-", (0, (6, 2)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (4, 1, 1, 1, 1, 1)), (0, (2, 2)), (0, (8, 1)))


class Styles:
    """Line styles. One run: a colour per strategy. Several: a colour per run, and a dash per strategy."""

    def __init__(self, lines: Sequence[Line], colours: Mapping[str, str]) -> None:
        self.runs = list(dict.fromkeys(line.run for line in lines))
        self.strategies = list(dict.fromkeys(family(line.strategy) for line in lines))
        coloured = self.runs if len(self.runs) > 1 else self.strategies
        self.colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(coloured)} | dict(colours)

    def of(self, run: str, strategy: str) -> dict[str, Any]:
        """Return the style as keyword arguments for Matplotlib."""
        several = len(self.runs) > 1
        number = self.strategies.index(strategy)
        strong = strategy in MAIN
        return {
            "color": self.colours[run if several else family(strategy)],
            "linestyle": DASHES[number % len(DASHES)] if several else "-",
            "marker": "o" if strong else ".",
            "linewidth": 1.8 if strong else 0.9,
            "alpha": 1.0 if strong else 0.65,
            "markersize": 4,
        }

    def legend(self) -> tuple[list[Any], list[str]]:
        """Return handles and names: of the runs, where there are several, and of the strategies."""
        from matplotlib.lines import Line2D

        styles = [self.of(self.runs[0], strategy) for strategy in self.strategies]
        if len(self.runs) == 1:
            return [Line2D([], [], **style) for style in styles], self.strategies
        colours = [Line2D([], [], color=self.colours[run], linewidth=3) for run in self.runs]
        dashes = [Line2D([], [], **{**style, "color": "black"}) for style in styles]
        return [*colours, *dashes], [*self.runs, *self.strategies]


def draw(lines: Sequence[Line], title: str, path: Path, colours: Mapping[str, str] = MappingProxyType({})) -> None:
    """Draw quality against what remains, a panel per curve; below, the speed relative to the full model.

    `colours`: those that runs already have.
    """
    from matplotlib.figure import Figure

    styles = Styles(lines, colours)
    names = list(dict.fromkeys(line.curve for line in lines))
    figure = Figure(figsize=(1.0 + 5.6 * len(names), 7.4), layout="constrained")
    quality = quality_at(lines[0].points[0])
    panels = figure.subplots(2, len(names), squeeze=False, sharex="col", sharey="row", height_ratios=(2.6, 1))
    for column, name in enumerate(names):
        drawn = [line for line in lines if line.curve == name]
        _draw_curve(drawn, quality.key, styles, name, panels[0][column], panels[1][column])
    panels[0][0].set_ylabel(quality.title)
    panels[1][0].set_ylabel(f"decoding speed, {styles.strategies[0]}\n(full model: 1)")
    panels[0][-1].legend(*styles.legend(), fontsize="small", loc="lower right")
    figure.suptitle(title, fontsize="medium")
    write_picture(path, figure)


def _draw_curve(lines: Sequence[Line], key: str, styles: Styles, name: str, quality: Any, speed: Any) -> None:
    """Draw one column: quality of every strategy, and speed of the first alone, since speed depends on depth."""
    for line in lines:
        x = [remaining(point) for point in line.points]
        style = styles.of(line.run, family(line.strategy))
        quality.plot(x, [point.scores[key] for point in line.points], **style)
        if family(line.strategy) == styles.strategies[0]:
            speed.plot(x, [point.speed_ratio for point in line.points], **style)
    quality.set_title(TITLES.get(name, f"{name} alone"))
    speed.set_xlabel(AXES.get(name, f"{name} layers kept"))
    speed.xaxis.get_major_locator().set_params(integer=True)
    speed.axhline(1.0, color="grey", linewidth=0.8)
    quality.grid(alpha=0.3)
    speed.grid(alpha=0.3)


TITLES = {"both": "both stacks", HEADS: "heads of all attentions"}

AXES = {"both": "layers kept (of the deeper stack)", HEADS: "heads kept of the whole model"}


def family(strategy: str) -> str:
    """Return the strategy without its seed: seeds of one strategy have the same style."""
    return strategy.partition(",")[0]
