"""Files of a run's pruning curves, of layers and of heads apart.

One table and one picture of all strategies under one test set and search.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ablab.files import write_text
from ablab.store.artefacts import Axis, SeriesArtefact, Trace, write_artefact
from ablab.store.records import Curve, Point
from ablab.store.run_folder import RunFolder
from ablab.tasks.identity import distinct
from ablab.transformer.pruning.plot import HEADS, Line, draw, lines_of, remaining

MEASURED = (
    *("parameters", "bytes", "test_set", "test_bleu", "test_chrf", "valid_loss", "valid_bleu"),
    *("sentences_per_second", "speed_ratio", "combinations"),
)

COLUMNS = ("strategy", "curve", "layers", "encoder", "decoder", *MEASURED)

HEAD_COLUMNS = ("strategy", "heads", "encoder", "decoder", "cross", *MEASURED)
"""Columns of curves of heads; the sites name which heads of each layer remain."""


def columns(curve: Curve) -> tuple[str, ...]:
    """Return the columns of the curve's table."""
    return HEAD_COLUMNS if curve.of_heads else COLUMNS


def stem(curve: Curve) -> str:
    """Return the name, without its ending, of the curve's table and picture."""
    return "heads_quality" if curve.of_heads else "depth_quality"


def picture(folder: RunFolder, curve: Curve) -> Path:
    """Return the picture of the run's curves of this kind."""
    return folder.artefacts / f"{stem(curve)}.png"


def written(kept: Sequence[int]) -> str:
    """Write indices as `1 3 5`, counted from 1 as in the papers."""
    return " ".join(str(layer + 1) for layer in kept)


def comparable(curves: Sequence[Curve], with_one: Curve) -> list[Curve]:
    """Return the latest curve of each label that is comparable with `with_one`.

    Both are of layers or both of heads, on the same test set, with the same search.
    """

    def evaluation(curve: Curve) -> dict[str, Any]:
        return {key: value for key, value in curve.settings.items() if key != "pruning"}

    same = [
        curve for curve in curves if curve.of_heads == with_one.of_heads and evaluation(curve) == evaluation(with_one)
    ]
    first = ("every_other", "importance")
    return sorted({curve.label: curve for curve in same}.values(), key=lambda curve: curve.label not in first)


def rows(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return the table, a row per point. Layers and heads count from 1 here, as in the papers."""
    return [
        {
            "strategy": curve.label,
            **kept(point),
            "parameters": point.parameters,
            "bytes": point.bytes,
            "test_set": curve.test_name,
            "test_bleu": round(point.scores["bleu"], 4),
            "test_chrf": round(point.scores["chrf"], 4),
            "valid_loss": round(point.valid["loss"], 5),
            "valid_bleu": round(point.valid["bleu"], 4),
            "sentences_per_second": round(point.sentences_per_second, 2),
            "speed_ratio": round(point.speed_ratio, 3),
            "combinations": curve.combinations,
        }
        for curve in curves
        for point in curve.points
    ]


def kept(point: Point) -> dict[str, Any]:
    """Return the columns that say what remains: heads as `1 3 | 2`, layer by layer."""
    if point.heads is None:
        stacks = {"encoder": written(point.encoder), "decoder": written(point.decoder)}
        return {"curve": point.curve, "layers": remaining(point), **stacks}
    return {
        "heads": remaining(point),
        **{site: " | ".join(map(written, layers)) for site, layers in point.heads.items()},
    }


def write_artefacts(folder: RunFolder, latest: Curve, title: str) -> None:
    """Write the table, series and picture of all curves comparable with the latest."""
    curves = comparable([*folder.curves(), latest], latest)
    write_csv(folder.artefacts / f"{stem(latest)}.csv", rows(curves))
    lines = lines_of(curves)
    about = f"{title}\n{latest.test_name}, {searched(latest)}"
    write_artefact(folder.artefacts / f"{stem(latest)}.json", series(lines, about))
    draw(lines, about, picture(folder, latest))


def write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    """Write a header and a row per point."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    write_text(path, text.getvalue())


def searched(curve: Curve) -> str:
    """Return the search that translated the test sentences: `greedy`, or `beam 4`."""
    beam = curve.settings["decoding"]["beam_size"]
    return "greedy" if beam == 1 else f"beam {beam}"


def series(lines: Sequence[Line], title: str) -> SeriesArtefact:
    """Return the curves as a generic artefact."""
    return SeriesArtefact(
        title=title,
        x=Axis(title="heads kept" if lines[0].curve == HEADS else "layers kept"),
        y=Axis(title="test BLEU"),
        series=[
            Trace(
                label=f"{line.curve}: {line.label}",
                x=[remaining(point) for point in line.points],
                y=[round(point.scores["bleu"], 4) for point in line.points],
            )
            for line in lines
        ],
    )


class Pruned(NamedTuple):
    """A run's id, display name and curves."""

    run_id: str
    name: str
    curves: Sequence[Curve]


def draw_several(runs: Sequence[Pruned], path: Path) -> Path:
    """Write the picture, and the table beside it under the same stem. All curves have one test set and search."""
    first = runs[0].curves[0]
    names = distinct([run.name for run in runs])
    lines = [
        line
        for name, run in zip(names, runs, strict=True)
        for line in lines_of(run.curves, name if len(runs) > 1 else "")
    ]
    draw(lines, f"{first.test_name}, {searched(first)}", path)
    table = [{"run": run.run_id, "name": run.name, **row} for run in runs for row in rows(run.curves)]
    write_csv(path.with_suffix(".csv"), table)
    return path
