"""Artefacts of the arms' runs beside each other, by kind: what they show is in their titles."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ablab.report.document import Facets, Matrices, MatrixOf, Series
from ablab.report.pictured import Points, line_of
from ablab.report.selection import ArmRuns, Run, Selection
from ablab.store.artefacts import Artefact, MatrixArtefact, SeriesArtefact, comparable_artefacts

MOST_ARMS = 8
"""Side by side; the first of the selection."""

DIGITS = 4


class _Kin(NamedTuple):
    """Artefacts of one name, one kind and equal settings, by the ids of their runs."""

    key: str
    first: Artefact
    by_run: dict[str, Artefact]


def side_by_side(selection: Selection) -> list[Facets | Matrices]:
    """Every artefact that names a section, by section, and there in its own order."""
    families = sorted(_families(selection), key=lambda kin: (kin.first.section or "", kin.first.order, kin.key))
    return [
        _facets(kin, kin.first, selection.rows)
        if isinstance(kin.first, SeriesArtefact)
        else _matrices(kin, kin.first, selection.rows)
        for kin in families
    ]


def _families(selection: Selection) -> list[_Kin]:
    found: dict[tuple[str, str, str], _Kin] = {}
    for arm in selection.arms:
        for run in arm.finished:
            for key, artefact in comparable_artefacts(run.folder.artefacts).items():
                settings = json.dumps(artefact.settings, sort_keys=True)
                alike = sum(1 for name, *_ in found if name == key)
                kin = found.setdefault(
                    (key, artefact.kind, settings), _Kin(f"{key}-{alike + 1}" if alike else key, artefact, {})
                )
                kin.by_run[run.folder.run_id] = artefact
    return list(found.values())


def _facets(kin: _Kin, first: SeriesArtefact, arms: Sequence[ArmRuns]) -> Facets:
    """A panel for each line that any of the runs has."""
    every = [artefact for artefact in kin.by_run.values() if isinstance(artefact, SeriesArtefact)]
    labels = dict.fromkeys(trace.label for artefact in every for trace in artefact.series)
    names = {trace.label: trace.names for artefact in every for trace in artefact.series}

    def points(label: str, run: Run) -> Points:
        artefact = kin.by_run.get(run.folder.run_id)
        traces = artefact.series if isinstance(artefact, SeriesArtefact) else []
        return [point for trace in traces if trace.label == label for point in zip(trace.x, trace.y, strict=True)]

    panels = []
    for number, label in enumerate(labels, 1):
        lines = [line_of(arm, partial(points, label)) for arm in arms]
        panels.append(
            Series(
                key=f"{kin.key}-{number}",
                title=label,
                x="" if names[label] else first.x.title,
                y=first.y.title,
                lines=[line for line in lines if line is not None],
                names=names[label],
            )
        )
    return Facets(key=kin.key, section=first.section or "", title=first.title, about=first.about, panels=panels)


def _matrices(kin: _Kin, first: MatrixArtefact, arms: Sequence[ArmRuns]) -> Matrices:
    """A panel for each arm."""
    every = [artefact for artefact in kin.by_run.values() if isinstance(artefact, MatrixArtefact)]
    slices = list(dict.fromkeys(part.label for artefact in every for part in artefact.slices))
    having = [arm for arm in arms if any(run.folder.run_id in kin.by_run for run in arm.finished)]
    panels = [_of_arm(arm, kin.by_run, slices) for arm in having[:MOST_ARMS]]
    values = [value for panel in panels for part in panel.slices if part is not None for row in part for value in row]
    return Matrices(
        key=kin.key,
        section=first.section or "",
        title=first.title,
        about=first.about,
        x=f"{first.x.title}, largest first" if first.interchangeable else first.x.title,
        y=first.y.title,
        value=first.value,
        ranked=first.interchangeable,
        low=min(0.0, *values),
        high=max(values),
        slices=slices,
        panels=panels,
        left_out=len(having[MOST_ARMS:]),
    )


def _of_arm(arm: ArmRuns, by_run: Mapping[str, Artefact], slices: Sequence[str]) -> MatrixOf:
    """Mean over the seeds. Rows whose columns are interchangeable are sorted before, and lose their labels."""
    found = [artefact for run in arm.finished if isinstance(artefact := by_run.get(run.folder.run_id), MatrixArtefact)]
    first = found[0]
    alike = [
        artefact for artefact in found if (artefact.x.labels, artefact.y.labels) == (first.x.labels, first.y.labels)
    ]
    ranks = [str(number) for number in range(1, len(first.x.labels) + 1)]
    return MatrixOf(
        arm=arm.name,
        seeds=len(alike),
        rows=first.y.labels,
        columns=ranks if first.interchangeable else first.x.labels,
        slices=[_mean([values for artefact in alike if (values := _slice(artefact, label))]) for label in slices],
    )


def _slice(artefact: MatrixArtefact, label: str) -> list[list[float]] | None:
    for part in artefact.slices:
        if part.label == label:
            return [sorted(row, reverse=True) for row in part.values] if artefact.interchangeable else part.values
    return None


def _mean(matrices: Sequence[list[list[float]]]) -> list[list[float]] | None:
    if not matrices:
        return None
    return [
        [round(math.fsum(cells) / len(cells), DIGITS) for cells in zip(*rows, strict=True)]
        for rows in zip(*matrices, strict=True)
    ]
