"""What a run's curves look like: one table and one picture of all strategies under one test set and search."""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ablab.files import write_json, write_text
from ablab.mirror import Mirror
from ablab.record import Curve, Point
from ablab.store import RunFolder

COLUMNS = (
    *("strategy", "curve", "layers", "encoder", "decoder", "parameters", "bytes"),
    *("test_set", "test_bleu", "test_chrf", "valid_loss", "valid_bleu"),
    *("sentences_per_second", "speed_ratio", "combinations"),
)


PICTURE = "depth_quality.png"


class Line(NamedTuple):
    """One line of a picture: a run under one strategy along one curve, the shallowest point first."""

    run: str
    strategy: str
    curve: str
    points: list[Point]

    @property
    def label(self) -> str:
        """In one word."""
        return f"{self.run}: {self.strategy}" if self.run else self.strategy


def layers(point: Point) -> int:
    """The x of a point: layers of the stack that shrinks, of the deeper one where both do."""
    both = {"encoder": point.encoder, "decoder": point.decoder}
    return max(len(stack) for stack in both.values()) if point.curve == "both" else len(both[point.curve])


def written(kept: Sequence[int]) -> str:
    """`1 3 5`: layers as the papers count them."""
    return " ".join(str(layer + 1) for layer in kept)


def comparable(curves: Sequence[Curve], with_one: Curve) -> list[Curve]:
    """Those whose points were evaluated as this one's: the same test set, the same search. The latest of each label."""

    def evaluation(curve: Curve) -> dict[str, Any]:
        return {key: value for key, value in curve.settings.items() if key != "pruning"}

    same = [curve for curve in curves if evaluation(curve) == evaluation(with_one)]
    return sorted({curve.label: curve for curve in same}.values(), key=lambda curve: curve.label != "every_other")


def lines_of(curves: Sequence[Curve], run: str = "") -> list[Line]:
    """A line per strategy and curve."""
    found = []
    for curve in curves:
        for name, points in groupby(curve.points, key=lambda point: point.curve):
            found.append(Line(run, curve.label, name, sorted(points, key=layers)))
    return found


