"""Curves of the arms, as means over seeds with their range, and artefacts of the arms' runs side by side."""

import base64
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from ablab.judge.document import Exhibits, Facets, LineOf, Matrices, MatrixOf, PictureOf, Series, TableOf
from ablab.judge.evidence import off_scale
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.store.artefacts import Artefact, MatrixArtefact, PictureArtefact, SeriesArtefact, TableArtefact
from ablab.store.records import Curve
from ablab.tasks.task import Chart

Points = Iterable[tuple[float, float]]


def pictured(selection: SelectedArms) -> list[Series]:
    """Return every chart of the task for which at least one arm has points."""
    loss = selection.loss
    charts = selection.task.charts(on_one_scale=loss is None or off_scale(selection.rows, loss) is None)
    found = [_series(selection, key, chart) for key, chart in charts.items()]
    return [series for series in found if series is not None]


def _series(selection: SelectedArms, key: str, chart: Chart) -> Series | None:
    arms = selection.arms if chart.source in READERS_OF_CURVES else selection.rows
    lines = [line for arm in arms if (line := line_of(arm, partial(_points, chart))) is not None]
    if not lines or (chart.is_flat_without and not any(max(line.high) for line in lines)):
        return None
    if chart.source == "validations" and all(len(line.x) == 1 for line in lines):
        return None  # of a score that is known at the end alone
    return Series(
        key=f"curve_{key}" if OURS.fullmatch(key) else key, title=chart.title, x=chart.x, y=chart.y, lines=lines
    )


OURS = re.compile(r"forest(_\d+)?|column_figure|tuning_.*")
"""Names of pictures that a report has beside the curves of a task, whose scores may be called so."""


READERS_OF_CURVES: Mapping[str, Callable[[ArmRun], Curve | None]] = {
    "layers": lambda run: run.curve,
    "heads": lambda run: run.head_curve,
}
"""The further curve of a run that a chart is drawn from, by the chart's source."""


def _points(chart: Chart, run: ArmRun) -> Points:
    """Return the points of a run."""
    if chart.source in READERS_OF_CURVES:
        curve = READERS_OF_CURVES[chart.source](run)
        return [] if curve is None else chart.read(curve)
    assert run.record is not None
    rows = run.record.validations if chart.source == "validations" else run.metrics
    return [(row["step"], row[chart.key]) for row in rows if chart.key in row]


def line_of(arm: ArmRuns, read: Callable[[ArmRun], Points]) -> LineOf | None:
    """Return the arm's mean and range at each x that every seed has: a mean over fewer would jump where one ends.

    Where runs diverged, it is that of the others, and marked.
    """
    at: defaultdict[float, list[float]] = defaultdict(list)
    curves = [points for run in arm.drawn if (points := dict(read(run)))]
    for curve in curves:
        for x, y in curve.items():
            at[x].append(y)
    shared = sorted(x for x, values in at.items() if len(values) == len(curves))
    if not shared:
        return None
    kept = _thinned(shared)
    low, high = [min(at[x]) for x in kept], [max(at[x]) for x in kept]
    digits = _digits([*low, *high], 6)
    return LineOf(
        arm=arm.name,
        mark=arm.mark(len(curves)),
        x=kept,
        mean=[round(sum(at[x]) / len(at[x]), digits) for x in kept],
        low=[round(each, digits) for each in low],
        high=[round(each, digits) for each in high],
    )


def _digits(values: Iterable[float], usual: int) -> int:
    """Return the digits after the point to which a picture has its values: more than the usual where all are small."""
    largest = max(map(abs, values), default=0.0)
    return usual if not 0 < largest < 0.1 else usual - 1 - math.floor(math.log10(largest))


MOST_POINTS = 200
"""Maximum points of a line. More would make the page heavier without showing more."""


