"""Files of a run's pruning curves, of layers and of heads apart.

One table and one picture of all strategies under one test set and search.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ablab.files import csv_text, write_text
from ablab.store.artefacts import Axis, SeriesArtefact, Trace, write_artefact
from ablab.store.records import Curve, Point
from ablab.store.run_folder import RunFolder
from ablab.tasks.identity import distinct
from ablab.transformer.pruning.plot import HEADS, Line, draw, lines_of, quality_at, remaining

DIGITS = {"loss": 5}
"""Digits of a validation score in the table, where they are not 4."""


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
    """Return the latest curve of each label that is comparable with `with_one`, which is that of its own.

    Both are of layers or both of heads, on the same test set, with the same search.
    """

    def evaluation(curve: Curve) -> dict[str, Any]:
        return {key: value for key, value in curve.settings.items() if key != "pruning"}

    like = (with_one.of_heads, evaluation(with_one))
    same = [curve for curve in (*curves, with_one) if (curve.of_heads, evaluation(curve)) == like]
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
            **{f"test_{key}": round(point.scores[key], 4) for key in quality_at(point).tested},
            **{f"valid_{key}": round(point.valid[key], DIGITS.get(key, 4)) for key in quality_at(point).validated},
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


def curve_table(curve: Curve) -> tuple[list[list[str]], int]:
    """Return the points of a pruning curve: layers counted from 1, or numbers of heads; and the columns of text."""
    full = curve.points[0]
    quality, stacks = quality_at(full), ["encoder", "decoder"] if full.encoder else ["decoder"]
    kept = [*stacks, "cross"] if curve.of_heads and full.encoder else stacks
    heading = [curve.label, *kept, "parameters", *quality.tested.values(), quality.speed, "speed"]
    rows = [
        [
            *(_of_heads(point, kept) if curve.of_heads else _of_layers(point, full, stacks)),
            f"{point.parameters:,}",
            *(f"{point.scores[key]:.{quality.digits}f}" for key in quality.tested),
            f"{point.sentences_per_second:,.0f}",
            f"{point.speed_ratio:.2f}x",
        ]
        for point in curve.points
    ]
    return [heading, *rows], 1 + len(kept)


def notes_on_curve(curve: Curve) -> list[str]:
    """Say among how many sets a search chose, and how precise its speeds are; older curves do not know."""
    what = "heads" if curve.of_heads else "layers"
    found = [f"Chosen on validation among {curve.combinations} sets of {what}: searching overfits"]
    error = curve.timing.get("error")
    precise = [] if error is None else [f"Speeds relative to the whole model are within {200 * error:.0f} %"]
    return [*(found if curve.combinations else []), *precise]


def _of_layers(point: Point, full: Point, stacks: Sequence[str]) -> list[str]:
    """Return the curve, and the layers that remain of each stack."""
    named = {"both": "both stacks"}.get(point.curve, f"{point.curve} alone")
    both = ((getattr(point, stack), getattr(full, stack)) for stack in stacks)
    return [named, *("all" if len(kept) == len(whole) else written(kept) for kept, whole in both)]


def _of_heads(point: Point, sites: Sequence[str]) -> list[str]:
    """Return how many heads remain: in all, and in each layer of each site."""
    assert point.heads is not None
    each = [[len(heads) for heads in point.heads[site]] for site in sites]
    return [f"{sum(map(sum, each))} heads", *(" ".join(map(str, counts)) for counts in each)]


def write_artefacts(folder: RunFolder, latest: Curve, title: str) -> None:
    """Write the table, series and picture of all curves comparable with the latest."""
    curves = comparable([*folder.curves(), latest], latest)
    write_csv(folder.artefacts / f"{stem(latest)}.csv", rows(curves))
    lines = lines_of(curves)
    about = f"{title}\n{tested(latest)}"
    write_artefact(folder.artefacts / f"{stem(latest)}.json", series(lines, about))
    draw(lines, about, picture(folder, latest))


def write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    """Write a header and a row per point."""
    columns = list(table[0])
    write_text(path, csv_text([columns, *([row[column] for column in columns] for row in table)]))


def tested(curve: Curve) -> str:
    """Return the test set, and the search that translated it if any did: `greedy`, or `beam 4`."""
    beam = curve.settings.get("decoding", {}).get("beam_size")
    return curve.test_name if beam is None else f"{curve.test_name}, {'greedy' if beam == 1 else f'beam {beam}'}"


def series(lines: Sequence[Line], title: str) -> SeriesArtefact:
    """Return the curves as a generic artefact."""
    return SeriesArtefact(
        title=title,
        x=Axis(title="heads kept" if lines[0].curve == HEADS else "layers kept"),
        y=Axis(title=quality_at(lines[0].points[0]).title),
        series=[
            Trace(
                label=f"{line.curve}: {line.label}",
                x=[remaining(point) for point in line.points],
                y=[round(point.scores[quality_at(point).key], 4) for point in line.points],
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
    draw(lines, tested(first), path)
    table = [{"run": run.run_id, "name": run.name, **row} for run in runs for row in rows(run.curves)]
    write_csv(path.with_suffix(".csv"), table)
    return path