def rows(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """The table, a row per point. `layers` from 1 here, as in the papers."""
    return [
        {
            "strategy": curve.label,
            "curve": point.curve,
            "layers": layers(point),
            "encoder": written(point.encoder),
            "decoder": written(point.decoder),
            "parameters": point.parameters,
            "bytes": point.bytes,
            "test_set": curve.test_name,
            "test_bleu": round(point.bleu, 4),
            "test_chrf": round(point.chrf, 4),
            "valid_loss": round(point.valid_loss, 5),
            "valid_bleu": round(point.valid_bleu, 4),
            "sentences_per_second": round(point.sentences_per_second, 2),
            "speed_ratio": round(point.speed_ratio, 3),
            "combinations": curve.combinations,
        }
        for curve in curves
        for point in curve.points
    ]


def write_artefacts(folder: RunFolder, latest: Curve, title: str) -> None:
    """depth_quality.csv, .json and .png, from all curves that can stand beside the latest."""
    curves = comparable([*folder.curves(), latest], latest)
    write_csv(folder.artefacts / "depth_quality.csv", rows(curves))
    lines = lines_of(curves)
    about = f"{title}\n{latest.test_name}, {searched(latest)}"
    write_json(folder.artefacts / "depth_quality.json", series(lines, about))
    draw(lines, about, folder.artefacts / PICTURE)


def write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    """A header and a row per point."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS if not table else list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    write_text(path, text.getvalue())


def searched(curve: Curve) -> str:
    """How the test sentences were translated."""
    beam = curve.settings["decoding"]["beam_size"]
    return "greedy" if beam == 1 else f"beam {beam}"


def series(lines: Sequence[Line], title: str) -> dict[str, Any]:
    """The same as a generic artefact."""
    return {
        "kind": "series",
        "title": title,
        "x": {"title": "layers kept"},
        "y": {"title": "test BLEU"},
        "series": [
            {
                "label": f"{line.curve}: {line.label}",
                "x": [layers(point) for point in line.points],
                "y": [round(point.bleu, 4) for point in line.points],
            }
            for line in lines
        ],
    }


MAIN = ("every_other", "search", "data_driven")
"""Strategies whose lines are strong; those of the others, controls among them, step back."""


def draw(lines: Sequence[Line], title: str, path: Path) -> None:
    """Test BLEU against depth, a panel per curve, and below it how much faster decoding is.

    One run: a colour per strategy. Several: a colour per run, and a kind of line per strategy.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(line.curve for line in lines))
    runs = list(dict.fromkeys(line.run for line in lines))
    strategies = list(dict.fromkeys(_family(line.strategy) for line in lines))
    several = len(runs) > 1

    def style(run: str, family: str) -> dict[str, Any]:
        colour = runs.index(run) if several else strategies.index(family)
        kind = LINES[strategies.index(family) % len(LINES)] if several else "-"
        strong = family in MAIN
        return {
            "color": f"C{colour % 10}",
            "linestyle": kind,
            "marker": "o" if strong else ".",
            "linewidth": 1.8 if strong else 0.9,
            "alpha": 1.0 if strong else 0.65,
            "markersize": 4,
        }

    figure = Figure(figsize=(1.0 + 5.6 * len(names), 7.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, len(names), squeeze=False, sharex="col", sharey="row", height_ratios=(2.6, 1))
    for column, name in enumerate(names):
        quality, speed = panels[0][column], panels[1][column]
        for line in (line for line in lines if line.curve == name):
            x = [layers(point) for point in line.points]
            look = style(line.run, _family(line.strategy))
            quality.plot(x, [point.bleu for point in line.points], **look)
            if _family(line.strategy) == strategies[0]:
                speed.plot(x, [point.speed_ratio for point in line.points], **look)
        quality.set_title({"both": "both stacks"}.get(name, f"{name} alone"))
        speed.set_xlabel("layers kept (of the deeper stack)" if name == "both" else f"{name} layers kept")
        speed.xaxis.get_major_locator().set_params(integer=True)
        speed.axhline(1.0, color="grey", linewidth=0.8)
        quality.grid(alpha=0.3)
        speed.grid(alpha=0.3)
    panels[0][0].set_ylabel("test BLEU")
    panels[1][0].set_ylabel(f"decoding speed, {strategies[0]}\n(full model: 1)")
    keys = [
        Line2D([], [], **{**style(runs[0], family), **({"color": "black"} if several else {})}) for family in strategies
    ]
    named = list(strategies)
    if several:
        keys = [Line2D([], [], color=f"C{number % 10}", linewidth=3) for number in range(len(runs))] + keys
        named = [*runs, *named]
    panels[0][-1].legend(keys, named, fontsize="small", loc="lower right")
    figure.suptitle(title, fontsize="medium")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


LINES = ("-", (0, (6, 2)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (4, 1, 1, 1, 1, 1)), (0, (2, 2)), (0, (8, 1)))


def _family(strategy: str) -> str:
    """Seeds of one strategy look alike."""
    return strategy.partition(",")[0]


def mirror_curve(mirror: Mirror, step: int, curve: Curve, picture: Path) -> None:
    """The table, the picture, and a line per curve along its own axis: a dashboard lays those of runs side by side."""
    table = rows([curve])
    mirror.table(step, f"pruning/{curve.label}", list(COLUMNS), [list(row.values()) for row in table])
    mirror.picture(step, "pruning/depth_quality", picture, "test BLEU and decoding speed by depth")
    for line in lines_of([curve]):
        for point in line.points:
            figures = {"test_bleu": point.bleu, "speed_ratio": point.speed_ratio, "valid_loss": point.valid_loss}
            mirror.along(
                f"{line.curve}_layers",
                layers(point),
                {f"pruning/{line.curve}/{line.label}/{key}": value for key, value in figures.items()},
            )