def _thinned(xs: Sequence[float]) -> list[float]:
    step = -(-len(xs) // MOST_POINTS)
    return [*xs[:-1:step], xs[-1]]


MOST_ARMS = 8
"""Maximum arms shown side by side: the first of the selection."""

DIGITS = 4


class _Kin(NamedTuple):
    """Artefacts of one name, one kind and equal settings, by the ids of their runs."""

    key: str
    first: Artefact
    by_run: dict[str, Artefact]


def side_by_side(selection: SelectedArms) -> list[Facets | Matrices | Exhibits]:
    """Return every artefact that names a section, sorted by section and then by its own order."""
    families = sorted(_families(selection), key=lambda kin: (kin.first.section or "", kin.first.order, kin.key))
    return [_beside(kin, selection.rows) for kin in families]


def _beside(kin: _Kin, arms: Sequence[ArmRuns]) -> Facets | Matrices | Exhibits:
    if isinstance(kin.first, SeriesArtefact):
        return _facets(kin, kin.first, arms)
    return _matrices(kin, kin.first, arms) if isinstance(kin.first, MatrixArtefact) else _shown(kin, kin.first, arms)


def _families(selection: SelectedArms) -> list[_Kin]:
    found: dict[tuple[str, str, str], _Kin] = {}
    for arm in selection.arms:
        for run in arm.finished:
            for key, artefact in run.artefacts.items():
                settings = json.dumps(artefact.settings, sort_keys=True)
                alike = sum(1 for name, *_ in found if name == key)
                kin = found.setdefault(
                    (key, artefact.kind, settings), _Kin(f"{key}-{alike + 1}" if alike else key, artefact, {})
                )
                kin.by_run[run.folder.run_id] = artefact
    return list(found.values())


def _facets(kin: _Kin, first: SeriesArtefact, arms: Sequence[ArmRuns]) -> Facets:
    """Return a panel for each line that any of the runs has."""
    every = [artefact for artefact in kin.by_run.values() if isinstance(artefact, SeriesArtefact)]
    labels = dict.fromkeys(trace.label for artefact in every for trace in artefact.series)
    names = {trace.label: trace.names for artefact in every for trace in artefact.series}

    def points(label: str, run: ArmRun) -> Points:
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
    """Return a panel for each arm."""
    every = [artefact for artefact in kin.by_run.values() if isinstance(artefact, MatrixArtefact)]
    slices = list(dict.fromkeys(part.label for artefact in every for part in artefact.slices))
    having = [arm for arm in arms if any(run.folder.run_id in kin.by_run for run in arm.finished)]
    of_one = dict.fromkeys(part.label for artefact in every for part in artefact.slices if part.of_one_run)
    panels = [_of_arm(arm, kin.by_run, slices, of_one) for arm in having[:MOST_ARMS]]
    others = chain(panels[1:], (_of_arm(arm, kin.by_run, slices, of_one) for arm in having[MOST_ARMS:]))
    alike = len(having) > 1 and all(_equal(panel, panels[0]) for panel in others)
    panels = [_rounded(panel) for panel in (panels[:1] if alike else panels)]
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
        left_out=0 if alike else len(having[MOST_ARMS:]),
        of_one=list(of_one),
        alike=len(having) if alike else 0,
    )


def _equal(one: MatrixOf, other: MatrixOf) -> bool:
    """Return whether two arms have the same picture, as those have whose positions are fixed."""
    own = {"arm", "mark", "seeds"}
    return one.model_dump(exclude=own) == other.model_dump(exclude=own)


def _of_arm(arm: ArmRuns, by_run: Mapping[str, Artefact], slices: Sequence[str], of_one: Collection[str]) -> MatrixOf:
    """Return the mean over seeds, of slices in `of_one` the first run's.

    Rows with interchangeable columns are sorted first, and lose their labels.
    """
    found = [artefact for run in arm.finished if isinstance(artefact := by_run.get(run.folder.run_id), MatrixArtefact)]
    first = found[0]
    alike = [
        artefact for artefact in found if (artefact.x.labels, artefact.y.labels) == (first.x.labels, first.y.labels)
    ]
    ranks = [str(number) for number in range(1, len(first.x.labels) + 1)]
    return MatrixOf(
        arm=arm.name,
        mark=arm.mark(len(alike)),
        seeds=1 if len(of_one) == len(slices) else len(alike),
        rows=first.y.labels,
        columns=ranks if first.interchangeable else first.x.labels,
        slices=[
            _mean(
                [values for artefact in alike[: 1 if label in of_one else None] if (values := _slice(artefact, label))]
            )
            for label in slices
        ],
        cells=[part.cells for part in first.slices if part.cells],
    )


def _shown(kin: _Kin, first: TableArtefact | PictureArtefact, arms: Sequence[ArmRuns]) -> Exhibits:
    """Return a panel for each arm: what its first run has that has one."""
    having = [(arm, run) for arm in arms if (run := _first(arm, kin)) is not None]
    return Exhibits(
        kind=first.kind,
        key=kin.key,
        section=first.section or "",
        title=first.title,
        about=first.about,
        panels=[_panel(arm, run, kin.by_run[run.folder.run_id]) for arm, run in having[:MOST_ARMS]],
        left_out=len(having[MOST_ARMS:]),
    )


def _first(arm: ArmRuns, kin: _Kin) -> ArmRun | None:
    return next((run for run in arm.finished if run.folder.run_id in kin.by_run), None)


def _panel(arm: ArmRuns, run: ArmRun, artefact: Artefact) -> TableOf | PictureOf:
    if isinstance(artefact, TableArtefact):
        return TableOf(arm=arm.name, mark=arm.mark(1), seed=run.seed, columns=artefact.columns, rows=artefact.rows)
    assert isinstance(artefact, PictureArtefact)
    path = run.folder.artefacts / artefact.file
    kind = {".png": "png", ".svg": "svg+xml"}[path.suffix]
    source = f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return PictureOf(arm=arm.name, mark=arm.mark(1), seed=run.seed, source=source)


def _slice(artefact: MatrixArtefact, label: str) -> list[list[float]] | None:
    for part in artefact.slices:
        if part.label == label:
            return [sorted(row, reverse=True) for row in part.values] if artefact.interchangeable else part.values
    return None


def _mean(matrices: Sequence[list[list[float]]]) -> list[list[float]] | None:
    if not matrices:
        return None
    return [
        [math.fsum(cells) / len(cells) for cells in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)
    ]


def _rounded(panel: MatrixOf) -> MatrixOf:
    """Return the panel as a page draws it."""
    values = [value for part in panel.slices for row in part or () for value in row]
    digits = _digits(values, DIGITS)
    slices = [part and [[round(value, digits) for value in row] for row in part] for part in panel.slices]
    return panel.model_copy(update={"slices": slices})
