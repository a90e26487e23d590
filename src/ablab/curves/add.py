"""Adds a depth-quality curve to a finished run: measured, drawn, mirrored."""

from ablab.curves.artefacts import PICTURE, mirror_curve, write_artefacts
from ablab.curves.measure import measure
from ablab.plan import Planned
from ablab.screen import Screen
from ablab.store.records import Curve, Record
from ablab.tracking.tracker import Mirror


def add_curve(planned: Planned, record: Record, screen: Screen, mirror: Mirror) -> Curve:
    """As the configuration asks; the table and the picture then show it beside the run's other curves."""
    curve = measure(planned, record, screen)
    write_artefacts(planned.folder, curve, record.name)
    mirror_curve(mirror, record.cost.steps, curve, planned.folder.artefacts / PICTURE)
    # Last: a curve that can be read is one that is drawn.
    planned.folder.write_curve(curve)
    return curve
